"""The exercises of chapter 1: right answers of every style pass, wrong ones lose what is wrong and are named."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import LOCAL_SEED, verdict_on
from encoder_grader.exercise import exercises, find
from encoder_lib.embedding import image_to_patches
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"embedding.{name}", namespace, seed=SEEDS[0])


# --- right answers ------------------------------------------------------------------------------------------------

ONE_HOT = {
    "loops": """
def one_hot(ids, vocab_size):
    out = torch.zeros(ids.shape[0], ids.shape[1], vocab_size)
    for b in range(ids.shape[0]):
        for s in range(ids.shape[1]):
            out[b, s, ids[b, s]] = 1
    return out
def lookup_by_product(ids, table):
    hot = one_hot(ids, table.shape[0])
    return torch.stack([hot[b] @ table for b in range(len(ids))])
def table_gradient(ids, upstream, vocab_size):
    g = torch.zeros(vocab_size, upstream.shape[-1])
    for b in range(ids.shape[0]):
        for s in range(ids.shape[1]):
            g[ids[b, s]] += upstream[b, s]
    return g
""",
    "identity matrix and autograd": """
def one_hot(ids, vocab_size): return torch.eye(vocab_size)[ids]
def lookup_by_product(ids, table): return torch.einsum('bsv,vd->bsd', one_hot(ids, len(table)), table)
def table_gradient(ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.shape[-1], requires_grad=True)
    lookup_by_product(ids, table).backward(upstream)
    return table.grad
""",
    "float64": """
def one_hot(ids, vocab_size): return (ids[..., None] == torch.arange(vocab_size)).double()
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table.double()
def table_gradient(ids, upstream, vocab_size):
    return torch.zeros(vocab_size, upstream.shape[-1]).index_add_(0, ids.flatten(), upstream.flatten(0, 1))
""",
    "NumPy": """
def one_hot(ids, vocab_size): return np.eye(vocab_size, dtype=np.float32)[ids.numpy()]
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table.numpy()
def table_gradient(ids, upstream, vocab_size):
    g = np.zeros((vocab_size, upstream.shape[-1]), np.float32)
    np.add.at(g, ids.numpy(), upstream.numpy())
    return g
""",
}

TOKENS = {
    "a bare parameter under another name": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.d_model, self.pad_id = d_model, pad_id
        self.table = nn.Parameter(torch.randn(vocab_size, d_model) / d_model ** 0.5)
    def forward(self, ids):
        x = self.table[ids] * self.d_model ** 0.5
        return x if self.pad_id is None else x * (ids != self.pad_id)[..., None]
""",
    "padding zeroed through .data, warnings on stderr": """
import warnings
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        warnings.warn('made by hand')
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.embedding.weight.data = torch.randn(vocab_size, d_model) * math.sqrt(1 / d_model)
        if pad_id is not None: self.embedding.weight.data[pad_id].zero_()
    def forward(self, ids):
        print('ids', tuple(ids.shape))
        out = self.embedding(ids)
        out *= math.sqrt(self.embedding.embedding_dim)
        return out
""",
    "a subclass, by one-hot products, with load_reference": """
class TokenEmbedding(nn.Embedding):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.weight, 0, d_model ** -0.5)
        self._fill_padding_idx_with_zero()
    def load_reference(self, weights):
        self.load_state_dict({'weight': weights['embedding.weight']})
    def forward(self, ids):
        return super().forward(ids) * self.embedding_dim ** 0.5
""",
    "float64": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, dtype=torch.float64)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.randn(vocab_size, d_model) / d_model ** 0.5)
            if pad_id is not None: self.embedding.weight[pad_id] *= 0
    def forward(self, ids): return self.embedding(ids).mul(self.embedding.embedding_dim ** 0.5)
""",
}

PATCHES = {
    "loops": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape
    if h % patch_size or w % patch_size: raise ValueError((h, w, patch_size))
    out = []
    for i in range(0, h, patch_size):
        for j in range(0, w, patch_size):
            out.append(images[:, :, i:i + patch_size, j:j + patch_size].reshape(b, -1))
    return torch.stack(out, dim=1)
""",
    "view and permute": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape; p = patch_size
    if (h % p) + (w % p) > 0: raise ValueError('no')
    return images.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
""",
    "einsum": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape; p = patch_size
    if h % p or w % p: raise ValueError('no')
    return torch.einsum('bchpwq->bhwcpq', images.reshape(b, c, h // p, p, w // p, p)).flatten(3).flatten(1, 2)
""",
    "NumPy": """
def image_to_patches(images, patch_size):
    x = images.numpy(); b, c, h, w = x.shape; p = patch_size
    if h % p or w % p: raise ValueError('no')
    rows = [np.concatenate(np.split(band, w // p, axis=3), axis=0) for band in np.split(x, h // p, axis=2)]
    return np.stack([r.reshape(w // p, b, -1).swapaxes(0, 1) for r in rows], 1).reshape(b, -1, c * p * p)
""",
    "a view that is not contiguous": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape; p = patch_size
    if h % p or w % p: raise ValueError('no')
    out = [images[:, :, i:i + p, j:j + p].flatten(1) for i in range(0, h, p) for j in range(0, w, p)]
    return torch.stack(out, dim=-1).transpose(1, 2)
