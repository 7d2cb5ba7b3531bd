"""The exercises of chapter 5: right answers of every style pass, wrong ones lose what is wrong and are named."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor, "F": nn.functional, **answer}
    exec(source, namespace)
    return verdict_on(f"feed_forward.{name}", namespace, seed=seed)


# --- right answers ------------------------------------------------------------------------------------------------

TWO_MAPS = {
    "as the equation": """
def feed_forward(x, w_1, b_1, w_2, b_2): return torch.relu(x @ w_1 + b_1) @ w_2 + b_2
""",
    "linear layers of torch's functions": """
def feed_forward(x, w_1, b_1, w_2, b_2): return F.linear(F.relu(F.linear(x, w_1.T, b_1)), w_2.T, b_2)
""",
    "loops": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = b_2
            for unit in range(len(b_1)):
                h = (x[b, t] * w_1[:, unit]).sum() + b_1[unit]
                if h > 0: out[b, t] += h * w_2[unit]
    return out
""",
    "einsum and in-place bends": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    h = torch.einsum('bsd,df->bsf', x, w_1).add_(b_1).relu_()
    return torch.einsum('bsf,fd->bsd', h, w_2).add_(b_2)
""",
    "NumPy": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    x, w_1, b_1, w_2, b_2 = (t.numpy() for t in (x, w_1, b_1, w_2, b_2))
    return np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2
""",
    "two convolutions of width 1, in float64": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    x, w_1, b_1, w_2, b_2 = (t.double() for t in (x, w_1, b_1, w_2, b_2))
    h = F.conv1d(x.mT, w_1.T[..., None], b_1)
    return F.conv1d(h * (h > 0), w_2.T[..., None], b_2).mT
""",
}

SLOPE = (
    "def gelu_derivative(x): return (1 + torch.erf(x / 2**.5)) / 2 + x * torch.exp(-x * x / 2) / (2 * math.pi)**.5\n"
)
GELUS = {
    "erf": SLOPE
    + """
def gelu(x, approximate='none'):
    if approximate == 'none': return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
    if approximate == 'tanh': return 0.5 * x * (1 + torch.tanh((2 / math.pi)**.5 * (x + 0.044715 * x * x * x)))
    raise ValueError('no such form: ' + approximate)
""",
    "a distribution, and autograd": """
normal = torch.distributions.Normal(0.0, 1.0)
def gelu(x, approximate='none'):
    if approximate not in ('none', 'tanh'): raise ValueError(f'{approximate} is unknown')
    if approximate == 'none': return x * normal.cdf(x)
    z = math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)
    return x * torch.sigmoid(z)
def gelu_derivative(x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(gelu(x).sum(), x)[0]
""",
    "the complement, in float64": """
def gelu(x, approximate='none'):
    x = x.double()
    if approximate == 'none': return x * torch.erfc(-x / math.sqrt(2)) / 2
    elif approximate == 'tanh': return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + .044715 * x**3)))
    else: raise ValueError(approximate)
def gelu_derivative(x):
    return torch.exp(normal_log(x)) * x + torch.special.ndtr(x)
def normal_log(x): return -x * x / 2 - math.log(2 * math.pi) / 2
""",
    "Python's own erf, number by number": """
def gelu(x, approximate='none'):
    forms = {'none': lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2,
             'tanh': lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))}
    if approximate not in forms: raise ValueError(f'approximate={approximate}')
    return torch.tensor([forms[approximate](v) for v in x.flatten().tolist()]).reshape(x.shape)
def gelu_derivative(x):
    step = lambda v: (1 + math.erf(v / math.sqrt(2))) / 2 + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
    return np.vectorize(step)(x.numpy())
