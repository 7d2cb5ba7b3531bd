"""The exercises of chapter 6: right answers of every style pass, wrong ones lose what is wrong and are named."""

import pytest
import torch
from torch import nn

from encoder_grader.accuracy.answers.stacking import RIGHT
from encoder_grader.accuracy.cases import Case
from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from encoder_grader.exercises import stacking
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEED = 0


def verdict(name: str, *cells: str, **answer):
    """The verdict on the cells of an answer, run one after another on the notebook's cells before and on `answer`."""
    namespace = Case(f"stacking.{name}", "right", "a style", "0").namespace() | answer
    for cell in cells:
        exec(cell, namespace)
    return verdict_on(f"stacking.{name}", namespace, SEED)


ENCODER, TOKENS, PATCHES = (next(iter(RIGHT[each].values())) for each in ("encoder", "token_encoder", "patch_encoder"))


@pytest.mark.parametrize("style", RIGHT["encoder_layer"])
def test_the_encoder_is_judged_with_layers_of_any_style(style):
    layer = RIGHT["encoder_layer"][style]
    for exercise, cells in {"encoder": (layer, ENCODER), "token_encoder": (layer, ENCODER, TOKENS)}.items():
        outcome = verdict(exercise, *cells)
        assert outcome.points == outcome.maximum, outcome


# --- wrong answers ----------------------------------------------------------------------------------------------------

EVERY_BUG = {"no_residual", "second_input", "shared", "mask_dropped", "always_drop", "examples_mixed"}

