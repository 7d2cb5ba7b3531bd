"""Submissions that misbehave while they run: what is honest before and after is graded, and the cell says why."""

import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from nbconvert.filters import ansi2html
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Configurable

from encoder_grader.execute import KEPT_IN_ALL, RESTARTS, Execute, Outputs, Room, clean

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
        ("print('x' * 30_000_000)", "more than 200000 characters of output"),
        ("while True: print('x' * 9999)", "of output"),  # too many characters, or too many bytes before the time is up
        ("for n in range(40): print('x' * 999_999, flush=True)", "wrote more than 20 MB of output"),
        ("sys.exit(1)", "1"),
        ("input()", "input"),
    ],
)
def test_a_fault_costs_its_own_cell_and_says_why(tmp_path, fault, says):
    first, wrong, second, heads, counts = run(tmp_path, SPLIT, fault, COUNTS, "heads", "counts", timeout=15)
    assert (first, second) == ("", "")
    assert says in wrong
    assert (heads[0], counts[0]) == (3, 3), (heads, counts)


def test_what_is_printed_does_not_stay_in_memory(tmp_path):
    printed, used = run(
        tmp_path,
        "for n in range(100_000): print('x' * 9999)",  # 1 GB
        "used = dict(line.split()[:2] for line in open('/proc/self/status') if line.startswith('Vm'))\n"
        "print(used['VmData:'], used['VmHWM:'])",
    )
    assert "of output" in printed
    kept, most = map(int, used.split())  # kB
    assert kept < 700_000 and most < 700_000


def test_an_answer_that_kills_costs_its_own_check(tmp_path):
    deadly = SPLIT.replace("def merge_heads(x):", "def merge_heads(x): os._exit(3);")
    heads, counts = run(tmp_path, deadly, COUNTS, "heads", "counts")[2:]
    assert heads[0] == 0 and "ended its kernel" in heads[1]
    assert counts[0] == 3


def test_an_answer_that_never_ends_loses_the_claims_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("encoder_grader.trusted.STEP_SECONDS", 1)
    endless = SPLIT.replace("def merge_heads(x):", "def merge_heads(x):\n    while True: pass\n   ")
    heads, counts = run(tmp_path, endless, COUNTS, "heads", "counts")[2:]
    assert heads[0] == 2 and "it ran for more than 1 seconds" in heads[1]
    assert counts[0] == 3


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "try:\n    while True: open('/tmp/' + str(time.time_ns()), 'wb').write(bytes(10**7))\nexcept OSError: pass",
            "wrote",
        ),
        ("import threading; threading.Timer(0.5, os._exit, [0]).start(); time.sleep(0.3)", "ended its kernel"),
    ],
)
def test_what_comes_of_a_cell_when_it_is_done_costs_that_cell(tmp_path, source, says):
    first, wrong, second, heads, counts = run(tmp_path, SPLIT, source, COUNTS + "\ntime.sleep(1)", "heads", "counts")
    assert (first, heads[0]) == ("", 3)
    assert says in (wrong or second)
    assert counts[0] == (3 if wrong else 0)  # a timer that goes off in the next cell is taken for that one's


def test_a_notebook_that_dies_again_and_again_is_given_up(tmp_path):
    outcome = run(tmp_path, COUNTS, "counts", *["os._exit(0)"] * (RESTARTS + 1), SPLIT, "heads")
    assert outcome[1][0] == 3
    assert "so what follows was not run" in outcome[-2]
    assert outcome[-1][0] == 0 and "was not run" in outcome[-1][1]


def test_a_notebook_has_a_time_of_its_own(tmp_path):
    outcome = run(tmp_path, COUNTS, "counts", "time.sleep(60)", SPLIT, "heads", timeout=60, total_timeout=20)
    assert outcome[1][0] == 3
    assert outcome[-1][0] == 0 and "20 seconds in all" in outcome[-1][1]


def test_an_error_is_kept_however_much_stands_before_it(tmp_path):
    (wrong,) = run(tmp_path, "def f(): return f()\nprint('y' * 300_000)\nf()")
    assert "maximum recursion depth exceeded" in wrong and len(wrong) < 200_500
    (wrong,) = run(tmp_path / "again", "raise ValueError('long ' * 10**6)")
    assert wrong.startswith("long long") and len(wrong) <= 5_000


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
    outcome = run(tmp_path, forged, "heads", COUNTS, "counts", timeout=5)
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


