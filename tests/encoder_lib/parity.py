"""How close two computations of the same numbers must come."""

import torch

# about ten times the largest difference seen; the entries compared are of the order of 1 to 100
TOLERANCE = {torch.float32: dict(rtol=1e-4, atol=2e-5), torch.float64: dict(rtol=1e-11, atol=1e-12)}


def assert_parity(actual: torch.Tensor, expected: torch.Tensor, what: str = "outputs") -> None:
    """Fail unless both have the same type, shape and, up to rounding, the same numbers."""
    torch.testing.assert_close(actual, expected, **TOLERANCE[expected.dtype], msg=lambda text: f"{what}: {text}")
