"""The way in: what a student handed in becomes a clean notebook before nbgrader looks at it.

The clean notebook is the released one, with its order, ids, flags, tags and test cells. Of the submission it holds what
the student wrote into the answer cells, and cells of their own as plain cells behind the one they followed. Whatever
else was handed in stays where it is. What was found and mended is said in sentences, for the report.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import is_grade, is_solution

LARGEST_FILE = 100_000_000  # bytes of a notebook with its saved outputs,
MOST_COMMAS, MOST_BRACKETS = 10_000_000, 2_000_000  # in it: they bound the memory that reading it takes
LARGEST_CELL, LARGEST_TEXT = 500_000, 5_000_000  # characters of one cell, and of all cells together
MOST_CELLS = 1_000
MOST_FILES, DEEPEST = 500, 3  # looked at in one submission,
MOST_NOTEBOOKS, MOST_BYTES = 20, 200_000_000  # and read


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
    sha256: str = ""  # of the bytes it was made from; empty where there are none
    changed: float = 0.0  # when the system put those bytes there, in seconds since 1970


@dataclass(frozen=True)
class Found:
    """A file that can be read as a notebook."""

    relative: str
    sha256: str
    changed: float
    cells: list[Cell]
    sentences: list[str]
    names: list[str]  # of the released cells that they are
    known: int  # answer cells of the release that it has,
    answered: int  # and of those the ones that were written into


def take_in(folder: Path, name: str, released: NotebookNode, others: tuple[str, ...] = ()) -> Intake:
    """The clean notebook of one submission: never an exception, whatever lies in the folder.

    Args:
        folder: the submission.
        name: the notebook's file name, `embedding.ipynb`.
        released: the notebook as it was given out.
        others: the file names of the assignment's other notebooks.
    """
    if any(place.is_symlink() for place in (folder, folder.parent)):
        return _nothing(released, ["The submission is a link to another place, and links are not followed."])
    if not folder.is_dir():
        return _nothing(released, ["The submission is not a folder."])
    found, ignored, sentences = _look_through(folder, name, released, others)
    # A notebook in which something was written, then the right name, then the most answers.
    found.sort(key=lambda each: (each.answered > 0, each.relative == name, each.answered, each.changed, each.relative))
    if not found:
        if not any(sentence.startswith(name + " ") for sentence in sentences):
            sentences.append(f"{name} is missing.")
        return _nothing(released, sentences + _left_out(ignored))
    best = found.pop()
    if best.relative != name:
        why = "has no answers" if any(each.relative == name for each in found) else "is missing"
        sentences.insert(0, f"{name} {why}; {shown(best.relative)} was graded in its place.")
    notebook, more = clean(best.cells, best.names, released)
    ignored += [each.relative for each in found]
    return Intake(notebook, sentences + best.sentences + more + _left_out(ignored), best.sha256, best.changed)


def _nothing(released: NotebookNode, sentences: list[str]) -> Intake:
    return Intake(deepcopy(released), [*sentences, "There was nothing to grade, so this notebook has 0 points."])


def _left_out(files: list[str]) -> list[str]:
    if not files:
        return []
    names = ", ".join(shown(file) for file in files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    return [f"Not looked at: {names}. Only the notebook is graded."]


def shown(name: str) -> str:
    """A file's name as it can be printed: one line, and not too long."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80]


# --- reading ---------------------------------------------------------------------------------------------------------


def _look_through(folder: Path, name: str, released: NotebookNode, others: tuple[str, ...]):
    """The notebooks that may be this one, the files that are nothing to it, and sentences on those it cannot read."""
    found, ignored, sentences = [], [], []
    read = 0
    for path in _files(folder, name):
        relative = path.relative_to(folder).as_posix()
        if relative in (*others, "timestamp.txt"):
            continue
        if not relative.endswith(".ipynb") or len(found) == MOST_NOTEBOOKS or read > MOST_BYTES:
            ignored.append(relative)
            continue
        try:
            content, changed = read_file(path)
            read += len(content)
            cells, remarks = read_cells(content)
        except Unreadable as why:
            sentences.append(f"{shown(relative)} {why}.")
            continue
        names = recognise(cells, released)
        known = {_name(cell): cell for cell in released.cells if is_solution(cell)}
        written = {n for n, own in zip(names, cells, strict=True) if n in known and not _same(own, known[n])}
        if relative != name and not known.keys() & set(names):
            ignored.append(relative)  # another notebook
            continue
        sha256 = hashlib.sha256(content).hexdigest()
        remarks = [f"{shown(relative)} {remark}." for remark in remarks]
        has = len(known.keys() & set(names))
        found.append(Found(relative, sha256, changed, cells, remarks, names, has, len(written)))
    return found, ignored, sentences


