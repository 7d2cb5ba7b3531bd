"""The links of the built book: every page, file and anchor it points to is there, and no other host serves any part."""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

# attributes whose address a browser fetches by itself
FETCHED = {
    "script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src", "video": "src", "audio": "src",
    "embed": "src", "object": "data", "image": "xlink:href", "use": "xlink:href",
}  # fmt: skip


@lru_cache
def _parsed(page: Path):
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@lru_cache
def _anchors(page: Path):
    return {tag["id"] for tag in _parsed(page).find_all(id=True)} | {
        tag["name"] for tag in _parsed(page).find_all("a", attrs={"name": True})
    }


@pytest.fixture(scope="module")
def pages(html):
    return [page for page in sorted(html.rglob("*.html")) if "_static" not in page.relative_to(html).parts]


def broken(page: Path, address: str) -> str | None:
    """Why a link of `page` leads nowhere, or None. Links to other sites are not followed."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"{address}: no such file"
    # the search page and the theme read other fragments, as #print, only by script
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _anchors(target):
        return f"{address}: no such anchor"
    return None


def test_internal_links_lead_somewhere(html, pages):
    found, checked = [], 0
    for page in pages:
        for tag in _parsed(page).find_all("a", href=True):
            if tag["href"] not in ("#", ""):
                checked += 1
                found += [f"{page.relative_to(html)}: {why}"] if (why := broken(page, tag["href"])) else []
    assert checked > 100
    assert found == []


def test_what_pages_fetch_is_in_the_book(html, pages):
    found = []
    for page in pages:
        for name, attribute in FETCHED.items():
            for tag in _parsed(page).find_all(name, attrs={attribute: True}):
                address = tag[attribute]
                if address.startswith(("data:", "#")):
                    continue
                other_host = urlsplit(address).scheme or urlsplit(address).netloc
                why = f"{address}: another host" if other_host else broken(page, address.split("?")[0])
                found += [f"{page.relative_to(html)}: {why}"] if why else []
    assert found == []


def test_style_sheets_name_only_files_of_the_book(html):
    found = []
    for sheet in html.rglob("*.css"):
        for address in re.findall(r"url\(\s*['\"]?([^'\")]+)", sheet.read_text(encoding="utf-8")):
            if not address.startswith(("data:", "#")):
                target = sheet.parent / urlsplit(address).path
                if urlsplit(address).netloc or not target.exists():
                    found.append(f"{sheet.relative_to(html)}: {address}")
    assert found == []


def test_references_are_resolved(html, pages):
    found = []
    for page in pages:
        article = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").find("article")
        if article is None:
            continue
        unresolved = [tag.get_text() for tag in article.select(".problematic, .system-message")]
        for code in article.find_all(["pre", "code"]):
            code.extract()
        roles = r"\{(?:numref|eq|term|ref|doc|cite:?\w*|glue:\w+)\}|\[\?\]|\[None\]"
        unresolved += re.findall(roles, article.get_text())
        found += [f"{page.relative_to(html)}: {text}" for text in unresolved]
    assert found == []
