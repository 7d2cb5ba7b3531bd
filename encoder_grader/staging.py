"""The way in: what a student handed in becomes a clean notebook before nbgrader looks at it.

The clean notebook is the released one, with its order, ids, flags, tags and test cells. Of the submission it holds what
the student wrote into the answer cells, and cells of their own as plain cells behind the one they followed. Whatever
else was handed in stays where it is. What was found and mended is said in sentences, for the report.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import is_grade, is_solution

LARGEST_FILE = 100_000_000  # bytes of a notebook with its saved outputs
LARGEST_CELL = 500_000  # characters of one cell
MOST_CELLS = 1_000
MOST_FILES, DEEPEST = 500, 3  # looked at in one submission


class Unreadable(Exception):
    """A file that is no notebook, in words that follow its name: "is empty"."""


@dataclass(frozen=True)
class Cell:
    """What counts of a submitted cell: its kind, its text, and the names it goes by."""

    kind: str
    source: str
    grade_id: str = ""
    id: str = ""


@dataclass
class Intake:
    """A clean notebook and what is to be said of how it came about."""

    notebook: NotebookNode
    sentences: list[str] = field(default_factory=list)
    sha256: str = ""  # of the bytes it was made from


def take_in(folder: Path, name: str, released: NotebookNode) -> Intake:
    """The clean notebook of one submission: never an exception, whatever lies in the folder.

    Args:
        folder: the submission.
        name: the notebook's file name, `embedding.ipynb`.
        released: the notebook as it was given out.
    """
    sentences, found = [], []
    for path in _files(folder):
        relative = path.relative_to(folder).as_posix()
        if not relative.endswith(".ipynb"):
            if relative != "timestamp.txt":
                sentences.append(f"{relative!r} was not looked at: only {name} is graded.")
            continue
        try:
            content = read_file(path)
            cells = read_cells(content)
        except Unreadable as why:
            sentences.append(f"{relative} {why}.")
            continue
        answered = sum(source != stub for source, stub in _answers(cells, released))
        found.append((relative == name, answered, relative, content, cells))
    if not found:
        if not any(sentence.startswith(name + " ") for sentence in sentences):
            sentences.append(f"{name} is missing.")
        sentences.append("There was nothing to grade, so this notebook has 0 points.")
        return Intake(deepcopy(released), sentences)
    _, _, relative, content, cells = max(found, key=lambda each: (each[:2], each[2]))
    if relative != name:
        sentences.append(f"{name} is missing; {relative} was graded in its place.")
    for _, _, other, _, _ in found:
        if other != relative:
            sentences.append(f"{other!r} was not looked at: {relative} is graded.")
    notebook, more = clean(cells, released)
    return Intake(notebook, sentences + more, hashlib.sha256(content).hexdigest())


# --- reading ---------------------------------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[Path]:
    """The regular files of a submission; no link is followed, and no more than MOST_FILES are looked at."""
    waiting, seen = [(folder, 0)], 0
    while waiting:
        place, depth = waiting.pop(0)
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > MOST_FILES:
                return
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                if depth < DEEPEST and entry.name != ".ipynb_checkpoints":
                    waiting.append((Path(entry.path), depth + 1))
            else:
                yield Path(entry.path)


def read_file(path: Path) -> bytes:
    """The bytes of a plain file of its own.

    Raises:
        Unreadable: it is a link, a pipe or a device, cannot be read, or is too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(
            "is a link to another file" if path.is_symlink() else f"cannot be read ({error.strerror})"
        ) from None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable("is no plain file")
        if facts.st_nlink > 1:
            raise Unreadable("is a hard link to another file")
        if facts.st_size > LARGEST_FILE:
            raise Unreadable(f"is larger than {LARGEST_FILE // 10**6} MB: clear its outputs and hand it in again")
        return file.read(LARGEST_FILE + 1)


def read_cells(content: bytes) -> list[Cell]:
    """The cells of a notebook of any version and encoding.

    Raises:
        Unreadable: there is no notebook in it.
    """
    text = _decode(content)
    if not text.strip():
        raise Unreadable("is empty")
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"is not a notebook: its JSON breaks off at character {error.pos} of {len(text)}") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable("is not a notebook: its JSON cannot be read") from None
    if not isinstance(notebook, dict):
        raise Unreadable("is not a notebook")
    cells = notebook.get("cells")
    if not isinstance(cells, list):  # the form of version 3
        sheets = notebook.get("worksheets")
        sheets = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)] if isinstance(sheets, list) else []
        cells = [cell for sheet in sheets if isinstance(sheet, list) for cell in sheet]
    read = [_cell(cell) for cell in cells[:MOST_CELLS] if isinstance(cell, dict)]
    if not read:
        raise Unreadable("has no cells")
    return read


