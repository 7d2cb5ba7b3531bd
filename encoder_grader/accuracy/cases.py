"""The answers whose worth is known: right ones in many styles, and wrong ones of four kinds.

| kind | what it is | where it comes from |
|---|---|---|
| right | earns every point | `answers/<slug>.py`, RIGHT |
| misconception | a catalogued mistake | `encoder_grader/exercises/<slug>.py` |
| pair | two catalogued mistakes at once | made of the catalogue; in one function: `answers/<slug>.py`, PAIRS |
| mistake | another mistake, written by hand | `answers/<slug>.py`, WRONG |
| mutant | the solution with one character or so changed | made by `mutants`, without those of EQUIVALENT |
"""

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.utils import is_grade, is_solution

from encoder_grader.accuracy.mutants import mutants
from encoder_grader.exercise import Exercise, Misconception, exercises, find
from encoder_grader.release import assignments
from encoder_grader.sample_class import grade_id, without_marks

ROOT = Path(__file__).parents[2]
MOST_PAIRS = 12  # of one exercise, of those made of the catalogue


@dataclass(frozen=True)
class Case:
    """One answer to one exercise, and what is known about it.

    Args:
        exercise: "chapter.exercise".
        kind: right, misconception, pair, mistake or mutant.
        name: what it is, unique among the exercise's answers of its kind.
        cell: the text of the answer cell; empty where the catalogue's own objects are the answer.
        catalogued: the misconceptions in it, for those of kind misconception and pair.
        lost: the claims it loses, where that was stated.
    """

    exercise: str
    kind: str
    name: str
    cell: str = ""
    catalogued: tuple[str, ...] = ()
    lost: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.exercise}, {self.kind}: {self.name}"

    def objects(self) -> dict[str, Any]:
        """The catalogue's own objects, on top of the reference's."""
        entry = find(self.exercise)
        answers = {mistake.name: mistake.answer for mistake in entry.misconceptions}
        merged = dict(entry.reference)
        for name in self.catalogued:
            merged |= answers[name]
        return merged

    def namespace(self) -> dict[str, Any]:
        """What a learner's notebook would hold: the cells before, with right answers, then this answer."""
        if not self.cell:
            return self.objects()
        namespace = {"__name__": "__main__"}
        for source in cells_before(self.exercise):
            exec(compile(source, "<an earlier cell>", "exec"), namespace)
        file = f"<{self}>"
        linecache.cache[file] = len(self.cell), None, self.cell.splitlines(True), file  # as a notebook's cells are
        exec(compile(self.cell, file, "exec"), namespace)
        return namespace


def cases(chapter: str) -> list[Case]:
    """All answers to the exercises of a chapter."""
    return [case for exercise in exercises(chapter) for case in _cases(exercise)]


def _cases(exercise: Exercise) -> Iterator[Case]:
    chapter, _, slug = exercise.name.partition(".")
    known = import_module(f"encoder_grader.accuracy.answers.{chapter}")
    for style, cell in known.RIGHT.get(slug, {}).items():
        yield Case(exercise.name, "right", style, cell)
    for mistake in exercise.misconceptions:
        yield Case(exercise.name, "misconception", mistake.name, catalogued=(mistake.name,))
    for one, other in _in_different_functions(exercise):
        yield Case(exercise.name, "pair", f"{one.name} + {other.name}", catalogued=(one.name, other.name))
    for (one, other), cell in known.PAIRS.get(slug, {}).items():
        yield Case(exercise.name, "pair", f"{one} + {other}", cell, catalogued=(one, other))
    for what, (lost, cell) in known.WRONG.get(slug, {}).items():
        yield Case(exercise.name, "mistake", what, cell, lost=frozenset(lost.split()))
    for change, cell in mutants(answer_cells(chapter)[slug]).items():
        if change not in known.EQUIVALENT.get(slug, {}):
            yield Case(exercise.name, "mutant", change, without_marks(cell))


def _in_different_functions(exercise: Exercise) -> list[tuple[Misconception, Misconception]]:
    """Pairs of misconceptions that can be put together as they are; of many, MOST_PAIRS spread over all."""
    mistakes = exercise.misconceptions
    pairs = [(a, b) for a, b in combinations(mistakes, 2) if not a.answer.keys() & b.answer.keys()]
    return pairs[:: -(-len(pairs) // MOST_PAIRS)] if pairs else []


def equivalent_cases(exercise: Exercise) -> list[Case]:
    """The mutants that EQUIVALENT sets apart, as answers."""
    chapter, _, slug = exercise.name.partition(".")
    changed = mutants(answer_cells(chapter)[slug])
    return [Case(exercise.name, "mutant", change, without_marks(changed[change])) for change in equivalent(exercise)]


def equivalent(exercise: Exercise) -> dict[str, str]:
    """The mutants that compute the same as the solution, each with the reason."""
    chapter, _, slug = exercise.name.partition(".")
    return import_module(f"encoder_grader.accuracy.answers.{chapter}").EQUIVALENT.get(slug, {})


def assignment_of(chapter: str) -> str:
    """The assignment of a chapter: "3_attention" of "attention"."""
    return next(name for name in assignments(ROOT) if name.partition("_")[2] == chapter)


@cache
def source_notebook(chapter: str) -> nbformat.NotebookNode:
    """The source notebook of a chapter, with its solutions."""
    return nbformat.read(ROOT / "solutions" / assignment_of(chapter) / f"{chapter}.ipynb", as_version=4)


def answer_cells(chapter: str) -> dict[str, str]:
    """The source of each answer cell by its id, with nbgrader's marks around what the learner writes."""
    return {grade_id(cell): cell.source for cell in source_notebook(chapter).cells if is_solution(cell)}


@cache
def cells_before(exercise: str) -> tuple[str, ...]:
    """The code of the notebook before an exercise's answer cell, solutions in place; no test cells."""
    chapter, _, slug = exercise.partition(".")
    before = []
    for cell in source_notebook(chapter).cells:
        if cell.cell_type != "code" or is_grade(cell):
            continue
        if grade_id(cell) == slug:
            return tuple(before)
        before.append(without_marks(cell.source))
    raise ValueError(f"the notebook of {chapter} has no answer cell {slug!r}")
