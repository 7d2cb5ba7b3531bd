"""Chapter 3: masks, scaled dot-product attention, multi-head attention."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_lib.attention import (
    MultiHeadAttention,
    causal_mask,
    combine_masks,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from tests.encoder_lib.parity import assert_parity

BATCH, NUM_HEADS, SEQ_Q, SEQ_K, D_K, D_V = 2, 3, 5, 7, 11, 13
D_MODEL = NUM_HEADS * D_K


def inputs(requires_grad=False):
    """query, key, value with heads: every axis has another length."""
    shapes = ((SEQ_Q, D_K), (SEQ_K, D_K), (SEQ_K, D_V))
    return tuple(torch.randn(BATCH, NUM_HEADS, *shape, requires_grad=requires_grad) for shape in shapes)


def some_mask():
    """A random mask (batch, 1, seq_q, seq_k) in which every query sees at least one key."""
    mask = torch.rand(BATCH, 1, SEQ_Q, SEQ_K) < 0.6
    mask[..., 3] = True
    return mask


# masks


def test_the_padding_mask_allows_all_but_padding():
    mask = padding_mask(torch.tensor([[4, 2, 0], [3, 0, 0]]), pad_id=0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]


def test_the_causal_mask_allows_the_present_and_the_past():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert causal_mask(2, device="meta").is_meta


def test_combined_masks_allow_what_all_allow():
    padding = padding_mask(torch.tensor([[4, 2, 0]]), pad_id=0)
    combined = combine_masks(padding, None, causal_mask(3))
    assert combined[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert combine_masks(None, padding) is padding
    assert combine_masks(None) is None


def test_masks_that_do_not_combine_are_named(unchecked):
    with pytest.raises(ValueError, match=r"masks of shapes \(3, 3\) and \(5, 5\) do not broadcast"):
        combine_masks(causal_mask(3), causal_mask(5))
    with pytest.raises(ValueError, match="dtype torch.float32 must be boolean, True = may attend"):
        combine_masks(causal_mask(3), torch.zeros(3, 3))
    with pytest.raises(ValueError, match="seq_q=0 must be"):
        causal_mask(0)


# scaled dot-product attention


def test_attention_by_hand():
    # q·k / √4 = ln 3 and 0, so the weights are 3/4 and 1/4
    query = torch.tensor([[2.0, 0, 0, 0]])
    key = torch.tensor([[math.log(3), 0, 0, 0], [0.0, 5, 7, 11]])
    value = torch.tensor([[4.0, 0], [8.0, 1]])
    context, weights = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(context, torch.tensor([[5.0, 0.25]]))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_torch_with_gradients(dtype, masked):
    mask = some_mask() if masked else None
    ours = inputs(requires_grad=True)
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    context, weights = scaled_dot_product_attention(*ours, mask)
    expected = F.scaled_dot_product_attention(*theirs, attn_mask=mask)
    assert context.shape == (BATCH, NUM_HEADS, SEQ_Q, D_V)
    assert weights.shape == (BATCH, NUM_HEADS, SEQ_Q, SEQ_K)
    assert_parity(context, expected)
    coefficients = torch.randn_like(context)
    (context * coefficients).sum().backward()
    (expected * coefficients).sum().backward()
    for name, x, y in zip(("query", "key", "value"), ours, theirs, strict=True):
        assert_parity(x.grad, y.grad, f"gradients of the {name}")


def test_attention_works_without_heads_and_without_a_batch():
    query, key, value = inputs()
    whole, _ = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(scaled_dot_product_attention(query[:, 0], key[:, 0], value[:, 0])[0], whole[:, 0])
    torch.testing.assert_close(scaled_dot_product_attention(query[1, 2], key[1, 2], value[1, 2])[0], whole[1, 2])


def test_every_row_of_weights_sums_to_one_and_masked_keys_get_none():
    mask = some_mask()
    _, weights = scaled_dot_product_attention(*inputs(), mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, NUM_HEADS, SEQ_Q))
    assert weights.masked_select(~mask).count_nonzero() == 0
    assert (weights.masked_select(mask.expand_as(weights)) > 0).all()


def test_large_scores_do_not_overflow():
    query, key, value = inputs()
    context, weights = scaled_dot_product_attention(1e4 * query, key, value, some_mask())
    assert context.isfinite().all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, NUM_HEADS, SEQ_Q))


def test_scores_below_any_usual_stand_in_for_minus_infinity_still_beat_a_masked_key():
    query, key = torch.tensor([[1e12]]), torch.tensor([[-1.0], [-1.0], [0.0]])
    mask = torch.tensor([True, True, False])
    _, weights = scaled_dot_product_attention(query, key, torch.eye(3), mask)
    assert weights.tolist() == [[0.5, 0.5, 0.0]]


def test_the_order_of_keys_does_not_matter():
    query, key, value = inputs()
    mask, order = some_mask(), torch.randperm(SEQ_K)
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    shuffled, shuffled_weights = scaled_dot_product_attention(
        query, key[..., order, :], value[..., order, :], mask[..., order]
    )
    torch.testing.assert_close(shuffled, context)
    torch.testing.assert_close(shuffled_weights, weights[..., order])


def test_dropout_falls_on_the_weights_and_keeps_their_mean():
    query, key, value = torch.randn(101, 5), torch.randn(103, 5), torch.eye(103)
    _, full = scaled_dot_product_attention(query, key, value)
    context, weights = scaled_dot_product_attention(query, key, value, dropout=0.25)
    kept = weights != 0
    assert 0.73 < kept.float().mean() < 0.77
    torch.testing.assert_close(weights[kept], full[kept] / 0.75)
    torch.testing.assert_close(context, weights)  # the weights returned are those that were used


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5, 11), (7, 13), (7, 13)), r"query \(5, 11\), key \(7, 13\), value \(7, 13\): query and key must share d_k"),
        (((5, 11), (7, 11), (5, 13)), r"key \(7, 11\), value \(5, 13\): .*key and value must share seq_k"),
    ],
)
def test_shapes_that_do_not_fit_are_named(unchecked, shapes, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*map(torch.zeros, shapes))


BAD_MASKS = [
    (torch.ones(SEQ_Q, SEQ_K), "dtype torch.float32 must be boolean, True = may attend"),
    (torch.ones(SEQ_K, SEQ_Q).bool(), r"shape \(7, 5\) does not broadcast to \(2, 3, 5, 7\)"),
    (torch.ones(17, 1, 1, 1, SEQ_K).bool(), r"shape \(17, 1, 1, 1, 7\) does not broadcast to \(2, 3, 5, 7\)"),
]


@pytest.mark.parametrize(("mask", "message"), BAD_MASKS)
def test_a_bad_mask_is_named(unchecked, mask, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*inputs(), mask)


# heads


def test_heads_are_neighbouring_columns():
    x = torch.arange(12.0).reshape(1, 2, 6)
    heads = split_heads(x, 3)
    assert heads.shape == (1, 3, 2, 2)
    assert heads[0].tolist() == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]
    assert torch.equal(merge_heads(heads), x)


@pytest.mark.parametrize("make", [lambda: split_heads(torch.zeros(2, 3, 10), 4), lambda: MultiHeadAttention(10, 4)])
def test_a_width_that_does_not_divide_is_named(unchecked, make):
    with pytest.raises(ValueError, match="d_model=10 is not divisible by num_heads=4"):
        make()


# multi-head attention


def torch_attention(ours: MultiHeadAttention, **arguments) -> nn.MultiheadAttention:
    """torch's module with the weights of ours."""
    theirs = nn.MultiheadAttention(D_MODEL, NUM_HEADS, batch_first=True, bias=ours.w_q.bias is not None, **arguments)
    projections = (ours.w_q, ours.w_k, ours.w_v)
    theirs.in_proj_weight.data = torch.cat([projection.weight.data for projection in projections])
    theirs.out_proj.weight.data = ours.w_o.weight.data.clone()
    if ours.w_q.bias is not None:
        theirs.in_proj_bias.data = torch.cat([projection.bias.data for projection in projections])
        theirs.out_proj.bias.data = ours.w_o.bias.data.clone()
    return theirs


