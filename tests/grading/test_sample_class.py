"""The right grade of every submission of the sample class, as nbgrader gives it, and how its mistake is named."""

import csv
import html
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from encoder_grader.release import assignments
from encoder_grader.sample_class import edited, submissions
from tests.grading.right_grades import right_grades

ROOT = Path(__file__).parents[2]
CLASS = ROOT / "_build" / "sample_class"

RIGHT = {assignment: right_grades(assignment) for assignment in assignments(ROOT)}
STUDENTS = [(assignment, student) for assignment in RIGHT for student in RIGHT[assignment]]


@pytest.fixture(scope="module", autouse=True)
def graded():
    """Grade what is not graded yet, and return what the command printed."""
    done = subprocess.run([sys.executable, "course.py", "grade"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def grades(graded):
    """(assignment, student) → (points of each exercise, most points of each)."""
    found = {}
    with Gradebook(f"sqlite:///{CLASS}/gradebook.db", "transformer_encoder") as gradebook:
        for assignment in gradebook.assignments:
            cells = {cell.name: cell.max_score for notebook in assignment.notebooks for cell in notebook.grade_cells}
            for submission in assignment.submissions:
                scores = {grade.name: grade.score for notebook in submission.notebooks for grade in notebook.grades}
                each = tuple(scores[name] for name in cells)
                found[assignment.name, submission.student_id] = (each, tuple(cells.values()))
    return found


def test_the_right_grades_cover_the_whole_sample_class(grades):
    assert sorted(grades) == sorted(STUDENTS)


@pytest.mark.parametrize(("assignment", "student"), STUDENTS)
def test_the_submission_gets_its_right_grade(grades, assignment, student):
    assert grades[assignment, student][0] == RIGHT[assignment][student][0]


@pytest.mark.parametrize(("assignment", "student"), STUDENTS)
def test_the_feedback_page_says_what_is_wrong(assignment, student):
    page = CLASS / "feedback" / student / assignment / f"{assignment.partition('_')[2]}.html"
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", page.read_text())).split())
    assert RIGHT[assignment][student][1] in text


@pytest.mark.parametrize("assignment", assignments(ROOT))
def test_a_source_notebook_gets_full_marks_and_the_stub_none(grades, assignment):
    got, most = grades[assignment, "ada_full_marks"]
    assert got == most
    assert sum(grades[assignment, "ben_untouched_stub"][0]) == 0


@pytest.mark.parametrize(("assignment", "student"), STUDENTS)
def test_the_table_and_the_export_hold_the_grade(graded, assignment, student):
    each = RIGHT[assignment][student][0]
    (table,) = (table for table in graded.split("\n\n") if table.lstrip().startswith(f"{assignment} "))
    assert [student, *(f"{points:g}" for points in (*each, sum(each)))] in [line.split() for line in table.splitlines()]
    with open(CLASS / "grades.csv", newline="") as export:
        scores = {(row["assignment"], row["student_id"]): float(row["score"]) for row in csv.DictReader(export)}
    assert scores[assignment, student] == sum(each)


def test_graded_again_with_nothing_changed_no_submission_is_touched(graded):
    done = subprocess.run([sys.executable, "course.py", "grade"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Grade: " not in done.stdout


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"add": [("no such text", "")]}, "the solution of 'add' has no text 'no such text'"),
        ({"subtract": []}, "there is no answer cell 'subtract', only add"),
    ],
)
def test_a_mistake_that_does_not_fit_the_solution_raises(edits, message):
    with pytest.raises(ValueError, match=message):
        edited({"add": "return a + b"}, edits)


def test_a_deleted_test_cell_is_really_gone_from_the_submission():
    folder = ROOT / "exercises" / "1_embedding" / "embedding.ipynb"
    source = nbformat.read(ROOT / "solutions" / "1_embedding" / "embedding.ipynb", as_version=4)
    made = submissions(source, nbformat.read(folder, as_version=4), {})
    ids = {student: [cell.id for cell in notebook.cells] for student, notebook in made.items()}
    assert set(ids["ada_full_marks"]) - set(ids["dan_deleted_a_test"]) == {"check_shapes"}
