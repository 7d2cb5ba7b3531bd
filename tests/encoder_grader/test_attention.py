"""The exercises of chapter 3: what each misconception costs, and what earns nothing."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from encoder_grader.exercises.attention import RIGHT_CANDIDATES
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEED = 2017


def verdict(name: str, source: str = "", **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "torch": torch, "nn": nn, "F": F, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"attention.{name}", namespace, SEED)


EVERY_BUG = {"no_scale", "sqrt_d_model", "mask_inverted", "over_queries", "masked_after", "values_compared"}
EVERYTHING = {"scale", "rows", "context", "masked", "shared", "nothing", "gradients"}

# the claims that each misconception costs
COST = {
    "softmax": {
        "overflow": {"large"},
        "overflow_hidden": {"large"},
        "global_maximum": {"large"},
        "mean_subtracted": {"large"},
        "clamped": {"large"},
        "not_divided": {"weights", "axis", "large"},
        "all_together": {"weights", "axis", "large"},
        "last_axis_always": {"axis"},
        "first_axis": {"weights", "large"},
    },
    "scaled_dot_product_attention": {
        "no_scale": {"scale"},
        "divided_by_d_k": {"scale"},
        "multiplied": {"scale"},
        "sqrt_d_model": {"scale"},
        "over_queries": {"rows", "shared"},
        "over_axis_1": {"scale", "rows", "shared"},
        "keys_averaged": {"context", "nothing", "gradients"},  # a context of the keys' width
        "values_compared": EVERYTHING,  # the widths do not fit
        "mask_ignored": {"masked", "nothing"},
        "mask_inverted": {"masked", "nothing"},
        "mask_added": {"masked", "nothing"},
        "score_zero": {"masked", "nothing"},
        "masked_after": {"shared"},
        "no_maximum": {"scale", "masked"},
        "clamped": {"scale"},
        "nan_row": {"nothing", "gradients"},
        "uniform_row": {"nothing"},
        "nan_replaced": {"gradients"},
        "swapped_results": EVERYTHING,  # neither has the other's shape
    },
    "masks": {
        "inverted": {"padding", "causal", "both"},
        "padding_is_0": {"padding", "both"},
        "padding_at_the_end": {"padding", "both"},
        "padding_queries": {"padding", "both"},
        "no_axes": {"padding"},
        "numbers": {"padding", "causal", "both"},
        "without_itself": {"causal", "both"},
        "future": {"causal", "both"},
        "either": {"both"},
        "queries_too": {"both"},
    },
    "heads": {
        "view_only": {"split"},
        "interleaved": {"split"},
        "tokens_first": {"split"},
        "heads_before_batch": {"split"},
        "cut_short": {"indivisible"},
        "merged_by_view": {"merged"},
        "merged_interleaved": {"merged"},
        "summed": {"merged"},
    },
    "multi_head_attention": {
        "no_scale": {"scale"},
        "sqrt_d_model": {"scale"},
        "view_only": {"heads", "scale", "merged"},  # the scale counts once the heads are right
        "merged_by_view": {"merged"},
        "split_before": {"values", "heads", "scale", "merged"},
        "no_w_o": {"values", "merged", "gradients"},
        "no_bias": {"values", "heads", "scale", "merged"},
        "keys_as_queries": {"heads", "scale", "gradients"},
        "weights_averaged": {"heads", "scale", "merged", "masked"},  # there are no weights of a head to look at
        "values_from_query": {"crossed"},
        "value_ignored": {"crossed"},
        "keys_from_value": {"crossed"},
        "mask_ignored": {"masked"},
        "mask_inverted": {"masked"},
        "over_queries": {"heads", "scale", "masked"},
        "masked_after": {"masked"},
        "dropout_always": {"dropped"},
        "dropout_never": {"dropped"},
        "dropout_on_output": {"dropped"},
        "dropout_before_softmax": {"dropped"},
        "dropout_on_entries": {"dropped"},
        "not_scaled_up": {"dropped"},
        "detached": {"gradients"},
    },
    "counts": {
        "one_per_number": {"bytes"},
        "one_head": {"bytes"},
        "linear": {"shapes", "bytes"},
        "shape_of_queries": {"shapes"},
        "no_heads": {"shapes"},
        "times_heads": {"parameters"},
        "three_projections": {"parameters"},
        "no_bias": {"parameters"},
        "from_the_length": {"parameters"},
    },
    "repair": {
        "as_printed": {"function", "tokens", "projections", "right"},
        "x_for_all": {"tokens", "projections", "right"},
        "heads_of_one_token": {"tokens", "right"},
        "view_only": {"tokens", "right"},
        "merged_by_view": {"tokens", "right"},
        "copies": {"right"},
        "no_projections": {"projections", "right"},
        "one_projection": {"projections", "right"},
        "no_w_o": {"projections", "right"},
        "no_scale": {"function", "right"},
        "over_queries": {"function", "right"},
        "sqrt_d_model": {"right"},
    },
    "bug_hunt": {
        "shapes_only": EVERY_BUG,
        "sums_only": EVERY_BUG - {"over_queries", "masked_after"},
        "zeros_only": EVERY_BUG - {"mask_inverted"},
        "no_mask": {"mask_inverted", "masked_after"},
        "one_head": {"sqrt_d_model"},
        "same_for_all": {"values_compared"},
        "equal_scores": {"no_scale", "sqrt_d_model", "values_compared"},
        "exactly": EVERY_BUG | {"right_passes"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("attention", COST)


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"attention.{exercise}", misconception, claims, SEED)


ZEROS = {
    "softmax": "def softmax(scores, dim=-1): return torch.zeros_like(scores)",
    "scaled_dot_product_attention": """
