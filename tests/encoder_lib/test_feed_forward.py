"""Chapter 5: activations, the feed-forward network, and what the layers cost."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_lib.attention import MultiHeadAttention
from encoder_lib.feed_forward import FeedForward, count_parameters, gelu, multiply_adds, relu
from tests.encoder_lib.parity import assert_parity

BATCH, SEQ, D_MODEL, D_FF = 2, 5, 7, 11


def test_activations_by_hand():
    x = torch.tensor([-2.0, 0.0, 3.0])
    assert relu(x).tolist() == [0, 0, 3]
    # Φ(1) = 0.8413447
    torch.testing.assert_close(gelu(torch.tensor([1.0, 0.0, -1.0])), torch.tensor([0.8413447, 0.0, -0.1586553]))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (relu, F.relu),
        (gelu, F.gelu),
        (lambda x: gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh")),
    ],
    ids=["relu", "gelu", "gelu_tanh"],
)
def test_activations_equal_torch_with_gradients(dtype, ours, theirs):
    x = torch.cat([torch.linspace(-6, 6, 101), torch.zeros(1)]).requires_grad_()
    y = x.detach().clone().requires_grad_()
    assert_parity(ours(x), theirs(y))
    ours(x).sum().backward()
    theirs(y).sum().backward()
    assert_parity(x.grad, y.grad, "gradients")


def test_the_two_gelus_differ_and_by_less_than_a_thousandth():
    x = torch.linspace(-5, 5, 1001)
    difference = (gelu(x) - gelu(x, "tanh")).abs().max()
    assert 1e-4 < difference < 1e-3


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_network_is_two_linear_maps_around_the_activation(dtype, activation, bias):
    network = FeedForward(D_MODEL, D_FF, activation=activation, bias=bias).eval()
    x = torch.randn(BATCH, SEQ, D_MODEL)
    function = {"relu": F.relu, "gelu": F.gelu}[activation]
    inner = function(F.linear(x, network.linear_1.weight, network.linear_1.bias))
    assert_parity(network(x), F.linear(inner, network.linear_2.weight, network.linear_2.bias))
    assert (network.linear_1.bias is None) == (network.linear_2.bias is None) == (not bias)


def test_every_position_goes_through_alone():
    network = FeedForward(D_MODEL, D_FF).eval()
    x = torch.randn(BATCH, SEQ, D_MODEL)
    alone = torch.stack([network(x[:, t : t + 1])[:, 0] for t in range(SEQ)], dim=1)
    torch.testing.assert_close(network(x), alone)


def test_dropout_falls_between_the_two_maps_in_training_only():
    network = FeedForward(D_MODEL, D_MODEL, dropout=0.25)
    nn.init.zeros_(network.linear_1.weight)
    nn.init.ones_(network.linear_1.bias)
    nn.init.zeros_(network.linear_2.weight)
    nn.init.ones_(network.linear_2.bias)
    assert (network.train()(torch.randn(101, 103, D_MODEL)) == 1).all()  # nothing is dropped from the result
    network.linear_2 = nn.Identity()  # to see what enters it
    x = torch.randn(101, 103, D_MODEL)
    dropped = network.train()(x)
    kept = dropped != 0
    assert 0.73 < kept.float().mean() < 0.77
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / 0.75))
    assert (network.eval()(x) == 1).all()


def test_parameters_are_counted_as_the_formula_says():
    assert count_parameters(FeedForward(D_MODEL, D_FF)) == 2 * D_MODEL * D_FF + D_FF + D_MODEL
    assert count_parameters(MultiHeadAttention(12, 3)) == 4 * (12 * 12 + 12)
    assert count_parameters(FeedForward(512, 2048)) == 2_099_712  # the paper's base model


def test_frozen_parameters_are_not_counted_and_shared_ones_once():
    network = FeedForward(D_MODEL, D_FF)
    network.linear_1.requires_grad_(False)
    assert count_parameters(network) == D_MODEL * D_FF + D_MODEL
    shared = nn.ModuleList([network.linear_2, network.linear_2])
    assert count_parameters(shared) == D_MODEL * D_FF + D_MODEL


def test_multiply_adds_are_counted_as_the_formula_says():
    x = torch.randn(BATCH, SEQ, D_MODEL)
    assert multiply_adds(FeedForward(D_MODEL, D_FF), x) == BATCH * SEQ * 2 * D_MODEL * D_FF
    x = torch.randn(BATCH, SEQ, 12)  # four projections, then QKᵀ and weights times V
    assert multiply_adds(MultiHeadAttention(12, 3), x) == BATCH * (4 * SEQ * 12**2 + 2 * SEQ**2 * 12)


def test_counting_leaves_no_trace():
    network = FeedForward(D_MODEL, D_FF)
    assert network(torch.randn(BATCH, SEQ, D_MODEL)).requires_grad
    multiply_adds(network, torch.randn(BATCH, SEQ, D_MODEL))
    assert network(torch.randn(BATCH, SEQ, D_MODEL)).requires_grad
    assert all(parameter.grad is None for parameter in network.parameters())


def test_bad_arguments_are_named(unchecked):
    with pytest.raises(ValueError, match="d_ff=0 must be"):
        FeedForward(D_MODEL, 0)
    with pytest.raises(ValueError, match="dropout=nan must be"):
        FeedForward(D_MODEL, D_FF, dropout=math.nan)
    with pytest.raises(ValueError, match="activation='swish' must be one of 'relu', 'gelu'"):
        FeedForward(D_MODEL, D_FF, activation="swish")
    with pytest.raises(ValueError, match="approximate='erf' must be 'none' or 'tanh'"):
        gelu(torch.zeros(3), "erf")
    with pytest.raises(ValueError, match=r"shape \(2, 5, 8\) must have d_model=7 entries"):
        FeedForward(D_MODEL, D_FF)(torch.zeros(BATCH, SEQ, 8))
