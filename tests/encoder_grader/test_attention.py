"""The exercises of chapter 3: right answers of every style pass, wrong ones lose what is wrong and are named."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find
from encoder_lib import attention as library
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "F": F, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"attention.{name}", namespace, seed)


# --- right answers ------------------------------------------------------------------------------------------------

SOFTMAX = {
    "maximum subtracted": """
def softmax(scores, dim=-1):
    e = (scores - scores.max(dim=dim, keepdim=True)[0]).exp()
    return e / e.sum(dim=dim, keepdim=True)
""",
    "logarithms": """
def softmax(scores, dim=-1):
    top = scores.amax(dim, keepdim=True)
    return torch.exp(scores - top - (scores - top).exp().sum(dim, keepdim=True).log())
""",
    "NumPy": """
def softmax(scores, dim=-1):
    x = scores.numpy()
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)
""",
    "float64 and moved axes": """
def softmax(scores, dim=-1):
    x = scores.double().movedim(dim, 0)
    e = torch.exp(x - x.max(0).values)
    return (e / e.sum(0)).movedim(0, dim)
""",
    "loops": """
def softmax(scores, dim=-1):
    rows = []
    x = scores.transpose(dim, -1)
    for row in x.reshape(-1, x.shape[-1]):
        e = [math.exp(s - max(row.tolist())) for s in row.tolist()]
        rows.append([each / sum(e) for each in e])
    return torch.tensor(rows).reshape(x.shape).transpose(dim, -1)
""",
}

ATTENTION = {
    "-inf only where a key is left": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.mT / query.size(-1) ** 0.5
    if mask is None: return s.softmax(-1) @ value, s.softmax(-1)
    some = mask.any(-1, keepdim=True)
    w = s.masked_fill(~(mask | ~some), float('-inf')).softmax(-1) * some
    return w @ value, w
""",
    "einsum, exponentials and where": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = torch.einsum('...id,...jd->...ij', query, key) / math.sqrt(key.shape[-1])
    e = torch.exp(s - s.amax(-1, keepdim=True))
    if mask is not None: e = torch.where(mask, e, 0.0)
    w = e / e.sum(-1, keepdim=True).clamp(min=1e-20)
    return torch.einsum('...ij,...jv->...iv', w, value), w
""",
    "float64, a scaled query, results as a list": """
def scaled_dot_product_attention(query, key, value, mask=None):
    q, k, v = (t.double() for t in (query, key, value))
    s = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is None: mask = torch.ones(s.shape, dtype=torch.bool)
    w = torch.softmax(torch.where(mask, s, -1e30), dim=-1) * mask
    return [w @ v, w]
""",
    "-inf, NaN replaced where masked_fill has stopped the gradient": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None: s = s.masked_fill(mask == False, float('-inf'))
    w = F.softmax(s, dim=-1).nan_to_num(0.0)
    return torch.matmul(w, value), w
""",
    "a loop over the queries": """
def scaled_dot_product_attention(query, key, value, mask=None):
    rows, d_k, seq_k = [], query.shape[-1], key.shape[-2]
    may = None if mask is None else mask.expand(*query.shape[:-1], seq_k)
    for i in range(query.shape[-2]):
        s = (query[..., i:i + 1, :] * key).sum(-1) / math.sqrt(d_k)
        if may is not None: s = s.masked_fill(~may[..., i, :], -1e9)
        w = F.softmax(s, -1)
        rows.append(w if may is None else w * may[..., i, :])
    w = torch.stack(rows, -2)
    return w @ value, w
""",
}