def attention_with_biases(bias=True, dropout=0.0) -> MultiHeadAttention:
    attention = MultiHeadAttention(D_MODEL, NUM_HEADS, dropout, bias)
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)  # zeros would hide a bias that is forgotten
    return attention


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("cross", [True, False], ids=["cross", "self"])
def test_multi_head_attention_equals_torch_with_gradients(dtype, cross, bias, need_weights, training):
    attention = attention_with_biases(bias).train(training)
    theirs = torch_attention(attention).train(training)
    x = [torch.randn(BATCH, SEQ_Q, D_MODEL, requires_grad=True)]
    if cross:
        x += [torch.randn(BATCH, SEQ_K, D_MODEL, requires_grad=True) for _ in range(2)]
    y = [t.detach().clone().requires_grad_() for t in x]
    seq_k = SEQ_K if cross else SEQ_Q
    mask = torch.ones(BATCH, 1, 1, seq_k, dtype=torch.bool)
    mask[0, ..., -2:] = False

    output = attention(*x, mask=mask, need_weights=need_weights)
    query, key, value = y if cross else y * 3
    expected, expected_weights = theirs(query, key, value, key_padding_mask=~mask[:, 0, 0], average_attn_weights=False)
    if need_weights:
        output, weights = output
        assert_parity(weights, expected_weights, "weights")
    assert_parity(output, expected)

    coefficients = torch.randn_like(output)
    (output * coefficients).sum().backward()
    (expected * coefficients).sum().backward()
    for ours, torchs in zip(x, y, strict=True):
        assert_parity(ours.grad, torchs.grad, "gradients of an input")
    projections = (attention.w_q, attention.w_k, attention.w_v)
    assert_parity(torch.cat([p.weight.grad for p in projections]), theirs.in_proj_weight.grad, "gradients of weights")
    assert_parity(attention.w_o.weight.grad, theirs.out_proj.weight.grad, "gradients of w_o")
    if bias:
        assert_parity(torch.cat([p.bias.grad for p in projections]), theirs.in_proj_bias.grad, "gradients of biases")
        assert_parity(attention.w_o.bias.grad, theirs.out_proj.bias.grad, "gradients of w_o's bias")


