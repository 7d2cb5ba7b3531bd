"""Checks of arguments that every chapter makes: each raises a ValueError that names the value."""

import torch
from torch import Tensor


def check_positive(**sizes: int) -> None:
    """Raise unless each size is a whole number of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name}={size!r} must be a whole number of at least 1")


def check_dropout(dropout: float) -> None:
    """Raise unless dropout is a probability below 1."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout={dropout!r} must be at least 0 and below 1")


def check_width(x: Tensor, d_model: int) -> None:
    """Raise unless the last axis of x has d_model entries."""
    if x.dim() == 0 or x.shape[-1] != d_model:
        raise ValueError(f"the last axis of shape {tuple(x.shape)} must have d_model={d_model} entries")


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Raise unless all ids are whole numbers of the vocabulary."""
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise ValueError(f"ids must be whole numbers, got dtype {ids.dtype}")
    if ids.numel() and (ids.min() < 0 or ids.max() >= vocab_size):
        low, high = int(ids.min()), int(ids.max())
        raise ValueError(f"ids from {low} to {high} leave the vocabulary of 0 to {vocab_size - 1}")
