"""The exercises of chapter 4: right answers of every style pass, wrong ones lose what is wrong and are named."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from encoder_lib.add_norm import LayerNorm, layer_norm
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"add_norm.{name}", namespace, seed=seed)


# --- right answers ------------------------------------------------------------------------------------------------

LAYER_NORM = {
    "var_mean": """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (variance + eps) ** -0.5 * gamma + beta
""",
    "loops": """
def layer_norm(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((entry - mean) ** 2 for entry in row) / len(row)
        rows.append(torch.stack([g * (entry - mean) / torch.sqrt(variance + eps) + b
                                 for entry, g, b in zip(row, gamma, beta)]))
    return torch.stack(rows).reshape(x.shape)
""",
    "einsum, moments": """
def layer_norm(x, gamma, beta, eps=1e-5):
    n = x.shape[-1]
    c = x - torch.einsum('...d->...', x)[..., None] / n
    z = c / torch.sqrt(torch.einsum('...d,...d->...', c, c)[..., None] / n + eps)
    return torch.einsum('...d,d->...d', z, gamma) + beta
""",
    "float64, deviation with correction 0": """
def layer_norm(x, gamma, beta, eps=1e-5):
    x = x.double()
    return gamma * (x - x.mean(-1, True)) / torch.sqrt(x.std(-1, correction=0, keepdim=True) ** 2 + eps) + beta
""",
    "its own backward pass": """
class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        c = x - x.mean(-1, keepdim=True)
        s = (c.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(c * s, s, gamma)
        return gamma * c * s + beta
    @staticmethod
    def backward(ctx, g):
        z, s, gamma = ctx.saved_tensors
        h = g * gamma
        dx = s * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
        return dx, (g * z).flatten(0, -2).sum(0), g.flatten(0, -2).sum(0), None
def layer_norm(x, gamma, beta, eps=1e-5): return Norm.apply(x, gamma, beta, eps)
""",
}

MODULE = {
    "calls the function": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
    def forward(self, x):
        if x.shape[-1] != self.gamma.numel(): raise ValueError('width')
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    "other names, through load_reference": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.register_parameter('beta', nn.Parameter(torch.zeros_like(self.gamma)))
    def load_reference(self, weights):
        with torch.no_grad():
            self.gamma.copy_(weights['gamma']); self.beta.copy_(weights['beta'])
    def forward(self, x):
        if x.size(-1) != self.d_model: raise ValueError(f'{x.size(-1)} is not {self.d_model}')
        c = x - x.mean(-1, keepdim=True)
        return self.gamma * c / torch.sqrt((c ** 2).mean(-1, keepdim=True) + self.eps) + self.beta
""",
    "drawn by nn.init, an error of its own": """
class WidthError(ValueError): pass
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model)); self.beta = nn.Parameter(torch.empty(d_model))
        nn.init.constant_(self.gamma, 1.0); nn.init.constant_(self.beta, 0.0)
        self.eps = eps
    def forward(self, x):
        if x.shape[-1:] != self.gamma.shape: raise WidthError(x.shape)
        v, m = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return torch.addcmul(self.beta, self.gamma, (x - m) / (v + self.eps).sqrt())
""",
    "float64": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model, dtype=torch.float64))
        self.beta = nn.Parameter(0 * torch.ones(d_model, dtype=torch.float64))
    def forward(self, x):
        if x.shape[-1] != len(self.beta): raise ValueError('no')
        x = x.double()
        return self.gamma * (x - x.mean(-1, True)) / (x.var(-1, False, True) + self.eps).sqrt() + self.beta
""",
}

AFFECTED = """
def affected(kind, training, mask, sentence, place):
    out = torch.zeros_like(mask)
    if not mask[sentence, place]: return out
    if kind == 'batch' and training: return mask.clone()
    out[sentence, place] = True
    return out
"""
COUNTS = "layer_norm_means, batch_norm_means, tokens_per_mean = 1600, 512, 12\n"
AXES = {
    "indexing": COUNTS
    + AFFECTED
    + """
def batch_norm(x, mask, eps=1e-5):
    out = torch.zeros_like(x)
    rows = x[mask]
    out[mask] = (rows - rows.mean(0)) / (rows.var(0, correction=0) + eps).sqrt()
    return out
""",
    "weights": "layer_norm_means = torch.tensor(1600); batch_norm_means, tokens_per_mean = np.int64(512), 12\n"
    + AFFECTED
    + """