@pytest.mark.parametrize("mask", [None, some_mask(), causal_mask(SEQ_Q, SEQ_K), torch.rand(2, 3, 5, 7) < 0.5])
def test_the_two_paths_agree(dtype, mask):
    attention = attention_with_biases()
    query, key = torch.randn(BATCH, SEQ_Q, D_MODEL), torch.randn(BATCH, SEQ_K, D_MODEL)
    explicit, weights = attention(query, key, mask=mask, need_weights=True)
    assert weights.shape == (BATCH, NUM_HEADS, SEQ_Q, SEQ_K)
    fused = attention(query, key, mask=mask)
    assert_parity(explicit, fused)
    value = split_heads(attention.w_v(key), NUM_HEADS)
    assert_parity(attention.w_o(merge_heads(weights @ value)), fused, "the weights times the values")


@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
def test_a_query_that_may_attend_to_nothing_gets_a_zero_context(dtype, need_weights):
    attention = attention_with_biases()
    x = torch.randn(BATCH, SEQ_Q, D_MODEL, requires_grad=True)
    mask = torch.ones(BATCH, 1, SEQ_Q, SEQ_Q, dtype=torch.bool)
    mask[0, :, 2] = False  # one query of the first sequence
    mask[1] = False  # all of the second

    output = attention(x, mask=mask, need_weights=need_weights)
    if need_weights:
        output, weights = output
        assert weights[0, :, 2].count_nonzero() == weights[1].count_nonzero() == 0
    empty = output[0, 2], *output[1]
    for row in empty:
        assert torch.equal(row, attention.w_o.bias)
    with torch.autograd.set_detect_anomaly(True):  # NaN must not appear on the way either
        torch.autograd.backward(output.square().sum())
    for name, tensor in [("x", x), *attention.named_parameters()]:
        assert tensor.grad.isfinite().all(), name
    assert x.grad[1].count_nonzero() == 0  # a sequence that nobody looks at