""",
}

HEAD = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
"""
MODULES = {
    "modules in a dict": HEAD
    + """
        kinds = {'relu': nn.ReLU, 'gelu': nn.GELU}
        if activation not in kinds: raise ValueError(f'activation={activation!r}')
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.act, self.drop = kinds[activation](), nn.Dropout(dropout)
    def forward(self, x): return self.linear_2(self.drop(self.act(self.linear_1(x))))
""",
    "functions, a sequential block, printing and warnings": HEAD
    + """
        import warnings; warnings.warn('made by hand')
        if activation == 'relu': self.act = torch.relu
        elif activation == 'gelu': self.act = lambda h: h * torch.special.ndtr(h)
        else: raise ValueError('I know relu and gelu, not ' + activation)
        self.linear_1, self.linear_2, self.p = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), dropout
    def forward(self, x):
        print(x.shape)
        h = self.act(self.linear_1(x))
        return self.linear_2(F.dropout(h, self.p, self.training))
""",
    "a mask by hand, in float64": HEAD
    + """
        if activation not in ('relu', 'gelu'): raise ValueError(activation)
        self.linear_1 = nn.Linear(d_model, d_ff, dtype=torch.float64)
        self.linear_2 = nn.Linear(d_ff, d_model, dtype=torch.float64)
        self.activation, self.dropout = activation, dropout
    def forward(self, x):
        h = self.linear_1(x.double())
        h = h.clamp(min=0) if self.activation == 'relu' else F.gelu(h)
        if self.training and self.dropout:
            h = h * (torch.rand(h.shape) > self.dropout) / (1 - self.dropout)
        return self.linear_2(h)
""",
    "weights (in, out), through load_reference": HEAD
    + """
        if activation not in {'relu', 'gelu'}: raise ValueError(f'{activation}?')
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**.5)
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**.5)
        self.b_1, self.b_2 = nn.Parameter(torch.zeros(d_ff)), nn.Parameter(torch.zeros(d_model))
        self.f, self.drop = getattr(F, activation), nn.Dropout(dropout)
    def load_reference(self, weights):
        with torch.no_grad():
            for i, w, b in ((1, self.w_1, self.b_1), (2, self.w_2, self.b_2)):
                w.copy_(weights[f'linear_{i}.weight'].T); b.copy_(weights[f'linear_{i}.bias'])
    def forward(self, x): return self.drop(self.f(x @ self.w_1 + self.b_1)) @ self.w_2 + self.b_2
""",
}

RANKS = "rank_through_2048, rank_through_64 = 512, 64\n"
COLLAPSES = {
    "products": RANKS
    + """
def collapse(w_1, b_1, w_2, b_2): return w_1 @ w_2, b_1 @ w_2 + b_2
def largest_rank(*sizes): return min(sizes)
""",
    "from the images of unit vectors, as a list": RANKS
    + """
def collapse(w_1, b_1, w_2, b_2):
    f = lambda x: (x @ w_1 + b_1) @ w_2 + b_2
    b = f(torch.zeros(len(w_1)))
    return [f(torch.eye(len(w_1))) - b, b]
def largest_rank(d_in, d_hidden, d_out):
    return np.linalg.matrix_rank(np.random.randn(d_in, d_hidden) @ np.random.randn(d_hidden, d_out))
""",
    "einsum and float64": """
rank_through_2048, rank_through_64 = torch.tensor(512), np.int64(64)
def collapse(w_1, b_1, w_2, b_2):
    w_1, b_1, w_2, b_2 = (t.double() for t in (w_1, b_1, w_2, b_2))
    return torch.einsum('if,fo->io', w_1, w_2), torch.einsum('f,fo->o', b_1, w_2) + b_2
def largest_rank(d_in, d_hidden, d_out): return min(min(d_in, d_hidden), d_out)
""",
    "NumPy": RANKS
    + """
def collapse(w_1, b_1, w_2, b_2):
    w_1, b_1, w_2, b_2 = (t.numpy() for t in (w_1, b_1, w_2, b_2))
    whole = np.vstack([w_1, b_1]) @ w_2
    return whole[:-1], whole[-1] + b_2
def largest_rank(d_in, d_hidden, d_out): return torch.tensor([d_in, d_hidden, d_out]).min()
""",
}