MASKS = {
    "comparisons": """
def padding_mask(ids, pad_id): return (ids != pad_id)[:, None, None, :]
def causal_mask(seq): return torch.ones(seq, seq, dtype=torch.bool).tril()
def causal_padding_mask(ids, pad_id): return padding_mask(ids, pad_id) & causal_mask(ids.size(1))
""",
    "logical functions": """
def padding_mask(ids, pad_id): return torch.logical_not(ids == pad_id).unsqueeze(1).unsqueeze(2)
def causal_mask(seq): return ~torch.triu(torch.ones(seq, seq), diagonal=1).bool()
def causal_padding_mask(ids, pad_id):
    return torch.logical_and(padding_mask(ids, pad_id), causal_mask(ids.shape[-1]).view(1, 1, *ids.shape[1:] * 2))
""",
    "loops": """
def padding_mask(ids, pad_id): return torch.tensor([[[[i != pad_id for i in row]]] for row in ids.tolist()])
def causal_mask(seq): return torch.tensor([[j <= i for j in range(seq)] for i in range(seq)])
def causal_padding_mask(ids, pad_id):
    n = ids.shape[1]
    return torch.tensor([[[[j <= i and row[j] != pad_id for j in range(n)] for i in range(n)]] for row in ids.tolist()])
""",
    "NumPy": """
def padding_mask(ids, pad_id): return (ids.numpy() != pad_id)[:, None, None, :]
def causal_mask(seq): return np.tri(seq, dtype=bool)
def causal_padding_mask(ids, pad_id): return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
}

HEADS = {
    "view and transpose": """
def split_heads(x, num_heads):
    b, s, d = x.shape
    if d % num_heads: raise ValueError(f'{d} {num_heads}')
    return x.view(b, s, num_heads, -1).transpose(1, 2)
def merge_heads(x):
    b, h, s, d = x.shape
    return x.transpose(1, 2).contiguous().view(b, s, h * d)
""",
    "chunks": """
def split_heads(x, num_heads):
    if x.shape[-1] / num_heads != x.shape[-1] // num_heads: raise ValueError('no')
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)
def merge_heads(x): return torch.cat(x.unbind(1), dim=-1)
""",
    "einsum": """