def test_the_fused_kernel_never_sees_a_query_without_a_key(monkeypatch):
    """Some of torch's kernels answer such a row with NaN, the CPU's with zeros: do not depend on it."""
    seen = []
    kernel = F.scaled_dot_product_attention

    def watched(query, key, value, attn_mask, **options):
        seen.append(attn_mask)
        return kernel(query, key, value, attn_mask, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    mask = some_mask()
    mask[0, :, 2] = False
    attention_with_biases()(torch.randn(BATCH, SEQ_Q, D_MODEL), torch.randn(BATCH, SEQ_K, D_MODEL), mask=mask)
    assert len(seen) == 1
    assert seen[0].any(-1).all()
    assert torch.equal(seen[0][1], mask[1])


@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
def test_empty_rows_leave_the_gradients_of_the_others_alone(dtype, need_weights):
    attention = attention_with_biases()
    mask = torch.ones(BATCH, 1, SEQ_Q, SEQ_Q, dtype=torch.bool)
    mask[0, :, 2] = False
    gradients = []
    for this_mask in (mask, None):
        x = torch.randn(BATCH, SEQ_Q, D_MODEL, generator=torch.Generator().manual_seed(3)).requires_grad_()
        output = attention(x, mask=this_mask, need_weights=need_weights)
        output = output[0] if need_weights else output
        (output[:, [0, 1, 3, 4]]).square().sum().backward()
        gradients.append(x.grad)
    assert_parity(*gradients)


@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
def test_what_a_masked_key_holds_never_shows(need_weights):
    attention = attention_with_biases()
    query, key = torch.randn(BATCH, SEQ_Q, D_MODEL), torch.randn(BATCH, SEQ_K, D_MODEL)
    mask = torch.ones(BATCH, 1, 1, SEQ_K, dtype=torch.bool)
    mask[..., 4:] = False
    other = key.clone()
    other[:, 4:] = 1000 * torch.randn(BATCH, 3, D_MODEL)

    def output(key):
        found = attention(query, key, mask=mask, need_weights=need_weights)
        return found[0] if need_weights else found

    assert torch.equal(output(key), output(other))


def test_self_attention_is_equivariant_to_the_order_of_positions():
    attention, order = attention_with_biases(), torch.randperm(SEQ_Q)
    x = torch.randn(BATCH, SEQ_Q, D_MODEL)
    torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order])


def test_under_a_causal_mask_the_future_never_shows():
    attention = attention_with_biases()
    x = torch.randn(BATCH, SEQ_Q, D_MODEL)
    changed = x.clone()
    changed[:, 3:] += 1
    before, after = (attention(t, mask=causal_mask(SEQ_Q)) for t in (x, changed))
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.isclose(before[:, 3:], after[:, 3:]).all(-1).any()


def test_no_parameter_depends_on_the_length():
    attention = MultiHeadAttention(D_MODEL, NUM_HEADS)
    assert all(set(parameter.shape) == {D_MODEL} for parameter in attention.parameters())
    for seq in (1, 17):
        assert attention(torch.randn(BATCH, seq, D_MODEL)).shape == (BATCH, seq, D_MODEL)


@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
def test_dropout_works_in_training_and_is_off_in_eval(need_weights):
    attention = attention_with_biases(dropout=0.5)
    without = copy.deepcopy(attention)
    without.dropout = 0.0
    x = torch.randn(BATCH, SEQ_Q, D_MODEL)

    def output(module, x):
        found = module(x, need_weights=need_weights)
        return found[0] if need_weights else found

    expected = output(without, x)
    assert torch.equal(output(attention.eval(), x), expected)
    attention.train()
    assert not torch.equal(output(attention, x), output(attention, x))
    many = output(attention, x.repeat(2000, 1, 1)).reshape(2000, BATCH, SEQ_Q, D_MODEL)
    standard_error = many.std(0) / 2000**0.5
    assert ((many.mean(0) - expected).abs() < 6 * standard_error).all()


def test_projections_start_as_xavier_each_for_itself():
    attention = MultiHeadAttention(512, 8)
    for projection in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
        assert projection.weight.std().item() == pytest.approx((2 / (512 + 512)) ** 0.5, rel=0.02)
        assert projection.bias.count_nonzero() == 0


@pytest.mark.parametrize("need_weights", [True, False], ids=["explicit", "fused"])
@pytest.mark.parametrize(
    ("mask", "message"),
    [*BAD_MASKS, (torch.ones(BATCH, SEQ_Q, SEQ_K).bool(), r"shape \(2, 5, 7\) could mean batch or heads")],
)
def test_a_bad_mask_is_named_on_both_paths(unchecked, need_weights, mask, message):
    query, key = torch.randn(BATCH, SEQ_Q, D_MODEL), torch.randn(BATCH, SEQ_K, D_MODEL)
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(D_MODEL, NUM_HEADS)(query, key, mask=mask, need_weights=need_weights)


def test_bad_arguments_are_named(unchecked):
    with pytest.raises(ValueError, match="dropout=1.0 must be at least 0 and below 1"):
        MultiHeadAttention(D_MODEL, NUM_HEADS, dropout=1.0)
    with pytest.raises(ValueError, match="num_heads=0 must be"):
        MultiHeadAttention(D_MODEL, 0)
    with pytest.raises(ValueError, match=r"shape \(2, 5, 32\) must have d_model=33 entries"):
        MultiHeadAttention(D_MODEL, NUM_HEADS)(torch.zeros(BATCH, SEQ_Q, 32))
