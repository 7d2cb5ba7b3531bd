"""Chapter 6: layers, the whole encoder, and its two witnesses: torch.nn and NumPy."""

import copy
import dataclasses
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from encoder_lib import running_example
from encoder_lib.attention import causal_mask, padding_mask
from encoder_lib.embedding import TokenEmbedding
from encoder_lib.positional_encoding import sinusoidal_table
from encoder_lib.stacking import (
    Encoder,
    EncoderConfig,
    EncoderLayer,
    PatchEncoder,
    TokenEncoder,
    load_torch_weights,
    masked_mean,
)
from tests.encoder_lib import numpy_encoder
from tests.encoder_lib.parity import assert_parity

BATCH, SEQ, NUM_HEADS, D_K, D_FF, NUM_LAYERS, VOCAB_SIZE = 5, 7, 3, 11, 13, 2, 17
D_MODEL = NUM_HEADS * D_K
CONFIG = EncoderConfig(d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=D_FF, num_layers=NUM_LAYERS, dropout=0.0)
LENGTHS = (7, 3, 5, 1, 6)

norm_first = pytest.mark.parametrize("norm_first", [False, True], ids=["post_norm", "pre_norm"])
training = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


def config(**changes) -> EncoderConfig:
    return dataclasses.replace(CONFIG, final_norm=changes.pop("final_norm", None), **changes)


def draw_(module: nn.Module) -> nn.Module:
    """Draw biases and norms, which start at 0 and 1 and would hide what forgets them."""
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float("gamma" in name or "norm" in name and "weight" in name), std=0.5)
    return module


def token_ids() -> torch.Tensor:
    """Ids (batch, seq) of sequences of all lengths, padded with 0."""
    ids = torch.randint(1, VOCAB_SIZE, (BATCH, SEQ))
    for row, length in zip(ids, LENGTHS, strict=True):
        row[length:] = 0
    return ids


def torch_encoder(c: EncoderConfig, enable_nested_tensor: bool = False) -> nn.TransformerEncoder:
    """torch's encoder of the same configuration, with layers that differ."""
    layer = nn.TransformerEncoderLayer(
        c.d_model,
        c.num_heads,
        c.d_ff,
        c.dropout,
        c.activation,
        c.eps,
        batch_first=True,
        norm_first=c.norm_first,
        bias=c.bias,
    )
    norm = nn.LayerNorm(c.d_model, c.eps, bias=c.bias) if c.final_norm else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about nested tensors
        encoder = nn.TransformerEncoder(layer, c.num_layers, norm, enable_nested_tensor)
    for one in encoder.layers:  # torch clones one layer: draw each anew
        for parameter in one.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    return draw_(encoder)


def gradients_as_weights(theirs: nn.TransformerEncoder, c: EncoderConfig) -> Encoder:
    """An encoder of ours whose parameters are the gradients of torch's."""
    holder = copy.deepcopy(theirs)
    with torch.no_grad():
        for into, parameter in zip(holder.parameters(), theirs.parameters(), strict=True):
            into.copy_(parameter.grad)
    return load_torch_weights(Encoder(c), holder)


# the configuration


def test_the_defaults_are_the_papers_base_model():
    base = EncoderConfig()
    assert (base.d_model, base.num_heads, base.d_ff, base.num_layers, base.dropout) == (512, 8, 2048, 6, 0.1)
    assert (base.activation, base.norm_first, base.final_norm) == ("relu", False, False)