HANDS = {
    "rise, then fall": """
def absolute():
    return torch.tensor([[-3.0, 1.0]]), torch.zeros(2), torch.tensor([[1 / 3], [1.0]]), torch.zeros(1)
def exclusive_or():
    return torch.ones(2, 2), torch.tensor([0.0, -1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)
""",
    "a list, and a bias at the end": """
def absolute():  # |x| = 2·relu(x) − x cannot be: x itself needs two units; so turn both round
    return [torch.tensor([[1.0, -1.0]]), torch.tensor([0.0, 0.0]), torch.ones(2, 1), torch.tensor([0.0])]
def exclusive_or():  # 1 − |x + y − 1|
    return [torch.tensor([[1.0, -1.0], [1.0, -1.0]]), torch.tensor([-1.0, 1.0]), -torch.ones(2, 1), torch.ones(1)]
""",
    "the difference's absolute value, in float64": """
def absolute():
    w = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    return w, torch.zeros(2).double(), w.abs().T, torch.zeros(1).double()
def exclusive_or():
    w = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    return w, torch.zeros(2).double(), torch.ones(2, 1).double(), torch.zeros(1).double()
""",
    "NumPy": """
def absolute():
    return np.float32([[1, -1]]), np.zeros(2, np.float32), np.ones((2, 1), np.float32), np.zeros(1, np.float32)
def exclusive_or():
    w = np.float32([[1, 1], [1, 1]])
    return w, np.float32([-1, 0]), np.float32([[-2], [1]]), np.float32([0])
""",
}

COUNTED = {
    "formulas": """
paper_attention, paper_feed_forward = 1050624, 2099712
def attention_parameters(d): return 4 * d * d + 4 * d
def feed_forward_parameters(d, f): return 2 * d * f + d + f
def attention_multiply_adds(b, n, d): return 4 * b * n * d * d + 2 * b * n * n * d
def feed_forward_multiply_adds(b, n, d, f): return 2 * b * n * d * f
def crossover(d, f): return f - 2 * d
""",
    "modules, counted": """
def count(module): return sum(p.numel() for p in module.parameters())
def attention_parameters(d): return count(nn.MultiheadAttention(d, 1))
def feed_forward_parameters(d, f): return count(nn.Sequential(nn.Linear(d, f), nn.Linear(f, d)))
paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)
def attention_multiply_adds(b, n, d): return sum([b * n * d * d] * 4 + [b * n * n * d] * 2)
def feed_forward_multiply_adds(b, n, d, f): return b * n * (d * f + f * d)
def crossover(d, f): return (2 * d * f - 4 * d * d) / (2 * d)
""",
    "a search for the crossover": """
paper_attention, paper_feed_forward = np.int64(1050624), torch.tensor(2099712)
def attention_parameters(d): return np.prod([d + 1, d]) * 4
def feed_forward_parameters(d, f): return torch.tensor(f * (d + 1) + d * (f + 1))
def attention_multiply_adds(b, n, d): return b * n * d * (4 * d + 2 * n)
def feed_forward_multiply_adds(b, n, d, f): return (b * n) * (2 * d * f)
def crossover(d, f):
    n = 1
    while attention_multiply_adds(1, n, d) < feed_forward_multiply_adds(1, n, d, f): n += 1
    return n
""",
    "torch's counter": """
from torch.utils.flop_counter import FlopCounterMode
def cost(run):
    with FlopCounterMode(display=False) as counter: run()
    return counter.get_total_flops() // 2
def attention_parameters(d): return sum(nn.Linear(d, d).weight.numel() + d for _ in range(4))
def feed_forward_parameters(d, f): return nn.Bilinear(1, 1, 1).weight.numel() * (d * f * 2 + d + f)
paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)
def attention_multiply_adds(b, n, d):
    x, w = torch.zeros(b, n, d), torch.zeros(d, d)
    return cost(lambda: ((x @ w) @ (x @ w).mT) @ (x @ w) @ w)
def feed_forward_multiply_adds(b, n, d, f):
    return cost(lambda: torch.zeros(b, n, d) @ torch.zeros(d, f) @ torch.zeros(f, d))
def crossover(d, f): return f - d - d
""",
}

RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in {
        "two_maps": TWO_MAPS,
        "gelu": GELUS,
        "module": MODULES,
        "collapse": COLLAPSES,
        "by_hand": HANDS,
        "counts": COUNTED,
    }.items()
    for style, source in styles.items()
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, source", RIGHT)
@pytest.mark.filterwarnings("ignore:made by hand")
def test_right_answer_of_any_style_gets_full_marks(exercise, source, seed):
    outcome = verdict(exercise, source, seed)
    assert outcome.points == outcome.maximum, outcome


