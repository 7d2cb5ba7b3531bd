"""The exercises of chapter 6: right answers of every style pass, wrong ones lose what is wrong and are named."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from encoder_grader.exercises import stacking
from encoder_lib.add_norm import AddNorm, LayerNorm
from encoder_lib.attention import MultiHeadAttention, padding_mask
from encoder_lib.embedding import PatchEmbedding, TokenEmbedding, image_to_patches
from encoder_lib.feed_forward import FeedForward
from encoder_lib.positional_encoding import LearnedPositionalEncoding, SinusoidalPositionalEncoding, sinusoidal_table
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)
GIVEN = {
    each.__name__: each
    for each in (
        AddNorm,
        FeedForward,
        LayerNorm,
        LearnedPositionalEncoding,
        MultiHeadAttention,
        PatchEmbedding,
        SinusoidalPositionalEncoding,
        TokenEmbedding,
        image_to_patches,
        padding_mask,
        sinusoidal_table,
    )
}


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    modules = {"math": math, "np": np, "torch": torch, "nn": nn, "F": nn.functional, "Tensor": torch.Tensor}
    namespace = {**modules, **GIVEN, **answer}
    exec(source, namespace)
    return verdict_on(f"stacking.{name}", namespace, seed)


OWN = {"EncoderLayer": stacking.encoder_layer, "Encoder": stacking.encoder}  # what stands in earlier cells

# --- right answers ----------------------------------------------------------------------------------------------------

LAYERS = {
    "AddNorm": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1, self.add_norm_2 = (AddNorm(d_model, dropout, norm_first) for _ in range(2))
    def attend(self, x): return self.attention(x, mask=self.mask)
    def forward(self, x, mask=None):
        self.mask = mask
        return self.add_norm_2(self.add_norm_1(x, self.attend), self.feed_forward)
""",
    "residuals by hand, through load_reference": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.a, self.f = MultiHeadAttention(d_model, num_heads, dropout=dropout), FeedForward(d_model, d_ff, dropout)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop, self.pre = nn.Dropout(dropout), norm_first
    def load_reference(self, w):
        own = {}
        for name, tensor in w.items():
            name = name.replace('attention.', 'a.').replace('feed_forward.', 'f.')
            name = name.replace('add_norm_1.norm', 'n1').replace('add_norm_2.norm', 'n2')
            own[name.replace('gamma', 'weight').replace('beta', 'bias')] = tensor
        self.load_state_dict(own)
    def forward(self, x, mask=None):
        if self.pre:
            y = self.n1(x)
            x = x + self.drop(self.a(y, y, y, mask))
            return x + self.drop(self.f(self.n2(x)))
        x = self.n1(x + self.drop(self.a(x, x, x, mask)))
        return self.n2(x + self.drop(self.f(x)))
""",
    "fused projections and einsum": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.h, self.pre, self.drop = num_heads, norm_first, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.n1, self.n2 = LayerNorm(d_model), LayerNorm(d_model)
    def load_reference(self, w):
        with torch.no_grad():
            for kind in ('weight', 'bias'):
                joined = torch.cat([w[f'attention.w_{c}.{kind}'] for c in 'qkv'])
                getattr(self.qkv, kind).copy_(joined)
                getattr(self.out, kind).copy_(w['attention.w_o.' + kind])
                getattr(self.up, kind).copy_(w['feed_forward.linear_1.' + kind])
                getattr(self.down, kind).copy_(w['feed_forward.linear_2.' + kind])
            for kind in ('gamma', 'beta'):
                getattr(self.n1, kind).copy_(w['add_norm_1.norm.' + kind])
                getattr(self.n2, kind).copy_(w['add_norm_2.norm.' + kind])
    def attend(self, x, mask):
        q, k, v = (t.unflatten(-1, (self.h, -1)) for t in self.qkv(x).chunk(3, -1))
        s = torch.einsum('bqhd,bkhd->bhqk', q, k) / q.shape[-1] ** 0.5
        if mask is not None: s = s.masked_fill(mask.logical_not(), -1e9)
        c = torch.einsum('bhqk,bkhd->bqhd', self.drop(s.softmax(-1)), v)
        return self.out(c.flatten(2))
    def feed(self, x): return self.down(self.drop(self.up(x).clamp(min=0)))
    def forward(self, x, mask=None):
        for norm, part in ((self.n1, lambda x: self.attend(x, mask)), (self.n2, self.feed)):
            x = x + self.drop(part(norm(x))) if self.pre else norm(x + self.drop(part(x)))
        return x
""",
    "float64, with prints": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, 'relu')
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)
        self.double()
    def forward(self, x, mask=None):
        x = x.double()
        print(x.shape)
        x = self.add_norm_1(x, lambda s: self.attention(s, s, s, mask=mask))
        return self.add_norm_2(x, lambda s: self.feed_forward(s))
