"""The sample class: submissions made from the solutions, so that the whole way to a grade can be walked and tested.

Every chapter gets the same students: one with full marks, one who handed in the untouched stub, one who got half-way,
one who deleted the last test cell. A chapter's own file here, sample_class/<slug>.py, adds its typical mistakes:

    MISTAKES = {"fay_forgot_the_scale": {"token_embedding": [("* math.sqrt(self.d_model)", "")]}}

names a student, the answer cell, and what to replace in the solution there. A text that is not there raises.
"""

import re
import shutil
from contextlib import suppress
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import is_grade, is_solution

from encoder_grader.nbgrader_course import open_course

Edits = dict[str, list[tuple[str, str]]]  # answer cell → (text of the solution, what stands there instead)


def mistakes(slug: str) -> dict[str, Edits]:
    """The typical mistakes of a chapter, by student; none while the chapter has no file here."""
    module = f"{__name__}.{slug}"
    return import_module(module).MISTAKES if find_spec(module) else {}


def submissions(source: NotebookNode, released: NotebookNode, mistakes: dict[str, Edits]) -> dict[str, NotebookNode]:
    """The notebook that each student hands in, made from the source notebook and its release."""
    answers = {grade_id(cell): without_marks(cell.source) for cell in source.cells if is_solution(cell)}
    half = dict(list(answers.items())[: len(answers) // 2])
    deleted = fill_in(released, answers)
    deleted.cells.remove([cell for cell in deleted.cells if is_grade(cell) and not is_solution(cell)][-1])
    return {
        "ada_full_marks": fill_in(released, answers),
        "ben_untouched_stub": deepcopy(released),
        "cleo_half_finished": fill_in(released, half),
        "dan_deleted_a_test": deleted,
        **{student: fill_in(released, edited(answers, edits)) for student, edits in mistakes.items()},
    }


def grade_id(cell: NotebookNode) -> str:
    return cell.metadata.nbgrader.grade_id


def without_marks(solution: str) -> str:
    """A solution as a learner would have written it: without nbgrader's BEGIN and END lines."""
    return "\n".join(line for line in solution.splitlines() if not re.search("(BEGIN|END) SOLUTION", line))


def fill_in(released: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The released notebook with these answers written into it."""
    notebook = deepcopy(released)
    for cell in notebook.cells:
        if is_solution(cell):
            cell.source = answers.get(grade_id(cell), cell.source)
    return notebook


def edited(answers: dict[str, str], edits: Edits) -> dict[str, str]:
    """The answers with a mistake in them. Raises ValueError when a text to replace is not in the solution."""
    answers = dict(answers)
    for cell, replacements in edits.items():
        if cell not in answers:
            raise ValueError(f"there is no answer cell {cell!r}, only {', '.join(answers)}")
        for old, new in replacements:
            if old not in answers[cell]:
                raise ValueError(f"the solution of {cell!r} has no text {old!r} to make a mistake of")
            answers[cell] = answers[cell].replace(old, new)
    return answers


def write_submissions(root: Path, folder: Path, assignment: str) -> None:
    """Write submitted/<student>/<assignment>/ anew for the whole class, all that was graded before forgotten."""
    slug = assignment.partition("_")[2]
    source, released = (
        nbformat.read(root / side / assignment / f"{slug}.ipynb", as_version=4) for side in ("solutions", "exercises")
    )
    for old in folder.glob(f"*/*/{assignment}"):
        shutil.rmtree(old)
    forget(root, folder, assignment)
    for student, notebook in submissions(source, released, mistakes(slug)).items():
        place = folder / "submitted" / student / assignment
        place.mkdir(parents=True)
        nbformat.write(notebook, place / f"{slug}.ipynb")


def forget(root: Path, folder: Path, assignment: str) -> None:
    """Take an assignment and its submissions out of the class's gradebook, and out of its copy of the sources."""
    shutil.rmtree(folder / "solutions" / assignment, ignore_errors=True)
    if (folder / "gradebook.db").exists():
        course = open_course(root, folder)
        database = Gradebook(course.coursedir.db_url, course.coursedir.course_id)
        with database as gradebook, suppress(MissingEntry):
            gradebook.remove_assignment(assignment)