def scaled_dot_product_attention(query, key, value, mask=None):
    weights = torch.zeros(*query.shape[:-1], key.shape[-2])
    return weights @ value * query.sum(), weights
""",
    "masks": """
def padding_mask(ids, pad_id): return torch.zeros_like(ids, dtype=torch.bool)[:, None, None]
def causal_mask(seq): return torch.zeros(seq, seq, dtype=torch.bool)
def causal_padding_mask(ids, pad_id): return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
    "heads": """
def split_heads(x, h): return torch.zeros(len(x), h, x.shape[1], x.shape[2] // h)
def merge_heads(x): return torch.zeros(len(x), x.shape[2], x.shape[1] * x.shape[3])
""",
    "multi_head_attention": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        out = self.w_o(query) * 0
        seq_k = (query if key is None else key).shape[1]
        return (out, torch.zeros(len(query), self.h, query.shape[1], seq_k)) if need_weights else out
""",
    "counts": """
shape_of_scores, bytes_of_scores, num_parameters = (0, 0, 0, 0), 0, 0
def attention_counts(batch, seq, d_model, num_heads): return (0, 0, 0, 0), 0, 0
""",
    "repair": """
def self_attention(Q, K, V): return torch.zeros(*Q.shape[:-1], V.shape[-1])
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
    def forward(self, x): return self.w_o(x) * 0
""",
    "bug_hunt": "def examine_attention(attention): return True",
}


@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise):
    outcome = verdict(exercise, ZEROS[exercise])
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("attention")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("attention")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    entry = find(exercise)
    for misconception in entry.misconceptions:
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        assert not any(secret in text for secret in ("1229312", "1050624", "(1, 8, 196, 196)"))


BUILT_IN = {
    "softmax": "def softmax(scores, dim=-1): return nn.Softmax(dim)(scores)",
    "scaled_dot_product_attention": """
def scaled_dot_product_attention(query, key, value, mask=None):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return F.scaled_dot_product_attention(query, key, value, mask), weights
""",
    "multi_head_attention": """
class MultiHeadAttention(nn.MultiheadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout, batch_first=True)
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        out, weights = super().forward(query, key, value, average_attn_weights=False)
        return (out, weights) if need_weights else out
""",
    "repair": """
def self_attention(Q, K, V): return F.scaled_dot_product_attention(Q, K, V)
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model): super().__init__()
    def forward(self, x): return x
""",
}


@pytest.mark.parametrize("exercise", BUILT_IN)
def test_calling_what_is_to_be_written_earns_nothing_and_is_said(exercise):
    outcome = verdict(exercise, BUILT_IN[exercise])
    assert outcome.points == 0
    assert "which this exercise asks you to write yourself" in str(outcome)


def test_torchs_softmax_is_no_false_alarm_where_attention_is_asked_for():
    def attend(query, key, value, mask=None):
        weights = F.softmax(query @ key.mT, dim=-1)
        return weights @ value, weights

    outcome = verdict("scaled_dot_product_attention", scaled_dot_product_attention=attend)
    assert "to write yourself" not in str(outcome)
    assert {result.claim for result in outcome.results if result.holds} >= {"rows", "context", "gradients"}


MASKS = {
    "none": None,
    "some keys": torch.tensor([[True, False, True, True, False]] * 4),
    "one key": torch.arange(5) == 2,
    "an empty row": torch.tensor([[True] * 5, [False] * 5, [True, False] * 2 + [True], [False] * 5]),
    "nothing": torch.zeros(2, 1, 4, 5, dtype=torch.bool),
}


@pytest.mark.parametrize("candidate", RIGHT_CANDIDATES, ids=lambda candidate: candidate.__name__)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 10])
def test_right_candidates_of_the_bug_hunt_keep_to_the_rules_of_attention(candidate, mask, dtype, size):
    draw = torch.Generator().manual_seed(SEED)
    shapes = (2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 7)
    inputs = [(size * torch.randn(shape, generator=draw)).to(dtype).requires_grad_() for shape in shapes]
    results = candidate(*inputs, MASKS[mask])
    expected = find("attention.scaled_dot_product_attention").reference["scaled_dot_product_attention"](
        *inputs, MASKS[mask]
    )
    allowed = 0.05 if dtype == torch.float16 else 1e-3
    for result, other in zip(results, expected, strict=True):
        assert result.dtype == dtype
        torch.testing.assert_close(result, other, atol=allowed, rtol=allowed)
    gradients = torch.autograd.grad(results[0].sum() + results[1].square().sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("factor", [1 + 1e-15, 1 + 1e-7])
def test_counts_are_exact(factor):
    """However few of their figures a message shows."""
    right = find("attention.counts").reference

    def attention_counts(*sizes):
        shape, *counts = right["attention_counts"](*sizes)
        return shape, *(count * factor for count in counts)

    verdict = verdict_on("attention.counts", right | {"attention_counts": attention_counts})
    assert {result.claim for result in verdict.results if not result.holds} == {"bytes", "parameters"}
    whole = verdict_on("attention.counts", right | {"bytes_of_scores": float(right["bytes_of_scores"])})
    assert whole.points == whole.maximum
