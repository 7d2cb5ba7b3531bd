"""The exercises of chapter 1: what each misconception costs, and answers that need more than a cell's text."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.accuracy.answers.embedding import WRONG
from encoder_grader.checking import LOCAL_SEED, verdict_on
from encoder_grader.exercise import exercises, find
from encoder_lib.embedding import image_to_patches
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEED = 0


def verdict(name: str, source: str = "", **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"embedding.{name}", namespace, seed=SEED)


# --- right answers that the known ones cannot hold: in half the precision, and scripted, which needs a file ----------

HALVES = {
    "image_to_patches": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    grid = images.to(HALF).reshape(b, c, h // p, p, w // p, p)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
""",
    "patch_embedding": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images):
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(f"{tuple(images.shape)}")
        return self.projection(image_to_patches(images, self.patch_size)).to(HALF)

def as_convolution(embedding):
    size, linear = embedding.patch_size, embedding.projection
    conv = nn.Conv2d(linear.in_features // size**2, linear.out_features, size, stride=size)
    conv.load_state_dict({"weight": linear.weight.reshape(conv.weight.shape), "bias": linear.bias})
    return conv
""",
}


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("exercise", HALVES)
def test_half_the_precision_costs_nothing_and_is_noted(exercise, half):
    outcome = verdict(exercise, HALVES[exercise], image_to_patches=image_to_patches, HALF=half)
    assert outcome.points == outcome.maximum, outcome
    assert "no points are lost for that" in str(outcome)


def scripted_one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    return torch.zeros(ids.shape[0], ids.shape[1], vocab_size).scatter(2, ids.unsqueeze(2), 1.0)


class ScriptedTokens(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, pad_id: int | None = None):
        super().__init__()
        self.factor = float(d_model**0.5)
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=1 / self.factor)
        if pad_id is not None:
            nn.init.zeros_(self.embedding.weight[pad_id])

    def forward(self, ids):
        return self.embedding(ids) * self.factor


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize(
    "exercise, name, scripted",
    [
        ("one_hot_lookup", "one_hot", lambda *args: torch.jit.script(scripted_one_hot)(*args)),
        (
            "token_embedding",
            "TokenEmbedding",
            lambda *args, **kwargs: torch.jit.script(ScriptedTokens(*args, **kwargs)),
        ),
    ],
)
def test_a_scripted_answer_gets_full_marks(exercise, name, scripted):
    outcome = verdict(exercise, **find(f"embedding.{exercise}").reference | {name: scripted})
    assert outcome.points == outcome.maximum, outcome


# --- wrong answers ------------------------------------------------------------------------------------------------

# what each misconception leaves of the points, and the claims it costs
COST = {
    "one_hot_lookup": {
        "vocabulary_first": {"one_hot", "product", "unused", "summed"},  # the other functions use it
        "shifted": {"one_hot", "product", "unused", "summed"},  # the other functions use it
        "shifted_around": {"one_hot", "product", "unused", "summed"},  # the other functions use it
        "counted_from_1": {"one_hot", "product", "unused", "summed"},  # the other functions use it
        "counted_from_1_around": {"one_hot", "product", "unused", "summed"},  # the other functions use it
        "last_use": {"summed"},
        "mean_of_uses": {"summed"},
        "first_sentence": {"unused", "summed"},
    },
    "token_embedding": {
        "no_scale": {"scaled"},
        "divided": {"scaled"},
        "scaled_by_width": {"scaled"},
        "default_init": {"initialised"},
        "std_is_variance": {"initialised"},
        "xavier": {"initialised"},
        "padding_overwritten": {"padding_is_zero"},
        "padding_ignored": {"padding_is_zero", "padding_learns_nothing"},
        "padding_is_always_0": {"padding_is_zero", "padding_learns_nothing"},
        "padding_0_ignored": {"padding_is_zero", "padding_learns_nothing"},
        "padding_row_learns": {"padding_learns_nothing"},
        "padding_0_learns": {"padding_learns_nothing"},
    },
    "image_to_patches": {
        "strips": {"patches", "grid_order", "inner_order"},
        "column_by_column": {"grid_order"},
        "transposed_patch": {"inner_order"},
        "channels_last": {"inner_order"},
        "interleaved": {"patches", "grid_order", "inner_order"},
        "channels_apart": {"patches", "grid_order", "inner_order"},
        "cut_off": {"indivisible"},
        "unnamed": {"indivisible"},
    },
    "patch_embedding": {
        "no_bias": {"projected"},
        "strips": {"output"},
        "column_by_column": {"output"},
        "channels_last": {"output"},
        "transposed_output": {"projected", "output"},
        "detached": {"gradients"},
        "any_size": {"size_checked"},
        "unnamed": {"size_checked"},
        "stride_1": {"convolution"},
        "kernel_transposed": {"convolution"},
        "kernel_channels_last": {"convolution"},
        "convolution_no_bias": {"convolution"},
    },
    "shapes": {
        "side_only": {"prediction", "function_shapes"},
        "square_only": {"function_shapes"},
        "one_channel": {"function_shapes", "function_parameters"},  # the projection takes the same pixels
        "side_of_patch": {"prediction", "parameters", "function_shapes", "function_parameters"},
        "no_bias": {"parameters", "function_parameters"},
        "one_for_each_patch": {"parameters", "function_parameters"},
        "bias_per_patch_entry": {"parameters", "function_parameters"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("embedding", COST)


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"embedding.{exercise}", misconception, claims, SEED)


ZEROS = {
    "one_hot_lookup": """
def one_hot(ids, vocab_size): return torch.zeros(*ids.shape, vocab_size)
def lookup_by_product(ids, table): return torch.zeros(*ids.shape, table.shape[1])
def table_gradient(ids, upstream, vocab_size): return torch.zeros(vocab_size, upstream.shape[-1])
""",
    "token_embedding": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__(); self.embedding = nn.Embedding(vocab_size, d_model); nn.init.zeros_(self.embedding.weight)
    def forward(self, ids): return self.embedding(ids) * 0
""",
    "image_to_patches": """
def image_to_patches(images, p):
    return torch.zeros(len(images), images[0, 0].numel() // p**2, images.shape[1] * p**2)
""",
    "patch_embedding": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.projection = nn.Linear(channels * patch_size ** 2, d_model)
        self.n = (image_size // patch_size) ** 2
    def forward(self, images): return torch.zeros(len(images), self.n, 1) * self.projection.bias
def as_convolution(embedding): return nn.Conv2d(3, 7, 4, 4).requires_grad_(False)
""",
    "shapes": """
shape_of_patches = shape_of_vectors = (0, 0)
num_parameters = 0
def patch_shapes(height, width, channels, patch_size, d_model): return (0, 0), (0, 0), 0
""",
}


@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise):
    outcome = verdict(exercise, ZEROS[exercise])
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("embedding")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("embedding")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    """What is right is nowhere in the messages: neither 196 nor 131584 for the shapes, nor a factor √d_model."""
    entry = find(exercise)
    for misconception in entry.misconceptions:
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        factors = [f"{math.sqrt(width):.3g}" for width in entry.challenge(LOCAL_SEED).hidden.get("widths", ())]
        assert not any(secret in text for secret in ("196", "131584", "131,584", *factors))


def test_calling_what_is_to_be_written_costs_the_claims_that_rest_on_it_and_is_said():
    def calls_it(ids, vocab_size):
        return nn.functional.one_hot(ids, vocab_size).float()

    reference = find("embedding.one_hot_lookup").reference
    outcome = verdict("one_hot_lookup", **reference | {"one_hot": calls_it})
    assert {result.claim for result in outcome.results if not result.holds} == {"one_hot"}
    assert "your code calls `one_hot`, which this exercise asks you to write yourself" in str(outcome)


def test_the_error_of_an_image_that_fits_is_the_reason_that_no_size_is_checked():
    source = """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images):
        return self.projection(cut(images))
"""
    reference = find("embedding.patch_embedding").reference
    results = verdict("patch_embedding", source, as_convolution=reference["as_convolution"]).results
    reasons = {result.claim: result.reason for result in results}
    assert "NameError: name 'cut' is not defined" in reasons["projected"]
    assert reasons["size_checked"] == "for the same reason"


@pytest.mark.parametrize(
    "exercise, mistake, says",
    [
        ("token_embedding", "rows made shorter where they are long", "rows of length 30 come out with a length of 40"),
        ("token_embedding", "the same row for every word", "your weights are like one another"),
        ("token_embedding", "drawn only where there is padding", "your weights in a module made without a `pad_id`"),
        (
            "token_embedding",
            "a padding row that learns, for a pad_id that does not count as true",
            "with `pad_id=0` the padding row gets a gradient",
        ),
        ("patch_embedding", "the weight detached, the bias not", "no gradient reaches the weight"),
    ],
)
def test_a_message_is_true_of_the_answer(exercise, mistake, says):
    _, source = WRONG[exercise][mistake]
    answer = dict(find(f"embedding.{exercise}").reference, image_to_patches=image_to_patches)
    assert says in str(verdict(exercise, source, **answer))
