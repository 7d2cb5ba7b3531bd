"""How close two computations of the same numbers must come."""

import torch

# a few times the largest difference seen; gradients reach 60
TOLERANCE = {torch.float32: dict(rtol=1e-4, atol=2e-5), torch.float64: dict(rtol=1e-12, atol=2e-13)}


def assert_parity(actual: torch.Tensor, expected: torch.Tensor, what: str = "outputs") -> None:
    """Fail unless both have the same type, shape and, up to rounding, the same numbers."""
    torch.testing.assert_close(actual, expected, **TOLERANCE[expected.dtype], msg=lambda text: f"{what}: {text}")
