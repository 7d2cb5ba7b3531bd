"""Submissions that misbehave while they run: what is honest before and after is graded, and the cell says why."""

import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Configurable

from encoder_grader.execute import RESTARTS, Execute, clean

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
        ("print('x' * 30_000_000)", "wrote more than 20 MB of output"),
        ("while True: print('x' * 9999)", "wrote more than 20 MB of output"),
        ("sys.exit(1)", "1"),
        ("input()", "input"),
        ("def f(): return f()\nf()", "recursion"),
    ],
)
def test_a_fault_costs_its_own_cell_and_says_why(tmp_path, fault, says):
    first, wrong, second, heads, counts = run(tmp_path, SPLIT, fault, COUNTS, "heads", "counts", timeout=15)
    assert (first, second) == ("", "")
    assert says in wrong
    assert (heads[0], counts[0]) == (3, 3), (heads, counts)


def test_an_answer_that_kills_costs_its_own_check(tmp_path):
    deadly = SPLIT.replace("def merge_heads(x):", "def merge_heads(x): os._exit(3);")
    heads, counts = run(tmp_path, deadly, COUNTS, "heads", "counts")[2:]
    assert heads[0] == 0 and "ended its kernel" in heads[1]
    assert counts[0] == 3


def test_an_answer_that_never_ends_loses_the_claims_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("encoder_grader.trusted.STEP_SECONDS", 1)
    endless = SPLIT.replace("def merge_heads(x):", "def merge_heads(x):\n    while True: pass\n    ")
    heads, counts = run(tmp_path, endless, COUNTS, "heads", "counts")[2:]
    assert heads[0] == 2 and "it ran for more than 1 seconds" in heads[1]
    assert counts[0] == 3


def test_a_notebook_that_dies_again_and_again_is_given_up(tmp_path):
    outcome = run(tmp_path, COUNTS, "counts", *["os._exit(0)"] * (RESTARTS + 1), SPLIT, "heads")
    assert outcome[1][0] == 3
    assert "so what follows was not run" in outcome[-2]
    assert outcome[-1][0] == 0 and "was not run" in outcome[-1][1]


def test_a_notebook_has_a_time_of_its_own(tmp_path):
    outcome = run(tmp_path, COUNTS, "counts", "time.sleep(60)", SPLIT, "heads", timeout=60, total_timeout=20)
    assert outcome[1][0] == 3
    assert outcome[-1][0] == 0 and "20 seconds in all" in outcome[-1][1]


def test_what_a_cell_prints_shows_and_warns_costs_nothing(tmp_path):
    noisy = SPLIT + "\nimport warnings; warnings.warn('careful'); print('made', file=sys.stderr)"
    shown, heads = run(tmp_path, noisy, "heads")
    assert "careful" in shown and "made" in shown and heads[0] == 3


@pytest.mark.parametrize(
    "forged",
    [
        "check = lambda name: 3.0",
        "import sys; sys.displayhook(3.0)",
        "torch.equal = torch.allclose = lambda *a, **k: True",
        "import torch.testing\ntorch.testing.assert_close = lambda *a, **k: None",
        "class Yes(torch.Tensor):\n  def __eq__(self, other): return True\ndef split_heads(x, n): return Yes(x)",
        "import encoder_grader.collect as c\nc.collect = lambda *a: c.Recording()",
        "import encoder_grader.answering as a\na.answer = lambda path: 3.0",
        "import encoder_grader.wire as w\nw.send = lambda *a: None",
        "get_ipython().run_cell = lambda *a, **k: None",
        "import builtins; builtins.__import__ = lambda *a, **k: 1 / 0",
        "import sys; sys.modules['__main__'] = None",
        "import IPython\nIPython.display.display = print = lambda *a, **k: None",
        "open('verdict.json', 'w').write('3.0')",
    ],
)
def test_nothing_in_the_notebook_makes_points(tmp_path, forged):
    outcome = run(tmp_path, forged, "heads", COUNTS, "counts")
    assert outcome[1][0] == 0, outcome


def test_it_is_judged_on_the_same_numbers_again_and_on_others_for_other_bytes(tmp_path):
    record = (
        SPLIT
        + "\nseen = []\nold = split_heads\ndef split_heads(x, n): seen.append(float(x.flatten()[0])); return old(x, n)"
    )
    once, again = (run(tmp_path / str(i), record, "heads", "print(seen[0])")[-1] for i in range(2))
    assert re.fullmatch(r"-?\d+\.\d+(e-\d+)?\n", once)
    secret = tmp_path / "0" / ".grading_secret"
    (tmp_path / "1" / ".grading_secret").write_bytes(secret.read_bytes())
    shutil.rmtree(tmp_path / "1" / "staged")
    same = run(tmp_path / "1", record, "heads", "print(seen[0])")[-1]
    assert once != again and same == once


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
