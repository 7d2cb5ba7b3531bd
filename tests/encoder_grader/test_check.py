"""What `check` does whatever the exercise: where it looks, what it returns, what it says, what it leaves alone."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

import encoder_grader
from encoder_grader.checking import check, verdict_on
from encoder_grader.collect import collect
from encoder_grader.differences import difference
from encoder_grader.exercise import Claim, Exercise, Misconception, exercises, find
from encoder_grader.judge import judge
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
    said = difference(torch.tensor([0.0, 3.0, 0.0]), want, 1e-6)
    assert said == "all 3 numbers differ, by up to 3 (yours go up to 3)"


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


HOSTILE = {
    "an object that equals everything": ("class E:\n    def __eq__(self, other): return True", "E()", "is an E"),
    "an object that cannot be shown": (
        "class E:\n    def __repr__(self): raise SystemExit\n    def __getattr__(self, n): raise BaseException(n)",
        "E()",
        "is an E",
    ),
    "an object that says it is a tensor": ("class E: __class__ = torch.Tensor", "E()", "raised AttributeError"),
    "a tensor that answers for itself": (
        "class T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *args): return torch.ones(2, 3)",
        "x.as_subclass(T)",
        "every number is 0.5 times",
    ),
    "a generator": ("", "(y for y in x)", "is a generator"),
    "a complex tensor": ("", "x.cfloat() * 2", "has dtype complex64"),
    "an 8-bit float": ("", "(x * 2).to(torch.float8_e4m3fn)", "too coarse to be compared"),
    "a nested tensor": ("", "torch.nested.nested_tensor([x[0], x[1]])", "is a nested tensor"),
    "a huge tensor": ("", "torch.zeros(10**8)", "too large to be compared"),
    "a tensor larger than memory": ("", "torch.zeros(1).expand(10**13)", "too large to be compared"),
    "a list in itself": ("a = []\na.extend([a] * 300)", "a", "is a list"),
    "a whole number without end": ("", "10**6000", "more than 64 bits"),
    "a number that equals everything": ("class I(int):\n    def __eq__(self, o): return True", "I(3)", "is a number"),
    "a dict that refuses": ("class D(dict):\n    def items(self): raise BaseException('no')", "D(a=1)", "raised"),
    "an array of objects": ("", "np.array([object()])", "is a ndarray"),
    "a parameter without a shape": ("", "nn.UninitializedParameter()", "raised RuntimeError"),
    "no globals left": ("", "globals().clear()", "is None"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", HOSTILE)
def test_no_result_stops_the_check(what):
    setup, result, sentence = HOSTILE[what]
    verdict = on(f"{setup}\ndef double(x): return {result}")
    assert type(verdict.points) is float and verdict.points == 0
    assert sentence in str(verdict)
    assert str(verdict).encode() and verdict._repr_html_()


@pytest.mark.parametrize(
    "error, sentence",
    [
        ("class X(BaseException): pass", "raised X"),
        ("class X(Exception):\n    def __str__(self): raise SystemExit", "raised X: (its message cannot be shown)"),
        ("class X(Exception):\n    def __str__(self): return 3", "raised X: (its message cannot be shown)"),
        ("class X(Exception):\n    def __str__(self): return '\\ud800' * 10**6", "raised X: ???"),
        ("X = GeneratorExit", "raised GeneratorExit"),
    ],
)
def test_no_error_stops_the_check(error, sentence):
    verdict = on(f"{error}\ndef double(x): raise X()")
    assert verdict.points == 0
    assert sentence in str(verdict) and len(str(verdict).encode()) < 5_000


def test_ctrl_c_stops_the_check():
    with pytest.raises(KeyboardInterrupt):
        on("def double(x): raise KeyboardInterrupt")


def test_a_wrong_factor_does_not_pass_for_the_rounding_of_a_coarse_type():
    for dtype in ("bfloat16", "half"):
        verdict = on(f"def double(x): return (x * 2.02).{dtype}()")
        assert verdict.points < 3, verdict
    assert "too coarse" in str(on("def double(x): return (x * 2.02).bfloat16()"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "result",
    [
        "nn.Parameter(x * 2)",
        "(x * 2).to_sparse()",
        "(x * 2).to_sparse_csr()",
        "torch.complex(x * 0, -x * 2).conj().imag",
        "(x * 2).half()",
        "(x.bfloat16() * 2)",
        "x.mul_(2)",
        "[x * 2, x.resize_(100)][0]",
        "[x * 2, x.requires_grad_()][0]",
        "[x * 2, sys.stdout.close(), print('still here')][0]",
        "[x * 2, print('\\ud800')][0]",
        "[x * 2, torch.set_default_device('meta'), torch.set_grad_enabled(False)][0]",
    ],
)
def test_right_numbers_in_any_wrapping_earn_the_points(result):
    verdict = on(f"import sys\ndef double(x): return ({result})")
    assert verdict.points == 3, verdict
    assert str(verdict).encode()
    assert torch.get_default_device().type == "cpu" and torch.is_grad_enabled()
    assert torch.overrides._get_current_function_mode() is None  # it would slow torch, and turn its fast paths off


def test_error_is_shown_with_the_line_of_the_learners_own_code():
    """In a notebook: the line inside the learner's function, not the one inside torch where the error came up."""
    shell = InteractiveShell.instance()
    shell.run_cell("import torch\ndef double(x):\n    y = x * 2\n    return torch.cat([y, torch.zeros(9, 9)])\n")
    plan = DOUBLE.challenge(0)
    text = str(judge(DOUBLE, plan, collect(plan, shell.user_ns)))
    assert "in `double`, line 4: `return torch.cat([y, torch.zeros(9, 9)])`" in text


