"""Chapter 4: layer normalisation and the residual connection."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_lib.add_norm import AddNorm, LayerNorm, layer_norm
from tests.encoder_lib.parity import assert_parity

BATCH, SEQ, D_MODEL = 2, 5, 7


def drawn_norm(bias=True) -> LayerNorm:
    norm = LayerNorm(D_MODEL, eps=1e-3, bias=bias)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm


def test_layer_norm_by_hand():
    x = torch.tensor([1.0, 3, 5, 7])  # mean 4, population variance 5
    gamma, beta = torch.tensor([1.0, 1, 2, 2]), torch.tensor([0.0, 10, 0, 10])
    expected = torch.tensor([-3 / 5**0.5, 10 - 1 / 5**0.5, 2 / 5**0.5, 10 + 6 / 5**0.5])
    torch.testing.assert_close(layer_norm(x, gamma, beta, eps=0.0), expected)


def test_epsilon_stands_inside_the_root():
    x = torch.tensor([-1e-3, 1e-3])  # variance 1e-6; with ε = 3e-6 the root is 2e-3
    torch.testing.assert_close(layer_norm(x, torch.ones(2), None, eps=3e-6), torch.tensor([-0.5, 0.5]))


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_equals_torch_with_gradients(dtype, bias):
    norm = drawn_norm(bias)
    theirs = nn.LayerNorm(D_MODEL, eps=1e-3, bias=bias)
    theirs.weight.data = norm.gamma.data.clone()
    if bias:
        theirs.bias.data = norm.beta.data.clone()
    x = (3 * torch.randn(BATCH, SEQ, D_MODEL) + 5).requires_grad_()
    y = x.detach().clone().requires_grad_()
    assert_parity(norm(x), theirs(y))
    coefficients = torch.randn(BATCH, SEQ, D_MODEL)
    (norm(x) * coefficients).sum().backward()
    (theirs(y) * coefficients).sum().backward()
    assert_parity(x.grad, y.grad, "gradients of x")
    assert_parity(norm.gamma.grad, theirs.weight.grad, "gradients of gamma")
    if bias:
        assert_parity(norm.beta.grad, theirs.bias.grad, "gradients of beta")


def test_every_vector_is_normalised_by_itself():
    x = torch.randn(BATCH, SEQ, D_MODEL)
    norm = drawn_norm()
    alone = torch.stack([norm(vector) for vector in x.flatten(0, 1)]).reshape(x.shape)
    torch.testing.assert_close(norm(x), alone)


def test_shift_and_scale_of_the_input_do_not_show(dtype):
    x = torch.randn(BATCH, SEQ, D_MODEL)
    norm = LayerNorm(D_MODEL, eps=0.0)
    torch.testing.assert_close(norm(100 * x + 50), norm(x), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(norm(x).mean(-1), torch.zeros(BATCH, SEQ), rtol=0, atol=1e-6)
    torch.testing.assert_close(norm(x).var(-1, unbiased=False), torch.ones(BATCH, SEQ))


def test_a_constant_vector_gives_beta_and_finite_gradients():
    norm = drawn_norm()
    x = torch.full((1, D_MODEL), 3.0, requires_grad=True)
    assert torch.equal(norm(x)[0], norm.beta)
    norm(x).sum().backward()
    assert x.grad.isfinite().all()


def test_a_norm_without_bias_has_no_shift():
    norm = LayerNorm(D_MODEL, bias=False)
    assert norm.beta is None
    assert [name for name, _ in norm.named_parameters()] == ["gamma"]


def test_post_norm_normalises_the_sum_and_pre_norm_the_input():
    x = torch.randn(BATCH, SEQ, D_MODEL)
    weight = torch.randn(D_MODEL, D_MODEL)
    for norm_first in (False, True):
        add_norm = AddNorm(D_MODEL, norm_first=norm_first, eps=1e-3).eval()
        nn.init.normal_(add_norm.norm.gamma)
        nn.init.normal_(add_norm.norm.beta)

        def normed(t, add_norm=add_norm):
            return F.layer_norm(t, (D_MODEL,), add_norm.norm.gamma, add_norm.norm.beta, 1e-3)

        expected = x + normed(x) @ weight if norm_first else normed(x + x @ weight)
        torch.testing.assert_close(add_norm(x, lambda t: t @ weight), expected)


def test_pre_norm_leaves_the_residual_stream_untouched():
    x = torch.randn(BATCH, SEQ, D_MODEL)
    assert torch.equal(AddNorm(D_MODEL, norm_first=True)(x, torch.zeros_like), x)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_falls_on_the_sublayers_output_only(norm_first):
    add_norm = AddNorm(D_MODEL, dropout=0.25, norm_first=norm_first)
    add_norm.norm = nn.Identity()  # to see the sum itself
    x = torch.full((101, 103, D_MODEL), 5.0)
    added = add_norm.train()(x, torch.ones_like) - x
    kept = added != 0
    assert 0.73 < kept.float().mean() < 0.77
    torch.testing.assert_close(added[kept], torch.full_like(added[kept], 1 / 0.75), rtol=1e-5, atol=1e-5)
    assert torch.equal(add_norm.eval()(x, torch.ones_like), x + 1)


def test_bad_arguments_are_named(unchecked):
    with pytest.raises(ValueError, match="d_model=0 must be"):
        LayerNorm(0)
    with pytest.raises(ValueError, match="eps=-1.0 must not be negative"):
        LayerNorm(D_MODEL, eps=-1.0)
    with pytest.raises(ValueError, match="dropout=-0.1 must be"):
        AddNorm(D_MODEL, dropout=-0.1)
    with pytest.raises(ValueError, match=r"shape \(2, 5, 1\) must have d_model=7 entries"):
        LayerNorm(D_MODEL)(torch.zeros(BATCH, SEQ, 1))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_sublayer_that_changes_the_shape_is_named(unchecked, norm_first):
    add_norm = AddNorm(D_MODEL, norm_first=norm_first)
    with pytest.raises(ValueError, match=r"changed the shape from \(2, 5, 7\) to \(2, 1, 7\)"):
        add_norm(torch.zeros(BATCH, SEQ, D_MODEL), lambda x: x[:, :1])
