"""Find solutions that leaked into what learners get: the released notebooks and the built book.

A *region* is what nbgrader takes out of a source cell: the lines between BEGIN SOLUTION and END SOLUTION (or BEGIN
and END HIDDEN TESTS), or the whole answer cell where it has no such lines. Of a region count its code lines: no blank
lines, no comments, whitespace at the ends dropped and inside made one space. Two consecutive code lines of a region,
or the only line of a region, found in a row in a text, are a leak, unless the released notebook itself shows them.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbgrader.utils import is_solution

MARKERS = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS)")


def code_lines(text: str) -> list[str]:
    """The lines that say something: no comments, no blank lines, spaces made one."""
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def regions(notebook: Path) -> Iterator[list[str]]:
    """The code lines of each region that nbgrader takes out of a source notebook."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        inside, lines = [], None
        for line in cell.source.splitlines():
            marker = MARKERS.search(line)
            if marker and marker[1] == "BEGIN":
                lines = []
            elif marker:
                inside.append("\n".join(lines or []))
                lines = None
            elif lines is not None:
                lines.append(line)
        if is_solution(cell) and not inside:
            inside = [cell.source]
        yield from filter(None, map(code_lines, inside))


def windows(lines: list[str]) -> set[tuple[str, ...]]:
    """Each pair of consecutive lines, or the only line there is."""
    return {tuple(lines)} if len(lines) == 1 else set(zip(lines, lines[1:], strict=False))


def shown_text(file: Path) -> str:
    """What a file of the release or the book shows: a notebook's cells, a page without its markup, or plain text."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".ipynb":
        return "\n".join(cell.source for cell in nbformat.reads(text, as_version=4).cells)
    if file.suffix == ".html":
        return html.unescape(re.sub(r"<[^>]*>", "", text))
    return text


def leaks(source: Path, released: Path, files: list[Path]) -> list[str]:
    """One sentence for each leak of a source notebook's regions into `files`."""
    shown = set(windows(code_lines(shown_text(released)))) | {(line,) for line in code_lines(shown_text(released))}
    secret = {window for region in regions(source) for window in windows(region)} - shown
    found = []
    for file in files:
        text = shown_text(file)
        lines = code_lines(text)
        there = secret & (windows(lines) | {(line,) for line in lines})
        found += [f"{file}: shows a solution of {source.name}: {' ⏎ '.join(window)}" for window in sorted(there)]
        if file.suffix == ".ipynb" and MARKERS.search(text):
            found.append(f"{file}: holds the mark {MARKERS.search(text)[0]}")
    return found