def test_pre_norm_brings_the_final_norm_it_needs():
    assert EncoderConfig(norm_first=True).final_norm is True
    assert EncoderConfig(norm_first=True, final_norm=False).final_norm is False
    assert EncoderConfig(final_norm=True).final_norm is True


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CONFIG.d_model = 7


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (dict(d_model=10, num_heads=4), "d_model=10 is not divisible by num_heads=4"),
        (dict(d_model=0), "d_model=0 must be a whole number of at least 1"),
        (dict(num_heads=-8), "num_heads=-8 must be"),
        (dict(d_ff=2.5), "d_ff=2.5 must be"),
        (dict(num_layers=True), "num_layers=True must be"),
        (dict(dropout=1.0), "dropout=1.0 must be at least 0 and below 1"),
        (dict(activation="tanh"), "activation='tanh' must be one of 'relu', 'gelu'"),
        (dict(eps=0.0), "eps=0.0 must be positive"),
        (dict(norm_first="pre"), "norm_first='pre' must be True or False"),
        (dict(bias=None), "bias=None must be True or False"),
    ],
)
def test_bad_configurations_are_named(unchecked, bad, message):
    with pytest.raises(ValueError, match=message):
        EncoderConfig(**bad)


# parity with torch.nn


@training
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("final_norm", [True, False], ids=["final_norm", "no_final_norm"])
@norm_first
def test_the_encoder_equals_torch_with_gradients(dtype, norm_first, final_norm, bias, activation, training):
    c = config(norm_first=norm_first, final_norm=final_norm, bias=bias, activation=activation, eps=1e-3)
    theirs = torch_encoder(c).train(training)
    ours = load_torch_weights(Encoder(c), theirs).train(training)
    x = torch.randn(BATCH, SEQ, D_MODEL, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    ids = token_ids()
    real = ids != 0
    output = ours(x, padding_mask(ids, 0))
    expected = theirs(y, src_key_padding_mask=~real)
    assert_parity(output[real], expected[real])

    coefficients = torch.randn(BATCH, SEQ, D_MODEL)
    (output * coefficients)[real].sum().backward()
    (expected * coefficients)[real].sum().backward()
    assert_parity(x.grad, y.grad, "gradients of x")
    expected_gradients = dict(gradients_as_weights(theirs, c).named_parameters())
    for name, parameter in ours.named_parameters():
        assert_parity(parameter.grad, expected_gradients[name].data, f"gradients of {name}")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@norm_first
def test_the_encoder_equals_torchs_fast_path(dtype, norm_first):
    """Without gradients, in eval, torch has kernels of its own; they want an even number of heads."""
    c = config(d_model=2 * D_K, num_heads=2, norm_first=norm_first)
    theirs = torch_encoder(c, enable_nested_tensor=True).eval()
    ours = load_torch_weights(Encoder(c), theirs).eval()
    x, ids = torch.randn(BATCH, SEQ, c.d_model), token_ids()
    with torch.no_grad():
        output, expected = ours(x, padding_mask(ids, 0)), theirs(x, src_key_padding_mask=ids == 0)
    assert_parity(output[ids != 0], expected[ids != 0])
    if not norm_first:
        assert expected[ids == 0].count_nonzero() == 0  # a mark of that path, and why padded positions do not compare


@training
@norm_first
def test_the_whole_encoder_from_tokens_equals_torch(dtype, norm_first, training):
    c = config(norm_first=norm_first)
    theirs = torch_encoder(c).train(training)
    ours = TokenEncoder(c, VOCAB_SIZE).train(training)
    load_torch_weights(ours.encoder, theirs)
    table = ours.embedding.embedding.weight.detach().clone().requires_grad_()
    ids = token_ids()
    real = ids != 0
    embedded = F.embedding(ids, table, padding_idx=0) * math.sqrt(D_MODEL) + sinusoidal_table(SEQ, D_MODEL)
    expected = theirs(embedded, src_key_padding_mask=~real)
    output = ours(ids)
    assert_parity(output[real], expected[real])
    coefficients = torch.randn(BATCH, SEQ, D_MODEL)
    (output * coefficients)[real].sum().backward()
    (expected * coefficients)[real].sum().backward()
    assert_parity(ours.embedding.embedding.weight.grad, table.grad, "gradients of the embedding")


# parity with NumPy


def in_numpy(layer: EncoderLayer) -> dict[str, np.ndarray]:
    """A layer's weights as numpy_encoder names them."""

    def array(tensor):
        return tensor.detach().double().numpy()

    linears = {
        "Q": layer.attention.w_q,
        "K": layer.attention.w_k,
        "V": layer.attention.w_v,
        "O": layer.attention.w_o,
        "1": layer.feed_forward.linear_1,
        "2": layer.feed_forward.linear_2,
    }
    weights = {f"W_{name}": array(linear.weight).T for name, linear in linears.items()}
    weights |= {f"b_{name}": array(linear.bias) for name, linear in linears.items()}
    for name, add_norm in (("1", layer.add_norm_1), ("2", layer.add_norm_2)):
        weights |= {f"gamma_{name}": array(add_norm.norm.gamma), f"beta_{name}": array(add_norm.norm.beta)}
    return weights


def numpy_encode(encoder: Encoder, X: np.ndarray, visible: list[int]) -> np.ndarray:
    c = encoder.config
    final = None
    if c.final_norm:
        final = encoder.norm.gamma.detach().double().numpy(), encoder.norm.beta.detach().double().numpy()
    return numpy_encoder.encoder(
        X,
        [in_numpy(layer) for layer in encoder.layers],
        c.num_heads,
        visible,
        norm_first=c.norm_first,
        activation=c.activation,
        epsilon=c.eps,
        final=final,
    )


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@norm_first
def test_the_whole_encoder_from_tokens_equals_numpy(dtype, norm_first, activation):
    """At every position, the padded ones too, and for a sequence of padding alone."""
    encoder = draw_(TokenEncoder(config(norm_first=norm_first, activation=activation), VOCAB_SIZE)).eval()
    ids = token_ids()
    ids[3] = 0
    rows = encoder.embedding.embedding.weight.detach().double().numpy()
    positions = numpy_encoder.positions(SEQ, D_MODEL)
    with torch.no_grad():
        output = encoder(ids)
    for found, sentence in zip(output, ids.tolist(), strict=True):
        X = np.array([rows[token] for token in sentence]) * math.sqrt(D_MODEL) + positions
        visible = [t for t, token in enumerate(sentence) if token != 0]
        expected = numpy_encode(encoder.encoder, X, visible)
        assert_parity(found, torch.from_numpy(expected).to(dtype))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("class_token", [True, False], ids=["class_token", "no_class_token"])
@norm_first
def test_the_whole_encoder_from_images_equals_numpy(dtype, norm_first, class_token, positions):
    encoder = PatchEncoder(
        config(norm_first=norm_first, activation="gelu"),
        image_size=10,
        patch_size=5,
        channels=2,
        class_token=class_token,
        positions=positions,
    )
    draw_(encoder).eval()
    images = torch.rand(BATCH, 2, 10, 10)
    with torch.no_grad():
        output = encoder(images)
    seq = 4 + class_token
    assert output.shape == (BATCH, seq, D_MODEL)
    projection = encoder.embedding.projection
    W, b = projection.weight.detach().double().numpy().T, projection.bias.detach().double().numpy()
    if positions == "learned":
        added = encoder.positions.table.detach().double().numpy()
    else:
        added = numpy_encoder.positions(seq, D_MODEL)
    for found, image in zip(output, images.double().numpy(), strict=True):
        X = numpy_encoder.patches(image, 5) @ W + b
        if class_token:
            X = np.vstack([encoder.class_token.detach().double().numpy()[0], X])
        expected = numpy_encode(encoder.encoder, X + added, list(range(seq)))
        assert_parity(found, torch.from_numpy(expected).to(dtype))


@norm_first
def test_gradients_equal_the_differences_of_numpys_outputs(norm_first):
    encoder = draw_(Encoder(config(norm_first=norm_first, activation="gelu"))).double()
    x = torch.randn(1, SEQ, D_MODEL, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(1, 1, 1, SEQ, dtype=torch.bool)
    mask[..., 5:] = False
    coefficients = torch.randn(SEQ, D_MODEL, dtype=torch.float64)
    (encoder(x, mask)[0] * coefficients).sum().backward()

    def loss(X):
        return (numpy_encode(encoder, X, list(range(5))) * coefficients.numpy()).sum()

    for t, column in [(0, 0), (3, 17), (4, 32), (6, 5)]:
        step = np.zeros((SEQ, D_MODEL))
        step[t, column] = 1e-5
        X = x.detach()[0].numpy()
        difference = (loss(X + step) - loss(X - step)) / 2e-5
        assert x.grad[0, t, column].item() == pytest.approx(difference, rel=1e-6, abs=1e-7)


# properties


def test_the_layers_are_independent():
    encoder = Encoder(CONFIG)
    first, second = (dict(layer.named_parameters()) for layer in encoder.layers)
    for name in first:
        assert first[name] is not second[name]
        assert first[name].dim() == 1 or not torch.equal(first[name], second[name])
    assert len({parameter.data_ptr() for parameter in encoder.parameters()}) == len(list(encoder.parameters()))


@norm_first
def test_without_positions_the_encoder_is_equivariant_to_order(norm_first):
    encoder = draw_(Encoder(config(norm_first=norm_first))).double()
    x, order = torch.randn(BATCH, SEQ, D_MODEL, dtype=torch.float64), torch.randperm(SEQ)
    torch.testing.assert_close(encoder(x[:, order]), encoder(x)[:, order])


def test_with_positions_the_order_shows():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE, pad_id=None).eval()
    ids = torch.arange(1, 8)[None]
    backwards = encoder(ids.flip(1)).flip(1)
    assert not torch.isclose(encoder(ids), backwards, atol=1e-2).all(-1).any()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@norm_first
def test_padding_changes_nothing_for_the_others(norm_first, positions):
    encoder = TokenEncoder(config(norm_first=norm_first), VOCAB_SIZE, positions=positions, max_len=101).double()
    ids = token_ids()
    output = encoder(ids)
    for row, found, length in zip(ids, output, LENGTHS, strict=True):
        torch.testing.assert_close(encoder(row[None, :length])[0], found[:length])
        longer = F.pad(row[None], (0, 23))
        torch.testing.assert_close(encoder(longer)[0, :length], found[:length])


def test_a_sequence_of_padding_alone_stays_finite_in_values_and_gradients():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE)
    output = encoder(torch.tensor([[3, 2, 0], [0, 0, 0]]))
    output.square().sum().backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


