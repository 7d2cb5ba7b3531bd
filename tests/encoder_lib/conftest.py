"""Fixtures for the tests of encoder_lib."""

import jaxtyping
import pytest
import torch


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(20170612)


@pytest.fixture
def unchecked():
    """Call the library as a learner does: without the check of shapes, so that its own errors show."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    """Make new tensors and modules in one precision, then in the other."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)
