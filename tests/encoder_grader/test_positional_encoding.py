"""The exercises of chapter 2: what each mistake costs, and what is special; the known answers are in test_accuracy."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from encoder_grader.accuracy.answers.positional_encoding import RIGHT, WRONG
from encoder_grader.checking import verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import exercises, find
from encoder_grader.judge import judge
from encoder_lib.positional_encoding import SinusoidalPositionalEncoding, sinusoidal_table
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "torch": torch, "nn": nn, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"positional_encoding.{name}", namespace, seed)


# --- right answers ------------------------------------------------------------------------------------------------

MODULE = RIGHT["sinusoidal_encoding"]["a leading axis, float64"]
HALF = """
def sinusoidal_table(num_positions, d_model):
    i = torch.arange(d_model) // 2
    angle = torch.arange(num_positions).unsqueeze(-1) / torch.pow(torch.tensor(10000.0), 2 * i / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, torch.sin(angle), torch.cos(angle)).half()
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_half_precision_gets_a_note_and_costs_nothing(seed):
    outcome = verdict("sinusoidal_table", HALF, seed)
    assert outcome.points == outcome.maximum, outcome
    assert "is float16 where float32 was to be expected" in str(outcome)


# --- wrong answers ------------------------------------------------------------------------------------------------

# what each misconception leaves of the points, and the claims it costs
COST = {
    "sinusoidal_table": {
        "swapped": {"layout", "odd"},  # the column left over is then a cosine
        "halves": {"layout"},
        "starts_at_1": {"start"},
        "i_for_two_i": {"frequencies"},
        "doubled_twice": {"frequencies"},
        "last_pair_10000": {"frequencies"},
        "base_1000": {"frequencies"},
        "multiplied": {"layout", "frequencies"},  # then the pairs do not go from fast to slow
        "own_exponents": {"frequencies"},
        "note_002": {"odd"},
        "cosine_last": {"odd"},
        "empty_last": {"odd"},
        "one_column_less": {"odd"},
        "rounded_up": {"odd"},
    },
    "shift_matrix": {  # whatever is wrong with a shift by k, it does not move the rows by k
        "backwards": {"moved"},
        "reflection": {"moved", "undone"},
        "sines_on_diagonal": {"angles", "moved", "undone"},
        "halves": {"blocks", "moved"},
        "i_for_two_i": {"angles", "moved"},
        "doubled_twice": {"angles", "moved"},
        "base_1000": {"angles", "moved"},
        "one_angle": {"angles", "moved"},
        "one_step": {"angles", "moved", "undone"},
        "distance_only": {"undone"},
        "odd_let_through": {"odd"},
    },
    "sinusoidal_encoding": {
        "along_batch": {"positions"},
        "starts_at_1": {"positions"},
        "one_row": {"positions"},
        "multiplied": {"positions", "added"},
        "not_added": {"positions"},
        "scaled": {"added"},
        "in_place": {"added"},
        "detached": {"added"},
        "parameter": {"buffer"},
        "attribute": {"buffer"},
        "computed_anew": {"buffer"},
        "unchecked": {"too_long"},
        "full_refused": {"too_long"},
        "unnamed": {"too_long"},
        "clamped": {"too_long"},
        "wrapped": {"too_long"},
        "dropout_on_table": {"training"},
        "dropout_on_x": {"training"},
        "no_dropout": {"training"},
        "unscaled_dropout": {"training"},
        "dropout_always": {"evaluation"},
    },
    "learned_encoding": {
        "zeros": {"initialised"},
        "default_init": {"initialised"},
        "std_is_variance": {"initialised"},
        "uniform": {"initialised"},
        "buffer": {"gradients"},
        "detached": {"gradients"},
        "along_batch": {"positions", "gradients"},  # a gradient goes where the row was used
        "one_row": {"positions", "gradients"},
        "multiplied": {"positions", "gradients"},
        "clamped": {"too_long"},
        "wrapped": {"too_long"},
        "cut": {"too_long"},
        "unchecked": {"too_long"},
        "full_refused": {"too_long"},
        "unnamed": {"too_long"},
        "dropout_on_table": {"dropout"},
        "dropout_on_x": {"dropout"},
        "no_dropout": {"dropout"},
        "dropout_always": {"dropout"},
    },
    "counts": {
        "block_length": {"prediction"},
        "table_counted": {"prediction"},
        "one_row_learned": {"prediction"},
        "one_number_each": {"prediction"},
        "without_two_pi": {"wavelength", "slow_pairs"},
        "column_for_pair": {"wavelength", "slow_pairs"},
        "columns_counted": {"slow_pairs"},
        "fast_counted": {"slow_pairs"},
        "every_column_1": {"dot_product"},
        "sines": {"dot_product"},
        "divided_by_width": {"dot_product"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("positional_encoding", COST)


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"positional_encoding.{exercise}", misconception, claims, SEEDS[0])


@pytest.mark.parametrize("mistake", COST["sinusoidal_table"])
def test_a_table_that_is_wrong_already_costs_nothing_more_in_the_module(mistake):
    wrong = next(m for m in find("positional_encoding.sinusoidal_table").misconceptions if m.name == mistake)
    outcome = verdict("sinusoidal_encoding", MODULE, **wrong.answer)
    assert outcome.points == outcome.maximum, outcome


def test_a_module_with_a_table_of_its_own_does_not_need_the_function_before():
    source = MODULE.replace("sinusoidal_table(", "table(")
    outcome = verdict("sinusoidal_encoding", source, table=sinusoidal_table)
    assert outcome.points == outcome.maximum, outcome


ZEROS = {
    "sinusoidal_table": "def sinusoidal_table(n, d): return torch.zeros(n, d)",
    "shift_matrix": "def shift_matrix(offset, d): return torch.zeros(d, d)",
    "sinusoidal_encoding": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, dropout):
        super().__init__(); self.table = nn.Parameter(torch.zeros(max_len, d_model))
    def forward(self, x): return torch.zeros_like(x)
""",
    "learned_encoding": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout):
        super().__init__(); self.table = nn.Parameter(torch.zeros(max_len, d_model))
    def forward(self, x): return torch.zeros_like(x)
""",
    "counts": """
shape_of_table, fixed_parameters, learned_parameters = (0, 0), 0, 0
def wavelength(pair, d_model): return 0.0
def dot_product(distance, d_model): return 0.0
def slow_pairs(num_positions, d_model): return 0
""",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise, seed):
    outcome = verdict(exercise, ZEROS[exercise], seed)
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    """What is right is nowhere in the messages: neither the cat's shape nor its count."""
    entry = find(exercise)
    for misconception in entry.misconceptions:
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        assert "100352" not in text and "100,352" not in text


def test_a_message_names_the_row_that_a_position_past_the_end_got():
    entry = find("positional_encoding.learned_encoding")
    nameless = dataclasses.replace(entry, misconceptions=())
    plan = entry.challenge(0)
    for name, row in (("clamped", "the last row"), ("wrapped", "row 0"), ("cut", "no row")):
        wrong = next(m for m in entry.misconceptions if m.name == name)
        assert f"position max_len gets {row}" in str(judge(nameless, plan, collect(plan, wrong.answer)))


def test_a_table_along_the_batch_is_not_said_to_end_in_its_last_row():
    """Every position gets the same row there, so "the last row" would be true of any."""

    class AlongBatch(SinusoidalPositionalEncoding):
        def forward(self, x):
            return self.dropout(x + self.table[: x.shape[0], None])

    text = str(verdict_on("positional_encoding.sinusoidal_encoding", {"SinusoidalPositionalEncoding": AlongBatch}))
    assert "the same row as every other position" in text
    assert "share its last row" not in text


@pytest.mark.parametrize(
    "exercise, mistake, says, says_not",
    [
        ("sinusoidal_encoding", "whole vectors are dropped", "a vector is dropped whole", "share one mask"),
        (
            "sinusoidal_encoding",
            "the dropout that the paper has, whatever is asked for",
            "made with `dropout=0.0`, your module still drops entries",
            "after `module.eval()`",
        ),
        ("sinusoidal_encoding", "x as it came", "your module adds nothing to x", "another device"),
        (
            "sinusoidal_encoding",
            "an assertion for the length",
            "raises AssertionError instead of",
            "ask for the length",
        ),
        (
            "learned_encoding",
            "multiplied by 1 − dropout in evaluation",
            "after `module.eval()` the output is not what it is without dropout",
            "in training",
        ),
        ("sinusoidal_table", "the sines are negative", "column 2 does not start by rising", "fast to slow"),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_message_is_true_of_the_answer(exercise, mistake, says, says_not, seed):
    _, source = WRONG[exercise][mistake]
    answer = dict(find(f"positional_encoding.{exercise}").reference, sinusoidal_table=sinusoidal_table)
    outcome = verdict(exercise, source, seed, **answer)
    reasons = [result.reason for result in outcome.results if not result.holds]
    assert any(says in reason for reason in reasons), reasons
    assert not any(says_not in reason for reason in reasons), reasons


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_check_does_not_depend_on_the_learners_settings(exercise):
    entry = find(exercise)
    with torch.inference_mode():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        try:
            outcome = verdict_on(entry.name, dict(entry.reference))
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    assert outcome.points == outcome.maximum, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_sizes_change_with_the_seed(exercise):
    """Or what holds for the local challenge alone would pass the graded one."""
    plans = [find(exercise).challenge(seed) for seed in range(8)]
    assert len({str([step["says"] for step in plan.steps]) for plan in plans}) >= 7
