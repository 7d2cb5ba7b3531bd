"""A fixed part of the known answers, the whole way through nbgrader; `make accuracy` sends all of them."""

import os
import sys
from pathlib import Path

import pytest

from encoder_grader.accuracy.cases import cases
from encoder_grader.accuracy.real_path import graded
from encoder_grader.exercise import chapters, exercises

WRONG = ("misconception", "mistake", "mutant", "pair")


def chosen(chapter):
    """Of each exercise a right answer and a wrong one, whose kind changes from exercise to exercise."""
    known = cases(chapter)
    for number, exercise in enumerate(exercises(chapter)):
        own = {case.kind: case for case in known if case.exercise == exercise.name}  # the last of each kind
        yield own["right"]
        yield own.get(WRONG[number % len(WRONG)], own["misconception"])


@pytest.mark.parametrize("chapter", chapters())
def test_right_answers_get_full_marks_and_wrong_ones_do_not(chapter, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    found = dict(graded(list(chosen(chapter)), tmp_path / "class"))
    assert len(found) == 2 * len(exercises(chapter))
    for case, grade in found.items():
        assert (grade.points == grade.maximum) == (case.kind == "right"), f"{case}: {grade}"
        if case.kind == "misconception":
            assert grade.named, case