""",
}

ENCODERS = {
    "ModuleList": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers): self.layers.append(EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first))
        if norm_first: self.norm = LayerNorm(d_model)
        self.norm_first = norm_first
    def forward(self, x, mask=None):
        for layer in self.layers: x = layer(x, mask)
        if self.norm_first: x = self.norm(x)
        return x
""",
    "Sequential, reduce and torch's norm": """
from functools import reduce
class Encoder(nn.Module):
    def __init__(self, n, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.Sequential(*[EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(n)])
        self.norm = nn.LayerNorm(d_model) if norm_first else (lambda x: x)
    def forward(self, x, mask=None):
        return self.norm(reduce(lambda y, layer: layer(y, mask=mask), self.layers, x))
""",
    "copies, drawn anew": """
import copy
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        for p in self.layers.parameters():
            if p.dim() > 1: nn.init.xavier_uniform_(p)
        self.last = LayerNorm(d_model) if norm_first else nn.Identity()
    def forward(self, x, mask=None):
        for i in range(len(self.layers)): x = self.layers[i](x, mask=mask)
        return self.last(x)
""",
    "recursion over a list that is registered": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        for i, layer in enumerate(self.layers): self.add_module(f'layer_{i}', layer)
        self.final = LayerNorm(d_model) if norm_first else None
    def run(self, x, mask, i):
        return x if i < 0 else self.layers[i](self.run(x, mask, i - 1), mask)
    def forward(self, x, mask=None):
        x = self.run(x, mask, len(self.layers) - 1)
        return self.final(x) if self.final is not None else x
