"""Chapter 5: the position-wise feed-forward network, and what the layers cost."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from encoder_lib._checks import check_dropout, check_positive, check_width


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""Keep what is positive: $\mathrm{ReLU}(x) = \max(0, x)$, entry by entry.

    Args:
        x: any shape.

    Returns:
        the shape of x.

    Source: Vaswani et al. 2017, section 3.3; book chapter 5.
    """
    return x.masked_fill(x <= 0, 0.0)  # at 0 the gradient is 0, as in torch


def gelu(x: Float[Tensor, "*shape"], approximate: str = "none") -> Float[Tensor, "*shape"]:
    r"""Weight each entry by the normal distribution's $\Phi$: $\mathrm{GELU}(x) = x\,\Phi(x)$.

    Exact: $\tfrac{x}{2}(1 + \mathrm{erf}(x/\sqrt{2}))$.
    With tanh: $\tfrac{x}{2}(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3)))$.

    Args:
        x: any shape.
        approximate: "none" or "tanh".

    Returns:
        the shape of x.

    Raises:
        ValueError: `approximate` is neither.

    Source: Hendrycks and Gimpel 2016, section 2; book chapter 5.
    """
    if approximate == "none":
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    raise ValueError(f"approximate={approximate!r} must be 'none' or 'tanh'")


ACTIVATIONS = {"relu": relu, "gelu": gelu}


def check_activation(activation: str) -> None:
    """Raise unless there is an activation of that name."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r} must be one of {', '.join(map(repr, ACTIVATIONS))}")


class FeedForward(nn.Module):
    r"""Two linear maps with an activation between, the same at every position.

    $\mathrm{FFN}(x) = W_2\,\mathrm{dropout}(f(W_1 x + b_1)) + b_2$, with f the activation.

    Args:
        d_model: the width of input and output.
        d_ff: the width between, four times d_model in the paper.
        dropout: the probability with which an entry between becomes zero, in training.
        activation: "relu" or "gelu".
        bias: whether the maps add b_1 and b_2.

    Raises:
        ValueError: a size is below 1, `dropout` is no probability, the activation is unknown; when called, x
            has another width.

    Source: Vaswani et al. 2017, section 3.3; book chapter 5.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1, activation: str = "relu", bias: bool = True):
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        check_dropout(dropout)
        check_activation(activation)
        self.d_model = d_model
        self.linear_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.linear_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Map x (..., d_model) to the same shape."""
        check_width(x, self.d_model)
        hidden = self.activation(self.linear_1(x))  # (..., d_ff)
        return self.linear_2(self.dropout(hidden))  # (..., d_model)


def count_parameters(module: nn.Module) -> int:
    """Count the trainable numbers of a module, each shared one once.

    Args:
        module: whose parameters are counted.

    Returns:
        their number.

    Source: book chapter 5.
    """
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def multiply_adds(module: nn.Module, *inputs: Tensor) -> int:
    """Count the multiply-adds of the matrix products and convolutions in one call of a module.

    One multiply-add is two floating-point operations. Sums, norms and activations are not counted.

    Args:
        module: what to call.
        inputs: what to call it with.

    Returns:
        their number, for the whole batch.

    Source: book chapter 5.
    """
    # the counter does not know every fused attention kernel; the plain one is made of products that it knows
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        module(*inputs)
    return counter.get_total_flops() // 2
