"""How far a quantity is from the right one, and in words what sets the two apart, without giving the right one away."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

NEARLY_ALL = 0.9
MOST_PLACES = 4  # that are named one by one
SMALLEST_SCALE = 1e-3  # a quantity that is zero everywhere is compared with this


def distance(got: Any, want: Any) -> float:
    """The largest error as a fraction of the largest magnitude that is right; infinite where no error can be told.

    Numbers, and each tensor of a tuple or dict, are compared by themselves, and the largest distance is the whole's.
    """
    if isinstance(want, tuple):
        return max((distance(one, other) for one, other in zip(got, want, strict=True)), default=0.0)
    if isinstance(want, dict):
        return distance(_values(got, want), tuple(want.values())) if got.keys() == want.keys() else math.inf
    if isinstance(want, Tensor):
        return _tensor_distance(got, want)
    if isinstance(want, float) and isinstance(got, int | float):
        largest = max(abs(got), abs(want))
        return 0.0 if got == want else abs(got - want) / largest if math.isfinite(largest) else math.inf
    return 0.0 if got == want else math.inf


def difference(got: Any, want: Any, tolerance: float) -> str | None:
    """What sets two quantities apart, in words; None where their distance is within the tolerance."""
    if isinstance(want, tuple):
        return _first((("", one, other) for one, other in zip(got, want, strict=True)), tolerance)
    if isinstance(want, dict):
        if got.keys() != want.keys():
            return f"the keys are {sorted(got)}, but should be {sorted(want)}"
        return _first(((f"{key}: ", got[key], want[key]) for key in want), tolerance)
    if not distance(got, want) > tolerance:
        return None
    if isinstance(want, Tensor):
        return _tensor_in_words(got, want, tolerance)
    return f"{in_figures(got)} is not right" if got is not None else "nothing happened"


def in_figures(value: Any) -> str:
    """A number as a message shows it, a broken one in six figures at most."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _first(parts: Iterable[tuple[str, Any, Any]], tolerance: float) -> str | None:
    """The difference of the first (name, got, want) that has one, after its name."""
    for name, one, other in parts:
        if (reason := difference(one, other, tolerance)) is not None:
            return name + reason
    return None


def _values(got: dict, want: dict) -> tuple:
    return tuple(got[key] for key in want)


def _scale(want: Tensor) -> float:
    finite = torch.isfinite(want)
    return max(want[finite].abs().max().item() if finite.any() else 0.0, SMALLEST_SCALE)


def _errors(got: Tensor, want: Tensor) -> Tensor:
    """Each entry's error; zero where both are the same infinity, infinite where one is not a number."""
    errors = (got - want).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    return errors.masked_fill(got == want, 0.0)


def _tensor_distance(got: Tensor, want: Tensor) -> float:
    if got.shape != want.shape:
        return math.inf
    got, want = got.double(), want.double()
    return _errors(got, want).max().item() / _scale(want) if want.numel() else 0.0


def _tensor_in_words(got: Tensor, want: Tensor, tolerance: float) -> str:
    if got.shape != want.shape:
        return f"the shape is {tuple(got.shape)}, but should be {tuple(want.shape)}"
    truth = want.dtype == torch.bool
    got, want = got.double(), want.double()
    scale = _scale(want)
    wrong = _errors(got, want) > tolerance * scale
    if not got[torch.isfinite(got)].any():
        return "everything is False" if truth else "all the numbers are zero"
    if not wrong.dim():
        return "the number is not right"
    kind = None if truth else _factor(got, want, scale) or _moved(got, want, tolerance)
    if kind:
        return kind
    words = "truth values are the wrong way round" if truth else "numbers differ"
    size = "" if truth else _by_how_much(got, want)
    if wrong.double().mean() > NEARLY_ALL:
        return f"{'all' if wrong.all() else 'nearly all of the'} {wrong.numel()} {words}{size}"
    return f"{int(wrong.sum())} of {wrong.numel()} {words}, {_where(wrong)}{size}"


def _by_how_much(got: Tensor, want: Tensor) -> str:
    """The largest error beside the largest number of the answer: rounding looks otherwise than nonsense."""
    largest, error = got[torch.isfinite(got)].abs().max(), _errors(got, want).max()
    return f", by up to {error:.2g} (yours go up to {largest:.2g})" if torch.isfinite(error) else ""