def batch_norm(x, mask, eps=1e-5):
    w = mask[..., None].to(x)
    n = w.sum()
    m = torch.einsum('bsd,bsi->d', x, w) / n
    v = torch.einsum('bsd,bsi->d', (x - m) ** 2, w) / n
    return w * (x - m) / torch.sqrt(v + eps)
""",
    "loops": COUNTS
    + """
def batch_norm(x, mask, eps=1e-5):
    out = torch.zeros(x.shape)
    places = [(b, s) for b in range(x.shape[0]) for s in range(x.shape[1]) if mask[b, s]]
    for f in range(x.shape[-1]):
        values = [x[b, s, f].item() for b, s in places]
        mean = sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / len(values)
        for (b, s), v in zip(places, values): out[b, s, f] = (v - mean) / math.sqrt(variance + eps)
    return out
def affected(kind, training, mask, sentence, place):
    out = torch.zeros(mask.shape, dtype=torch.bool)
    for b in range(mask.shape[0]):
        for s in range(mask.shape[1]):
            together = (kind == 'batch' and training) or (b, s) == (sentence, place)
            out[b, s] = bool(together and mask[b, s] and mask[sentence, place])
    return out
""",
    "NumPy": COUNTS
    + """
def batch_norm(x, mask, eps=1e-5):
    x, mask = x.numpy(), mask.numpy()
    out = np.zeros_like(x)
    rows = x[mask]
    out[mask] = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + eps)
    return out
def affected(kind, training, mask, sentence, place):
    mask = mask.numpy()
    itself = np.zeros_like(mask); itself[sentence, place] = True
    return (mask if kind == 'batch' and training else itself & mask) & mask[sentence, place]
""",
}

ADD_NORM = {
    "your own LayerNorm": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.dropout, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first
    def forward(self, x, sublayer):
        out = sublayer(self.norm(x)) if self.norm_first else sublayer(x)
        if out.shape != x.shape: raise ValueError('shape')
        x = x + self.dropout(out)
        return x if self.norm_first else self.norm(x)
""",
    "nn.LayerNorm and F.dropout": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.ln = nn.LayerNorm(d_model); self.p = dropout; self.pre = norm_first
    def add(self, x, y):
        if y.shape != x.shape: raise ValueError(y.shape)
        return nn.functional.dropout(y, self.p, self.training) + x
    def forward(self, x, sublayer):
        return self.add(x, sublayer(self.ln(x))) if self.pre else self.ln(self.add(x, sublayer(x)))
""",
    "dropout by hand, in place": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.ln = LayerNorm(d_model); self.p = dropout; self.pre = norm_first
    def forward(self, x, sublayer):
        y = sublayer(self.ln(x) if self.pre else x)
        if list(y.shape) != list(x.shape): raise ValueError(y.shape)
        if self.training and self.p > 0:
            y = y * (torch.rand_like(y) >= self.p) / (1 - self.p)
        y += x
        return y if self.pre else self.ln(y)
""",
    "two branches, float64": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, dtype=torch.float64)
        self.before = self.norm if norm_first else nn.Identity()
        self.after = nn.Identity() if norm_first else self.norm
        self.drop = nn.Dropout(dropout)
    def forward(self, x, sublayer):
        before = self.before(x.double()).float()
        y = sublayer(before)
        assert_same(y, x)
        return self.after((x + self.drop(y)).double())
def assert_same(y, x):
    if y.shape != x.shape: raise ValueError('not the same')
""",
}

DEPTH = {
    "autograd.grad": """
num_paths, paths_through_two = 2 ** 24, math.comb(24, 2)
def predict(slope, num_layers): return abs(1 + slope) ** num_layers, abs(slope) ** num_layers
def first_gradients(layers, x, upstream):
    found = []
    for residual in (True, False):
        start = x.clone().requires_grad_()
        y = start
        for layer in layers: y = y + layer(y) if residual else layer(y)
        found.append(torch.autograd.grad(y, start, upstream)[0].norm().item())
    return tuple(found)
""",
    "tensors, x itself": """
num_paths, paths_through_two = torch.tensor(2 ** 24), 276
def predict(slope, num_layers):
    return torch.tensor((1 + slope) ** num_layers).abs().double(), torch.tensor(slope ** num_layers).abs().double()
def first_gradients(layers, x, upstream):
    x.requires_grad_()
    y = x
    for layer in layers: y = layer(y)
    y.backward(upstream); without = x.grad.pow(2).sum().sqrt()
    x.grad = None
    y = x
    for layer in layers: y = layer(y) + y
    y.backward(upstream)
    return [x.grad.pow(2).sum().sqrt(), without]
""",
    "weights, no autograd": """