def test_reason_that_comes_again_after_another_says_where_it_was_given():
    values, sign = lambda a: a["result"], lambda a: a["result"].sum() < 0
    quantities = {"first": values, "second": sign, "third": values}
    claims = tuple(Claim(name, 1, f"the {name} claim", quantity) for name, quantity in quantities.items())
    exercise = replace(DOUBLE, claims=claims)
    plan = exercise.challenge(0)
    verdict = judge(exercise, plan, collect(plan, {"double": lambda x: -x}))
    reasons = [result.reason for result in verdict.results]
    assert reasons[0] != reasons[1]
    assert reasons[2] == "for the same reason as this: the first claim"


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
    torch.set_num_threads(2)
    settings = "torch.manual_seed(1); np.random.seed(1); torch.set_default_dtype(torch.float64)"
    on(f"def double(x):\n    {settings}; assert torch.get_num_threads() == 1\n    return x * 2")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("exercise", [e.name for e in exercises("embedding")])
def test_check_does_not_depend_on_the_learners_settings(exercise):
    entry = find(exercise)
    with torch.inference_mode():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        try:
            verdict = verdict_on(entry.name, dict(entry.reference))
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    assert verdict.points == verdict.maximum, verdict


def test_input_changed_in_place_is_noted_by_the_recording():
    plan = DOUBLE.challenge(0)
    recording = collect(plan, {"double": lambda x: x.mul_(2)})
    assert recording.records[-1]["changed"] == ["x"]
    verdict = judge(DOUBLE, plan, recording)
    assert verdict.points == 3  # it costs only where a claim says so
    assert verdict.notes == ("`double` changes its input in place: x",)


def test_settings_that_one_call_changes_do_not_reach_the_next():
    def settle():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)

    plan = Plan()
    plan.call("settle")
    plan.call("make", label="made")
    recording = collect(plan, {"settle": settle, "make": lambda: torch.ones(2, requires_grad=True) * 2})
    made = recording.records[-1]["value"]
    assert (made["dtype"], made["device"], made["requires_grad"]) == ("float32", "cpu", True)


def test_later_calls_get_the_inputs_as_they_were():
    plan = Plan()
    x = plan.tensor("x", torch.ones(2))
    plan.call("zero", x)
    plan.call("double", x, label="result")
    recording = collect(plan, {"zero": lambda x: x.zero_(), "double": double})
    assert recording.tensors["result"].tolist() == [2, 2]


def test_module_without_the_stated_weights_is_told_so_where_its_numbers_count():
    plan = Plan()
    module = plan.call("Module")
    plan.load(module, {"weight": torch.ones(2, 3)})
    plan.call(module, torch.ones(1, 3), label="output")
    plan.call(module, torch.ones(1, 4), label="misfit")
    claims = (
        Claim("output", 1, "the output is right", lambda a: a["output"]),
        Claim("misfit", 1, "a wrong size is refused", lambda a: a.raises("misfit")),
    )
    entry = Exercise(
        "fixture.module", "Module", lambda _: plan, {"Module": lambda: nn.Linear(3, 2, bias=False)}, claims
    )
    verdict = judge(entry, plan, collect(plan, {"Module": lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))}))
    assert verdict.points == 1
    assert "your Sequential has no parameter `weight`" in str(verdict)


def test_numbers_that_learn_are_counted_without_buffers_and_frozen_parameters():
    module = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(7, affine=False), nn.Linear(2, 2).requires_grad_(False))
    plan = Plan()
    plan.learned(plan.name("module"), label="learned")
    plan.learned(plan.name("function"), label="of a function")
    counted, refused = collect(plan, {"module": module, "function": double}).records[1::2]
    assert counted["value"] == {"kind": "number", "value": 3 * 5 + 5}
    assert "should be an nn.Module" in refused["error"]


@pytest.mark.parametrize("exercise", [e.name for e in exercises("embedding") if e.name != "embedding.shapes"])
def test_sizes_change_with_the_seed(exercise):
    """Or what holds for the local challenge alone would pass the graded one."""
    shapes = {tuple(tuple(t.shape) for t in find(exercise).challenge(seed).tensors.values()) for seed in range(8)}
    assert len(shapes) >= 6


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


def test_a_coarse_type_passes_where_it_hides_no_mistake_and_is_refused_where_it_does():
    def gelu(x, approximate="none"):
        if approximate not in ("none", "tanh"):
            raise ValueError(approximate)
        x = x.half()
        if approximate == "none":
            return 0.5 * x * (1 + torch.erf(x / 2**0.5))
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))

    exercise = find("feed_forward.gelu")
    outcome = verdict_on(exercise.name, exercise.reference | {"gelu": gelu}, seed=3)
    assert "your numbers are too coarse to be told from wrong ones" in str(outcome)

    def wrong(x, approximate="none"):
        return gelu(x, "tanh" if approximate == "none" else approximate)

    assert verdict_on(exercise.name, exercise.reference | {"gelu": wrong}, seed=3).points < exercise.points

    def split_heads(x, num_heads):
        if x.shape[-1] % num_heads:
            raise ValueError(f"d_model={x.shape[-1]} is not divisible by num_heads={num_heads}")
        return x.half().unflatten(-1, (num_heads, -1)).transpose(1, 2)

    heads = find("attention.heads")
    outcome = verdict_on(heads.name, heads.reference | {"split_heads": split_heads}, seed=3)
    assert outcome.points == outcome.maximum, outcome
