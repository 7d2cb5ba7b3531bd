"""Every built page in a real browser: wide and narrow, light and dark, with the rest of the network refused."""

import pytest
import yaml

from .conftest import ROOT

CHECKS = (ROOT / "tests" / "book" / "page_checks.js").read_text()


def _pages():
    """The pages that the table of contents names, and the two that Sphinx adds."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())

    def files(entry):
        yield entry["file"]
        for section in entry.get("sections", ()):
            yield from files(section)

    chapters = [chapter for part in contents["parts"] for chapter in part["chapters"]]
    names = [contents["root"]] + [file for chapter in chapters for file in files(chapter)]
    return [name + ".html" for name in names] + ["genindex.html", "search.html"]


class Visit:
    """One page, opened and settled, and what went wrong while it loaded."""

    def __init__(self, browser, address, name, width, theme):
        self.context = browser.new_context(viewport={"width": width, "height": 800})
        for key in ("mode", "theme"):
            self.context.add_init_script(f"localStorage.setItem('{key}', '{theme}')")
        self.outside, self.failed, self.errors = [], [], []
        self.context.route("**/*", lambda route: self._answer(route, address))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", lambda request: self.failed.append(request.url))
        self.page.on("response", lambda response: self.failed.append(response.url) if response.status >= 400 else None)
        self.page.goto(address + name)
        self.page.wait_for_load_state("networkidle")
        self.page.evaluate("() => window.MathJax?.startup?.promise")

    def _answer(self, route, address):
        if route.request.url.startswith(address):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()


@pytest.fixture
def visit(browser, address):
    visits = []

    def open_page(name, width=1280, theme="light"):
        visits.append(Visit(browser, address, name, width, theme))
        return visits[-1]

    yield open_page
    for opened in visits:
        opened.context.close()


def test_the_pages_tested_are_all_that_were_built(html):
    built = {path.relative_to(html).as_posix() for path in html.rglob("*.html")}
    built -= {path for path in built if path.startswith("_static/")}
    assert built - {"index.html"} == set(_pages())  # index.html only leads to the introduction


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", _pages())
def test_page(visit, name, width, theme):
    opened = visit(name, width, theme)
    page = opened.page
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert opened.outside == [], "the book asks another host"
    assert opened.failed == []
    assert opened.errors == []
    faults = {kind: found for kind, found in page.evaluate(CHECKS).items() if found}
    assert faults == {}


def test_the_theme_switch_changes_the_figures(visit):
    ink = "getComputedStyle(document.querySelector('.figure-box svg text, .figure-box svg g[style*=figure-ink]')).fill"
    light, dark = (visit("book/introduction.html", theme=theme).page.evaluate(ink) for theme in ("light", "dark"))
    assert light == "rgb(29, 36, 51)"  # LIGHT["ink"] of book/figure_style.py
    assert dark == "rgb(230, 233, 239)"  # DARK["ink"]


def test_the_keyboards_focus_is_seen(visit):
    page = visit("book/introduction.html").page
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.outerHTML.slice(0, 80), s.outlineStyle, parseFloat(s.outlineWidth)] })()"
        ))  # fmt: skip
    assert [item for item in seen if item[1] == "none" or item[2] < 2] == []


def test_a_notebook_page_offers_its_notebook(visit, html):
    name = "exercises/1_embedding/embedding"
    link = visit(f"{name}.html").page.locator(".notebook-download a")
    assert link.count() == 1
    target = (html / f"{name}.html").parent / link.get_attribute("href")
    assert target.resolve().read_bytes() == (ROOT / f"{name}.ipynb").read_bytes()