# --- wrong answers ------------------------------------------------------------------------------------------------

# the claims that each misconception costs
COST = {
    "two_maps": {
        "no_activation": {"activation"},
        "activation_after_both": {"activation"},
        "activation_at_the_end": {"activation"},
        "activation_first": {"activation"},
        "gelu": {"activation"},
        "no_b_1": {"biases"},
        "no_b_2": {"biases"},
        "no_biases": {"biases"},
        "bias_after_activation": {"biases"},
        "transposed": {"maps", "biases", "activation", "alone"},  # nothing can be told of a map that is another map
        "swapped": {"maps", "biases", "activation", "alone"},  # nothing can be told of a map that is another map
        "mixed_positions": {"alone"},
    },
    "gelu": {
        "tanh_for_exact": {"exact"},
        "exact_for_tanh": {"tanh"},
        "erf_without_root": {"exact"},
        "sigmoid_form": {"exact"},
        "silu": {"exact"},
        "density": {"exact"},
        "without_x": {"exact"},
        "without_half": {"exact"},
        "no_cubic_term": {"tanh"},
        "cubic_term_outside": {"tanh"},
        "no_coefficient": {"tanh"},
        "product_rule": {"derivative"},
        "slope_without_x": {"derivative"},
        "slope_of_relu": {"derivative"},
        "unknown_is_exact": {"unknown"},
    },
    "module": {
        "no_activation": {"relu", "gelu"},
        "activation_after_both": {"relu", "gelu"},
        "activation_first": {"relu", "gelu"},
        "always_relu": {"gelu"},
        "always_gelu": {"relu"},
        "tanh_form": {"gelu"},
        "sigmoid_form": {"gelu"},
        "no_bias": {"relu", "gelu"},
        "no_dropout": {"dropout"},
        "dropout_in_evaluation": {"dropout"},
        "dropout_on_output": {"dropout"},
        "dropout_twice": {"dropout"},
        "dropout_on_input": {"dropout"},
        "dropout_before_activation": {"dropout"},
        "dropout_unscaled": {"dropout"},
        "keep_probability": {"dropout"},
        "sizes_swapped": {"relu", "gelu", "gradients"},  # it takes no x of width d_model
        "detached": {"gradients"},
        "unknown_is_relu": {"unknown"},
        "key_error": {"unknown"},
        "unnamed": {"unknown"},
    },
    "collapse": {
        "first_bias_forgotten": {"bias"},
        "second_bias_forgotten": {"bias"},
        "bias_bent": {"bias"},
        "order_reversed": {"weight"},
        "weight_transposed": {"weight"},
        "hidden_width_ignored": {"prediction", "rank"},
        "rank_is_hidden_width": {"prediction", "rank"},
        "largest_width": {"prediction", "rank"},
        "input_width_only": {"prediction", "rank"},
    },
    "by_hand": {
        "half": {"absolute"},
        "straight": {"absolute"},
        "upside_down": {"absolute"},
        "inclusive": {"exclusive_or"},
        "sum": {"exclusive_or"},
        "conjunction": {"exclusive_or"},
        "turned_round": {"exclusive_or"},
        "best_line": {"exclusive_or"},
    },
    "counts": {
        "no_biases": {"prediction", "parameters"},
        "one_bias": {"prediction", "parameters"},
        "two_hidden_biases": {"prediction", "parameters"},
        "one_map": {"prediction", "parameters"},
        "no_output_projection": {"prediction", "parameters"},
        "per_token": {"network_work"},
        "one_sequence": {"network_work", "attention_work"},
        "operations": {"network_work", "attention_work"},
        "no_products": {"attention_work"},
        "one_product": {"attention_work"},
        "no_projections": {"attention_work"},
        "crossover_without_projections": {"crossover"},
        "crossover_with_one_product": {"crossover"},
        "crossover_of_everything": {"crossover"},
        "crossover_inside_attention": {"crossover"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("feed_forward", COST)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"feed_forward.{exercise}", misconception, claims, seed)


# a mistake written otherwise than in the catalogue, and the name it must get all the same
WRITTEN_OTHERWISE = {
    "two_maps": {
        "transposed": "def feed_forward(x, a, b, c, d): return F.linear(F.relu(F.linear(x, a, b)), c, d)",
        "mixed_positions": "def feed_forward(x, a, b, c, d): return F.relu((x + x.mean(1, True)) / 2 @ a + b) @ c + d",
    },
    "module": {
        "sizes_swapped": HEAD
        + """
        if activation not in ('relu', 'gelu'): raise ValueError(activation)
        self.f, self.drop = getattr(F, activation), nn.Dropout(dropout)
        self.linear_1, self.linear_2 = nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)
    def forward(self, x): return self.linear_2(self.drop(self.f(self.linear_1(x))))
""",
        "dropout_in_evaluation": HEAD
        + """
        if activation not in ('relu', 'gelu'): raise ValueError(activation)
        self.f, self.p = getattr(F, activation), dropout
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    def forward(self, x): return self.linear_2(F.dropout(self.f(self.linear_1(x)), self.p))
""",
    },
}


@pytest.mark.parametrize("exercise, name", [(e, m) for e, written in WRITTEN_OTHERWISE.items() for m in written])
def test_mistake_written_otherwise_gets_the_same_name(exercise, name):
    outcome = verdict(exercise, WRITTEN_OTHERWISE[exercise][name])
    assert name in {result.misconception for result in outcome.results}, outcome


ZEROS = {
    "two_maps": "def feed_forward(x, w_1, b_1, w_2, b_2): return torch.zeros_like(x)",
    "gelu": """
def gelu(x, approximate='none'): return torch.zeros_like(x)
def gelu_derivative(x): return torch.zeros_like(x)
""",
    "module": HEAD
    + """
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    def forward(self, x): return torch.zeros_like(x)
""",
    "collapse": """
rank_through_2048 = rank_through_64 = 0
def collapse(w_1, b_1, w_2, b_2): return torch.zeros(w_1.shape[0], w_2.shape[1]), torch.zeros_like(b_2)
def largest_rank(d_in, d_hidden, d_out): return 0
""",
    "by_hand": """
def absolute(): return torch.zeros(1, 2), torch.zeros(2), torch.zeros(2, 1), torch.zeros(1)
def exclusive_or(): return torch.zeros(2, 2), torch.zeros(2), torch.zeros(2, 1), torch.zeros(1)
""",
    "counts": """
paper_attention = paper_feed_forward = 0
def attention_parameters(*sizes): return 0
feed_forward_parameters = attention_multiply_adds = feed_forward_multiply_adds = crossover = attention_parameters
""",
}


@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise):
    outcome = verdict(exercise, ZEROS[exercise])
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("feed_forward")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("feed_forward")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    """What is right is nowhere in the messages: not the paper's counts, not a rank."""
    entry = find(exercise)
    for misconception in entry.misconceptions:
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        assert not any(secret in text for secret in ("1050624", "2099712", "1,050,624", "512", " 64"))


@pytest.mark.parametrize("call", ["nn.functional.gelu(x)", "nn.GELU()(x)"])
def test_calling_the_gelu_that_is_to_be_written_earns_nothing_and_is_said(call):
    outcome = verdict("gelu", GELUS["erf"] + f"\ndef gelu(x, approximate='none'): return {call}")
    assert outcome.points == 0
    assert "your code calls `gelu`, which this exercise asks you to write yourself" in str(outcome)


def test_the_module_may_call_torchs_gelu():
    assert verdict("module", MODULES["modules in a dict"]).points == find("feed_forward.module").points


def test_the_exact_and_the_tanh_form_are_told_apart_at_every_seed():
    """They differ by less than a thousandth; the challenge must show it whatever it draws."""
    entry = find("feed_forward.gelu")
    wrong = next(m for m in entry.misconceptions if m.name == "tanh_for_exact")
    points = {verdict_on(entry.name, entry.reference | wrong.answer, seed).points for seed in range(30)}
    assert points == {entry.points - 2}