def _factor(got: Tensor, want: Tensor, scale: float) -> str | None:
    """One factor, or one for each place along an axis, or one number added everywhere."""
    if not (torch.isfinite(got).all() and torch.isfinite(want).all()):
        return None
    solid = want.abs() > 1e-3 * scale
    if not solid.any():
        return None
    factor = (got[solid] / want[solid]).mean().item()
    if f"{factor:.4g}" != "1" and torch.allclose(got, factor * want, rtol=1e-3, atol=1e-6 * abs(factor) * scale):
        return f"every number is {factor:.4g} times what it should be"
    offset = (got - want).mean().item()
    if abs(offset) > 1e-3 * scale and torch.allclose(got, want + offset, rtol=0, atol=1e-4 * abs(offset)):
        return f"every number is off by the same {offset:.4g}"
    for axis in range(want.dim()):
        if not 1 < want.shape[axis] < want.numel():
            continue
        others = [other for other in range(want.dim()) if other != axis]
        there = want.abs().amax(others) > 1e-3 * scale  # elsewhere there is nothing to be multiplied
        factors = (got * want).sum(others, keepdim=True) / want.square().sum(others, keepdim=True).clamp(min=1e-300)
        if torch.allclose(got, factors * want, rtol=1e-3, atol=1e-5 * scale):
            factors = factors.flatten()
            lost = there & (factors.abs() < 1e-4)
            if torch.allclose(factors[there & ~lost], torch.ones(()).double(), rtol=1e-3):
                return _lost(lost, axis)
            low, high = f"{factors[there].min().item():.4g}", f"{factors[there].max().item():.4g}"
            if low != high:
                return f"along axis {axis} the numbers are multiplied by factors from {low} to {high}"
        offsets = (got - want).mean(others, keepdim=True)
        spread = offsets.max() - offsets.min()
        if spread > 1e-3 * scale and torch.allclose(got, want + offsets, rtol=0, atol=1e-4 * spread.item()):
            return f"for each place along axis {axis} the numbers are off by a number of its own"
    return None


def _lost(lost: Tensor, axis: int) -> str | None:
    """Where numbers are zero that should not be, if that is in few places along the axis."""
    places = lost.nonzero().flatten().tolist()
    if not 0 < len(places) <= MOST_PLACES:
        return None
    return f"where axis {axis} is {' or '.join(map(str, places))}, all the numbers are zero"


def _moved(got: Tensor, want: Tensor, tolerance: float) -> str | None:
    """The right numbers in other places: two axes swapped, one axis turned round or shifted."""

    def same(other: Tensor) -> bool:
        return other.shape == got.shape and not torch.equal(other, want) and _tensor_distance(got, other) <= tolerance

    axes = range(want.dim())
    for one, other in ((one, other) for one in axes for other in axes if one < other):
        if same(want.transpose(one, other)):
            return f"the numbers are right, but axes {one} and {other} have changed places"
    for axis in axes:
        if same(want.flip(axis)):
            return f"the numbers are right, but run backwards along axis {axis}"
        for step in (1, -1):
            if same(want.roll(step, axis)):
                return f"the numbers are right, but moved by one place along axis {axis}"
    if torch.allclose(got.flatten().sort().values, want.flatten().sort().values, rtol=0, atol=tolerance * _scale(want)):
        return "the numbers are right, but stand in other places"
    return None


def _where(wrong: Tensor) -> str:
    """Where along an axis all that is wrong lies, if it lies in few places; else the first."""
    for axis, size in enumerate(wrong.shape if wrong.sum() > 1 else ()):
        others = [other for other in range(wrong.dim()) if other != axis]
        places = (wrong.any(dim=others) if others else wrong).nonzero().flatten().tolist()
        if wrong.dim() > 1 and size > 2 and len(places) <= MOST_PLACES and len(places) < size / 2:
            return f"all of them where axis {axis} is {' or '.join(map(str, places))}"
    return f"the first at index {tuple(wrong.nonzero()[0].tolist())}"
