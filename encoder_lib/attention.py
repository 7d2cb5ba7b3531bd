"""Chapter 3: letting each position look at the others."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from encoder_lib._checks import check_dropout, check_positive, check_width

# In every mask True means: this query may attend to this key.


def padding_mask(ids: Int[Tensor, "batch seq_k"], pad_id: int) -> Bool[Tensor, "batch 1 1 seq_k"]:
    """Allow every key but the padding, for all heads and all queries.

    Args:
        ids: (batch, seq_k).
        pad_id: the id that marks padding.

    Returns:
        (batch, 1, 1, seq_k), True = may attend.

    Source: book chapter 3.
    """
    return (ids != pad_id)[:, None, None, :]  # (batch, 1, 1, seq_k)


def causal_mask(
    seq_q: int, seq_k: int | None = None, device: torch.device | str | None = None
) -> Bool[Tensor, "seq_q seq_k"]:
    """Allow query i the keys 0 to i: the present and the past.

    Args:
        seq_q: the number of queries.
        seq_k: the number of keys, or None for as many as queries.
        device: where the mask is made, or None for torch's default.

    Returns:
        (seq_q, seq_k), True = may attend.

    Raises:
        ValueError: a length is below 1.

    Source: Vaswani et al. 2017, section 3.2.3; book chapter 3.
    """
    seq_k = seq_q if seq_k is None else seq_k
    check_positive(seq_q=seq_q, seq_k=seq_k)
    return torch.ones(seq_q, seq_k, dtype=torch.bool, device=device).tril()  # (seq_q, seq_k)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Allow what every mask allows.

    Args:
        masks: boolean masks that broadcast together; None stands for one that allows all.

    Returns:
        the mask of the shape they broadcast to, or None if all are None.

    Raises:
        ValueError: a mask is not boolean, or the masks do not broadcast.

    Source: book chapter 3.
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        _check_boolean(mask)
        try:
            combined = mask if combined is None else combined & mask
        except RuntimeError:
            shapes = f"{tuple(combined.shape)} and {tuple(mask.shape)}"
            raise ValueError(f"masks of shapes {shapes} do not broadcast") from None
    return combined


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch seq_q d_k"],
    key: Float[Tensor, "*batch seq_k d_k"],
    value: Float[Tensor, "*batch seq_k d_v"],
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "*batch seq_q d_v"], Float[Tensor, "*batch seq_q seq_k"]]:
    r"""Average the values, each weighted by how well its key fits the query.

    $\mathrm{Attention}(Q, K, V) = \mathrm{softmax}(QK^\top / \sqrt{d_k})\,V$

    Args:
        query: (..., seq_q, d_k).
        key: (..., seq_k, d_k).
        value: (..., seq_k, d_v).
        mask: boolean, broadcasts to (..., seq_q, seq_k), True = may attend.
        dropout: the probability with which a weight becomes zero, in every call.

    Returns:
        context: (..., seq_q, d_v); zero for a query that may attend to nothing.
        weights: (..., seq_q, seq_k), after dropout.

    Raises:
        ValueError: the shapes do not fit, or the mask is not boolean or does not broadcast.

    Source: Vaswani et al. 2017, section 3.2.1; book chapter 3.
    """
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
        raise ValueError(f"{shapes}: query and key must share d_k, key and value must share seq_k")
    # the variance of q·k is d_k, so divide by sqrt(d_k)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., seq_q, seq_k)
    if mask is not None:
        _check_mask(mask, scores.shape)
        # not -inf: a row of nothing else would be NaN on its way, in values and in gradients
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)  # (..., seq_q, seq_k)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # a row that may attend to nothing was uniform
    weights = F.dropout(weights, dropout)
    return weights @ value, weights  # (..., seq_q, d_v), (..., seq_q, seq_k)


def split_heads(x: Float[Tensor, "batch seq d_model"], num_heads: int) -> Float[Tensor, "batch num_heads seq d_k"]:
    """Cut the last axis into heads.

    Args:
        x: (batch, seq, d_model).
        num_heads: the number of heads; it divides d_model.

    Returns:
        (batch, num_heads, seq, d_k) with d_k = d_model / num_heads.

    Raises:
        ValueError: d_model is not divisible by num_heads.

    Source: Vaswani et al. 2017, section 3.2.2; book chapter 3.
    """
    batch, seq, d_model = x.shape
    _check_heads(d_model, num_heads)
    heads = x.reshape(batch, seq, num_heads, d_model // num_heads)  # (batch, seq, num_heads, d_k)
    return heads.transpose(1, 2)  # (batch, num_heads, seq, d_k)


def merge_heads(x: Float[Tensor, "batch num_heads seq d_k"]) -> Float[Tensor, "batch seq d_model"]:
    """Put the heads side by side again.

    Args:
        x: (batch, num_heads, seq, d_k).

    Returns:
        (batch, seq, d_model) with d_model = num_heads·d_k.

    Source: Vaswani et al. 2017, section 3.2.2; book chapter 3.
    """
    batch, num_heads, seq, d_k = x.shape
    return x.transpose(1, 2).reshape(batch, seq, num_heads * d_k)  # (batch, seq, d_model)


class MultiHeadAttention(nn.Module):
    r"""Attend with several heads at once, each in its own projections of all of the input.

    $\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, …, \mathrm{head}_h)\,W^O$ with
    $\mathrm{head}_j = \mathrm{Attention}(QW_j^Q, KW_j^K, VW_j^V)$; `w_q` holds all the $W_j^Q$ side by side.

    Args:
        d_model: the width of inputs and output.
        num_heads: the number of heads; each is d_k = d_model / num_heads wide.
        dropout: the probability with which a weight becomes zero, in training.
        bias: whether the four projections add a bias.

    Raises:
        ValueError: d_model is not divisible by num_heads, `dropout` is no probability; when called, an
            input has another width, or the mask is not boolean or does not broadcast.

    Source: Vaswani et al. 2017, section 3.2.2; book chapter 3.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        _check_heads(d_model, num_heads)
        check_dropout(dropout)
        self.d_model, self.num_heads, self.dropout = d_model, num_heads, dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, bias=bias) for _ in range(4))
        for projection in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Float[Tensor, "batch seq_q d_model"],
        key: Float[Tensor, "batch seq_k d_model"] | None = None,
        value: Float[Tensor, "batch seq_k d_model"] | None = None,
        mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> (
        Float[Tensor, "batch seq_q d_model"]
        | tuple[Float[Tensor, "batch seq_q d_model"], Float[Tensor, "batch num_heads seq_q seq_k"]]
    ):
        """Attend from `query` to `key`; without a key to `query` itself: self-attention.

        Args:
            query: (batch, seq_q, d_model).
            key: (batch, seq_k, d_model), or None for `query`.
            value: (batch, seq_k, d_model), or None for `key`.
            mask: boolean, broadcasts to (batch, num_heads, seq_q, seq_k), True = may attend.
            need_weights: ask for the weights, too; without them torch's fused kernel does the work.

        Returns:
            (batch, seq_q, d_model), and with `need_weights` the weights (batch, num_heads, seq_q, seq_k).
        """
        key = query if key is None else key
        value = key if value is None else value
        for x in (query, key, value):
            check_width(x, self.d_model)
        query = split_heads(self.w_q(query), self.num_heads)  # (batch, num_heads, seq_q, d_k)
        key = split_heads(self.w_k(key), self.num_heads)  # (batch, num_heads, seq_k, d_k)
        value = split_heads(self.w_v(value), self.num_heads)  # (batch, num_heads, seq_k, d_k)
        if mask is not None and mask.dim() == 3:
            raise ValueError(f"a mask of shape {tuple(mask.shape)} could mean batch or heads: give it four axes")
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            context, weights = scaled_dot_product_attention(query, key, value, mask, dropout)
            return self.w_o(merge_heads(context)), weights
        return self.w_o(merge_heads(_fused_attention(query, key, value, mask, dropout)))


def _fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    _check_mask(mask, (*query.shape[:-1], key.shape[-2]))
    attends = mask.any(dim=-1, keepdim=True)  # (..., seq_q, 1)
    # torch's kernels disagree on a row without a key (zeros or NaN): give it all keys, then take zero
    context = F.scaled_dot_product_attention(query, key, value, mask | ~attends, dropout_p=dropout)
    return context.masked_fill(~attends, 0.0)  # (batch, num_heads, seq_q, d_k)


def _check_heads(d_model: int, num_heads: int) -> None:
    check_positive(d_model=d_model, num_heads=num_heads)
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")


def _check_boolean(mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask of dtype {mask.dtype} must be boolean, True = may attend")


def _check_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    _check_boolean(mask)
    try:
        mask.expand(scores_shape)
    except RuntimeError:
        raise ValueError(
            f"a mask of shape {tuple(mask.shape)} does not broadcast to {tuple(scores_shape)}"
        ) from None
