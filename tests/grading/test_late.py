"""Due dates, extensions and what lateness costs, by the server's own clock."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from encoder_grader.grade import grade_class, grades_table
from encoder_grader.late import LatePenalty
from encoder_grader.release import release_assignment
from tests.grading.test_grade import NAME, grade_manually, open_gradebook, submit

DUE = datetime(2026, 1, 10, 23, 59, 59)


@pytest.fixture
def late(course, quick):
    """A class in which each day costs a tenth; ada handed in two and a half days late."""
    release_assignment(course, NAME)
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.LatePenalty.per_day = 0.1\n")
    due(course, DUE)
    received(course, ada=DUE + timedelta(days=2.5))
    submit(course, course / "exercises" / NAME / "counting.ipynb", "ada")
    return course


def due(course, date):
    with open_gradebook(course) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate=date)


def received(course, **times):
    (course / "received.csv").write_text("".join(f"{student},{NAME},{time}+00:00\n" for student, time in times.items()))


def lost(course, student="ada"):
    """Grade what there is to grade, and say what lateness cost."""
    assert [result.failure for result in grade_class(course, course) if result.failure] == []
    with open_gradebook(course) as gradebook:
        return gradebook.find_submission(NAME, student).late_submission_penalty


def test_each_day_that_has_begun_costs_its_part_in_the_table_the_export_and_the_feedback(late):
    assert lost(late) == pytest.approx(1.5)  # three tenths of 5
    assert re.search(r"ada +3 +2 +0\? +3.5\?\n", grades_table(late, late))
    assert "ada,,,,5.0,1.5,3.5,9.0" in (late / "grades.csv").read_text()
    assert "Late submission penalty" in (late / "feedback/ada" / NAME / "counting.html").read_text()


def test_an_extension_or_another_due_date_or_time_counts_at_once_and_runs_nothing_again(late, quick):
    assert lost(late) == pytest.approx(1.5)
    ran = len(quick)
    with open_gradebook(late) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=2)
    assert lost(late) == pytest.approx(0.5)
    with open_gradebook(late) as gradebook:
        gradebook.grant_extension(NAME, "ada", days=3)
    assert not lost(late)
    due(late, DUE - timedelta(days=1))
    assert lost(late) == pytest.approx(0.5)
    assert len(quick) == ran
    received(late, ada=DUE - timedelta(days=1))
    assert not lost(late)


def test_points_given_by_hand_are_late_too(late):
    lost(late)
    grade_manually(late, "ada", 4)
    assert lost(late) == pytest.approx(2.7)


def test_the_time_in_a_submission_is_not_believed(late):
    released = late / "exercises" / NAME / "counting.ipynb"
    due(late, datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1))
    received(late)
    (late / "submitted/ada" / NAME / "timestamp.txt").write_text("2001-01-01 00:00:00 UTC")
    assert lost(late) == pytest.approx(0.5)
    # Another copy of the same bytes is no later; a copy of them in somebody else's name has its own time.
    before = (late / "staged/ada" / NAME / "timestamp.txt").read_text()
    submit(late, released, "ada")
    submit(late, released, "ben")
    lost(late)
    assert (late / "staged/ada" / NAME / "timestamp.txt").read_text() == before
    assert (late / "staged/ben" / NAME / "timestamp.txt").read_text() > before


def test_lateness_costs_nothing_unless_it_is_asked_for():
    assert LatePenalty().late_submission_penalty("ada", 5.0, 1e6) == 0
    assert LatePenalty(per_day=0.5).late_submission_penalty("ada", 5.0, 1e6) == 5
    assert LatePenalty(per_day=0.5).late_submission_penalty("ada", 5.0, 24 * 60 * 60) == 2.5
    assert LatePenalty(per_day=0.5).late_submission_penalty("ada", 5.0, 24 * 60 * 60 + 1) == 5
