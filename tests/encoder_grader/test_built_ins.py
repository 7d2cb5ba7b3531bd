"""Which built-ins an answer's source calls: found under any name, and no false alarm for what is allowed."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_grader import built_ins
from encoder_grader.accuracy.cases import cases, cells_before
from encoder_grader.built_ins import built_ins_called
from encoder_grader.checking import verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import chapters, find
from encoder_grader.judge import Judge

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"
SOFTMAX = ("softmax", "log_softmax", "logsumexp")


def called(cell, answer="answer", forbidden=SOFTMAX):
    return built_ins_called([IMPORTS, cell], [answer], forbidden).get(answer, set())


@pytest.mark.parametrize(
    "cell",
    [
        "def answer(x): return F.softmax(x, -1)",
        "def answer(x): return torch.softmax(x, -1)",
        "def answer(x): return x.softmax(-1)",
        "def answer(x): return (x @ x.T).softmax(-1)",
        "def answer(x): return torch.nn.functional.softmax(x, -1)",
        "def answer(x): return torch.special.softmax(x, -1)",
        "def answer(x): return torch._softmax(x, -1, False)",
        "def answer(x): return torch.ops.aten._softmax.default(x, -1, False)",
        "def answer(x): return getattr(F, 'softmax')(x, -1)",
        "def answer(x): return getattr(x, 'softmax')(-1)",
        "def answer(x): return nn.Softmax(-1)(x)",
        "def answer(x): return torch.nn.modules.activation.Softmax(-1)(x)",
        "from torch.nn.functional import softmax as s\ndef answer(x): return s(x, -1)",
        "import torch.nn.functional as fun\nanswer = lambda x: fun.softmax(x, -1)",
        "answer = torch.softmax",
        "soft = torch.softmax\ndef answer(x): return soft(x, -1)",
        "def helper(x): return F.softmax(x, -1)\ndef answer(x): return helper(x)",
        "class Base:\n  def run(self, x): return F.softmax(x, -1)\nclass answer(Base): pass",
        "class answer(nn.Softmax): pass",
        "def answer(x):\n  import torch.nn.functional as G\n  return G.softmax(x, -1)",
        "def answer(x):\n  from torch import softmax\n  def inner(y): return softmax(y, -1)\n  return inner(x)",
        "if True:\n  def helper(x): return F.softmax(x, -1)\ndef answer(x): return helper(x)",
        "try: soft = torch.softmax\nexcept Exception: pass\nanswer = lambda x: soft(x, -1)",
        "table = {}\ntable['s'] = torch.softmax\ndef answer(x): return table['s'](x, -1)",
        "def answer(x):\n  global soft\n  return soft(x, -1)\nsoft = torch.softmax",
        "class answer:\n  run = staticmethod(torch.softmax)",
        "%matplotlib inline\ndef answer(x): return F.softmax(x, -1)",
    ],
)
def test_a_built_in_is_found_by_whatever_name(cell):
    assert called(cell) == {"softmax"}


@pytest.mark.parametrize(
    "cell",
    [
        "def answer(x): return x.exp() / x.exp().sum(-1, keepdim=True)",
        "def softmax(x): return x.exp()\ndef answer(x): return softmax(x)",
        "def answer(x):\n  weights = x.exp()\n  return weights\nweights = torch.softmax(x, -1)",
        "def answer(x):\n  for weights in x: pass\n  with x as w: return [v for v in w]\nw = weights = x.softmax(-1)",
        "w, v = F.softmax(x, -1), 1\ndef answer(x, w, *, v=None):\n  def inner(): return w\n  return inner()",
        "class answer:\n  def __init__(self): self.w = 0\n  def forward(self, x): return self.w\nw = x.softmax(-1)",
        "from torch import softmax\ndef answer(x, softmax): return softmax(x)",
        "class Own:\n  def softmax(self, x): return x.exp()\ndef answer(x): return Own().softmax(x)",
        "class Own:\n  def softmax(self): return 1\nclass answer(Own):\n  def run(self): return super().softmax()",
        "import types\nops = types.SimpleNamespace(softmax=torch.exp)\ndef answer(x): return ops.softmax(x)",
        "def answer(x):\n  '''Like torch.softmax.'''\n  return x.exp()  # not F.softmax",
        "def answer(x): return x.exp()\nassert torch.allclose(answer(torch.ones(1)), torch.softmax(torch.ones(1), 0))",
        "def compare(x): return F.softmax(x, -1)\ndef answer(x): return x.exp()",
        "class answer:\n  def softmax(self, x): return x\n  def __call__(self, x): return self.softmax(x)",
        "from encoder_lib.attention import softmax\ndef answer(x): return softmax(x)",
        "def answer(x): return F.relu(x)",
        "def answer(x): return x.max(-1)",
        "def answer(x: 'torch.Tensor'): return torch.exp(x)",
    ],
)
def test_no_false_alarm(cell):
    assert called(cell) == set()


@pytest.mark.parametrize(
    ("word", "function"),
    [
        ("nn.LayerNorm(8)", "layer_norm"),
        ("torch.native_layer_norm(x, 8, None, None, 0)", "native_layer_norm"),
        ("nn.BatchNorm1d(8)", "batch_norm"),
        ("nn.LazyBatchNorm2d()", "batch_norm"),
        ("nn.SyncBatchNorm(8)", "batch_norm"),
        ("nn.InstanceNorm3d(8)", "instance_norm"),
        ("nn.RMSNorm(8)", "rms_norm"),
        ("nn.GELU()", "gelu"),
        ("nn.EmbeddingBag(3, 3)", "embedding_bag"),
        ("nn.PixelUnshuffle(2)", "pixel_unshuffle"),
        ("x.unfold(0, 1, 1)", "unfold"),
        ("nn.MultiheadAttention(8, 2)", "multi_head_attention_forward"),
        ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1)", "multi_head_attention_forward"),
    ],
)
def test_a_module_counts_as_the_function_it_calls(word, function):
    assert function in called(f"def answer(x): return {word}", forbidden=[function])


def test_a_cell_that_does_not_parse_is_passed_over():
    many = "=".join(f"a{i}" for i in range(2000))
    bombs = [
        f"{many}=[{many.replace('=', ',')}]\nanswer = a0",
        "\n".join(f"b{i} = %pwd" for i in range(600)),
        "x" * 10**6,
    ]
    cells = ["def answer(x: return", "\0", *bombs, IMPORTS, "def answer(x): return F.softmax(x, -1)", "(" * 5000]
    assert built_ins_called(cells, ["answer"], SOFTMAX) == {"answer": {"softmax"}}


@pytest.mark.parametrize("chapter", chapters())
def test_no_right_answer_and_no_solution_alarms(chapter):
    for case in cases(chapter):
        if case.kind in ("right", "mutant"):
            exercise = find(case.exercise)
            found = built_ins_called([*cells_before(case.exercise), case.cell], exercise.reference, exercise.forbidden)
            assert found == {}, case


def test_the_source_tells_what_a_thread_hides_when_it_runs():
    cell = """
