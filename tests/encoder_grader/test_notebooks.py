"""What the source notebooks say of an exercise is what its entry holds, and what an entry says of the book is there."""

import re
from pathlib import Path

import nbformat
import pytest

from encoder_grader.exercise import Exercise, chapters, exercises

ROOT = Path(__file__).parents[2]
EVERY = [exercise for chapter in chapters() for exercise in exercises(chapter)]


def cells(exercise: Exercise) -> dict:
    """The cells of the exercise's notebook, by id."""
    chapter = exercise.name.split(".")[0]
    (path,) = ROOT.glob(f"solutions/*_{chapter}/{chapter}.ipynb")
    return {cell.id: cell for cell in nbformat.read(path, 4).cells}


def sections(number: str) -> list[str]:
    """The headings of a chapter's page, code cells aside."""
    (path,) = ROOT.glob(f"book/{number}_*.md")
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("exercise", EVERY, ids=lambda e: e.name)
def test_cells_of_an_exercise_fit_its_entry(exercise):
    name = exercise.name.split(".")[1]
    test = cells(exercise)[f"check_{name}"]
    assert test.source == f'check("{exercise.name}")'
    assert test.metadata.nbgrader.points == exercise.points
    assert cells(exercise)[name].metadata.nbgrader.solution


@pytest.mark.parametrize("exercise", EVERY, ids=lambda e: e.name)
def test_statement_gives_title_points_minutes_difficulty_claims_and_a_hint(exercise):
    text = cells(exercise)[exercise.name.split(".")[1] + "_task"].source
    assert re.match(rf"## \d+\. {re.escape(exercise.title)}\n", text)
    assert re.search(rf"\*\*{exercise.points:g} points · about \d+ minutes · [●○]{{3}}\*\*", text)
    stated = re.findall(r"^\| (.+) \| (\d+) \|$", text, flags=re.MULTILINE)
    assert stated == [(claim.says, f"{claim.points:g}") for claim in exercise.claims]
    assert "<details>\n<summary>Hint</summary>" in text
    for built_in in exercise.forbidden:
        assert built_in in text, f"{exercise.name} forbids {built_in} without saying so"


@pytest.mark.parametrize("exercise", EVERY, ids=lambda e: e.name)
def test_overview_of_the_notebook_gives_the_points(exercise):
    overview = cells(exercise)["introduction"].source
    assert re.search(rf"^\| \d+\. {re.escape(exercise.title)} \| {exercise.points:g} \|", overview, flags=re.MULTILINE)


@pytest.mark.parametrize("exercise", EVERY, ids=lambda e: e.name)
def test_sections_that_messages_point_to_exist(exercise):
    for each in (*exercise.claims, *exercise.misconceptions):
        assert each.see, f"{each.name} says nowhere to look"
        section, number = re.fullmatch(r"“(.+)” in chapter (\d+)", each.see).groups()
        assert section in sections(number), f"{each.name}: “{section}” is none of {sections(number)}"