def test_without_a_padding_id_every_token_counts():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE, pad_id=None)
    assert encoder.mask(torch.tensor([[3, 0]])) is None
    assert encoder.embedding.embedding.weight[0].count_nonzero() == D_MODEL


def test_a_mask_of_ones_own_comes_on_top_of_the_padding():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE, pad_id=0).double()
    ids = torch.tensor([[3, 2, 5, 7, 0]])
    changed = torch.tensor([[3, 2, 11, 13, 0]])
    before, after = (encoder(t, causal_mask(5))[0] for t in (ids, changed))
    torch.testing.assert_close(before[:2], after[:2])
    torch.testing.assert_close(before[:4], encoder(ids[:, :4], causal_mask(4))[0])


def test_embed_is_what_enters_the_first_layer():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE)
    ids = token_ids()
    torch.testing.assert_close(encoder.embed(ids), encoder.embedding(ids) + sinusoidal_table(SEQ, D_MODEL))
    assert torch.equal(encoder(ids), encoder.encoder(encoder.embed(ids), encoder.mask(ids)))


@norm_first
def test_attention_weights_are_those_that_made_the_output(norm_first):
    encoder = draw_(Encoder(config(norm_first=norm_first))).double()
    x, mask = torch.randn(BATCH, SEQ, D_MODEL, dtype=torch.float64), padding_mask(token_ids(), 0)
    weights = encoder.attention_weights(x, mask)
    for layer, found in zip(encoder.layers, weights, strict=True):
        inputs = layer.add_norm_1.norm(x) if norm_first else x
        _, expected = layer.attention(inputs, mask=mask, need_weights=True)
        torch.testing.assert_close(found, expected)
        assert found.masked_select(~mask).count_nonzero() == 0
        x = layer(x, mask)
    assert len(weights) == NUM_LAYERS
    if norm_first:  # the weights belong to the normed input
        raw = encoder.layers[0].attention(inputs, mask=mask, need_weights=True)[1]
        assert not torch.equal(weights[0], raw)


