"""The way from solutions/ to exercises/."""

import shutil

import nbformat
import pytest
from nbgrader.api import Gradebook

from encoder_grader.nbgrader_course import NbgraderFailure
from encoder_grader.release import assignments, generate, release_assignment

RELEASED = "exercises/1_counting/counting.ipynb"


def test_assignments_come_in_chapter_order(course):
    for name in ("10_looking_inside", "2_attention"):
        shutil.copytree(course / "solutions" / "1_counting", course / "solutions" / name)
    assert assignments(course) == ["1_counting", "2_attention", "10_looking_inside"]


def test_release_takes_the_solution_out_and_enters_the_assignment_into_the_gradebook(course):
    release_assignment(course, "1_counting")
    text = (course / RELEASED).read_text()
    assert "total += b" not in text
    assert "raise NotImplementedError()" in text
    with Gradebook(f"sqlite:///{course}/gradebook.db", "transformer_encoder") as gradebook:
        assert gradebook.find_assignment("1_counting").max_score == 9


def test_generating_without_a_gradebook_gives_the_same_bytes_and_leaves_nothing_else(course, tmp_path):
    generate(course, "1_counting", tmp_path / "other")
    assert not (course / "gradebook.db").exists()
    assert not (course / "exercises").exists()
    release_assignment(course, "1_counting")
    assert (tmp_path / "other/1_counting/counting.ipynb").read_bytes() == (course / RELEASED).read_bytes()


def test_a_second_release_gives_the_same_bytes(course):
    release_assignment(course, "1_counting")
    first = (course / RELEASED).read_bytes()
    release_assignment(course, "1_counting")
    assert (course / RELEASED).read_bytes() == first
    assert not (course / "work").exists()


def test_a_released_notebook_that_somebody_worked_in_is_kept_in_work(course, capsys):
    release_assignment(course, "1_counting")
    notebook = nbformat.read(course / RELEASED, as_version=4)
    notebook.cells[1].source = "def add(a, b):\n    return a + b"
    nbformat.write(notebook, course / RELEASED)
    edited = (course / RELEASED).read_bytes()
    for number in (1, 2):
        (course / RELEASED).write_bytes(edited)
        release_assignment(course, "1_counting")
        assert (course / f"work/1_counting/counting-from-exercises-{number}.ipynb").read_bytes() == edited
    assert "somebody worked in counting.ipynb" in capsys.readouterr().out
    assert "return a + b" not in (course / RELEASED).read_text()


def test_a_broken_source_notebook_raises_with_nbgraders_log_and_leaves_the_release_alone(course):
    release_assignment(course, "1_counting")
    before = (course / RELEASED).read_bytes()
    source = course / "solutions/1_counting/counting.ipynb"
    source.write_text(source.read_text().replace("### END SOLUTION", ""))
    with pytest.raises(NbgraderFailure, match="could not generate 1_counting(.|\n)*no end solution statement"):
        release_assignment(course, "1_counting")
    assert (course / RELEASED).read_bytes() == before