num_paths, paths_through_two = np.int64(16777216), 276
def predict(slope, num_layers):
    with_, without = 1.0, 1.0
    for _ in range(num_layers): with_, without = with_ * abs(1 + slope), without * abs(slope)
    return with_, without
def first_gradients(layers, x, upstream):
    a = b = upstream
    for layer in reversed(layers):
        a, b = a + a @ layer.weight, b @ layer.weight
    return a.norm().item(), b.norm().item()
""",
    "NumPy numbers": """
num_paths, paths_through_two = int(np.exp2(24)), sum(range(24))
def predict(slope, num_layers): return np.abs(1 + slope) ** num_layers, np.abs(slope) ** num_layers
def size(step, x, upstream, layers):
    x = x.detach().clone().requires_grad_()
    y = x
    for layer in layers: y = step(y, layer)
    (y * upstream).sum().backward()
    return np.linalg.norm(x.grad.numpy())
def first_gradients(layers, x, upstream):
    return (size(lambda y, f: y + f(y), x, upstream, layers), size(lambda y, f: f(y), x, upstream, layers))
""",
}

RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in {
        "layer_norm": LAYER_NORM,
        "layer_norm_module": MODULE,
        "norm_axes": AXES,
        "add_norm": ADD_NORM,
        "gradient_depth": DEPTH,
    }.items()
    for style, source in styles.items()
]


@pytest.mark.parametrize("exercise, source", RIGHT)
def test_right_answer_of_any_style_gets_full_marks(exercise, source):
    for seed in SEEDS:
        given = {"layer_norm": layer_norm, "LayerNorm": LayerNorm}
        outcome = verdict(exercise, source, seed, **given)
        assert outcome.points == outcome.maximum, outcome


# --- wrong answers ------------------------------------------------------------------------------------------------

# the claims that each misconception costs
COST = {
    "layer_norm": {
        "not_centred": {"centred"},
        "rms_norm": {"centred", "variance"},
        "unbiased": {"variance"},
        "not_rooted": {"variance", "eps"},
        "deviation_in_root": {"variance", "eps"},
        "eps_outside": {"eps"},
        "no_eps": {"eps"},
        "eps_fixed": {"eps"},
        "over_the_sequence": {"centred", "variance", "eps"},
        "over_the_batch": {"centred", "variance", "eps"},
        "over_everything": {"centred", "variance"},
        "detached": {"gradient_of_x"},
        "swapped": {"affine"},
        "shifted_first": {"affine"},
        "gamma_cut": {"gradient_of_gamma"},
        "no_gamma": {"affine", "gradient_of_gamma"},
        "no_beta": {"affine", "gradient_of_gamma"},
    },
    "layer_norm_module": {
        "starts_at_zero": {"starts"},
        "starts_swapped": {"starts"},
        "one_number": {"starts", "affine", "eps", "alone"},  # the weights do not fit, so little can be seen
        "buffers": {"starts"},
        "plain_tensors": {"starts", "affine", "eps", "alone"},  # there is nothing to load the weights into
        "swapped": {"affine"},
        "no_beta": {"starts", "affine"},
        "eps_not_passed_on": {"eps"},
        "eps_of_vit": {"eps"},
        "batch_statistics": {"alone"},
        "third_axis": {"alone"},
        "any_width": {"width_checked"},
    },
    "norm_axes": {
        "counts_swapped": {"counts"},
        "a_mean_for_each_place": {"counts"},
        "padding_counted": {"counts"},
        "features": {"standardised"},
        "batch_only": {"standardised", "padding_out"},
        "sentence_only": {"standardised", "padding_out"},
        "unbiased": {"standardised"},
        "padding_averaged": {"padding_out"},
        "divided_by_all": {"padding_out"},
        "padding_left": {"padding_zero"},
        "layer_sees_sentence": {"layer"},
        "batch_sees_sentence": {"batch"},
        "batch_sees_place": {"batch"},
        "evaluation_like_training": {"batch_eval"},
        "padding_affected": {"layer", "batch", "batch_eval"},
    },
    "add_norm": {
        "always_post": {"pre"},
        "always_pre": {"post"},
        "output_normalised": {"post", "post_dropout"},  # the norm of an output that is the same everywhere is zero
        "no_residual": {"post", "post_dropout"},
        "post_from_normalised": {"post"},
        "residual_normalised": {"pre", "pre_dropout"},
        "pre_without_residual": {"pre", "pre_dropout"},
        "pre_and_post": {"pre"},
        "no_dropout": {"post_dropout", "pre_dropout"},
        "dropout_on_the_sum": {"post_dropout", "pre_dropout"},
        "dropout_at_the_end": {"post_dropout"},
        "dropout_in_evaluation": {"post_dropout", "pre_dropout"},
        "any_shape": {"shape_checked"},
    },
    "gradient_depth": {
        "one_path_a_layer": {"paths"},
        "two_paths_a_layer": {"paths"},
        "ordered_pairs": {"paths"},
        "added": {"predicted", "predicted_negative"},
        "first_order": {"predicted", "predicted_negative"},
        "sign_lost": {"predicted_negative"},
        "negative_size": {"predicted_negative"},
        "once_around_all": {"with"},
        "from_the_start": {"with"},
        "residual_cut_off": {"with"},
        "accumulated": {"without"},
        "upstream_ignored": {"with", "without"},
        "sum_of_sizes": {"with", "without"},
        "order_swapped": {"with", "without"},
        "layers_reversed": {"with", "without"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("add_norm", COST)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"add_norm.{exercise}", misconception, claims, seed)


ZEROS = {
    "layer_norm": "def layer_norm(x, gamma, beta, eps=1e-5): return 0 * x * gamma + 0 * beta",
    "layer_norm_module": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.zeros(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps
    def forward(self, x): return 0 * x * self.gamma + 0 * self.beta
""",
    "norm_axes": """
layer_norm_means = batch_norm_means = tokens_per_mean = 0
def batch_norm(x, mask, eps=1e-5): return torch.zeros_like(x)
def affected(kind, training, mask, sentence, place): return torch.zeros_like(mask)
""",
    "add_norm": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False): super().__init__()
    def forward(self, x, sublayer): return torch.zeros_like(x)