def test_dropout_is_off_in_eval_and_on_in_training_at_every_place():
    encoder = TokenEncoder(config(dropout=0.5), VOCAB_SIZE)
    without = TokenEncoder(CONFIG, VOCAB_SIZE)
    without.load_state_dict(encoder.state_dict())
    ids = token_ids()
    assert torch.equal(encoder.eval()(ids), without(ids))
    probabilities = [m.p for m in encoder.modules() if isinstance(m, nn.Dropout)]
    assert probabilities == [0.5] * (1 + 3 * NUM_LAYERS)  # the sum of embedding and positions; three in each layer
    assert [layer.attention.dropout for layer in encoder.encoder.layers] == [0.5] * NUM_LAYERS
    assert not torch.equal(encoder.train()(ids), encoder(ids))


def test_the_final_norm_is_there_for_pre_norm_and_acts():
    encoder = Encoder(config(norm_first=True))
    x = 100 * torch.randn(BATCH, SEQ, D_MODEL)
    torch.testing.assert_close(encoder(x).std(-1, unbiased=False), torch.ones(BATCH, SEQ), rtol=1e-3, atol=0)
    assert [*Encoder(config(norm_first=False)).norm.parameters()] == []


def test_the_encoder_keeps_type_and_device():
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE)
    ids = token_ids()
    for dtype in (torch.bfloat16, torch.float64, torch.float32):
        output = encoder.to(dtype)(ids)
        assert output.dtype == dtype
        assert output.isfinite().all()
    meta = encoder.to("meta")
    x = meta.positions(torch.empty(BATCH, SEQ, D_MODEL, device="meta"))
    assert meta.encoder(x, padding_mask(ids.to("meta"), 0)).is_meta
    patches = PatchEncoder(CONFIG, 10, 5, class_token=True, positions="learned").to("meta")
    assert patches(torch.empty(BATCH, 1, 10, 10, device="meta")).is_meta


