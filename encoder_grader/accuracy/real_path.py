"""The whole way: each known answer in a notebook that nbgrader grades, its points read from the gradebook."""

import base64
import io
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade

from encoder_grader.accuracy.cases import ROOT, Case, answer_cells, assignment_of
from encoder_grader.exercise import find
from encoder_grader.nbgrader_course import log_of, open_course
from encoder_grader.release import enter_into_gradebook
from encoder_grader.sample_class import fill_in, grade_id, without_marks

# The catalogue's wrong answers are objects, not text: a notebook brings them along, under other package names.
RENAMED = {"encoder_grader": "known_grader", "encoder_lib": "known_lib"}


@dataclass(frozen=True)
class Grade:
    """What the gradebook says of one answer.

    Args:
        points, maximum: earned, and to be earned.
        named: whether the feedback gives the reason that each of its misconceptions has in the catalogue.
    """

    points: float
    maximum: float
    named: bool

    @property
    def full(self) -> bool:
        """Whether it earned every point."""
        return self.points == self.maximum


def graded(cases: list[Case], folder: Path) -> Iterator[tuple[Case, Grade]]:
    """Grade answers to the exercises of one chapter in a class of its own, one answer to each exercise a submission.

    Raises:
        RuntimeError: a submission got no grade.
    """
    chapter = cases[0].exercise.partition(".")[0]
    assignment = assignment_of(chapter)
    shutil.rmtree(folder, ignore_errors=True)
    by_exercise: dict[str, list[Case]] = {}
    for case in cases:
        by_exercise.setdefault(case.exercise.partition(".")[2], []).append(case)
    rows = [
        {slug: answers[row] for slug, answers in by_exercise.items() if row < len(answers)}
        for row in range(max(map(len, by_exercise.values())))
    ]
    for row, answers in enumerate(rows):
        place = folder / "submitted" / f"answers_{row:03}" / assignment
        place.mkdir(parents=True)
        nbformat.write(submission(chapter, answers), place / f"{chapter}.ipynb")
    enter_into_gradebook(ROOT, folder, assignment)
    course = open_course(ROOT, folder)
    for row in range(len(rows)):
        result = course.autograde(assignment, f"answers_{row:03}")
        if not result["success"]:
            raise RuntimeError(f"answers_{row:03}: {log_of(result)}")
    with Gradebook(course.coursedir.db_url, course.coursedir.course_id) as gradebook:
        for row, answers in enumerate(rows):
            student = f"answers_{row:03}"
            notebook = nbformat.read(folder / "autograded" / student / assignment / f"{chapter}.ipynb", as_version=4)
            shown = {
                grade_id(cell): "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
                for cell in notebook.cells
                if is_grade(cell)
            }
            for slug, case in answers.items():
                grade = gradebook.find_grade(f"check_{slug}", chapter, assignment, student)
                reasons = [
                    mistake.says for mistake in find(case.exercise).misconceptions if mistake.name in case.catalogued
                ]
                said = all(reason in shown[f"check_{slug}"] for reason in reasons)
                yield case, Grade(grade.auto_score, grade.max_score, said)


def submission(chapter: str, answers: dict[str, Case]) -> NotebookNode:
    """A notebook with these answers, and the solution where there is none.

    Behind each test cell the solution follows in a cell of its own: a later exercise may build on this one, and stands
    on a right answer then.
    """
    solutions = {slug: without_marks(cell) for slug, cell in answer_cells(chapter).items()}
    texts = {slug: case.cell or _from_the_catalogue(case) for slug, case in answers.items()}
    released = nbformat.read(ROOT / "exercises" / assignment_of(chapter) / f"{chapter}.ipynb", as_version=4)
    notebook = fill_in(released, solutions | texts)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        slug = grade_id(cell).removeprefix("check_")
        if is_grade(cell) and slug in answers:
            cells.append(new_code_cell(solutions[slug], id=f"solution_{slug}"))
    if any(not case.cell for case in answers.values()):
        cells.insert(0, new_code_cell(_bring_along(chapter), id="known_answers"))
    notebook.cells = cells
    return notebook


def _from_the_catalogue(case: Case) -> str:
    chapter = case.exercise.partition(".")[0]
    return f"""\
from known_grader.exercises.{chapter} import EXERCISES as known
known = next(exercise for exercise in known if exercise.name == {case.exercise!r})
globals().update(known.reference)
for mistake in known.misconceptions:
    if mistake.name in {case.catalogued!r}:
        globals().update(mistake.answer)
"""


def _bring_along(chapter: str) -> str:
    """A cell that writes the two packages beside the notebook, as one archive that Python imports from."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        files = [*(ROOT / "encoder_grader").glob("*.py"), ROOT / f"encoder_grader/exercises/{chapter}.py"]
        for file in sorted(
            [*files, ROOT / "encoder_grader/exercises/__init__.py", *(ROOT / "encoder_lib").glob("*.py")]
        ):
            name, text = str(file.relative_to(ROOT)), file.read_text()
            for old, new in RENAMED.items():
                name, text = name.replace(old, new), text.replace(old, new)
            archive.writestr(zipfile.ZipInfo(name), text)
    return f"""\
import base64, sys
with open("known.zip", "wb") as archive:
    archive.write(base64.b64decode({base64.b64encode(buffer.getvalue()).decode()!r}))
sys.path.insert(0, "known.zip")
"""
