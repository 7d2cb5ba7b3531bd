"""The way from submitted/ to grades, with nbgrader itself."""

import json
import re

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.utils import is_solution

from encoder_grader.cage import CannotCage
from encoder_grader.grade import grade_class, grades_table, reports
from encoder_grader.nbgrader_course import NbgraderFailure
from encoder_grader.release import release_assignment

NAME = "1_counting"
ANSWERS = {"add": "def add(a, b):\n    return a + b", "double": "def double(a):\n    return 2 * a", "why": "So it is."}


def submit(folder, released, student, answers=ANSWERS, name="counting.ipynb"):
    """Hand in the released notebook with these answers."""
    notebook = nbformat.read(released, as_version=4)
    for cell in notebook.cells:
        if is_solution(cell) and cell.id in answers:
            cell.source = answers[cell.id]
    place = folder / "submitted" / student / NAME
    place.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place / name)


def open_gradebook(folder):
    return Gradebook(f"sqlite:///{folder}/gradebook.db", "transformer_encoder")


def scores(folder, student):
    with open_gradebook(folder) as gradebook:
        submission = gradebook.find_submission(NAME, student)
        return {grade.name: grade.score for notebook in submission.notebooks for grade in notebook.grades}


def grade_manually(folder, student, points):
    with open_gradebook(folder) as gradebook:
        grade = gradebook.find_grade("why", "counting", NAME, student)
        grade.manual_score = points
        grade.needs_manual_grade = False
        gradebook.db.commit()


def results(course, folder=None):
    return {result.student: result.failure for result in grade_class(course, folder or course)}


@pytest.fixture
def released(course):
    release_assignment(course, NAME)
    return course / "exercises" / NAME / "counting.ipynb"


def test_a_question_graded_by_hand_waits_then_counts_and_outlives_a_regrade(course, released):
    submit(course, released, "ada")
    assert results(course) == {"ada": ""}
    assert scores(course, "ada") == {"check_add": 3, "check_double": 2, "why": 0}
    with open_gradebook(course) as gradebook:
        assert gradebook.find_submission(NAME, "ada").needs_manual_grade
    assert re.search(r"ada +3 +2 +0\? +5\?\n", grades_table(course, course))

    grade_manually(course, "ada", 2.5)
    feedback = course / "feedback" / "ada" / NAME / "counting.html"
    before = feedback.read_text()
    assert results(course) == {"ada": ""}  # only its feedback was written again
    assert feedback.read_text() != before
    assert re.search(r"Score: 7\.5\s*/\s*9\.0", feedback.read_text())
    assert re.search(r"ada +3 +2 +2.5 +7.5\n", grades_table(course, course))
    assert "ada,,,,7.5,0.0,7.5,9.0" in (course / "grades.csv").read_text()
    assert results(course) == {}  # and now nothing is left to do

    (course / "autograded/ada" / NAME / ".graded").unlink()
    assert results(course) == {"ada": ""}
    assert scores(course, "ada")["why"] == 2.5


def test_only_what_changed_is_graded_again(course, released):
    submit(course, released, "ada")
    submit(course, released, "ben", {})
    assert results(course) == {"ada": "", "ben": ""}
    assert results(course) == {}
    submit(course, released, "ben", {"add": ANSWERS["add"]})
    assert results(course) == {"ben": ""}
    assert scores(course, "ben") == {"check_add": 3, "check_double": 0, "why": 0}
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\n# changed\n")
    assert results(course) == {"ada": "", "ben": ""}


def test_a_deleted_test_cell_comes_back_and_is_run(course, released):
    submit(course, released, "dan", {**ANSWERS, "double": "def double(a):\n    return a"})
    path = course / "submitted/dan" / NAME / "counting.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id not in ("check_add", "check_double")]
    nbformat.write(notebook, path)
    assert results(course) == {"dan": ""}
    assert scores(course, "dan") == {"check_add": 3, "check_double": 0, "why": 0}


def test_whatever_is_handed_in_gets_a_grade_and_a_sentence(course, released):
    for student in ("ada", "cut", "dead", "empty", "linked", "lost"):
        submit(course, released, student)
    cut = course / "submitted/cut" / NAME / "counting.ipynb"
    cut.write_text(cut.read_text()[:200])
    submit(course, released, "dead", {**ANSWERS, "add": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"})
    (course / "submitted/empty" / NAME / "counting.ipynb").unlink()
    linked = course / "submitted/linked" / NAME / "counting.ipynb"
    linked.unlink()
    linked.symlink_to(course / "submitted/ada" / NAME / "counting.ipynb")
    lost = course / "submitted/lost" / NAME / "counting.ipynb"
    lost.rename(lost.with_name("my_counting.ipynb"))
    (course / "submitted/wrong/1_countin").mkdir(parents=True)

    found = results(course)
    assert found.pop("wrong") == "there is no assignment '1_countin', only 1_counting"
    assert found == dict.fromkeys(("ada", "cut", "dead", "empty", "linked", "lost"), "")
    totals = {student: sum(scores(course, student).values()) for student in found}
    assert totals == {"ada": 5, "cut": 0, "dead": 2, "empty": 0, "linked": 0, "lost": 5}
    nothing = "There was nothing to grade, so this notebook has 0 points."
    assert reports(course) == [
        "cut, 1_counting: counting.ipynb is not a notebook: its JSON breaks off at character 200 of 200.",
        f"cut, 1_counting: {nothing}",
        "empty, 1_counting: counting.ipynb is missing.",
        f"empty, 1_counting: {nothing}",
        "linked, 1_counting: counting.ipynb is a link to another file.",
        f"linked, 1_counting: {nothing}",
        "lost, 1_counting: counting.ipynb is missing; my_counting.ipynb was graded in its place.",
    ]
    assert "breaks off at character 200" in (course / "feedback/cut" / NAME / "counting.html").read_text()
    assert results(course) == {"wrong": "there is no assignment '1_countin', only 1_counting"}  # it is not forgotten


def test_where_no_cage_can_be_had_nothing_is_graded(course, released, monkeypatch):
    def none():
        raise CannotCage("this is a toaster")

    monkeypatch.setattr("encoder_grader.cage.strength", none)
    submit(course, released, "ada")
    with pytest.raises(NbgraderFailure, match="Nothing was graded: this is a toaster"):
        results(course)
    assert not (course / "autograded").exists() and not (course / "staged").exists()
    with open_gradebook(course) as gradebook:
        assert gradebook.students == []
    assert {result.failure for result in grade_class(course, course, sandbox=False)} == {""}
    assert scores(course, "ada")["check_add"] == 3


def test_a_class_elsewhere_has_its_own_gradebook(course, released, tmp_path):
    elsewhere = tmp_path / "class"
    submit(elsewhere, released, "eve")
    assert results(course, elsewhere) == {"eve": ""}
    assert scores(elsewhere, "eve") == {"check_add": 3, "check_double": 2, "why": 0}
    with open_gradebook(course) as gradebook:
        assert [student.id for student in gradebook.students] == []
    assert not (course / "submitted").exists()


def test_the_record_beside_a_graded_notebook_is_no_part_of_the_feedback(course, released):
    submit(course, released, "ada")
    assert results(course) == {"ada": ""}
    assert set(json.loads((course / "autograded/ada" / NAME / ".graded").read_text())) == {"inputs", "marks"}
    assert sorted(file.name for file in (course / "feedback/ada" / NAME).iterdir()) == [
        "counting.html",
        "timestamp.txt",
    ]
