"""The right grade of every submission of the sample class, as nbgrader gives it, and how its mistake is named."""

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

ROOT = Path(__file__).parents[2]
CLASS = ROOT / "_build" / "sample_class"

# assignment → student → the points of each exercise in the notebook's order, and what the feedback says
RIGHT = {
    "1_embedding": {
        "ada_full_marks": ((4, 6, 5, 6, 4), "25.0 / 25.0"),
        "ben_untouched_stub": ((0, 0, 0, 0, 0), "raised NotImplementedError"),
        "cleo_half_finished": ((4, 6, 0, 0, 0), "raised NotImplementedError"),
        "dan_deleted_a_test": ((4, 6, 5, 6, 4), "was missing from the submission. It was added back"),
        "eve_averaged_the_uses": ((3, 6, 5, 6, 4), "you average over the uses of a row: they add up"),
        "fay_forgot_the_scale": ((4, 5, 5, 6, 4), "you left out the factor √d_model"),
        "gus_overwrote_the_padding": ((4, 5, 5, 6, 4), "overwrote the zeros that nn.Embedding had put into"),
        # of 3 only the ValueError is left; in 4 the rows belong to no patch
        "hal_cut_strips": ((4, 6, 1, 5, 4), "your rows are runs of neighbouring pixels in reading order, not squares"),
        # 4 asks for the order of the patches too
        "ida_went_down_the_columns": ((4, 6, 4, 5, 4), "your patches run down the columns of the grid first"),
        "jon_forgot_the_stride": ((4, 6, 5, 4, 4), "your convolution moves by one pixel"),
        "kim_forgot_the_bias": ((4, 6, 5, 6, 2), "you left out the bias"),
        # nothing in that cell ran
        "lea_typed_half_a_line": ((4, 6, 5, 6, 0), "SyntaxError"),
    }
}
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
    assert re.search(rf"^{student} +{' +'.join(f'{points:g}' for points in (*each, sum(each)))}$", graded, re.MULTILINE)
    line = next(line for line in (CLASS / "grades.csv").read_text().splitlines() if f",{student}," in line)
    assert float(line.split(",")[-2]) == sum(each)


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