def _decode(content: bytes) -> str:
    for encoding in ("utf-16",) if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "latin-1"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise Unreadable("is not a notebook: it is no text")


def _cell(cell: dict) -> Cell:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    source = source if isinstance(source, str) else ""
    source = source[:LARGEST_CELL].replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    source = source.encode("utf-8", "replace").decode()
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    own_id = cell.get("id")
    kind = cell.get("cell_type")
    return Cell(
        kind if kind in ("code", "raw") else "markdown",
        source,
        grade_id if isinstance(grade_id, str) else "",
        own_id if isinstance(own_id, str) else "",
    )


# --- putting together ------------------------------------------------------------------------------------------------


def clean(cells: list[Cell], released: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The released notebook with the answers of a submission, and the sentences on what was mended."""
    known = {_name(cell): cell for cell in released.cells}
    names = _recognise(cells, released)
    answers = {name: number for number, name in enumerate(names) if name in known and is_solution(known[name])}  # last
    extra: dict[str, list[Cell]] = {"": []}  # the released cell before → the student's own cells
    before, sentences = "", []
    for number, (cell, name) in enumerate(zip(cells, names, strict=True)):
        if name and (not is_solution(known[name]) or answers[name] == number):
            before = name
        elif cell.source.strip() and cell.kind != "raw":  # an answer written twice: the earlier one runs before
            extra.setdefault(name and _previous(released, name) or before, []).append(cell)
    counts = Counter(filter(None, names))
    result = deepcopy(released)
    result.cells = [_plain(cell, f"own_{i}") for i, cell in enumerate(extra[""])]
    number = len(result.cells)
    for cell in deepcopy(released.cells):
        name = _name(cell)
        if is_solution(cell):
            if name in answers:
                cell.source = cells[answers[name]].source
            else:
                sentences.append(f"The answer cell {name!r} is missing: it counts as not answered.")
            if counts[name] > 1:
                sentences.append(f"The answer cell {name!r} is there {counts[name]} times: the last one counts.")
        elif is_grade(cell):
            same = [c for c, n in zip(cells, names, strict=True) if n == name]
            if not same:
                sentences.append(f"The test cell {name!r} was missing: it came back.")
            elif len(same) > 1:
                sentences.append(f"The test cell {name!r} was there {len(same)} times: it is run once.")
            elif same[0].kind != cell.cell_type or same[0].source.strip() != cell.source.strip():
                sentences.append(f"The test cell {name!r} was changed: the released one was run.")
        result.cells.append(cell)
        for own in extra.get(name, []):
            result.cells.append(_plain(own, f"own_{number}"))
            number += 1
    return result, sentences


def _answers(cells: list[Cell], released: NotebookNode) -> Iterator[tuple[str, str]]:
    """Of each answer cell that a submission has: what is in it, and what was released."""
    known = {_name(cell): cell for cell in released.cells}
    for cell, name in zip(cells, _recognise(cells, released), strict=True):
        if name and is_solution(known[name]):
            yield cell.source.strip(), known[name].source.strip()


def _recognise(cells: list[Cell], released: NotebookNode) -> list[str]:
    """For each submitted cell the name of the released cell that it is; "" where it is the student's own.

    By the id that nbgrader gave it; where a platform has lost that, by the cell's own id, by the same text, or by what
    an answer defines.
    """
    known = {_name(cell): cell for cell in released.cells}
    names = [cell.grade_id if cell.grade_id in known else "" for cell in cells]
    for number, cell in enumerate(cells):
        if not names[number] and cell.id in known and cell.id not in names:
            names[number] = cell.id
    texts = {cell.source.strip(): name for name, cell in known.items() if not is_solution(cell)}
    for number, cell in enumerate(cells):
        if not names[number] and (name := texts.get(cell.source.strip())):
            names[number] = name
    for name, cell in known.items():
        if is_solution(cell) and name not in names and (wanted := _defined(cell.source)):
            fitting = [i for i, own in enumerate(cells) if not names[i] and wanted <= _defined(own.source)]
            if fitting:
                names[fitting[-1]] = name
    return names


def _defined(source: str) -> set[str]:
    """The functions, classes and variables that a cell defines at its top level."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        found |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def _name(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id") or cell.id


def _previous(released: NotebookNode, name: str) -> str:
    names = [_name(cell) for cell in released.cells]
    return names[names.index(name) - 1] if names.index(name) else ""


def _plain(cell: Cell, name: str) -> NotebookNode:
    make = new_code_cell if cell.kind == "code" else new_markdown_cell
    return make(cell.source, id=name)
