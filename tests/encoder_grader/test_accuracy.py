"""No wrong answer gets full marks and no right one loses a point: every known answer, at several seeds."""

import pytest

from encoder_grader.accuracy import results
from encoder_grader.accuracy.cases import answer_cells, cases, equivalent, equivalent_cases
from encoder_grader.accuracy.judging import SEEDS, judged
from encoder_grader.accuracy.mutants import mutants
from encoder_grader.accuracy.real_path import Grade
from encoder_grader.exercise import chapters, exercises

HERE = SEEDS[:1]  # here, each time; `make accuracy` judges at all of them
EACH = [exercise.name for chapter in chapters() for exercise in exercises(chapter)]


def outcomes(exercise, *kinds, seeds=HERE):
    chapter = exercise.partition(".")[0]
    return judged([case for case in cases(chapter) if case.exercise == exercise and case.kind in kinds], seeds)


@pytest.mark.parametrize("exercise", EACH)
def test_every_right_answer_gets_full_marks_and_lies_far_inside_the_tolerance(exercise):
    for case, seed, outcome in outcomes(exercise, "right", seeds=SEEDS[:2]):
        assert outcome.full, f"{case}, seed {seed}: loses {sorted(outcome.failed)}"
        assert not outcome.named - {""}
        assert outcome.error < 0.1, f"{case}, seed {seed}: an error of {outcome.error:.2g} tolerances"


@pytest.mark.parametrize("exercise", EACH)
def test_every_misconception_loses_points_and_is_named_as_itself(exercise):
    for case, seed, outcome in outcomes(exercise, "misconception", seeds=SEEDS[:2]):
        assert not outcome.full, f"{case}, seed {seed}"
        assert outcome.named == {case.name}, f"{case}, seed {seed}: called {sorted(outcome.named)}"
        assert outcome.margin > 10, f"{case}, seed {seed}: only {outcome.margin:.2g} tolerances away"


@pytest.mark.parametrize("exercise", EACH)
def test_every_other_wrong_answer_loses_points_by_a_clear_margin(exercise):
    for case, seed, outcome in outcomes(exercise, "pair", "mistake"):
        assert not outcome.full, f"{case}, seed {seed}"
        assert outcome.margin > 10, f"{case}, seed {seed}: only {outcome.margin:.2g} tolerances away"
        if case.lost:
            assert outcome.failed == case.lost, f"{case}, seed {seed}"


@pytest.mark.parametrize("exercise", EACH)
def test_every_mutant_that_is_not_equivalent_loses_points(exercise):
    for case, seed, outcome in outcomes(exercise, "mutant"):
        assert not outcome.full, f"{case}, seed {seed}"


@pytest.mark.parametrize("exercise", EACH)
def test_the_mutants_called_equivalent_exist_and_do_get_full_marks(exercise):
    chapter, _, slug = exercise.partition(".")
    entry = next(each for each in exercises(chapter) if each.name == exercise)
    assert equivalent(entry).keys() <= mutants(answer_cells(chapter)[slug]).keys()
    for case, seed, outcome in judged(equivalent_cases(entry), HERE):
        assert outcome.full, f"{case}, seed {seed}: it loses {sorted(outcome.failed)}, so it is not equivalent"


@pytest.mark.parametrize("exercise", EACH)
def test_there_are_enough_answers_of_each_kind(exercise):
    chapter = exercise.partition(".")[0]
    kinds = [case.kind for case in cases(chapter) if case.exercise == exercise]
    assert kinds.count("right") >= 5
    assert kinds.count("misconception") + kinds.count("mistake") >= 5


# --- what the book publishes ------------------------------------------------------------------------------------------


def test_the_published_figures_were_made_with_this_grader():
    published = results.read()
    assert published["digest"] == results.current_digest(), "the figures are stale: run make accuracy, and commit them"
    assert list(published["exercises"]) == [
        exercise.name for chapter in results.chapters_in_order() for exercise in exercises(chapter)
    ]


def test_the_published_errors_are_zero():
    published = results.read()["exercises"].values()
    assert [case for exercise in published for case in exercise["missed"] + exercise["refused"]] == []
    for exercise in published:
        assert (
            exercise["right"]["passed_by_judge"]
            == exercise["right"]["passed_by_nbgrader"]
            == exercise["right"]["answers"]
        )
        for kind in exercise["wrong"].values():
            assert kind["caught_by_judge"] == kind["answers"]
            assert kind["caught_by_nbgrader"] == kind["graded"] == kind["answers"]
        assert exercise["right"]["misnamed"] == 0
        assert all(set(said) == {name} for name, said in exercise["said"].items())
        assert exercise["named_by_nbgrader"] == len(exercise["said"])
    assert sum(exercise["right"]["answers"] for exercise in published) >= 150
    assert sum(kind["answers"] for exercise in published for kind in exercise["wrong"].values()) >= 300


@pytest.mark.parametrize("exercise", ["attention.heads", "add_norm.layer_norm"])
def test_a_figure_tells_an_error_where_there_is_one(exercise):
    """The figures of a grader that is wrong about one answer of each kind."""
    known = [case for case in cases(exercise.partition(".")[0]) if case.exercise == exercise]
    seen = {case: [] for case in known}
    for case, _, outcome in judged(known, SEEDS[:1]):
        seen[case].append(outcome)
    grades = {case: Grade(1.0 if case.kind == "right" else 0.0, 1.0, True) for case in known}
    right = next(case for case in known if case.kind == "right")
    wrong = next(case for case in known if case.kind == "mutant")
    assert results.figures(exercise, seen, grades)["missed"] == results.figures(exercise, seen, grades)["refused"] == []
    found = results.figures(exercise, seen, grades | {right: Grade(0.5, 1.0, True), wrong: Grade(1.0, 1.0, True)})
    assert (found["refused"], found["missed"]) == ([str(right)], [str(wrong)])
    found = results.figures(exercise, seen | {right: seen[wrong], wrong: seen[right]}, grades)
    assert (found["refused"], found["missed"]) == ([str(right)], [str(wrong)])
    assert found["right"]["passed_by_judge"] == found["right"]["answers"] - 1