def test_the_running_example_goes_through():
    c = EncoderConfig(d_model=512, num_layers=1)
    sentences = TokenEncoder(c, len(running_example.vocabulary()))
    assert sentences(running_example.token_ids()).shape == (2, 7, 512)
    assert PatchEncoder(c)(running_example.cat_image()).shape == (1, 196, 512)
    vit = PatchEncoder(dataclasses.replace(c, norm_first=True), class_token=True, positions="learned")
    assert vit(running_example.cat_image()).shape == (1, 197, 512)


def test_the_class_token_stands_first_and_learns():
    encoder = PatchEncoder(CONFIG, 10, 5, class_token=True, positions="learned")
    x = encoder.embed(torch.rand(BATCH, 1, 10, 10))
    expected = encoder.class_token[0, 0] + encoder.positions.table[0]
    torch.testing.assert_close(x[:, 0], expected.expand(BATCH, -1))
    encoder(torch.rand(BATCH, 1, 10, 10))[:, 0].square().sum().backward()
    assert encoder.class_token.grad.count_nonzero() == D_MODEL


# pooling


def test_the_mean_leaves_out_padding():
    x = torch.tensor([[[1.0, 2], [3, 6], [float("nan"), 100]], [[5, 5], [7, 7], [9, 9]]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert masked_mean(x, mask).tolist() == [[2, 4], [0, 0]]
    assert torch.equal(masked_mean(x, mask[:, None, None, :]), masked_mean(x, mask))
    assert masked_mean(x[1:]).tolist() == [[7, 7]]


def test_the_mean_gives_gradients_to_what_counts():
    x = torch.randn(2, 3, 5, requires_grad=True)
    masked_mean(x, torch.tensor([[True, True, False], [False, False, False]])).sum().backward()
    assert torch.equal(x.grad[0, :, 0], torch.tensor([0.5, 0.5, 0.0]))
    assert x.grad[1].count_nonzero() == 0


@pytest.mark.parametrize("mask", [torch.ones(2, 3), torch.ones(3, 2).bool(), torch.ones(2, 1, 3, 3).bool()])
def test_a_bad_mask_for_the_mean_is_named(unchecked, mask):
    with pytest.raises(ValueError, match=r"must be boolean of shape \(2, 3\) or \(2, 1, 1, 3\)"):
        masked_mean(torch.zeros(2, 3, 5), mask)


# loading


def test_loading_copies_and_does_not_share():
    theirs = torch_encoder(CONFIG)
    ours = load_torch_weights(Encoder(CONFIG), theirs)
    before = ours.layers[0].attention.w_k.weight.clone()
    assert torch.equal(before, theirs.layers[0].self_attn.in_proj_weight[D_MODEL : 2 * D_MODEL])
    with torch.no_grad():
        theirs.layers[0].self_attn.in_proj_weight.zero_()
    assert torch.equal(ours.layers[0].attention.w_k.weight, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(num_heads=11), "num_heads=3 in torch's encoder, but num_heads=11 in this one"),
        (dict(norm_first=True, final_norm=False), "norm_first=False in torch's encoder"),
        (dict(eps=1e-6), "eps=1e-05 in torch's encoder, but eps=1e-06"),
        (dict(activation="gelu"), "another activation than activation='gelu'"),
        (dict(num_layers=3), r"layers.2.\S+ has shape None in torch's encoder and"),
        (dict(num_layers=1), r"layers.1.\S+ has shape \S+ in torch's encoder and None in this one"),
        (dict(d_ff=7), r"linear_1.bias has shape \(13,\) in torch's encoder and \(7,\) in this one"),
        (dict(final_norm=True), "norm.beta has shape None in torch's encoder"),
        (dict(bias=False), "bias has shape .* in torch's encoder and None in this one|beta has shape"),
    ],
)
def test_weights_of_another_configuration_are_refused_whole(unchecked, changes, message):
    ours = Encoder(config(**changes))
    before = copy.deepcopy(ours.state_dict())
    with pytest.raises(ValueError, match=message):
        load_torch_weights(ours, torch_encoder(CONFIG))
    assert all(torch.equal(tensor, before[name]) for name, tensor in ours.state_dict().items())