""",
}

CONVOLUTION = """
def as_convolution(embedding):
    p, w = embedding.patch_size, embedding.projection.weight
    conv = nn.Conv2d(w.shape[1] // p ** 2, len(w), p, p)
    conv.load_state_dict({'weight': w.detach().view(*conv.weight.shape), 'bias': embedding.projection.bias.detach()})
    return conv
"""
PATCH_MODULES = {
    "a linear layer": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size ** 2, d_model)
    def forward(self, images):
        if images.shape[-1] != self.image_size or images.shape[-2] != self.image_size: raise ValueError('size')
        return self.projection(image_to_patches(images, self.patch_size))
"""
    + CONVOLUTION,
    "the linear layer's weight as a kernel": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.projection = nn.Linear(channels * patch_size ** 2, d_model)
    def forward(self, images):
        if images.shape[-2:] != (self.image_size,) * 2: raise ValueError('size')
        w = self.projection.weight.view(-1, self.channels, self.patch_size, self.patch_size)
        return nn.functional.conv2d(images, w, self.projection.bias, stride=self.patch_size).flatten(2).mT
"""
    + CONVOLUTION,
    "a convolution, through load_reference": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size = image_size
        self.projection = nn.Conv2d(channels, d_model, patch_size, patch_size)
    def load_reference(self, weights):
        with torch.no_grad():
            self.projection.weight.copy_(weights['projection.weight'].view_as(self.projection.weight))
            self.projection.bias.copy_(weights['projection.bias'])
    def forward(self, images):
        if images.shape[-2:] != (self.image_size,) * 2: raise ValueError('size')
        return self.projection(images).flatten(2).transpose(1, 2)
def as_convolution(embedding): return embedding.projection
""",
}

SHAPES = {
    "tuples": """
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
def patch_shapes(height, width, channels, patch_size, d_model):
    n = (height // patch_size) * (width // patch_size)
    return (n, channels * patch_size ** 2), (n, d_model), d_model * (channels * patch_size ** 2 + 1)
""",
    "lists and torch.Size": """
shape_of_patches, shape_of_vectors, num_parameters = [196, 256], torch.Size([196, 512]), torch.tensor(131584)
def patch_shapes(height, width, channels, patch_size, d_model):
    m = nn.Linear(channels * patch_size ** 2, d_model)
    n = torch.zeros(height, width)[::patch_size, ::patch_size].numel()
    return [[n, m.in_features], torch.zeros(n, d_model).shape, sum(p.numel() for p in m.parameters())]
""",
    "NumPy integers": """
shape_of_patches, shape_of_vectors, num_parameters = (np.int64(196), 256), (196, np.int32(512)), np.int64(131584)
def patch_shapes(height, width, channels, patch_size, d_model):
    n = np.prod([height, width]) // patch_size ** 2
    return (n, channels * patch_size ** 2), (n, d_model), np.int64(channels * patch_size ** 2 * d_model + d_model)
""",
}

RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in {
        "one_hot_lookup": ONE_HOT,
        "token_embedding": TOKENS,
        "image_to_patches": PATCHES,
        "patch_embedding": PATCH_MODULES,
        "shapes": SHAPES,
    }.items()
    for style, source in styles.items()
]


@pytest.mark.parametrize("exercise, source", RIGHT)
def test_right_answer_of_any_style_gets_full_marks(exercise, source):
    outcome = verdict(exercise, source, image_to_patches=image_to_patches)
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
    },
    "image_to_patches": {
        "strips": {"patches", "grid_order", "inner_order"},
        "column_by_column": {"grid_order"},
        "transposed_patch": {"inner_order"},
        "channels_last": {"inner_order"},
        "interleaved": {"patches", "grid_order", "inner_order"},
        "channels_apart": {"patches", "grid_order", "inner_order"},
        "cut_off": {"indivisible"},
    },
    "patch_embedding": {
        "no_bias": {"projected"},
        "strips": {"output"},
        "column_by_column": {"output"},
        "channels_last": {"output"},
        "transposed_output": {"projected", "output"},
        "detached": {"gradients"},
        "any_size": {"size_checked"},
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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"embedding.{exercise}", misconception, claims, seed)


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


def test_calling_what_is_to_be_written_earns_nothing_and_is_said():
    outcome = verdict(
        "one_hot_lookup",
        ONE_HOT["loops"] + "def one_hot(ids, vocab_size): return nn.functional.one_hot(ids, vocab_size).float()",
    )
    assert outcome.points == 0
    assert "your code calls `one_hot`, which this exercise asks you to write yourself" in str(outcome)