def _files(folder: Path, first: str) -> Iterator[Path]:
    """All but the folders of a submission, `first` before the others; no link is followed, no more than MOST_FILES."""
    if os.path.lexists(folder / first) and not _is_folder(folder / first):
        yield folder / first
    waiting, left = [(folder, 0)], MOST_FILES
    while waiting and left > 0:
        place, depth = waiting.pop(0)
        try:
            with os.scandir(place) as listing:
                entries = sorted(islice(listing, left), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if _is_folder(entry.path):
                if depth < DEEPEST and entry.name not in (".ipynb_checkpoints", "__MACOSX"):
                    waiting.append((Path(entry.path), depth + 1))
            elif depth or entry.name != first:
                yield Path(entry.path)


def _is_folder(path: str | Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def read_file(path: Path) -> tuple[bytes, float]:
    """The bytes of a plain file of its own, and when the system put them there (st_ctime, which nobody can set).

    Raises:
        Unreadable: it is a link, a pipe or a device, cannot be read, or is too large.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Unreadable("is a link to another file" if path.is_symlink() else "is not a plain file")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)  # once more: the path may have come to mean something else
            if not stat.S_ISREG(facts.st_mode):
                raise Unreadable("is not a plain file")
            if facts.st_nlink > 1:
                raise Unreadable("is a hard link to another file: put a copy in its place")
            if facts.st_size > LARGEST_FILE:
                raise Unreadable(f"is larger than {LARGEST_FILE // 10**6} MB: clear its outputs and hand it in again")
            return file.read(LARGEST_FILE), facts.st_ctime
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None


def read_cells(content: bytes) -> tuple[list[Cell], list[str]]:
    """The cells of a notebook of any version and encoding, and what was left out, in words that follow its name.

    Raises:
        Unreadable: there is no notebook in it.
    """
    text = _decode(content)
    if not text.strip("\ufeff\0 \t\r\n"):
        raise Unreadable("is empty")
    if text.count(",") > MOST_COMMAS or text.count("[") + text.count("{") > MOST_BRACKETS:
        raise Unreadable("has too much saved in it: clear its outputs and hand it in again")
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
    read, remarks, length, long = [], [], 0, 0
    for cell in cells[:MOST_CELLS]:
        if isinstance(cell, dict):
            one = _cell(cell)
            length += len(one.source)
            if len(one.source) > LARGEST_CELL or length > LARGEST_TEXT:
                length -= len(one.source)
                long += 1
            else:
                read.append(one)
    if not read:
        raise Unreadable("has no cells")
    if long:
        remarks.append(f"has {long} cells that are too long to be read ({LARGEST_CELL} characters); they were left out")
    if len(cells) > MOST_CELLS:
        remarks.append(f"has {len(cells)} cells, of which the first {MOST_CELLS} were read")
    return read, remarks


def _decode(content: bytes) -> str:
    for encoding in (json.detect_encoding(content[:4]), "utf-8-sig", "latin-1"):
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError:
            continue
    raise Unreadable("is not a notebook: it is no text")


def _cell(cell: dict) -> Cell:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    source = source if isinstance(source, str) else ""
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
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


def clean(cells: list[Cell], names: list[str], released: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The released notebook with the answers of a submission, and the sentences on what was mended.

    Args:
        names: which released cell each submitted cell is, as `recognise` says.
    """
    known = {_name(cell): cell for cell in released.cells}
    places: dict[str, list[int]] = {name: [] for name in known}
    for number, name in enumerate(names):
        if name:
            places[name].append(number)
    answers = {name: _counting(name, places, cells, released) for name in known if is_solution(known[name])}
    taken = {number for number in answers.values() if number is not None}
    kept = [name if number in taken or name not in answers else "" for number, name in enumerate(names)]
    own: dict[str, list[Cell]] = {"": [], **{name: [] for name in known}}  # behind which released cell
    for cell, name, chosen, place in zip(cells, names, kept, _behind(kept, list(known)), strict=True):
        changed = name and not _same(cell, known[name])
        another = changed and not chosen  # version of an answer: run where it stands
        imports = changed and name not in answers and not is_grade(known[name])  # or what else was fixed
        if another or (not name and cell.source.strip() and cell.kind != "raw"):
            own[place].append(cell)
        elif imports and cell.kind == known[name].cell_type == "code":
            own[name].append(cell)
    result, sentences = deepcopy(released), []
    free = (name for number in range(len(cells) + len(known)) if (name := f"own_{number}") not in known)
    result.cells = [_plain(cell, next(free)) for cell in own[""]]
    for cell in deepcopy(released.cells):
        name = _name(cell)
        if is_solution(cell) and answers[name] is not None:
            cell.source = cells[answers[name]].source
        sentences += _remarks(cell, name, [cells[number] for number in places[name]])
        result.cells += [cell, *(_plain(each, next(free)) for each in own[name])]
    return result, sentences


def _behind(names: list[str], order: list[str]) -> list[str]:
    """For each submitted cell the released cell behind which it is run: the last one that stands above it.

    Where the student has moved cells it stands as early as its neighbours allow, so that what needs it finds it.
    """
    places = [order.index(name) if name else None for name in names]
    result, following = [], len(order)
    for number in reversed(range(len(names))):
        if places[number] is not None:
            following = places[number]
        before = next((place for place in reversed(places[:number]) if place is not None), -1)
        result.append(min(before, following - 1))
    return [order[place] if place >= 0 else "" for place in reversed(result)]


def _counting(name: str, places: dict[str, list[int]], cells: list[Cell], released: NotebookNode) -> int | None:
    """Which of the cells that bear an answer's name counts.

    The last one that was written into above the answer's test cell, as when the notebook runs from top to bottom;
    else the last one that was written into at all.
    """
    order = [_name(cell) for cell in released.cells]
    stub = released.cells[order.index(name)]
    written = [number for number in places[name] if not _same(cells[number], stub)]
    behind = [] if is_grade(stub) else released.cells[order.index(name) :]
    tests = [_name(cell) for cell in behind if is_grade(cell)][:1]
    end = min((number for test in tests for number in places[test]), default=len(cells))
    above = [number for number in written if number < end]
    return ((above or written or places[name])[-1:] or [None])[0]


def _remarks(cell: NotebookNode, name: str, same: list[Cell]) -> Iterator[str]:
    """What is to be said of one released cell and of the submitted cells that bear its name."""
    if is_solution(cell):
        if not same:
            yield f"The answer cell {name} is missing: it counts as not answered."
        elif len(same) > 1:
            yield f"The answer cell {name} is there {len(same)} times: the last one above its test cell counts."
    elif is_grade(cell):
        if not same:
            yield f"The test cell {name} was missing; it came back."
        elif any(each.kind != cell.cell_type or not _same(each, cell) for each in same):
            yield f"The test cell {name} was changed; the released one was run."
        elif len(same) > 1:
            yield f"The test cell {name} was there {len(same)} times; it was run once."
    elif cell.cell_type == "code" and any(not _same(each, cell) for each in same):
        yield f"The cell {name} was changed; the released one was run, then yours."


def recognise(cells: list[Cell], released: NotebookNode) -> list[str]:
    """For each submitted cell the name of the released cell that it is; "" where it is the student's own.

    By the id that nbgrader gave it; where a platform has lost that, by the cell's own id, by the same text, by what an
    answer defines, or, where it defines nothing, by its place.
    """
    known = {_name(cell): cell for cell in released.cells}
    names = [cell.grade_id if cell.grade_id in known else "" for cell in cells]
    for number, cell in enumerate(cells):
        if not names[number] and cell.id in known and cell.id not in names:
            names[number] = cell.id
    texts = {_text(cell): name for name, cell in known.items() if not is_solution(cell)}
    for number, cell in enumerate(cells):
        name = texts.get(_text(cell))
        if not names[number] and name and name not in names:
            names[number] = name
    missing = [name for name, cell in known.items() if is_solution(cell) and name not in names]
    for name in missing:
        wanted = _defined(known[name].source)
        shares = {n: len(wanted & _defined(cell.source)) for n, cell in enumerate(cells) if not names[n]}
        if wanted and shares and (most := max(shares.values())):
            names[max(number for number, share in shares.items() if share == most)] = name
        elif not wanted and any(names):
            between = _between(name, names, released)
            fitting = [n for n in between if cells[n].kind == known[name].cell_type and cells[n].source.strip()]
            if fitting:
                names[fitting[0]] = name
    return names


def _between(name: str, names: list[str], released: NotebookNode) -> list[int]:
    """The unrecognised cells between the nearest recognised ones before and behind a released cell's place."""
    order = [_name(cell) for cell in released.cells]
    at = order.index(name)
    before = next((names.index(each) for each in reversed(order[:at]) if each in names), -1)
    behind = next((names.index(each) for each in order[at + 1 :] if each in names), len(names))
    return [number for number in range(before + 1, behind) if not names[number]]


DEFINED = re.compile(r"^(?:(?:async +)?def|class) +(\w+)", re.MULTILINE)
ASSIGNED = re.compile(r"^(\w+(?: *, *\w+)*) *(?::[^=\n]*)?=(?!=)", re.MULTILINE)


def _defined(source: str) -> set[str]:
    """The functions, classes and variables that a cell defines at its top level. Read as text: it may not parse."""
    found = set(DEFINED.findall(source))
    for names in ASSIGNED.findall(source):
        found |= set(re.findall(r"\w+", names))
    return found


def _same(cell: Cell, released: NotebookNode) -> bool:
    return _text(cell) == _text(released)


def _text(cell: Cell | NotebookNode) -> str:
    """A cell's text without what an editor changes by itself."""
    return "\n".join(line.rstrip() for line in cell.source.splitlines()).strip()


def _name(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id") or cell.id


def _plain(cell: Cell, name: str) -> NotebookNode:
    make = new_code_cell if cell.kind == "code" else new_markdown_cell
    return make(cell.source, id=name)


def report_cell(sentences: list[str], released: NotebookNode) -> NotebookNode:
    """What a student reads above their notebook: the sentences as plain text, nothing in them is markup."""
    name = "report"
    while name in map(_name, released.cells):
        name += "_"
    lines = [re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", sentence) for sentence in sentences]
    return new_markdown_cell("\n".join(["**About this submission**", "", *(f"- {line}" for line in lines)]), id=name)
