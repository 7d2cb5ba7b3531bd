"""Submissions that misbehave while they run: what is honest before and after is graded, and the cell says why."""

from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Configurable

from encoder_grader.execute import Execute, clean

SPLIT = """def split_heads(x, num_heads):
    if x.shape[-1] % num_heads: raise ValueError(f'{x.shape[-1]} {num_heads}')
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
def merge_heads(x): return x.transpose(1, 2).flatten(2)"""
COUNTS = """shape_of_scores, bytes_of_scores, num_parameters = (1, 8, 196, 196), 1229312, 1050624
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), batch * num_heads * seq * seq * 4, 4 * d_model ** 2 + 4 * d_model"""
CHECKS = {"heads": 3, "counts": 3}


def test_cell(name):
    kind = {
        "grade": True,
        "locked": True,
        "solution": False,
        "task": False,
        "points": CHECKS[name],
        "schema_version": 3,
    }
    cell = new_code_cell(f'check("attention.{name}")', metadata={"nbgrader": {"grade_id": f"check_{name}", **kind}})
    cell.id = f"check_{name}"
    return cell


test_cell.__test__ = False


def run(tmp_path, *sources, **limits):
    """The code cells after a run: of each test cell the points, of each other cell its outputs as text."""
    notebook = new_notebook(cells=[new_code_cell("import os, sys, time, torch\nfrom encoder_grader import check")])
    notebook.cells += [test_cell(s) if s in CHECKS else new_code_cell(s) for s in sources]
    folder = tmp_path / "staged" / "ada" / "3_attention"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text('{"sha256": "0", "sentences": []}')
    execute = Execute(**limits)
    autograde = Configurable()
    autograde.coursedir = SimpleNamespace(root=str(tmp_path))
    execute.parent = Configurable(parent=autograde)
    told = {"student": "ada", "assignment": "3_attention", "notebook": "attention"}
    execute.preprocess(notebook, {"nbgrader": told})
    nbformat.validate(notebook)
    return [points(cell) if cell.id.startswith("check_") else text(cell) for cell in notebook.cells[1:]]


def points(cell):
    display, result = cell.outputs
    assert (display.output_type, result.output_type) == ("display_data", "execute_result")
    return float(result.data["text/plain"]), display.data["text/plain"]


def text(cell):
    return "".join(o.get("text") or o.get("evalue") or str(o.get("data")) for o in cell.outputs)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("os._exit(0)", "ended its kernel"),
        ("os.kill(os.getpid(), 9)", "ended its kernel"),
        ("import ctypes; ctypes.string_at(0)", "ended its kernel"),
        ("while True: pass", "interrupted"),
        (
            "while True:\n  try: time.sleep(9)\n  except BaseException: pass",
            "ran for more than 15 seconds and could not",
        ),
        ("input()", "input"),
    ],
)
def test_a_fault_costs_its_own_cell_and_says_why(tmp_path, fault, says):
    first, wrong, second, heads, counts = run(tmp_path, SPLIT, fault, COUNTS, "heads", "counts", timeout=15)
    assert (first, second) == ("", "")
    assert says in wrong
    assert (heads[0], counts[0]) == (3, 3), (heads, counts)


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ({"text/html": "<script>1</script>"}, None),
        ({"image/svg+xml": "<svg onload='x'>", "text/plain": "svg"}, {"text/plain": "svg"}),
        ({"application/javascript": "alert(1)"}, None),
        ({"text/markdown": "<img onerror=x>", "text/latex": "$x$"}, None),
        ({"image/png": "iVBO\n"}, {"image/png": "iVBO\n"}),
        ({"image/png": "' onerror='alert(1)"}, None),
        ({"image/png": ["iVBO"]}, None),
    ],
)
def test_an_output_keeps_what_runs_nothing(output, kept):
    result = clean(nbformat.v4.new_output("display_data", data=output, metadata={"isolated": True}))
    assert (result and result.data) == kept
    assert result is None or result.metadata == {}
