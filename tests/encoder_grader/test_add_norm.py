"""The exercises of chapter 4: what each misconception costs, and what earns nothing."""

import pytest
import torch
from torch import nn

from encoder_grader.accuracy.answers.add_norm import AFFECTED, COUNTS, RIGHT
from encoder_grader.checking import LOCAL_SEED, verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import exercises, find
from encoder_grader.judge import Judge
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated


def verdict(name: str, source: str, **given):
    """The verdict on the text of an answer cell, run after what earlier cells have given."""
    namespace = {"torch": torch, "nn": nn, **given}
    exec(source, namespace)
    return verdict_on(f"add_norm.{name}", namespace)


# the claims that each misconception costs
COST = {
    "layer_norm": {
        "not_centred": {"centred"},
        "rms_norm": {"centred", "variance"},
        "about_zero": {"variance"},
        "unbiased": {"variance"},
        "not_rooted": {"variance", "eps"},
        "deviation_in_root": {"variance", "eps"},
        "std_plus_eps": {"variance", "eps"},
        "eps_outside": {"eps"},
        "no_eps": {"eps"},
        "eps_fixed": {"eps"},
        "over_the_sequence": {"centred", "variance", "eps"},
        "second_axis": {"centred", "variance", "eps"},
        "third_axis": {"centred", "variance", "affine"},  # where x has two axes, it stops
        "over_the_batch": {"centred", "variance", "eps"},
        "over_everything": {"centred", "variance"},
        "detached": {"gradient_of_x"},
        "swapped": {"affine"},
        "shifted_first": {"affine"},
        "gamma_cut": {"gradient_of_gamma"},
        "beta_cut": {"gradient_of_gamma"},
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
        "no_affine": {"starts", "affine"},
        "no_beta": {"starts", "affine"},
        "eps_not_passed_on": {"eps"},
        "eps_of_vit": {"eps"},
        "batch_statistics": {"affine", "eps", "alone"},
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
        "no_eps": {"standardised"},
        "eps_outside": {"standardised"},
        "eps_fixed": {"standardised"},
        "padding_averaged": {"padding_out"},
        "padding_squared": {"padding_out"},
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
        "pre_not_normalised": {"pre"},
        "pre_output_normalised": {"pre", "pre_dropout"},  # see output_normalised
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
        "never_residual": {"with"},
        "always_residual": {"without"},
        "accumulated": {"without"},
        "upstream_ignored": {"with", "without"},
        "sum_of_sizes": {"with", "without"},
        "order_swapped": {"with", "without"},
        "layers_reversed": {"with", "without"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("add_norm", COST)


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"add_norm.{exercise}", misconception, claims, LOCAL_SEED)


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
    plan = entry.challenge(LOCAL_SEED)
    judge = Judge(entry, plan)
    for misconception in entry.misconceptions:
        if misconception.name == "counts_swapped":
            continue  # what it shows are the learner's own two numbers
        text = str(judge.verdict(collect(plan, entry.reference | misconception.answer)))
        assert not any(secret in text for secret in ("1600", "16777216", "276"))


@pytest.mark.parametrize(
    "exercise, source, points",
    [
        ("layer_norm", "def layer_norm(x, g, b, eps=1e-5): return nn.functional.layer_norm(x, g.shape, g, b, eps)", 0),
        ("layer_norm_module", "class LayerNorm(nn.LayerNorm): pass", 0),
        (
            "norm_axes",
            COUNTS + AFFECTED + "def batch_norm(x, mask, eps=1e-5):\n"
            "    return nn.BatchNorm1d(x.shape[-1])(x.flatten(0, 1)).view_as(x)",
            4,  # for the counts and for what is affected
        ),
    ],
)
def test_what_calls_the_function_to_be_written_earns_nothing_and_is_told(exercise, source, points):
    outcome = verdict(exercise, source)
    assert outcome.points == points
    assert "which this exercise asks you to write yourself" in str(outcome)


@pytest.mark.parametrize("mistake", ["unbiased", "std_plus_eps", "eps_outside", "detached"])
def test_a_wrong_layer_norm_costs_nothing_in_the_exercises_that_build_on_it(mistake):
    """A learner who, say, divides by one less in exercise 1 has the module and Add & Norm right."""
    wrong = next(each.answer for each in find("add_norm.layer_norm").misconceptions if each.name == mistake)
    module = RIGHT["layer_norm_module"]["calls the function"]
    assert verdict("layer_norm_module", module, **wrong).points == 5
    assert verdict("add_norm", module + RIGHT["add_norm"]["your own LayerNorm"], **wrong).points == 5


def test_a_module_that_is_right_counts_beside_a_layer_norm_that_is_not():
    def stub(*_):
        raise NotImplementedError

    assert verdict("layer_norm_module", RIGHT["layer_norm_module"]["through load_reference"]).points == 5
    assert verdict("layer_norm_module", RIGHT["layer_norm_module"]["float64"], layer_norm=stub).points == 5
