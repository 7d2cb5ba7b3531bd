"""Markdown as HTML for the pages that show a submission, feedback and formgrader: nothing in it can run.

nbgrader's pages keep the HTML that a notebook's text contains, scripts included. nbgrader_config.py puts
`markdown2html` in the place of that step. What the grader itself writes, the verdicts, does not pass through here and
keeps its look.
"""

import html
import re

from bleach import clean
from bs4 import BeautifulSoup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

TAGS = {
    "a", "abbr", "b", "blockquote", "br", "caption", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "kbd", "li", "ol", "p", "pre", "q", "s", "small", "span", "strong",
    "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var",
}  # fmt: skip
ADDRESS = re.compile(r"https?://|mailto:", re.IGNORECASE)
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
COLOURS = re.compile(r"highlight|hl-\w+|[a-z][a-z0-9]{0,2}")  # the classes of coloured code
# What TeX can say that is not mathematics: addresses, and names and looks of elements of the page.
NOT_MATHEMATICS = re.compile(r"\\(href|url|require|class|cssId|style|data|html\w*|includegraphics)(?![A-Za-z])")


LONGEST = 10_000  # characters; beyond, some texts take hours to render


def markdown2html(source: str) -> str:
    """A cell's or a comment's Markdown as HTML; a very long one as plain text."""
    if len(source) > LONGEST:
        return f"<pre>{html.escape(source)}</pre>"
    renderer = IPythonRenderer(escape=False, attachments={}, exclude_anchor_links=True)
    rendered = MarkdownWithMath(renderer=renderer).render(source)
    page = BeautifulSoup(clean(rendered, TAGS, _allowed, ["http", "https", "mailto", "data"]), "html.parser")
    for text in page.find_all(string=NOT_MATHEMATICS):
        if not text.find_parent(("code", "pre")):
            text.replace_with(NOT_MATHEMATICS.sub(r"\\text", text))
    return str(page)


def _allowed(tag: str, name: str, value: str) -> bool:
    """Whether an element keeps an attribute. No `id` or `name`: formgrader finds its own fields by them."""
    if name == "class":
        return all(COLOURS.fullmatch(each) for each in value.split())
    if (tag, name) == ("a", "href"):
        return bool(ADDRESS.match(value))
    if (tag, name) == ("img", "src"):
        return bool(PICTURE.fullmatch(value))
    return name in ("alt", "title") or (tag in ("td", "th") and name in ("colspan", "rowspan"))
