"""What `check` does whatever the exercise: where it looks, what it returns, what it says, what it leaves alone."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

import encoder_grader
from encoder_grader.checking import check, verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import Claim, Exercise, Misconception, find
from encoder_grader.judge import difference, judge
from encoder_grader.plan import Plan

NAMES = {"torch": torch, "nn": nn, "np": np}


def double(x):
    return x * 2


def _challenge(seed: int) -> Plan:
    plan = Plan(watch=("softmax",))
    x = plan.tensor("x", torch.arange(1.0, 7.0).reshape(2, 3))
    plan.call("double", x, label="result")
    return plan


DOUBLE = Exercise(
    name="fixture.double",
    title="Double",
    challenge=_challenge,
    reference={"double": double},
    forbidden=("softmax",),
    claims=(Claim("values", 3, "every number is doubled", lambda a: a["result"]),),
    misconceptions=(Misconception("square", "you squared", "chapter 0", {"double": lambda x: x**2}),),
)


def on(source: str):
    """The verdict on an answer to the exercise DOUBLE, written as a cell of a notebook."""
    namespace = dict(NAMES)
    exec(compile(source, "<cell>", "exec"), namespace)
    plan = DOUBLE.challenge(0)
    return judge(DOUBLE, plan, collect(plan, namespace))


def test_right_answer_gets_the_points_as_a_builtin_float():
    points = on("def double(x): return x + x").points
    assert type(points) is float and points == 3.0


def test_numbers_are_called_a_multiple_only_where_all_of_them_are():
    want = torch.tensor([1.0, 0.0, 2.0])
    assert difference(3 * want, want, 1e-6) == "every number is 3 times what it should be"
    assert difference(torch.tensor([0.0, 3.0, 0.0]), want, 1e-6) == "3 of 3 numbers differ, the first at index (0,)"


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("", "`double` is not defined: run the cell that defines it, under that name"),
        ("double = 3", "`double` is an int, but should be a function or a class"),
        ("def double(x): x + x", "double(x) is None (did a `return` get lost?), but should be a tensor"),
        ("def double(x): return (x + x).T", "double(x) has shape (3, 2), but should have (2, 3)"),
        ("def double(x): return [2.0]", "double(x) is a list, but should be a tensor"),
        ("def double(x): return nn.Linear(1, 1)", "double(x) is the module Linear, but should be a tensor"),
        ("def double(x): return (x * 2).long()", "double(x) has dtype int64, but should have float32"),
        ("def double(x): return x > 0", "double(x) has dtype bool, but should have float32"),
        ("def double(x): return (x * 2).to('meta')", "double(x) is on meta, but its inputs are on cpu"),
        ("def double(x): return x / 0 * 0", "double(x) holds 6 NaN entries of 6, the first at index (0, 0)"),
        ("def double(x): return x.index_fill(0, torch.tensor([1]), float('inf'))", "holds 3 infinite entries of 6"),
        ("def double(x): return x ** 2", "you squared. See chapter 0."),
        ("def double(x): return x * 3", "every number is 1.5 times what it should be"),
        ("def double(x): return x * 0", "all the numbers are zero"),
        ("def double(x): return x * 2 + (x > 5) * 1.0", "1 of 6 numbers differ, the first at index (1, 2)"),
        ("def double(x): raise NotImplementedError()", "double(x) raised NotImplementedError, in `double`, line 1"),
        ("def double(x, y): return x", "double(x) raised TypeError: double() missing 1 required"),
        ("def double(x): return torch.softmax(x, -1)", "your code calls `softmax`, which this exercise asks"),
        ("import sys\ndef double(x): sys.exit(0)", "double(x) raised SystemExit: 0, in `double`, line 2"),
        ("def double(x): return double(x)", "double(x) raised RecursionError"),
    ],
)
def test_fault_earns_nothing_and_gets_its_own_sentence(source, sentence):
    verdict = on(source)
    assert verdict.points == 0
    assert sentence in str(verdict)


def test_error_is_shown_with_the_line_of_the_learners_own_code():
    """In a notebook: the line inside the learner's function, not the one inside torch where the error came up."""
    shell = InteractiveShell.instance()
    shell.run_cell("import torch\ndef double(x):\n    y = x * 2\n    return torch.cat([y, torch.zeros(9, 9)])\n")
    plan = DOUBLE.challenge(0)
    text = str(judge(DOUBLE, plan, collect(plan, shell.user_ns)))
    assert "in `double`, line 4: `return torch.cat([y, torch.zeros(9, 9)])`" in text