def message(kind, **content):
    return {"msg_type": kind, "header": {"msg_type": kind}, "metadata": {}, "content": content}


def error(says, frame="&" * 4_999):
    return message("error", ename="Error", evalue=says, traceback=[frame] * 20)


def test_the_last_error_of_a_cell_is_kept_and_no_other():
    outputs = Outputs()
    for number in range(150):
        outputs.take(error(f"number {number}"))
    assert [o.evalue for o in outputs.kept()] == ["number 149"]
    assert outputs.error() == "Error: number 149"
    outputs.take(message("clear_output"))
    assert outputs.kept() == [] and outputs.error() == ""


def test_a_notebook_keeps_so_much_and_of_what_is_beyond_its_errors():
    room, kept = Room(), []
    for number in range(100):
        outputs = Outputs()
        outputs.take(message("stream", name="stdout", text=f"{number} " + "x" * 190_000))
        outputs.take(error("long " * 900))
        kept.append(room.keep(outputs.kept()))
    assert sum(len(str(outputs)) for outputs in kept) < KEPT_IN_ALL + 200_000
    assert kept[0][0].text.startswith("0 x") and len(kept[0][1].traceback) == 20
    assert "too long together (5 MB)" in kept[-1][0].text
    assert kept[-1][1].evalue.startswith("long ") and len(kept[-1][1].evalue) == 300
    assert room.keep([]) == []


@pytest.mark.parametrize(("char", "most"), [("x", 30), ("\x1b[1ma", 3), ("&", 4)])
def test_what_takes_long_to_show_counts_for_more(char, most):
    room, whole = Room(), 0
    for _ in range(50):
        output = clean(nbformat.v4.new_output("stream", name="stdout", text=char * (195_000 // len(char))))
        whole += room.keep([output]) == [output]
    assert 0 < whole < most


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "\x1b[0;31mred\x1b[0m \x1b[m\x1b[1;38;5;208;48;2;1;2;3mx",
            "\x1b[0;31mred\x1b[0m \x1b[m\x1b[1;38;5;208;48;2;1;2;3mx",
        ),
        ("\x1b[" + ";" * 199_000 + "mx", "x"),
        ("\x1b[" * 99_000, ""),
        (
            "\x1b[38mx\x1b[1;048my\x1b[38;2;1;2mz\x1b[\uff13\uff18m",
            "xyz\uff13\uff18m",
        ),  # nbconvert falls over the first
        ("\x1b[2J\x1b[1A\x1b[?25lx\x1bc", "xc"),
        ("\x1b]8;;https://example.org\x07link\x1b]8;;\x1b\\ on\n\x1b]0;title\nx", "link on\n\nx"),
        ("x \ud800 y", "x ? y"),
    ],
)
def test_of_what_a_terminal_does_only_colours_are_kept_and_all_of_it_can_be_written(said, kept):
    make = nbformat.v4.new_output
    stream = clean(make("stream", name="stdout", text=said))
    data = clean(make("display_data", data={"text/plain": said}))
    wrong = clean(make("error", ename=said[:99], evalue=said[:99], traceback=[said[:99], *[said] * 30]))
    assert stream.text == data.data["text/plain"] == kept
    ansi2html(stream.text)
    nbformat.writes(nbformat.v4.new_notebook(cells=[new_code_cell(outputs=[stream, data, wrong])])).encode()


HALF = r"""
import json
k = get_ipython().kernel
pack, k.session.pack = k.session.pack, lambda content: json.dumps(content, default=str).encode()
k.session.send(k.iopub_socket, "stream", {"name": "stdout", "text": "x \ud800 y"}, parent=k.get_parent())
k.session.pack = pack"""


def test_half_a_character_reaches_the_notebook_as_a_question_mark(tmp_path):
    raises = r"def split_heads(x, n): raise ValueError('\ud800')"
    said, _, heads = run(tmp_path, HALF, raises, "heads")
    assert said == "x ? y"
    assert heads[0] == 0 and heads[1].encode()
