"""`nbgrader autograde` and what it saves: every submission gets its grade, and grades are kept rightly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_output
from nbgrader.apps.api import NbGraderAPI

from encoder_grader.ledger import Ledger
from encoder_grader.nbgrader_course import open_course
from encoder_grader.release import release_assignment
from encoder_grader.save_grades import SaveGrades, _bound
from tests.grading.test_grade import ANSWERS, NAME, grade_manually, open_gradebook, scores, submit

FILE = "counting.ipynb"
NBGRADER = Path(sys.executable).with_name("nbgrader")


@pytest.fixture
def released(course):
    release_assignment(course, NAME)
    return course / "exercises" / NAME / FILE


def place(course, student):
    return course / "submitted" / student / NAME / FILE


def autograde(course, *arguments):
    return subprocess.run([NBGRADER, "autograde", NAME, *arguments], cwd=course, capture_output=True, text=True)


def totals(course):
    with open_gradebook(course) as gradebook:
        return {submission.student_id: submission.score for submission in gradebook.assignment_submissions(NAME)}


# What each student does to an honest notebook, and the points that are left.
DAMAGE = {
    "ada_nothing": (lambda file: None, 5),
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:300]), 0),
    "device": (lambda file: (file.unlink(), os.mkfifo(file)), 0),
    "empty": (lambda file: file.write_bytes(b""), 0),
    "gone": (lambda file: file.unlink(), 0),
    "link": (lambda file: (file.rename(file.parents[3] / "away"), file.symlink_to("../../../away")), 0),
    "nested": (lambda file: ((file.parent / "a").mkdir(), file.rename(file.parent / "a" / "b.ipynb")), 5),
    "old_format": (lambda file: file.write_text(file.read_text().replace('"nbformat": 4', '"nbformat": 3')), 5),
    "new_schema": (lambda file: file.write_text(file.read_text().replace('version": 3', 'version": 9')), 5),
    "shadow": (lambda file: (file.parent / "torch.py").write_text("1 / 0"), 5),
    "time": (lambda file: (file.parent / "timestamp.txt").write_text("yesterday"), 5),
    "worthless": (lambda file: file.write_text('{"cells": [{"cell_type": "code", "source": []}]}'), 0),
}  # fmt: skip


def test_the_command_grades_a_whole_class_whatever_was_handed_in(course, released):
    for student, (damage, _) in DAMAGE.items():
        submit(course, released, student)
        damage(place(course, student))
    (course / "submitted" / "stray").write_text("")
    done = autograde(course)
    assert done.returncode == 0, done.stderr
    assert totals(course) == {student: points for student, (_, points) in DAMAGE.items()}
    assert "cut, 1_counting: counting.ipynb is not a notebook: its JSON breaks off at character" in done.stderr
    kept = {file.name for file in (course / "autograded").rglob("*") if file.is_file()}
    assert kept == {FILE, "report.json", "timestamp.txt"}

    again = autograde(course)
    assert again.returncode == 0 and "Autograding" not in again.stderr  # nothing is graded twice
    place(course, "cut").write_bytes(place(course, "ada_nothing").read_bytes())
    again = autograde(course)
    assert again.stderr.count("Autograding") == 1 and totals(course)["cut"] == 5


def test_a_submission_that_cannot_be_staged_is_named_and_the_others_are_graded(course, released, quick):
    submit(course, released, "ada")
    submit(course, released, "<b>eve")
    (course / "received.csv").write_text("ben,1_counting,yesterday\n")
    submit(course, released, "ben")
    result = open_course(course, course).autograde(NAME, "*")
    assert not result["success"]
    assert "<b>eve, 1_counting: a student's id has no quotes" in result["error"]
    assert "ben, 1_counting: received.csv, line 1: 'ben,1_counting,yesterday' should be" in result["error"]
    assert totals(course) == {"ada": 5}


def test_one_that_fails_while_it_runs_does_not_stop_the_others(course, released, quick, monkeypatch):
    for student in ("ada", "ben", "cleo"):
        submit(course, released, student)
    from encoder_grader.execute import Execute

    run = Execute.preprocess

    def fail(self, nb, resources):
        if resources["nbgrader"]["student"] == "ben":
            raise OSError("the machine coughed")
        return run(self, nb, resources)

    monkeypatch.setattr("encoder_grader.execute.Execute.preprocess", fail)
    result = open_course(course, course).autograde(NAME, "*")
    assert not result["success"] and "for student 'ben'" in result["log"]
    assert totals(course) == {"ada": 5, "ben": 0, "cleo": 5}
    assert not (course / "autograded" / "ben" / NAME).exists()


def test_a_release_that_somebody_worked_in_is_not_graded_against(course, released, quick):
    submit(course, released, "ada", {})
    notebook = nbformat.read(released, as_version=4)
    notebook.cells[1].source = ANSWERS["add"]
    nbformat.write(notebook, released)
    result = open_course(course, course).autograde(NAME, "ada")
    assert "exercises/1_counting/counting.ipynb is not as it was released: run make release." in result["error"]
    released.unlink()
    result = open_course(course, course).autograde(NAME, "ada")
    assert "exercises/1_counting/counting.ipynb is missing: run make release." in result["error"]


def test_formgrader_shows_the_time_that_staging_found_and_reads_no_file_of_the_student(course, released, quick):
    submit(course, released, "ada")
    (place(course, "ada").parent / "timestamp.txt").write_text("yesterday")
    api = open_course(course, course)
    assert api.get_submitted_timestamp(NAME, "ada") is None
    assert api.autograde(NAME, "ada")["success"]
    staged = (course / "staged" / "ada" / NAME / "timestamp.txt").read_text()
    assert staged.startswith(str(NbGraderAPI.get_submitted_timestamp(api, NAME, "ada")))


# --- what is saved


def needs_a_look(course):
    with open_gradebook(course) as gradebook:
        grade = gradebook.find_grade("why", "counting", NAME, "ada")
        return grade.manual_score, grade.needs_manual_grade


def test_a_manual_grade_and_what_still_needs_a_look_outlive_a_regrade_but_not_a_new_submission(course, released, quick):
    regrade = lambda: open_course(course, course).autograde(NAME, "ada")  # noqa: E731
    submit(course, released, "ada")
    assert regrade()["success"] and needs_a_look(course) == (None, True)
    regrade()
    assert needs_a_look(course) == (None, True)
    grade_manually(course, "ada", 2.5)
    regrade()
    assert needs_a_look(course) == (2.5, False)
    grade_manually(course, "ada", None)  # looked at, and no points by hand
    regrade()
    assert needs_a_look(course) == (None, False)

    grade_manually(course, "ada", 3)
    submit(course, released, "ada", {**ANSWERS, "why": "Because."})
    regrade()
    assert needs_a_look(course) == (3, True)
    regrade()
    assert needs_a_look(course) == (3, True)
    grade_manually(course, "ada", 4)
    regrade()
    assert needs_a_look(course) == (4, False)
    # Renamed, the same bytes are the same work.
    place(course, "ada").rename(place(course, "ada").with_name("mine.ipynb"))
    regrade()
    assert needs_a_look(course) == (4, False)

    with open_gradebook(course) as gradebook:
        gradebook.remove_submission(NAME, "ada")
    regrade()
    assert needs_a_look(course) == (None, True)
    with open_gradebook(course) as gradebook:  # its rows are new, and what is graded by machine waits for nobody
        assert not gradebook.find_grade("check_add", "counting", NAME, "ada").needs_manual_grade


def test_all_scores_of_a_notebook_are_saved_or_none(course, released, quick, monkeypatch):
    submit(course, released, "ada")
    score = SaveGrades._add_score

    def fail_at_the_second(self, cell, resources):
        if cell.metadata.nbgrader.grade_id == "check_double":
            raise OSError("the disk is full")
        score(self, cell, resources)

    monkeypatch.setattr(SaveGrades, "_add_score", fail_at_the_second)
    assert not open_course(course, course).autograde(NAME, "ada")["success"]
    assert scores(course, "ada") == {"check_add": 0, "check_double": 0, "why": 0}


@pytest.mark.parametrize(
    ("said", "points"),
    [
        ("2.5", 2.5), ("3", 3), ("0.0", 0), ("99", 3), ("-1", 0), ("nan", 0), ("inf", 0), ("1e999", 0), ("'3.0'", 0),
        ("True", 0), ("np.float64(2.5)", 0), ("", 0), ("None", 0), (["3.0"], 0), (None, 0),
    ],
)  # fmt: skip
def test_a_score_is_a_number_from_0_to_the_maximum(said, points):
    cell = nbformat.v4.new_code_cell(outputs=[new_output("execute_result", data={"text/plain": said} if said else {})])
    _bound(cell, 3.0)
    assert float(cell.outputs[0].data["text/plain"]) == points


# --- the ledger


def test_the_ledger_keeps_the_first_time_of_the_same_bytes_for_each_student(tmp_path):
    ledger = Ledger(tmp_path)
    first = ledger.received("ada", NAME, "a", 1_000_000_000)
    assert str(first) == "2001-09-09 01:46:40"
    assert ledger.received("ada", NAME, "a", 2_000_000_000) == first
    assert ledger.received("ada", NAME, "b", 2_000_000_000) != first
    assert ledger.received("ben", NAME, "a", 2_000_000_000) != first
    assert Ledger(tmp_path).received("ada", NAME, "a", 3_000_000_000) == first
    assert (tmp_path / ".ledger.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / ".ledger.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        ledger.received("ada", NAME, "a", 0)


def test_what_the_instructor_writes_down_wins(tmp_path):
    (tmp_path / "received.csv").write_text(
        "student,assignment,time\nada, 1_counting ,2026-01-10 23:59:59+02:00\nben,1_counting,2026-01-10 23:59\n"
    )
    ledger = Ledger(tmp_path)
    assert str(ledger.received("ada", NAME, "a", 0)) == "2026-01-10 21:59:59"
    assert str(ledger.received("ben", NAME, "a", 0)) == "2026-01-10 23:59:00"
    assert str(ledger.received("cleo", NAME, "a", 0)) == "1970-01-01 00:00:00"


def test_the_ledger_is_written_by_many_at_once(tmp_path):
    code = (
        "import sys; from encoder_grader.ledger import Ledger; l = Ledger(sys.argv[1])\n"
        "for i in range(20): l.was_graded(sys.argv[2], 'a', str(i), 'x')"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path, str(n)]) for n in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert len(json.loads((tmp_path / ".ledger.json").read_text())["graded"]) == 80


def test_two_who_grade_the_same_class_at_once_do_not_disturb_each_other(course, released):
    for student in ("ada", "ben"):
        submit(course, released, student)
    command = [NBGRADER, "autograde", NAME, "--force"]
    both = [subprocess.Popen(command, cwd=course, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode)[1] for process in both] == [0, 0]
    assert totals(course) == {"ada": 5, "ben": 5}


def test_a_whole_class_waits_for_a_single_student_and_two_students_do_not_wait(tmp_path):
    code = (
        "import sys; from pathlib import Path; from encoder_grader.autograde import _alone\n"
        "with _alone(Path(sys.argv[1]), sys.argv[2], 'a'): print('in', flush=True); sys.stdin.read()"
    )

    def enter(student):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", code, tmp_path, student], text=True, **pipes)

    first, second = enter("ada"), enter("ben")
    assert [first.stdout.readline(), second.stdout.readline()] == ["in\n", "in\n"]
    same, whole = enter("ada"), enter("*")
    os.set_blocking(same.stdout.fileno(), False)
    os.set_blocking(whole.stdout.fileno(), False)
    first.communicate()
    second.communicate()
    entered = []
    while len(entered) < 2:  # one, and when that has left, the other
        for each in (same, whole):
            if each not in entered and each.stdout.readline() == "in\n":
                entered.append(each)
                other = whole if each is same else same
                assert other in entered or other.stdout.readline() == ""
                each.communicate()