# bad arguments at call time


def test_bad_inputs_are_named(unchecked):
    encoder = TokenEncoder(CONFIG, VOCAB_SIZE, max_len=5, positions="learned")
    with pytest.raises(ValueError, match="length 7 is longer than the learned table, max_len=5"):
        encoder(token_ids())
    with pytest.raises(ValueError, match="ids from 17 to 17 leave the vocabulary of 0 to 16"):
        encoder(torch.tensor([[17]]))
    with pytest.raises(ValueError, match=r"shape \(5, 7, 32\) must have d_model=33 entries"):
        encoder.encoder(torch.zeros(BATCH, SEQ, 32))
    with pytest.raises(ValueError, match=r"shape \(5, 7, 32\) must have d_model=33 entries"):
        encoder.encoder.attention_weights(torch.zeros(BATCH, SEQ, 32))
    with pytest.raises(ValueError, match=r"masks of shapes \(1, 1, 1, 3\) and \(5, 5\) do not broadcast"):
        encoder(torch.tensor([[3, 2, 1]]), causal_mask(5))
    with pytest.raises(ValueError, match="positions='rotary' must be 'sinusoidal' or 'learned'"):
        TokenEncoder(CONFIG, VOCAB_SIZE, positions="rotary")
    with pytest.raises(ValueError, match="an image of 10×10 does not divide into patches of patch_size=3"):
        PatchEncoder(CONFIG, image_size=10, patch_size=3)


def test_the_scale_of_tokens_meets_that_of_positions():
    """The reason for N(0, 1/d_model): 1.0 beside 0.7, where nn.Embedding's N(0, 1) would give 22.6."""
    embedded = TokenEmbedding(1009, 512)(torch.arange(1009)[None])
    assert embedded.square().mean().sqrt().item() == pytest.approx(1.0, rel=0.02)
    assert sinusoidal_table(100, 512).square().mean().sqrt().item() == pytest.approx(0.5**0.5, rel=0.01)