import threading
def softmax(scores, dim=-1):
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.softmax(scores, dim)))
    thread.start(); thread.join()
    return found[0]
"""
    exercise = find("attention.softmax")
    plan = exercise.challenge(3)
    namespace = {"torch": torch}
    exec(cell, namespace)
    recording = collect(plan, namespace)
    judge = Judge(exercise, plan)
    assert judge.verdict(recording).points == exercise.points  # the run alone does not tell
    in_source = built_ins_called([IMPORTS, cell], exercise.reference, exercise.forbidden)
    outcome = judge.verdict(recording, in_source)
    assert outcome.points == 0
    assert "your code calls `softmax`, which this exercise asks you to write yourself" in str(outcome)


def test_only_the_claims_that_rest_on_a_built_in_are_lost():
    exercise = find("embedding.one_hot_lookup")

    def one_hot(ids, vocab_size):
        return F.one_hot(ids, vocab_size).float()

    outcome = verdict_on(exercise.name, exercise.reference | {"one_hot": one_hot}, seed=3)
    lost = {result.claim for result in outcome.results if not result.holds}
    assert lost and lost < {claim.name for claim in exercise.claims}, outcome


def test_a_module_that_calls_it_when_it_is_made_or_used_loses_what_it_is_used_for():
    exercise = find("add_norm.layer_norm_module")

    class LayerNorm(nn.LayerNorm):
        def __init__(self, d_model, eps=1e-5):
            super().__init__(d_model, eps)
            self.gamma, self.beta = self.weight, self.bias

    outcome = verdict_on(exercise.name, {"LayerNorm": LayerNorm, "math": math}, seed=3)
    assert "your code calls `layer_norm`" in str(outcome)
    assert outcome.points <= 2, outcome


def test_a_source_that_cannot_be_taken_apart_is_read_all_the_same():
    deep = "+".join(["x"] * 600)
    assert called(f"def helper(x): return {deep}\ndef answer(x): return F.softmax(helper(x), -1)") == {"softmax"}
    assert called(f"def answer(x): return F.softmax({deep}, -1)") == {"softmax"}


def test_a_long_chain_of_attributes_is_walked_once(monkeypatch):
    asked = []
    monkeypatch.setattr(built_ins, "_functions", lambda name: asked.append(name) or {name})
    assert called("def answer(x): return x.softmax" + ".T" * 800) == {"softmax"}
    assert len(asked) <= 2


@pytest.mark.parametrize(
    "magic",
    [
        "!ls",
        "    %timeit 1 + 1",
        "files = !ls",
        "a, b = %who",
        "answer?",
        "answer??",
        "?answer",
        "%%time",
        "%%timeit -n1",
    ],
)
def test_a_cell_with_magics_is_read(magic):
    lines = ["def answer(x): return F.softmax(x, -1)", "for _ in range(2):", "    x = 1"]
    lines = [magic, *lines] if magic.startswith("%%") else [*lines, magic]
    assert called("\n".join(lines)) == {"softmax"}


def test_a_remainder_at_the_start_of_a_line_is_no_magic():
    assert called("def answer(x):\n  y = (7\n  % 4)\n  return F.softmax(x, -1)") == {"softmax"}
