"""Markdown and code as HTML for the pages that show a submission, feedback and formgrader.

Nothing in it can run: nbgrader's pages keep the HTML that a notebook's text contains, scripts included. And no text
makes a page slow or large: what would is shown as it was typed. nbgrader_config.py puts the filters at the end of this
file in the place of nbconvert's. What the grader itself writes, the verdicts, does not pass through here and keeps its
look.
"""

import html
import re

from bleach import clean
from bs4 import BeautifulSoup
from jinja2 import pass_context
from nbconvert.filters import Highlight2HTML
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
# The HTML that a text may contain; all other HTML in it is shown as text. None of these is opened anew in each
# paragraph that follows, as <b> is: 10,000 characters of that make 4 MB.
HTML = re.compile(r"(</?(?:details|summary|br|sub|sup) ?/?>)", re.IGNORECASE)
MOST_HTML = 100  # of these in one cell
LONGEST = 10_000  # characters of a cell; beyond, some texts take hours to render,
LONGEST_LINE = 300  # and some lines of code to colour
RENDERED = 100_000  # characters of a page's cells that are rendered and coloured,
SHOWN = 500_000  # and that are shown at all
CUT = "[Cut here: this notebook is too long for a page. All of it is in its file.]"
PYTHON = ("python", "python3", "py", "ipython", "ipython3")


def markdown2html(source: str) -> str:
    """A cell's or a comment's Markdown as HTML; as plain text where it is very long or cannot be rendered."""
    if len(source) > LONGEST:
        return _plain(source)
    try:
        rendered = MarkdownWithMath(renderer=_Renderer()).render(source)
        page = BeautifulSoup(clean(rendered, TAGS, _allowed, ["http", "https", "mailto", "data"]), "html.parser")
    except Exception:  # whatever it is, the rest of the page is to be seen
        return _plain(source)
    for text in page.find_all(string=NOT_MATHEMATICS):
        if not text.find_parent(("code", "pre")):
            text.replace_with(NOT_MATHEMATICS.sub(r"\\text", text))
    return str(page)


def code2html(source: str) -> str:
    """Python code in colours; without them where it is very long, or a line of it is."""
    if len(source) > LONGEST or any(len(line) > LONGEST_LINE for line in source.split("\n")):
        return f'<div class="highlight">{_plain(source)}</div>'
    return Highlight2HTML(pygments_lexer="python")(source)


def _plain(source: str) -> str:
    return f"<pre>{html.escape(source)}</pre>"


class _Renderer(IPythonRenderer):
    """Markdown in which little HTML counts, only Python is coloured, and nothing is looked up elsewhere."""

    def __init__(self):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.left = MOST_HTML

    def inline_html(self, text: str) -> str:
        parts = HTML.split(text)
        for number, part in enumerate(parts):
            kept = number % 2 and self.left > 0  # every second part is one of those tags
            self.left -= kept
            parts[number] = part if kept else html.escape(html.unescape(part))
        return "".join(parts)

    def block_html(self, text: str) -> str:
        return self.inline_html(text) + "\n" if HTML.search(text) else self.paragraph(self.inline_html(text.strip()))

    def block_code(self, code: str, info: str | None = None) -> str:
        return code2html(code) if (info or "").strip().lower() in PYTHON else f"{_plain(code)}\n"

    def _embed_image_or_attachment(self, src: str) -> str:
        return src


def _allowed(tag: str, name: str, value: str) -> bool:
    """Whether an element keeps an attribute. No `id` or `name`: formgrader finds its own fields by them."""
    if name == "class":
        return all(COLOURS.fullmatch(each) for each in value.split())
    if (tag, name) == ("a", "href"):
        return bool(ADDRESS.match(value))
    if (tag, name) == ("img", "src"):
        return bool(PICTURE.fullmatch(value))
    return name in ("alt", "title") or (tag in ("td", "th") and name in ("colspan", "rowspan"))


def _on_a_page(make):
    """The filter that makes HTML of the cells of a page: of the first ones with `make`, plain of what is beyond."""

    @pass_context
    def cell2html(context, source: str, **about) -> str:
        page = context["resources"]  # made anew for each page
        before = page.get("encoder_grader_characters", 0)
        page["encoder_grader_characters"] = before + len(source)
        if before + len(source) <= RENDERED:
            return make(source)
        left = max(SHOWN - before, 0)
        return _plain(source if len(source) <= left else f"{source[:left]}\n{CUT}")

    return cell2html


def unchanged(text: str) -> str:
    """In the place of `strip_files_prefix`, which mends links of old notebooks and takes hours for some texts."""
    return text


markdown_on_a_page = _on_a_page(markdown2html)
code_on_a_page = _on_a_page(code2html)