# the claims that each misconception costs
COST = {
    "encoder_layer": {
        "always_post": {"pre"},
        "always_pre": {"post"},
        "attention_lost": {"post", "pre", "mask", "dropout"},  # nothing of the attention is left to look at
        "second_residual_from_input": {"post", "pre", "dropout"},  # as far as attention reaches the output
        "no_second_residual": {"post", "pre", "dropout"},
        "residual_twice": {"post", "pre", "dropout"},
        "feed_forward_first": {"post", "pre"},
        "one_norm": {"post", "pre"},
        "attention_reads_input": {"pre"},
        "length_first": {"post", "pre", "mask", "dropout"},  # equal rows are each other's words
        "mask_dropped": {"mask"},
        "mask_inverted": {"mask"},
        "weights_not_dropped": {"dropout"},
        "no_dropout": {"dropout"},
        "default_dropout": {"dropout", "quiet"},
    },
    "encoder": {
        "one_layer": {"own_parameters", "different_start"},
        "cloned": {"different_start"},
        "python_list": {"own_parameters"},
        "mask_first_only": {"mask"},
        "mask_ignored": {"mask"},
        "no_final_norm": {"final_norm"},
        "norm_after_post": {"chained"},
        "norm_after_each": {"final_norm"},
        "always_input": {"own_parameters", "chained"},  # of two layers one has no say
        "dropout_kept_back": {"mask"},
        "norm_first_kept_back": {"final_norm"},
        "last_missing": {"own_parameters", "chained"},
    },
    "token_encoder": {
        "no_scale": {"scaled"},
        "scaled_twice": {"scaled"},
        "positions_scaled": {"positions"},
        "no_positions": {"positions"},
        "learned": {"positions"},
        "no_dropout": {"dropout"},
        "encoder_default_dropout": {"layers"},
        "pre_norm": {"layers"},
        "mask_forgotten": {"padding"},
        "mask_inverted": {"layers", "padding"},  # of a sentence without padding nothing is visible
        "pad_is_0": {"padding"},
    },
    "patch_encoder": {
        "at_the_end": {"in_front"},
        "without_position": {"positions"},
        "no_class_token": {"in_front", "patches", "positions", "learned", "layers"},  # one row is missing everywhere
        "mean_for_class_token": {"in_front", "patches", "learned"},
        "fixed": {"learned"},
        "sinusoidal": {"positions"},
        "zeros": {"learned"},
        "unit_size": {"learned"},
        "post_norm": {"layers"},
        "encoder_default_dropout": {"layers"},
    },
    "from_torch": {
        "key_first": {"projections"},
        "value_before_key": {"projections"},
        "interleaved": {"projections"},
        "cut_columns": {"projections"},
        "transposed": {"projections", "maps"},
        "weights_only": {"names", "projections"},
        "fused_left": {"names", "projections"},
        "torchs_norm_names": {"names", "norms"},
        "norms_swapped": {"norms"},
    },
    "masked_mean": {
        "unmasked": {"mean", "empty"},
        "divided_by_seq": {"mean"},
        "mean_of_the_padding": {"mean", "empty"},
        "sum": {"mean"},
        "one_count": {"mean"},
        "nan": {"empty"},
        "first_vector": {"mean", "empty"},
    },
    "counting": {
        "no_biases": {"parameters", "rule"},
        "no_norms": {"parameters", "rule"},
        "one_norm": {"parameters", "rule"},
        "no_w_o": {"parameters", "rule"},
        "one_layer": {"parameters", "rule"},
        "final_always": {"rule"},
        "final_never": {"parameters", "rule"},
        "no_class_token": {"shape"},
        "base_width": {"shape"},
    },
    "bug_hunt": {
        "shape_only": EVERY_BUG,
        "repeats_only": EVERY_BUG - {"always_drop"},
        "equal_layers": {"shared"},
        "no_mask": {"mask_dropped"},
        "too_strict": EVERY_BUG | {"right_passes"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("stacking", COST)


@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"stacking.{exercise}", misconception, claims, SEED)


def test_several_mistakes_at_once_are_each_called_by_their_own_name():
    """One layer again and again, without the mask, and a norm behind it: nothing here gets the encoder's input."""
    entry = find("stacking.encoder")
    answer = stacking._encoder(
        layers=lambda make, n: nn.ModuleList([make()] * n), masked=lambda number: False, norm=True
    )
    results = verdict_on(entry.name, entry.reference | answer, SEED).results
    assert {result.claim: result.misconception for result in results if not result.holds} == {
        "own_parameters": "one_layer",
        "different_start": "one_layer",
        "chained": "norm_after_post",
        "mask": "mask_ignored",
    }


def test_a_wrong_layer_costs_nothing_in_the_encoders_made_of_it():
    """Here one that is post-norm always, ignores its mask and drops nothing."""
    layer = next(m for m in find("stacking.encoder_layer").misconceptions if m.name == "always_post").answer
    forgetful = next(m for m in find("stacking.encoder_layer").misconceptions if m.name == "mask_dropped").answer
    for wrong in (layer, forgetful):
        assert verdict("encoder", ENCODER, **wrong).points == 5
        assert verdict("token_encoder", ENCODER, TOKENS, **wrong).points == 5
        assert verdict("patch_encoder", ENCODER, PATCHES, **wrong).points == 5


ZERO = """
class Zero(nn.Module):
    def __init__(self, *args, d_model=8, **kwargs):
        super().__init__(); self.w = nn.Linear(4, 4); self.layers = nn.ModuleList([nn.Identity()] * 3)
        self.embedding = self.positions = self.w
        self.encoder = lambda x, mask=None: x * 0
        self.class_token = nn.Parameter(torch.zeros(1, 1, 4))
    def load_reference(self, weights): pass
    def forward(self, x, mask=None): return x * self.w.weight.sum() * 0
"""
ZEROS = {
    "encoder_layer": ZERO + "EncoderLayer = Zero",
    "encoder": ZERO + "EncoderLayer = Encoder = Zero",
    "token_encoder": ZERO
    + """
class TokenEncoder(Zero):
    def __init__(self, vocab_size, d_model, *args, **kwargs): super().__init__(); self.d_model = d_model
    def embed(self, ids): return torch.zeros(*ids.shape, self.d_model)
    def forward(self, ids): return self.embed(ids)
""",
    "patch_encoder": ZERO
    + """
class PatchEncoder(Zero):
    def __init__(self, image_size, patch_size, channels, d_model, *args, **kwargs):
        super().__init__()
        self.shape = (image_size // patch_size) ** 2 + 1, d_model
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
    def embed(self, images): return torch.zeros(len(images), *self.shape) * self.class_token
    def forward(self, images): return self.embed(images)
Encoder = Zero
""",
    "from_torch": RIGHT["from_torch"]["slices"].replace("return out", "return {n: w * 0 for n, w in out.items()}"),
    "masked_mean": "def masked_mean(x, mask): return x.sum(1) * 0",
    "counting": """
parameters_of_encoder, output_shape = 0, (0, 0)
def encoder_parameters(num_layers, d_model, d_ff, norm_first): return 0
""",
    "bug_hunt": "def examine(candidate): pass",
}


@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise):
    outcome = verdict(exercise, ZEROS[exercise])
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("stacking")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


def test_verdict_never_shows_the_expected_numbers():
    entry = find("stacking.counting")
    for misconception in entry.misconceptions:
        text = str(verdict_on(entry.name, entry.reference | misconception.answer))
        assert not any(secret in text for secret in ("197", "85056000", "85,056,000"))


TORCHS = """
class EncoderLayer(nn.TransformerEncoderLayer):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=norm_first)
    def load_reference(self, w):
        own = {theirs: w[ours] for theirs, ours in stacking._PARTS.items()}
        for kind in ('weight', 'bias'):
            own[f'self_attn.in_proj_{kind}'] = torch.cat([w[f'attention.w_{c}.{kind}'] for c in 'qkv'])
        self.load_state_dict(own)
    def forward(self, x, mask=None):
        if mask is None: return super().forward(x)
        if mask.dim() == 2: return super().forward(x, src_mask=~mask)
        return super().forward(x, src_key_padding_mask=~mask[:, 0, 0])
"""


def test_torchs_own_layer_earns_nothing_and_is_said():
    outcome = verdict("encoder_layer", TORCHS, stacking=stacking)
    assert outcome.points == 0
    assert "`multi_head_attention_forward`, which this exercise asks you to write yourself" in str(outcome)


def test_the_candidates_of_the_hunt_differ_where_they_should():
    """The right ones agree at the words, with and without a mask; each wrong one is wrong, but keeps the shape."""
    weights, x = stacking.draw_weights(3), torch.randn(3, 5, 6)
    mask = stacking.lengths_mask([5, 2, 4], 5)
    real = mask[:, 0, 0]
    want = stacking.by_library(x, weights, mask)
    for right in (stacking.by_torch, stacking.by_hand()):
        assert torch.allclose(right(x, weights, mask)[real], want[real], atol=1e-5)
        assert torch.allclose(right(x, weights), stacking.by_library(x, weights), atol=1e-5)
        assert not torch.equal(right(x, weights, training=True), right(x, weights, training=True))
    for bug in EVERY_BUG:
        got = stacking.by_hand(**{bug: True})(x, weights, mask)
        assert got.shape == want.shape
        assert not torch.allclose(got[real], want[real], atol=1e-3)
