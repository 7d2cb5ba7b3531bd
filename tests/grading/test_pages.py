"""No text of a student's makes a page of feedback or formgrader slow or large."""

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets.config import PyFileConfigLoader

from encoder_grader import pages
from encoder_grader.pages import CUT, LONGEST, MOST_HTML, RENDERED, SHOWN, code2html, markdown2html
from tests.grading.conftest import ROOT

COLOURED = '<span class="'


def page_of(*cells):
    """The HTML of a notebook, made as nbgrader makes it, with the course's own configuration."""
    config = PyFileConfigLoader(str(ROOT / "nbgrader_config.py")).load_config()
    exporter = HTMLExporter(config=config, template_name="classic")
    notebook = new_notebook(cells=list(cells), metadata={"language_info": {"name": "python"}})
    return exporter.from_notebook_node(nbformat.from_dict(notebook))[0]


EMPTY = len(page_of())


@pytest.mark.parametrize(
    "source",
    [
        "<div>x\n" + "".join(f"<b title={number}><p>" for number in range(600)),
        "<details>" * 1_000,
        "**a <details> *b* <sub>\n\n" * 400,
        "<i>" * 3_000 + "<p>" * 300,
        "| <br> |\n|-|\n" + "| **a <details> b** |\n" * 400,
        "[" * LONGEST,
    ],
)
def test_html_in_a_text_does_not_grow(source):
    assert len(source) <= LONGEST
    assert len(markdown2html(source)) < 10 * LONGEST


def test_so_many_tags_count_and_the_rest_is_text():
    page = markdown2html("<br>" * (MOST_HTML + 7))
    assert (page.count("<br/>"), page.count("&lt;br&gt;")) == (MOST_HTML, 7)


def test_a_text_that_cannot_be_rendered_is_shown_as_it_is(monkeypatch):
    def falls(*arguments):
        raise RecursionError

    monkeypatch.setattr(pages, "clean", falls)
    assert markdown2html("*a* < b") == "<pre>*a* &lt; b</pre>"


def test_long_code_has_no_colours():
    assert COLOURED in code2html("@a.b\ndef f(): return 1")
    for long in ("@" + "a." * 200, "x = 1\n" * 2_000):
        page = code2html(long)
        assert COLOURED not in page and "highlight" in page and len(page) < 2 * len(long)
    assert COLOURED in markdown2html("```python\nx = 1\n```")
    assert COLOURED not in markdown2html(f"```python\n@{'a.' * 200}\n```")
    assert COLOURED not in markdown2html("```perl\nmy $x;\n```")


def test_a_page_renders_so_much_shows_more_and_cuts_the_rest():
    text = "*a* " * 1_000
    page = page_of(*(new_markdown_cell(text) for _ in range(1_000)))
    assert page.count("<em>a</em>") == RENDERED // len(text) * 1_000
    assert page.count("*a*") == (SHOWN - RENDERED) // len(text) * 1_000
    assert CUT in page and len(page) - EMPTY < 3_000_000


def test_code_counts_on_a_page_as_text_does_and_the_next_page_starts_anew():
    long, short = new_code_cell("x = 1\n" * 40_000), new_code_cell("y = 2")
    page = page_of(new_code_cell("y = 2"), long, short, new_markdown_cell("*a*"))
    assert page.count('<span class="n">y</span>') == 1 and "<pre>y = 2</pre>" in page and "<pre>*a*</pre>" in page
    assert "<pre>y = 2</pre>" not in page_of(short)


def test_no_other_filter_looks_through_a_text_again_and_again():
    """nbconvert's `strip_files_prefix`, which takes hours for many "[", would make of this a link to "b"."""
    assert "<code>[a](files/b)</code>" in page_of(new_markdown_cell("`[a](files/b)`"))
