"""Chapter 4: residual connections and layer normalisation."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from encoder_lib._checks import check_dropout, check_positive, check_width


def layer_norm(
    x: Float[Tensor, "*batch d_model"],
    gamma: Float[Tensor, " d_model"],
    beta: Float[Tensor, " d_model"] | None,
    eps: float = 1e-5,
) -> Float[Tensor, "*batch d_model"]:
    r"""Give each vector mean 0 and variance 1, then scale and shift it.

    $\mathrm{LayerNorm}(x) = \gamma \odot \dfrac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta$, with the mean
    $\mu$ and the population variance $\sigma^2$ of that vector's own d_model entries.

    Args:
        x: (..., d_model).
        gamma: the scale, (d_model,).
        beta: the shift, (d_model,), or None for no shift.
        eps: keeps the root away from zero; it stands inside the root.

    Returns:
        (..., d_model).

    Source: Ba, Kiros and Hinton 2016, section 3; book chapter 4.
    """
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)  # (..., 1)
    normalized = (x - mean) / torch.sqrt(variance + eps)  # (..., d_model)
    scaled = gamma * normalized  # (..., d_model)
    return scaled if beta is None else scaled + beta  # (..., d_model)


class LayerNorm(nn.Module):
    """Layer normalisation with a learned scale `gamma` and a learned shift `beta`.

    Args:
        d_model: the width of the vectors.
        eps: keeps the root away from zero.
        bias: whether there is a shift; without it `beta` is None.

    Raises:
        ValueError: `d_model` is below 1 or `eps` is negative; when called, x has another width.

    Source: Ba, Kiros and Hinton 2016, section 3; book chapter 4.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True):
        super().__init__()
        check_positive(d_model=d_model)
        if not eps >= 0.0:
            raise ValueError(f"eps={eps!r} must not be negative")
        self.d_model, self.eps = d_model, eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Map x (..., d_model) to the same shape."""
        check_width(x, self.d_model)
        return layer_norm(x, self.gamma, self.beta, self.eps)


class AddNorm(nn.Module):
    r"""Wrap a sub-layer in a residual connection, with dropout and layer normalisation.

    Post-norm, as the paper has it: $\mathrm{LayerNorm}(x + \mathrm{dropout}(\mathrm{sublayer}(x)))$.
    Pre-norm, as ViT has it: $x + \mathrm{dropout}(\mathrm{sublayer}(\mathrm{LayerNorm}(x)))$.

    Args:
        d_model: the width of the vectors.
        dropout: the probability with which an entry of the sub-layer's output becomes zero, in training.
        norm_first: False for post-norm, True for pre-norm.
        eps, bias: as in `LayerNorm`.

    Raises:
        ValueError: as in `LayerNorm`, `dropout` is no probability; when called, the sub-layer changes the shape.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4; Xiong et al. 2020, section 3; book chapter 4.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.1, norm_first: bool = False, eps: float = 1e-5, bias: bool = True
    ):
        super().__init__()
        check_dropout(dropout)
        self.norm_first = norm_first
        self.norm = LayerNorm(d_model, eps, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        """Map x (..., d_model) to the same shape, through `sublayer`, which keeps the shape."""
        if self.norm_first:
            return self._add(x, sublayer(self.norm(x)))
        return self.norm(self._add(x, sublayer(x)))

    def _add(self, x: Tensor, output: Tensor) -> Tensor:
        if output.shape != x.shape:  # it might broadcast, and nobody would notice
            raise ValueError(f"the sub-layer changed the shape from {tuple(x.shape)} to {tuple(output.shape)}")
        return x + self.dropout(output)
