"""A small course of one assignment in a folder of its own: two exercises and a question graded by hand."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[2]

ADD = """def add(a, b):
    ### BEGIN SOLUTION
    total = a
    total += b
    return total
    ### END SOLUTION"""
DOUBLE = """def double(a):
    ### BEGIN SOLUTION
    return sum([a, a])
    ### END SOLUTION"""


def cell(make, name, source, **kind):
    no = {"grade": False, "solution": False, "locked": False, "task": False}
    cell = make(source, metadata={"nbgrader": {"schema_version": 3, "grade_id": name, **no, **kind}})
    cell.id = name
    return cell


def counting_notebook():
    notebook = new_notebook(
        cells=[
            cell(new_markdown_cell, "introduction", "# Counting", locked=True),
            cell(new_code_cell, "add", ADD, solution=True),
            cell(new_code_cell, "check_add", "3.0 if add(2, 5) == 7 else 0.0", grade=True, locked=True, points=3),
            cell(new_code_cell, "double", DOUBLE, solution=True),
            cell(new_code_cell, "check_double", "2 * (double(4) == 8)", grade=True, locked=True, points=2),
            cell(new_markdown_cell, "why", "Because it is so.", grade=True, solution=True, points=4),
        ]
    )
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The root of a fresh course whose only assignment is 1_counting; nbgrader changes folders, so come back after."""
    root = tmp_path / "course"
    source = root / "solutions" / "1_counting" / "counting.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(counting_notebook(), source)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def quick(monkeypatch):
    """Cells run right here instead of in a cage, for tests of what comes before and after; the cells that were run."""
    ran = []

    def preprocess(self, nb, resources):
        names = {}
        for each in nb.cells:
            if each.cell_type == "code":
                ran.append((resources["nbgrader"]["student"], each.id))
                with suppress(Exception):
                    exec(each.source, names)
                if each.id.startswith("check_"):
                    try:
                        points = {"text/plain": repr(eval(each.source, names))}
                    except Exception:
                        points = {"text/plain": "0.0"}
                    each.outputs = [new_output("execute_result", data=points)]
        return nb, resources

    monkeypatch.setattr("encoder_grader.execute.Execute.preprocess", preprocess)
    return ran
