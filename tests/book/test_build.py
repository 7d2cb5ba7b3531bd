"""The build itself: no warning, one run of each chapter, nothing of the solutions."""

import re

from .conftest import ROOT


def test_the_build_gives_no_warning(html):
    log = (ROOT / "_build" / "logs" / "book.log").read_text(errors="replace")
    assert re.findall(r"^.*(?:WARNING|ERROR): .*$", log, flags=re.MULTILINE) == []


def test_mathjax_is_the_books_own(html):
    page = (html / "book" / "notation.html").read_text()
    assert re.search(r'<script[^>]*src="\.\./_static/mathjax/tex-chtml-full\.js', page)
    assert (html / "_static" / "mathjax" / "LICENSE").exists()


def test_every_vendored_folder_carries_its_licence():
    for folder in ("fonts", "mathjax"):
        assert (ROOT / "book" / "_static" / folder / "LICENSE").stat().st_size > 1000