""",
    "gradient_depth": """
num_paths = paths_through_two = 0
def predict(slope, num_layers): return 0.0, 0.0
def first_gradients(layers, x, upstream): return 0.0, 0.0
""",
}


@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise):
    outcome = verdict(exercise, ZEROS[exercise])
    assert outcome.points == 0, outcome


HANDED_BACK = {
    "layer_norm": "def layer_norm(x, gamma, beta, eps=1e-5): return x.detach()",
    "add_norm": ZEROS["add_norm"].replace("torch.zeros_like(x)", "x"),
}


@pytest.mark.parametrize("exercise", HANDED_BACK)
def test_the_input_handed_back_earns_nothing(exercise):
    assert verdict(exercise, HANDED_BACK[exercise]).points == 0


@pytest.mark.parametrize("exercise", [e.name for e in exercises("add_norm")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("add_norm")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    entry = find(exercise)
    for misconception in entry.misconceptions:
        if misconception.name == "counts_swapped":
            continue  # what it shows are the learner's own two numbers
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        assert not any(secret in text for secret in ("1600", "16777216", "276"))


@pytest.mark.parametrize(
    "exercise, source",
    [
        ("layer_norm", "def layer_norm(x, g, b, eps=1e-5): return nn.functional.layer_norm(x, g.shape, g, b, eps)"),
        ("layer_norm_module", "class LayerNorm(nn.LayerNorm): pass"),
        (
            "norm_axes",
            COUNTS + AFFECTED + "def batch_norm(x, mask, eps=1e-5):\n"
            "    return nn.BatchNorm1d(x.shape[-1])(x.flatten(0, 1)).view_as(x)",
        ),
    ],
)
def test_calling_what_is_to_be_written_earns_nothing_and_is_said(exercise, source):
    outcome = verdict(exercise, source)
    assert outcome.points == 0
    assert "which this exercise asks you to write yourself" in str(outcome)


def test_unscaled_dropout_and_a_wrong_share_are_seen():
    right = ADD_NORM["dropout by hand, in place"]
    for old, new in ((" / (1 - self.p)", ""), ("torch.rand_like(y) >= self.p", "torch.rand_like(y) < self.p")):
        assert old in right
        outcome = verdict("add_norm", right.replace(old, new), LayerNorm=LayerNorm)
        assert {r.claim for r in outcome.results if not r.holds} == {"post_dropout", "pre_dropout"}


def test_a_wrong_layer_norm_costs_nothing_in_the_exercises_that_build_on_it():
    """A learner who divides by one less in exercise 1 has the module and Add & Norm right."""

    def unbiased(x, gamma, beta, eps=1e-5):
        return gamma * (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) + beta

    module = {"layer_norm": unbiased}
    assert verdict("layer_norm_module", MODULE["calls the function"], **module).points == 5
    both = MODULE["calls the function"] + ADD_NORM["your own LayerNorm"]
    assert verdict("add_norm", both, **module).points == 5
