"""Every source notebook is fit for nbgrader, its release is what nbgrader makes of it, and no solution leaked."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import is_grade, is_locked, is_solution

from encoder_grader.digest import digest
from encoder_grader.exercise import exercises, find
from encoder_grader.leaks import leaks
from encoder_grader.release import assignments, generate

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = assignments(ROOT)
each_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS)


def slug(assignment):
    return assignment.partition("_")[2]


def source_file(assignment):
    return ROOT / "solutions" / assignment / f"{slug(assignment)}.ipynb"


def read(assignment):
    return nbformat.read(source_file(assignment), as_version=4)


@each_assignment
def test_the_folder_holds_the_notebook_alone(assignment):
    for side in ("solutions", "exercises"):
        files = [file for file in (ROOT / side / assignment).iterdir() if file.name != ".ipynb_checkpoints"]
        assert [file.name for file in files] == [f"{slug(assignment)}.ipynb"]


@each_assignment
def test_the_notebook_is_clean(assignment):
    notebook = json.loads(source_file(assignment).read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == [], f"{cell['id']} has outputs"
        assert cell.get("execution_count") is None, f"{cell['id']} was run"
        nbgrader = cell["metadata"].get("nbgrader")
        if nbgrader:
            assert nbgrader["schema_version"] == 3, f"{cell['id']} has an old schema"
            assert nbgrader["grade_id"] == cell["id"]


@each_assignment
def test_each_test_cell_is_one_locked_check_worth_its_claims(assignment):
    tested = {}
    for cell in read(assignment).cells:
        if is_grade(cell) and not is_solution(cell):
            name = re.fullmatch(r'check\("([a-z_.]+)"\)', cell.source)[1]
            assert is_locked(cell)
            assert cell.id == f"check_{name.partition('.')[2]}"
            tested[name] = cell.metadata.nbgrader.points
    assert tested == {exercise.name: find(exercise.name).points for exercise in exercises(slug(assignment))}


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The last commit's notebooks: `make course` has just generated exercises/ anew, so only there can they differ."""
    root = tmp_path_factory.mktemp("committed")
    archive = ["git", "archive", "HEAD", "solutions", "exercises", "nbgrader_config.py"]
    subprocess.run(["tar", "-x", "-C", root], cwd=ROOT, check=True, input=subprocess.check_output(archive, cwd=ROOT))
    return root


def test_the_committed_release_is_what_nbgrader_makes_of_the_committed_source(committed, tmp_path):
    names = assignments(committed)
    with contextlib.chdir(tmp_path):
        for name in names:
            generate(committed, name, tmp_path)
    drifted = [name for name in names if digest(tmp_path, name) != digest(committed / "exercises", name)]
    assert drifted == [], "exercises/ is not what solutions/ gives: run make release, and commit exercises/"


def test_there_is_a_release_for_each_source_and_no_other():
    assert sorted(folder.name for folder in (ROOT / "exercises").glob("*/")) == sorted(ASSIGNMENTS)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """What nbgrader makes of the sources now: what it shows is no secret, whatever lies in exercises/."""
    folder = tmp_path_factory.mktemp("generated")
    with contextlib.chdir(folder):  # nbgrader changes folders
        for assignment in ASSIGNMENTS:
            generate(ROOT, assignment, folder)
    return folder


@each_assignment
def test_no_solution_is_in_the_exercises(assignment, generated):
    released = generated / assignment / f"{slug(assignment)}.ipynb"
    assert leaks(source_file(assignment), released, sorted((ROOT / "exercises").rglob("*.ipynb"))) == []


@pytest.fixture(scope="module")
def book():
    """The built book, brought up to date."""
    done = subprocess.run([sys.executable, "course.py", "book"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    html = ROOT / "_build" / "html"
    return [file for file in html.rglob("*") if file.suffix in {".html", ".ipynb", ".md", ".txt", ".js", ".json"}]


@each_assignment
def test_no_solution_is_in_the_built_book(assignment, book, generated):
    released = generated / assignment / f"{slug(assignment)}.ipynb"
    pages = [file.name for file in book]
    assert f"{slug(assignment)}.html" in pages and f"{slug(assignment)}.ipynb" in pages
    assert leaks(source_file(assignment), released, book) == []


# ---- the checks see what they are for


SOLUTION = """def f(x):
    ### BEGIN SOLUTION
    # a comment
    y = x  +  1

    return   y * y
    ### END SOLUTION"""


@pytest.fixture
def files(tmp_path):
    """A source, its release, and a function that writes a page and says what leaked into it."""
    cell = nbformat.v4.new_code_cell(SOLUTION, metadata={"nbgrader": {"solution": True, "grade_id": "f"}})
    whole = nbformat.v4.new_code_cell("z = only_line()", metadata={"nbgrader": {"solution": True, "grade_id": "z"}})
    notebook = nbformat.v4.new_notebook(cells=[cell, whole])
    nbformat.write(notebook, tmp_path / "source.ipynb")
    cell.source, whole.source = "def f(x):\n    raise NotImplementedError()", "raise NotImplementedError()"
    nbformat.write(notebook, tmp_path / "released.ipynb")

    def found(name, text):
        page = tmp_path / name
        page.write_text(text, encoding="utf-8")
        return leaks(tmp_path / "source.ipynb", tmp_path / "released.ipynb", [page])

    return found


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("page.md", "```\ny = x + 1\n# something else\n\n  return y * y\n```", 1),
        ("page.html", "<pre><span>y</span> <i>=</i> x <b>+</b> 1\n<span>return</span> y * y\n</pre>", 1),
        ("page.md", "Here z = only_line() stands in a sentence", 0),
        ("page.md", "z =   only_line()", 1),
        ("page.md", "y = x + 1\nprint(y)\nreturn y * y", 0),
        ("page.md", "return y * y\ny = x + 1", 0),
        ("page.md", "def f(x):\n    raise NotImplementedError()", 0),
    ],
)
def test_a_leak_is_two_lines_in_a_row_or_a_whole_region(files, name, text, number):
    assert len(files(name, text)) == number


def test_nbgraders_marks_in_a_released_notebook_are_a_leak(files):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("### END SOLUTION")])
    assert "holds the mark END SOLUTION" in files("page.ipynb", nbformat.writes(notebook))[0]


@each_assignment
def test_a_source_notebook_leaks_into_itself(assignment, generated):
    source = source_file(assignment)
    assert len(leaks(source, generated / assignment / source.name, [source])) > 5


def test_a_digest_knows_a_file_by_its_name_and_its_content(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_text("1")
    first = digest(tmp_path, "a", "absent")
    (tmp_path / "a" / "__pycache__").mkdir()
    (tmp_path / "a" / "__pycache__" / "one.pyc").write_text("compiled")
    assert digest(tmp_path, "a") == first
    (tmp_path / "a" / "one").write_text("2")
    assert digest(tmp_path, "a") != first
    (tmp_path / "a" / "one").rename(tmp_path / "a" / "two")
    (tmp_path / "a" / "two").write_text("1")
    assert digest(tmp_path, "a") != first
