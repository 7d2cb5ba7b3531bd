"""Chapter 2: telling the encoder where each vector stands."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from encoder_lib._checks import check_dropout, check_positive, check_width


def sinusoidal_table(
    num_positions: int, d_model: int, dtype: torch.dtype | None = None
) -> Float[Tensor, "num_positions d_model"]:
    r"""Tabulate one sine and one cosine for each pair of columns, ever slower from left to right.

    $PE_{pos,\,2i} = \sin(pos / 10000^{2i/d_\text{model}})$ and
    $PE_{pos,\,2i+1} = \cos(pos / 10000^{2i/d_\text{model}})$.
    For odd d_model the last column is a sine without its cosine.

    Args:
        num_positions: the number of rows.
        d_model: the number of columns.
        dtype: the type of the result, or None for torch's default; the angles are float64 always.

    Returns:
        (num_positions, d_model).

    Raises:
        ValueError: a size is below 1.

    Source: Vaswani et al. 2017, section 3.5; book chapter 2.
    """
    check_positive(num_positions=num_positions, d_model=d_model)
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]  # (num_positions, 1)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (ceil(d_model / 2),)
    # in float32 an angle of 100,000 radians is off by up to 0.004
    angles = position / 10000.0 ** (two_i / d_model)  # (num_positions, ceil(d_model / 2))
    table = torch.empty(num_positions, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table.to(dtype or torch.get_default_dtype())  # (num_positions, d_model)


class SinusoidalPositionalEncoding(nn.Module):
    r"""Add the sinusoidal table to each sequence, then apply dropout.

    $y_{pos} = \mathrm{dropout}(x_{pos} + PE_{pos})$

    Sinusoids can be computed for any position: a sequence longer than the table gets a longer one.

    Args:
        d_model: the width of the vectors.
        max_len: the number of positions computed in advance.
        dropout: the probability of a zero, in training.

    Raises:
        ValueError: a size is below 1, `dropout` is no probability; when called, x has another width.

    Source: Vaswani et al. 2017, sections 3.5 and 5.4; book chapter 2.
    """

    table: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.1):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.max_len = d_model, max_len
        self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq d_model"]:
        """Map x (batch, seq, d_model) to the same shape."""
        check_width(x, self.d_model)
        seq = x.shape[1]
        table = self.table if seq <= self.max_len else self._table_like(self.table, seq)
        return self.dropout(x + table[:seq])  # (batch, seq, d_model)

    def _table_like(self, table: Tensor, num_positions: int) -> Tensor:
        return sinusoidal_table(num_positions, self.d_model, table.dtype).to(table.device)

    def _apply(self, fn, recurse=True):
        before = self.table.dtype
        super()._apply(fn, recurse)
        if self.table.dtype != before:  # .double() cannot bring back the digits that float32 has dropped
            self.table = self._table_like(self.table, self.max_len)
        return self


class LearnedPositionalEncoding(nn.Module):
    r"""Add a learned vector for each position, then apply dropout.

    $y_{pos} = \mathrm{dropout}(x_{pos} + P_{pos})$, with P a parameter that starts as N(0, 0.02²).

    Args:
        max_len: the number of positions; there is no vector for a later one.
        d_model: the width of the vectors.
        dropout: the probability of a zero, in training.

    Raises:
        ValueError: a size is below 1, `dropout` is no probability; when called, x is longer than
            `max_len` or has another width.

    Source: Dosovitskiy et al. 2021, section 3.1; Devlin et al. 2019, section 3; book chapter 2.
    """

    def __init__(self, max_len: int, d_model: int, dropout: float = 0.1):
        super().__init__()
        check_positive(max_len=max_len, d_model=d_model)
        check_dropout(dropout)
        self.d_model, self.max_len = d_model, max_len
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq d_model"]:
        """Map x (batch, seq, d_model) to the same shape."""
        check_width(x, self.d_model)
        seq = x.shape[1]
        if seq > self.max_len:
            raise ValueError(f"a sequence of length {seq} is longer than the learned table, max_len={self.max_len}")
        return self.dropout(x + self.table[:seq])  # (batch, seq, d_model)
