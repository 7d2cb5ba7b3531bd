"""The exercises of chapter 5: what each misconception costs, and what the answers of test_accuracy do not show."""

import math

import pytest
import torch
from torch import nn

from encoder_grader.accuracy.answers.feed_forward import GELUS
from encoder_grader.accuracy.cases import cases
from encoder_grader.accuracy.judging import Bench, judged
from encoder_grader.checking import verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import exercises
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEED = 0


def verdict(name: str, source: str):
    """The verdict on the text of an answer cell."""
    namespace = {"math": math, "torch": torch, "nn": nn, "Tensor": torch.Tensor, "F": nn.functional}
    exec(source, namespace)
    return verdict_on(f"feed_forward.{name}", namespace, seed=SEED)


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
        "residual": {"maps", "biases", "activation", "alone"},
        "mixed_positions": {"alone"},
    },
    "gelu": {
        "tanh_for_exact": {"exact"},
        "tanh_by_default": {"exact"},
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
        "key_error": {"unknown"},
        "unnamed": {"unknown"},
    },
    "module": {
        "no_activation": {"relu", "gelu"},
        "activation_after_both": {"relu", "gelu"},
        "activation_first": {"relu", "gelu"},
        "always_relu": {"gelu"},
        "always_gelu": {"relu"},
        "tanh_form": {"gelu"},
        "sigmoid_form": {"gelu"},
        "residual": {"relu", "gelu", "dropout"},
        "no_bias": {"relu", "gelu"},
        "no_dropout": {"dropout"},
        "dropout_in_evaluation": {"dropout"},
        "modes_confused": {"dropout"},
        "dropout_on_output": {"dropout"},
        "dropout_twice": {"dropout"},
        "dropout_on_input": {"dropout"},
        "dropout_before_activation": {"dropout"},
        "dropout_unscaled": {"dropout"},
        "one_mask": {"dropout"},
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


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"feed_forward.{exercise}", misconception, claims, SEED)


@pytest.mark.parametrize("exercise", COST)
def test_of_two_mistakes_that_cost_different_claims_each_is_named(exercise):
    cost = COST[exercise]
    pairs = [c for c in cases("feed_forward") if c.kind == "pair" and c.exercise == f"feed_forward.{exercise}"]
    for pair, _, outcome in judged(pairs, [SEED]):
        one, other = (cost[name] for name in pair.catalogued)
        assert outcome.failed == one | other, pair
        assert one & other or outcome.named == set(pair.catalogued), pair


HEAD = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
"""

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
    bench = Bench(exercise, SEED)
    for case in (case for case in cases("feed_forward") if case.exercise == exercise and case.kind == "misconception"):
        text = str(bench.judge.verdict(collect(bench.plan, case.objects())))
        assert not any(secret in text for secret in ("1050624", "2099712", "1,050,624", "512", " 64"))


@pytest.mark.parametrize("call", ["nn.functional.gelu(x)", "nn.GELU()(x)"])
def test_calling_the_gelu_that_is_to_be_written_costs_all_but_the_slope_and_is_said(call):
    outcome = verdict("gelu", GELUS["erf"] + f"\ndef gelu(x, approximate='none'): return {call}")
    assert {result.claim for result in outcome.results if result.holds} == {"derivative"}  # written without it
    assert "your code calls `gelu`, which this exercise asks you to write yourself" in str(outcome)