""",
}

TOKENS = {
    "the parts": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, 5000, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
    def embed(self, ids): return self.positions(self.embedding(ids))
    def forward(self, ids): return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
""",
    "nn.Embedding and a table in NumPy": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = nn.Embedding(vocab_size, d_model, padding_idx=pad_id), pad_id
        pos, two_i = np.arange(64)[:, None], np.arange(0, d_model, 2)
        angles = pos / 10000 ** (two_i / d_model)
        table = np.zeros((64, d_model), np.float32)
        table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)[:, :d_model // 2]
        self.register_buffer('table', torch.from_numpy(table))
        self.drop = nn.Dropout(dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
    def embed(self, ids):
        x = self.embedding(ids) * self.embedding.embedding_dim ** 0.5
        return self.drop(x + self.table[:ids.size(1)])
    def forward(self, ids):
        return self.encoder(self.embed(ids), mask=ids.ne(self.pad_id)[:, None, None])
""",
    "one-hot products, a mask for each query": """
class Table(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__(); self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model ** 0.5)
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad, self.p, self.n = Table(vocab_size, d_model), pad_id, dropout, vocab_size
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
    def embed(self, ids):
        x = F.one_hot(ids, self.n).float() @ self.embedding.weight * math.sqrt(self.embedding.weight.shape[1])
        return F.dropout(x + sinusoidal_table(ids.shape[1], x.shape[-1]), self.p, self.training)
    def forward(self, ids):
        mask = (ids != self.pad)[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        return self.encoder(self.embed(ids), mask)
""",
    "float64": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.double()
    def embed(self, ids): return self.positions(self.embedding(ids))
    def forward(self, ids):
        keep = ids != self.pad_id
        return self.encoder(self.embed(ids), keep.unsqueeze(1).unsqueeze(1))
""",
}

PATCHES = {
    "cat and expand": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.positions = LearnedPositionalEncoding((image_size // patch_size) ** 2 + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, True)
    def embed(self, images):
        x = self.embedding(images)
        return self.positions(torch.cat((self.class_token.repeat(x.size(0), 1, 1), x), 1))
    def forward(self, images): return self.encoder(self.embed(images))
""",
    "a convolution, and positions as nn.Embedding": """
class Patches(nn.Module):
    def __init__(self, size, channels, d_model):
        super().__init__(); self.conv = nn.Conv2d(channels, d_model, size, size)
    def load_reference(self, w):
        with torch.no_grad():
            self.conv.weight.copy_(w['projection.weight'].view_as(self.conv.weight))
            self.conv.bias.copy_(w['projection.bias'])
    def forward(self, x): return self.conv(x).flatten(2).mT
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = Patches(patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model))
        self.positions = nn.Embedding((image_size // patch_size) ** 2 + 1, d_model)
        self.drop = nn.Dropout(dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
    def embed(self, images):
        x = self.embedding(images)
        rows = torch.cat([self.class_token + x[:, :1] * 0, x], 1)
        return self.drop(rows + self.positions.weight)
    def forward(self, images): return self.encoder(self.embed(images))
""",
    "padding in front, filled": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.empty(1, 1, d_model).normal_(std=0.02))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
    def embed(self, images):
        rows = F.pad(self.embedding(images), (0, 0, 1, 0))
        first = torch.zeros(rows.shape[1], 1); first[0] = 1
        return self.positions(rows + first * self.class_token)
    def forward(self, images, mask=None): return self.encoder(self.embed(images), mask)
""",
    "float64, image by image": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.ones(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
        self.double()
        self.encoder.register_forward_pre_hook(lambda module, inputs: (inputs[0].double(), *inputs[1:]))
    def embed(self, images):
        rows = [torch.cat([self.class_token, self.embedding(one[None].double())], 1) for one in images]
        return self.positions(torch.cat(rows))
    def forward(self, images): return self.encoder(self.embed(images))
""",
}

NAMES = """
TABLE = {'self_attn.out_proj': 'attention.w_o', 'linear1': 'feed_forward.linear_1', 'linear2': 'feed_forward.linear_2'}
"""
FROM_TORCH = {
    "chunks": NAMES
    + """
def from_torch(state_dict):
    out = {}
    for name, w in state_dict.items():
        head, _, kind = name.rpartition('.')
        if 'in_proj' in name:
            for c, part in zip('qkv', w.chunk(3)): out[f"attention.w_{c}.{name.rsplit('_', 1)[1]}"] = part.clone()
        elif head.startswith('norm'):
            out[f"add_norm_{head[-1]}.norm.{'gamma' if kind == 'weight' else 'beta'}"] = w
        else: out[TABLE[head] + '.' + kind] = w
    return out
""",
    "slices": """
def from_torch(sd):
    d = sd['norm1.weight'].shape[0]
    out = {}
    for kind in ('weight', 'bias'):
        if f'self_attn.in_proj_{kind}' not in sd: continue
        fused = sd[f'self_attn.in_proj_{kind}']
        out[f'attention.w_q.{kind}'], out[f'attention.w_k.{kind}'] = fused[:d], fused[d:2 * d]
        out[f'attention.w_v.{kind}'] = fused[2 * d:]
        out[f'attention.w_o.{kind}'] = sd[f'self_attn.out_proj.{kind}']
        for i in '12':
            out[f'feed_forward.linear_{i}.{kind}'] = sd[f'linear{i}.{kind}']
            out[f"add_norm_{i}.norm.{'gamma' if kind == 'weight' else 'beta'}"] = sd[f'norm{i}.{kind}']
    return out
""",
    "NumPy": """
def from_torch(sd):
    out = {}
    for name, w in sd.items():
        w = w.numpy()
        if 'in_proj' in name:
            for c, part in zip('qkv', np.split(w, 3)): out['attention.w_%s.%s' % (c, name[18:])] = part
            continue
        for a, b in (('self_attn.out_proj', 'attention.w_o'), ('linear', 'feed_forward.linear_'),
                     ('norm1.weight', 'add_norm_1.norm.gamma'), ('norm1.bias', 'add_norm_1.norm.beta'),
                     ('norm2.weight', 'add_norm_2.norm.gamma'), ('norm2.bias', 'add_norm_2.norm.beta')):
            name = name.replace(a, b)
        out[name] = w
    return out
""",
    "regular expressions, an OrderedDict of doubles": """
import re
from collections import OrderedDict
def from_torch(sd):
    out = OrderedDict()
    for name, w in sd.items():
        if m := re.match(r'self_attn.in_proj_(.+)', name):
            q, k, v = w.double().unflatten(0, (3, -1))
            out |= {'attention.w_q.' + m[1]: q, 'attention.w_k.' + m[1]: k, 'attention.w_v.' + m[1]: v}
            continue
        name = re.sub(r'norm(.)[.]weight', r'add_norm_\\1.norm.gamma', name)
        name = re.sub(r'norm(\\d)[.]bias', r'add_norm_\\1.norm.beta', name)
        name = re.sub(r'linear(.)', r'feed_forward.linear_\\1', name)
        out[name.replace('self_attn.out_proj', 'attention.w_o')] = w.double()
    return out
""",
}

MEANS = {
    "einsum": """
def masked_mean(x, mask):
    m = mask.view(x.shape[:2]).to(x.dtype)
    return torch.einsum('bsd,bs->bd', x, m) / m.sum(1, keepdim=True).clamp_min(1)
""",
    "a matrix product of weights": """
def masked_mean(x, mask):
    m = mask.flatten(1).float()
    return ((m / m.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1) @ x).squeeze(1)
""",
    "loops": """
def masked_mean(x, mask):
    rows = []
    for vectors, keep in zip(x, mask.reshape(len(x), -1)):
        rows.append(vectors[keep].mean(0) if keep.any() else vectors.sum(0) * 0)
    return torch.stack(rows)
""",
    "float64, where": """
def masked_mean(x, mask):
    keep = mask.reshape(x.size(0), x.size(1), 1)
    n = keep.sum(1)
    return torch.where(keep, x.double(), 0.0).sum(1) / torch.where(n == 0, 1, n)
""",
}

COUNTS = {
    "formula": """
parameters_of_encoder, output_shape = 85_056_000, (197, 768)
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + (2 * d_model if norm_first else 0)
""",
    "counted modules": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    parts = [MultiHeadAttention(d_model, 1), FeedForward(d_model, d_ff), AddNorm(d_model), AddNorm(d_model)]
    one = sum(p.numel() for part in parts for p in part.parameters())
    return one * num_layers + sum(p.numel() for p in LayerNorm(d_model).parameters()) * norm_first
parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), torch.Size([197, 768])
""",
    "torch's encoder": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = nn.TransformerEncoderLayer(d_model, 1, d_ff, device='meta')
    norm = nn.LayerNorm(d_model, device='meta') if norm_first else None
    encoder = nn.TransformerEncoder(layer, num_layers, norm, enable_nested_tensor=False)
    return torch.tensor(sum(p.numel() for p in encoder.parameters()))
parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), [197, 768]
""",
    "NumPy integers": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    shapes = 4 * [(d_model, d_model), (d_model,)] + [(d_ff, d_model), (d_ff,), (d_model, d_ff), (d_model,)]
    return np.int64(num_layers * sum(np.prod(s) for s in shapes + 4 * [(d_model,)]) + 2 * d_model * int(norm_first))
parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (np.int64(197), np.int64(768))
""",
}

HUNTS = {
    "parity with torch, asserts": """
def examine(candidate):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2,
                                   enable_nested_tensor=False).eval()
    for p in theirs.parameters(): p.data = torch.randn_like(p) / 2
    weights = {}
    for i in range(2):
        sd = theirs.layers[i].state_dict(); at = f'layers.{i}.'
        for kind, ours in (('weight', 'gamma'), ('bias', 'beta')):
            for c, part in zip('qkv', sd['self_attn.in_proj_' + kind].chunk(3)):
                weights[f'{at}attention.w_{c}.{kind}'] = part
            weights[f'{at}attention.w_o.{kind}'] = sd['self_attn.out_proj.' + kind]
            for n in '12':
                weights[f'{at}feed_forward.linear_{n}.{kind}'] = sd[f'linear{n}.{kind}']
                weights[f'{at}add_norm_{n}.norm.{ours}'] = sd[f'norm{n}.{kind}']
    x, keep = torch.randn(4, 6, 8), torch.arange(6) < torch.tensor([[6], [3], [1], [5]])
    want = theirs(x, src_key_padding_mask=~keep)[keep]
    assert ((candidate(x, weights, keep[:, None, None])[keep] - want).abs() < 1e-3).all()
""",
    "returns a truth value": """
def examine(candidate):
    g = torch.Generator().manual_seed(3)
    x, w = torch.randn(3, 4, 6, generator=g), stacking.draw_weights(5)
    keep = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    got = candidate(x, w, keep[:, None, None, :])
    return bool(torch.isclose(got, stacking.by_library(x, w, keep[:, None, None, :]), atol=1e-3)[keep].all())
""",
    "looks at training, too": """
def examine(candidate):
    torch.manual_seed(0)
    x, w = torch.randn(3, 4, 6), stacking.draw_weights(5)
    if torch.equal(candidate(x, w, training=True), candidate(x, w, training=True)): return False
    mask = torch.ones(3, 1, 1, 4, dtype=torch.bool); mask[0, 0, 0, 2:] = False
    got, want = candidate(x, w, mask=mask), stacking.by_hand()(x, w, mask)
    np.testing.assert_allclose(got[0, :2].numpy(), want[0, :2].numpy(), atol=1e-4)
    np.testing.assert_allclose(got[1:].numpy(), want[1:].numpy(), atol=1e-4)
""",
    "raises errors of its own": """
class Wrong(Exception): pass
def examine(candidate):
    torch.manual_seed(1)
    for seed in range(2):
        x, w = torch.randn(2, 5, 6), stacking.draw_weights(seed)
        mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])[:, None, None]
        off = (candidate(x, w, mask) - stacking.by_library(x, w, mask)).abs()
        if off[0].max() > 1e-3 or off[1, :2].max() > 1e-3: raise Wrong(seed)
""",
}

RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in {
        "encoder_layer": LAYERS,
        "encoder": ENCODERS,
        "token_encoder": TOKENS,
        "patch_encoder": PATCHES,
        "from_torch": FROM_TORCH,
        "masked_mean": MEANS,
        "counting": COUNTS,
        "bug_hunt": HUNTS,
    }.items()
    for style, source in styles.items()
]


@pytest.mark.parametrize("exercise, source", RIGHT)
def test_right_answer_of_any_style_gets_full_marks(exercise, source):
    outcome = verdict(exercise, source, stacking=stacking, **OWN)
    assert outcome.points == outcome.maximum, outcome


@pytest.mark.parametrize("style", LAYERS)
def test_the_encoder_is_judged_with_layers_of_any_style(style):
    for exercise, source in (("encoder", ENCODERS["ModuleList"]), ("token_encoder", TOKENS["the parts"])):
        source = LAYERS[style] + ENCODERS["ModuleList"] + source
        outcome = verdict(exercise, source)
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
        "always_input": {"own_parameters", "chained", "mask", "final_norm"},  # two layers of three have no say
        "last_missing": {"own_parameters", "chained", "mask", "final_norm"},  # one layer of three has no say
    },
    "token_encoder": {
        "no_scale": {"scaled"},
        "scaled_twice": {"scaled"},
        "positions_scaled": {"positions"},
        "no_positions": {"positions"},
        "learned": {"positions"},
        "no_dropout": {"dropout"},
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
        "post_norm": {"layers"},
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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"stacking.{exercise}", misconception, claims, seed)


def test_several_mistakes_at_once_are_each_called_by_their_own_name():
    """One layer again and again, without the mask, and a norm behind it: nothing here gets the encoder's input."""
    entry = find("stacking.encoder")
    answer = stacking._encoder(
        layers=lambda make, n: nn.ModuleList([make()] * n), masked=lambda number: False, norm=True
    )
    results = verdict_on(entry.name, entry.reference | answer, SEEDS[0]).results
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
        assert verdict("encoder", ENCODERS["ModuleList"], **wrong).points == 5
        source = ENCODERS["ModuleList"] + TOKENS["the parts"] + PATCHES["cat and expand"]
        assert verdict("token_encoder", source, **wrong).points == 5
        assert verdict("patch_encoder", source, **wrong).points == 5


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
    "from_torch": FROM_TORCH["slices"].replace("return out", "return {n: w * 0 for n, w in out.items()}"),
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