class Indivisible(ValueError): pass
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads: raise Indivisible('no')
    return torch.einsum('bshd->bhsd', x.reshape(*x.shape[:2], num_heads, x.shape[-1] // num_heads))
def merge_heads(x): return torch.einsum('bhsd->bshd', x).flatten(2)
""",
    "NumPy and slices": """
def split_heads(x, num_heads):
    x, d = x.numpy(), x.shape[-1] // num_heads
    if d * num_heads != x.shape[-1]: raise ValueError('no')
    return np.stack([x[..., j * d:(j + 1) * d] for j in range(num_heads)], 1)
def merge_heads(x): return np.concatenate(list(x.numpy().swapaxes(0, 1)), -1)
""",
}

MODULES = {
    "einsum over heads": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.p = num_heads, dropout
        for name in 'qkvo': setattr(self, 'w_' + name, nn.Linear(d_model, d_model))
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        if key is None: key = query
        if value is None: value = key
        q, k, v = (w(x).unflatten(-1, (self.h, -1)) for w, x in
                   ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        s = torch.einsum('bqhd,bkhd->bhqk', q, k) / math.sqrt(q.shape[-1])
        if mask is not None: s = s.masked_fill(~mask, -1e9)
        a = F.dropout(s.softmax(-1), self.p, self.training)
        out = self.w_o(torch.einsum('bhqk,bkhd->bqhd', a, v).flatten(2))
        return (out, a) if need_weights else out
""",
    "one fused matrix, by load_reference": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = num_heads, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
    def load_reference(self, w):
        self.load_state_dict({
            'qkv.weight': torch.cat([w['w_q.weight'], w['w_k.weight'], w['w_v.weight']]),
            'qkv.bias': torch.cat([w['w_q.bias'], w['w_k.bias'], w['w_v.bias']]),
            'out.weight': w['w_o.weight'], 'out.bias': w['w_o.bias']})
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        d = query.shape[-1]
        q, k, v = (F.linear(x, self.qkv.weight[i * d:][:d], self.qkv.bias[i * d:][:d]) for i, x in
                   enumerate((query, key, value)))
        q, k, v = (torch.stack(x.split(d // self.h, -1), 1) for x in (q, k, v))
        _, a = scaled_dot_product_attention(q, k, v, mask)
        out = self.out(torch.cat((self.drop(a) @ v).unbind(1), -1))
        return [out, a] if need_weights else out
""",
    "a loop over the heads": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.d_k, self.h = d_model // num_heads, num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = [nn.Linear(d_model, d_model) for _ in range(4)]
        self.drop = nn.Dropout(dropout)
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = key if key is not None else query
        value = value if value is not None else key
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        outs, ws = [], []
        full = None if mask is None else mask.expand(len(q), self.h, q.shape[1], k.shape[1])
        for j in range(self.h):
            part = slice(j * self.d_k, (j + 1) * self.d_k)
            s = torch.bmm(q[..., part], k[..., part].transpose(1, 2)) / self.d_k ** 0.5
            if full is not None: s = s.masked_fill(full[:, j].logical_not(), float('-inf'))
            w = s.softmax(-1)
            ws.append(w); outs.append(torch.bmm(self.drop(w), v[..., part]))
        out = self.w_o(torch.cat(outs, -1))
        return (out, torch.stack(ws, 1)) if need_weights else out
""",
    "float64": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = num_heads, nn.Dropout(dropout)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, dtype=torch.float64) for _ in range(4))
    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (split_heads(w(x.double()), self.h) for w, x in
                   ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        _, w = scaled_dot_product_attention(q, k, v, mask)
        out = self.w_o(merge_heads(self.drop(w) @ v))
        return (out, w) if need_weights else out
""",
}

COUNTS = {
    "tuples": """
shape_of_scores, bytes_of_scores, num_parameters = (1, 8, 196, 196), 1229312, 1050624
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), batch * num_heads * seq * seq * 4, 4 * d_model ** 2 + 4 * d_model
""",
    "tensors and modules": """
shape_of_scores = torch.Size([1, 8, 196, 196])
bytes_of_scores, num_parameters = torch.tensor(1229312), torch.tensor(1050624)
def attention_counts(batch, seq, d_model, num_heads):
    scores = torch.zeros(batch, num_heads, seq, seq)
    w = [nn.Linear(d_model, d_model) for _ in range(4)]
    return [scores.shape, scores.numel() * scores.element_size(), sum(p.numel() for m in w for p in m.parameters())]
""",
    "NumPy integers": """
shape_of_scores, bytes_of_scores, num_parameters = [1, 8, np.int64(196), 196], np.int64(1229312), np.int64(1050624)
def attention_counts(batch, seq, d_model, num_heads):
    s = np.zeros((batch, num_heads, seq, seq), np.float32)
    return s.shape, s.nbytes, np.int64(4 * d_model * (d_model + 1))
""",
    "a list for the shape": """
shape_of_scores, bytes_of_scores, num_parameters = [1, 8, 196, 196], 4 * 8 * 196 ** 2, 1050624
def attention_counts(batch, seq, d_model, num_heads):
    return [batch, num_heads, seq, seq], num_heads * seq ** 2 * batch << 2, 4 * (d_model + d_model ** 2)
""",
}

REPAIRED = {
    "the class with its faults mended": """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.shape[-1])
    return torch.matmul(torch.softmax(scores, dim=-1), V)
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
    def forward(self, x):
        n = x.size(0)
        q, k, v = (w(x).view(n, -1, self.h, self.d_k).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(self_attention(q, k, v).transpose(1, 2).reshape(n, -1, self.h * self.d_k))
""",
    "heads one by one, without biases": """
def self_attention(Q, K, V):
    d_k = K.size(-1)
    return ((Q / d_k ** 0.5) @ K.mT).softmax(-1) @ V
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        for name in ('w_q', 'w_k', 'w_v', 'w_o'): self.add_module(name, nn.Linear(d_model, d_model, bias=False))
    def forward(self, x):
        parts = zip(*(w(x).chunk(self.h, -1) for w in (self.w_q, self.w_k, self.w_v)))
        return self.w_o(torch.cat([self_attention(q, k, v) for q, k, v in parts], dim=-1))
""",
    "einsum": """
def self_attention(Q, K, V):
    s = torch.einsum('...id,...jd->...ij', Q, K) * Q.shape[-1] ** -0.5
    e = (s - s.amax(-1, keepdim=True)).exp()
    return torch.einsum('...ij,...jd->...id', e / e.sum(-1, keepdim=True), V)
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
    def forward(self, x):
        heads = [w(x).unflatten(-1, (self.h, -1)).permute(0, 2, 1, 3) for w in (self.w_q, self.w_k, self.w_v)]
        return self.w_o(self_attention(*heads).permute(0, 2, 1, 3).flatten(-2))
""",
    "one fused matrix, by load_reference, in float64": """
def self_attention(Q, K, V):
    return (Q.double() @ K.double().transpose(-2, -1) / math.sqrt(Q.shape[-1])).softmax(-1) @ V.double()
class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d = h, d_model
        self.all = nn.Parameter(torch.randn(d_model, 3 * d_model, dtype=torch.float64))
        self.last = nn.Parameter(torch.randn(d_model, d_model, dtype=torch.float64))
    def load_reference(self, w):
        self.all.data = torch.cat([w['w_' + n + '.weight'].T for n in 'qkv'], 1).double()
        self.last.data = w['w_o.weight'].T.double()
    def forward(self, x):
        q, k, v = (x.double() @ self.all).reshape(*x.shape[:2], 3, self.h, -1).permute(2, 0, 3, 1, 4)
        return self_attention(q, k, v).transpose(1, 2).reshape(x.shape) @ self.last
""",
}

HUNTS = {
    "against a formula": """
def examine_attention(attention):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 6), torch.randn(2, 4, 5, 6), torch.randn(2, 4, 5, 6)
    mask = torch.rand(2, 1, 3, 5) < 0.5
    mask[..., 1] = True
    for m in (None, mask):
        s = q @ k.mT / 6 ** 0.5
        w = (s if m is None else s.masked_fill(~m, -1e9)).softmax(-1)
        context, weights = attention(q, k, v, m)
        assert torch.allclose(weights, w, atol=1e-5)
        assert torch.allclose(context, w @ v, atol=1e-5)
""",
    "against torch, by returning False": """
def examine_attention(attention):
    q, k, v = torch.randn(1, 3, 4, 5), torch.randn(1, 3, 7, 5), torch.randn(1, 3, 7, 5)
    mask = torch.ones(4, 7, dtype=torch.bool).tril(2)
    return all(torch.allclose(attention(q, k, v, mask=m)[0], F.scaled_dot_product_attention(q, k, v, m), atol=1e-4)
               for m in (None, mask))
""",
    "by hand": """
def examine_attention(attention):
    q = torch.zeros(1, 2, 2, 4); k = torch.zeros(1, 2, 2, 4); v = torch.zeros(1, 2, 2, 4)
    q[..., 0, 0] = 2.0; k[..., 0, 0] = math.log(3.0); v[..., 0, 1] = 4.0
    _, w = attention(q, k, v)
    torch.testing.assert_close(w[0, 0], torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    _, w = attention(q, k, v, torch.tensor([[True, False], [True, True]]))
    torch.testing.assert_close(w[0, 1], torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
""",
    "with a value of another width": """
def examine_attention(attention):
    q, k, v = torch.randn(1, 3, 4, 5), torch.randn(1, 3, 7, 5), torch.randn(1, 3, 7, 8)
    mask = torch.rand(3, 4, 7) < 0.6
    mask[..., 0] = True
    right = F.scaled_dot_product_attention(q, k, v)
    assert (attention(q, k, v)[0] - right).abs().max() < 1e-4
    right = F.scaled_dot_product_attention(q, k, v, mask)
    if (attention(q, k, v, mask)[0] - right).abs().max() > 1e-4: raise RuntimeError('masked')
""",
}

RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in {
        "softmax": SOFTMAX,
        "scaled_dot_product_attention": ATTENTION,
        "masks": MASKS,
        "heads": HEADS,
        "multi_head_attention": MODULES,
        "counts": COUNTS,
        "repair": REPAIRED,
        "bug_hunt": HUNTS,
    }.items()
    for style, source in styles.items()
]
GIVEN = {
    "scaled_dot_product_attention": library.scaled_dot_product_attention,
    "split_heads": library.split_heads,
    "merge_heads": library.merge_heads,
}


@pytest.mark.parametrize("exercise, source", RIGHT)
def test_right_answer_of_any_style_gets_full_marks(exercise, source):
    outcome = verdict(exercise, source, **GIVEN)
    assert outcome.points == outcome.maximum, outcome


# --- wrong answers ------------------------------------------------------------------------------------------------

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
        "no_bias": {"values", "merged"},
        "keys_as_queries": {"heads", "scale", "gradients"},
        "weights_averaged": {"heads", "scale", "merged", "masked"},  # there are no weights of a head to look at
        "values_from_query": {"crossed"},
        "value_ignored": {"crossed"},
        "keys_from_value": {"crossed"},
        "mask_ignored": {"masked"},
        "mask_inverted": {"masked"},
        "dropout_always": {"dropped"},
        "dropout_never": {"dropped"},
        "dropout_on_output": {"dropped"},
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
        "copies": {"right"},
        "no_projections": {"projections", "right"},
        "one_projection": {"projections", "right"},
        "no_w_o": {"projections", "right"},
        "no_scale": {"function", "right"},
        "sqrt_d_model": {"right"},
    },
    "bug_hunt": {
        "shapes_only": EVERY_BUG,
        "sums_only": EVERY_BUG - {"over_queries", "masked_after"},
        "zeros_only": EVERY_BUG - {"mask_inverted"},
        "no_mask": {"mask_inverted", "masked_after"},
        "one_head": {"sqrt_d_model"},
        "same_for_all": {"values_compared"},
        "exactly": EVERY_BUG | {"right_passes"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("attention", COST)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"attention.{exercise}", misconception, claims, seed)


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