def test_other_float_type_gets_a_note_and_no_loss():
    verdict = on("def double(x): return x.double() * 2")
    assert verdict.points == 3
    assert "float64 where float32 was to be expected; no points are lost" in str(verdict)


def test_numpy_answer_is_an_answer():
    assert on("def double(x): return x.numpy() * 2").points == 3


def test_prints_and_warnings_are_shown_and_cost_nothing(capsys):
    verdict = on("import sys\ndef double(x):\n    print('hello'); print('careful', file=sys.stderr)\n    return x * 2")
    assert verdict.points == 3
    assert "hello" in str(verdict) and "careful" in str(verdict)
    assert capsys.readouterr() == ("", "")  # nothing on stderr, which nbgrader would take for a failure


def test_endless_output_is_cut():
    assert len(on("def double(x):\n    print('x' * 10**7)\n    return x * 2").printed) <= 2_000


def test_learners_state_is_as_before():
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    settings = "torch.manual_seed(1); np.random.seed(1); torch.set_default_dtype(torch.float64)"
    on(f"def double(x):\n    {settings}\n    return x * 2")
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()
    assert torch.get_default_dtype() is torch.float32


def test_check_does_not_depend_on_the_learners_settings():
    with torch.no_grad():
        torch.set_default_dtype(torch.float64)
        try:
            entry = find("embedding.token_embedding")
            verdict = verdict_on(entry.name, dict(entry.reference))
        finally:
            torch.set_default_dtype(torch.float32)
    assert verdict.points == verdict.maximum, verdict


def test_input_changed_in_place_is_noted_by_the_recording():
    plan = DOUBLE.challenge(0)
    recording = collect(plan, {"double": lambda x: x.mul_(2)})
    assert recording.records[-1]["changed"] == ["x"]
    assert judge(DOUBLE, plan, recording).points == 3  # it costs only where a claim says so


def test_html_shows_the_same_and_runs_nothing_of_the_learners():
    verdict = on("def double(x): raise ValueError('<script>alert(1)</script>')")
    page = verdict._repr_html_()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "0 of 3 points" in page and "every number is doubled" in page


def test_picture_shows_yours_beside_the_expected():
    entry = find("embedding.image_to_patches")
    wrong = {m.name: m for m in entry.misconceptions}["strips"]
    page = verdict_on(entry.name, entry.reference | wrong.answer)._repr_html_()
    assert page.count("data:image/png;base64,") == 2
    assert "alt='yours: " in page and "alt='expected: " in page
    assert verdict_on(entry.name, dict(entry.reference))._repr_html_().count("<img") == 0


def test_check_looks_where_it_is_called_and_prints_the_verdict(capsys):
    namespace = {"check": check, **find("embedding.shapes").reference}
    exec("points = check('embedding.shapes')", namespace)
    assert type(namespace["points"]) is float and namespace["points"] == 4.0
    assert "Shapes and counts: 4 of 4 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, hint",
    [("embedding.token_embeding", "did you mean 'embedding.token_embedding'?"), ("???", "the exercises are")],
)
def test_unknown_exercise_gets_a_hint(name, hint):
    with pytest.raises(ValueError, match="there is no exercise") as error:
        check(name)
    assert hint in str(error.value)


def test_importing_check_brings_nothing_heavy():
    """Beyond torch: no notebook machinery, no drawing, no chapter's exercises until they are asked for."""
    code = "import torch, sys; old = set(sys.modules); from encoder_grader import check; print(*set(sys.modules) - old)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"IPython", "nbgrader", "nbformat", "matplotlib", "PIL", "encoder_lib", "encoder_grader.exercises"}
    assert not heavy & set(loaded)
    assert callable(encoder_grader.check)


def test_plan_refuses_what_it_cannot_carry():
    plan = Plan()
    with pytest.raises(TypeError, match="a plan cannot carry a function"):
        plan.call("f", double)
    plan.tensor("x", torch.ones(2))
    with pytest.raises(ValueError, match="already has a tensor named 'x'"):
        plan.tensor("x", torch.ones(2))


def test_plan_is_plain_json():
    import json

    from encoder_grader.exercise import exercises

    for exercise in exercises("embedding"):
        plan = exercise.challenge(0)
        assert json.loads(json.dumps(plan.steps)) == plan.steps
        recording = collect(plan, exercise.reference)
        assert json.loads(json.dumps(recording.records)) == recording.records
