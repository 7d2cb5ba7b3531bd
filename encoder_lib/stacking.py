"""Chapter 6: the layers on top of each other, and the whole encoder from tokens or from images."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from encoder_lib._checks import check_dropout, check_positive, check_width
from encoder_lib.add_norm import AddNorm, LayerNorm
from encoder_lib.attention import MultiHeadAttention, combine_masks, padding_mask
from encoder_lib.embedding import PatchEmbedding, TokenEmbedding
from encoder_lib.feed_forward import ACTIVATIONS, FeedForward, check_activation
from encoder_lib.positional_encoding import LearnedPositionalEncoding, SinusoidalPositionalEncoding


@dataclass(frozen=True)
class EncoderConfig:
    """The sizes and choices of an encoder; the defaults are the paper's base model.

    Args:
        d_model: the width of the residual stream.
        num_heads: the number of heads; it divides d_model.
        d_ff: the width between the two maps of the feed-forward network.
        num_layers: the number of layers.
        dropout: the probability of a zero, in training: on sub-layers' outputs, attention weights, the
            feed-forward network's inner entries, and embedding + positions.
        activation: "relu" or "gelu".
        norm_first: False for post-norm (the paper), True for pre-norm (ViT).
        final_norm: whether a layer norm follows the last layer; None: with pre-norm, which needs it.
        bias: whether projections, feed-forward maps and norms add a bias.
        eps: the layer norms' epsilon.

    Raises:
        ValueError: a value makes no sense.

    Source: Vaswani et al. 2017, table 3; book chapter 6.
    """

    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_layers: int = 6
    dropout: float = 0.1
    activation: str = "relu"
    norm_first: bool = False
    final_norm: bool | None = None
    bias: bool = True
    eps: float = 1e-5

    def __post_init__(self):
        check_positive(d_model=self.d_model, num_heads=self.num_heads, d_ff=self.d_ff, num_layers=self.num_layers)
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model={self.d_model} is not divisible by num_heads={self.num_heads}")
        check_dropout(self.dropout)
        check_activation(self.activation)
        if self.final_norm is None:  # frozen, so not by a plain assignment
            object.__setattr__(self, "final_norm", self.norm_first)
        for name in ("norm_first", "final_norm", "bias"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False")
        if not self.eps > 0.0:
            raise ValueError(f"eps={self.eps!r} must be positive")


class EncoderLayer(nn.Module):
    r"""One layer: self-attention, then the feed-forward network, each inside an Add & Norm.

    $x \leftarrow \mathrm{AddNorm}(x, \mathrm{MultiHead})$, then $x \leftarrow \mathrm{AddNorm}(x, \mathrm{FFN})$.

    Args:
        config: sizes and choices.

    Raises:
        ValueError: when called, x has another width, or the mask does not fit.

    Source: Vaswani et al. 2017, section 3.1; book chapter 6.
    """

    def __init__(self, config: EncoderConfig):
        super().__init__()
        c = config
        self.attention = MultiHeadAttention(c.d_model, c.num_heads, c.dropout, c.bias)
        self.add_norm_1 = AddNorm(c.d_model, c.dropout, c.norm_first, c.eps, c.bias)
        self.feed_forward = FeedForward(c.d_model, c.d_ff, c.dropout, c.activation, c.bias)
        self.add_norm_2 = AddNorm(c.d_model, c.dropout, c.norm_first, c.eps, c.bias)

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch seq d_model"]:
        """Map x (batch, seq, d_model) to the same shape; mask as in `MultiHeadAttention`."""
        x = self.add_norm_1(x, lambda x: self.attention(x, mask=mask))
        return self.add_norm_2(x, self.feed_forward)

    def attention_weights(
        self, x: Float[Tensor, "batch seq d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch num_heads seq seq"]:
        """Return the weights (batch, num_heads, seq, seq) with which this layer attends, given its input x."""
        x = self.add_norm_1.norm(x) if self.add_norm_1.norm_first else x
        return self.attention(x, mask=mask, need_weights=True)[1]


class Encoder(nn.Module):
    """A stack of independent layers, and the final norm if the configuration has one.

    Args:
        config: sizes and choices.

    Raises:
        ValueError: when called, x has another width, or the mask does not fit.

    Source: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, section 3 (final norm); book chapter 6.
    """

    def __init__(self, config: EncoderConfig):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.norm = LayerNorm(config.d_model, config.eps, config.bias) if config.final_norm else nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], mask: Tensor | None = None
    ) -> Float[Tensor, "batch seq d_model"]:
        """Map x (batch, seq, d_model) to the same shape; mask as in `MultiHeadAttention`."""
        check_width(x, self.config.d_model)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)

    def attention_weights(self, x: Float[Tensor, "batch seq d_model"], mask: Tensor | None = None) -> list[Tensor]:
        """Return each layer's weights, (batch, num_heads, seq, seq)."""
        check_width(x, self.config.d_model)
        weights = []
        for layer in self.layers:
            weights.append(layer.attention_weights(x, mask))
            x = layer(x, mask)
        return weights


class TokenEncoder(nn.Module):
    r"""The whole encoder from token ids: embedding ×√d_model, positions, dropout, layers.

    Args:
        config: sizes and choices of the layers.
        vocab_size: the number of tokens.
        pad_id: the id that nobody attends to, or None.
        max_len: the number of positions.
        positions: "sinusoidal" (the paper) or "learned".

    Raises:
        ValueError: a size makes no sense; when called, an id is not in the vocabulary, or the sequence is
            longer than a learned table.

    Source: Vaswani et al. 2017, section 3; book chapter 6.
    """

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        pad_id: int | None = 0,
        max_len: int = 5000,
        positions: str = "sinusoidal",
    ):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, config.d_model, pad_id)
        self.positions = _positional_encoding(positions, max_len, config)
        self.encoder = Encoder(config)

    def mask(self, ids: Int[Tensor, "batch seq"]) -> Tensor | None:
        """Return the padding mask (batch, 1, 1, seq) of ids (batch, seq), or None without `pad_id`."""
        return None if self.pad_id is None else padding_mask(ids, self.pad_id)

    def embed(self, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """Return what enters the first layer, (batch, seq, d_model)."""
        return self.positions(self.embedding(ids))

    def forward(self, ids: Int[Tensor, "batch seq"], mask: Tensor | None = None) -> Float[Tensor, "batch seq d_model"]:
        """Map ids (batch, seq) to (batch, seq, d_model); `mask` comes on top of the padding mask."""
        return self.encoder(self.embed(ids), combine_masks(self.mask(ids), mask))


class PatchEncoder(nn.Module):
    """The whole encoder from images: patches, projection, a class token if wanted, positions, layers.

    ViT has a class token, learned positions, pre-norm and GELU; the defaults have sinusoids and no class token.

    Args:
        config: sizes and choices of the layers.
        image_size, patch_size, channels: as in `PatchEmbedding`.
        class_token: whether a learned vector goes in front of the patches; read it at position 0.
        positions: "sinusoidal" or "learned".

    Raises:
        ValueError: a size makes no sense; when called, the images have another shape.

    Source: Dosovitskiy et al. 2021, section 3.1; book chapter 6.
    """

    def __init__(
        self,
        config: EncoderConfig,
        image_size: int = 224,
        patch_size: int = 16,
        channels: int = 1,
        class_token: bool = False,
        positions: str = "sinusoidal",
    ):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, config.d_model)
        self.class_token = nn.Parameter(torch.empty(1, 1, config.d_model)) if class_token else None
        if class_token:
            nn.init.normal_(self.class_token, std=0.02)
        self.positions = _positional_encoding(positions, self.embedding.num_patches + class_token, config)
        self.encoder = Encoder(config)

    def embed(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch seq d_model"]:
        """Return what enters the first layer, (batch, seq, d_model)."""
        x = self.embedding(images)  # (batch, num_patches, d_model)
        if self.class_token is not None:
            class_token = self.class_token.expand(x.shape[0], -1, -1)  # (batch, 1, d_model)
            x = torch.cat([class_token, x], dim=1)  # (batch, 1 + num_patches, d_model)
        return self.positions(x)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch seq d_model"]:
        """Map images (batch, channels, height, width) to (batch, seq, d_model)."""
        return self.encoder(self.embed(images))


def _positional_encoding(kind: str, max_len: int, config: EncoderConfig) -> nn.Module:
    if kind == "sinusoidal":
        return SinusoidalPositionalEncoding(config.d_model, max_len, config.dropout)
    if kind == "learned":
        return LearnedPositionalEncoding(max_len, config.d_model, config.dropout)
    raise ValueError(f"positions={kind!r} must be 'sinusoidal' or 'learned'")


def masked_mean(x: Float[Tensor, "batch seq d_model"], mask: Tensor | None = None) -> Float[Tensor, "batch d_model"]:
    r"""Average the vectors of a sequence that are not padding.

    $\bar x = \sum_t m_t x_t / \sum_t m_t$

    Args:
        x: (batch, seq, d_model).
        mask: boolean, (batch, seq) or a padding mask (batch, 1, 1, seq), True = counts; None: all count.

    Returns:
        (batch, d_model); zero for a sequence in which nothing counts.

    Raises:
        ValueError: the mask is not boolean or has another shape.

    Source: book chapter 6.
    """
    if mask is None:
        return x.mean(dim=1)
    batch, seq, _ = x.shape
    if mask.dtype != torch.bool or tuple(mask.shape) not in {(batch, seq), (batch, 1, 1, seq)}:
        shapes = f"({batch}, {seq}) or ({batch}, 1, 1, {seq})"
        raise ValueError(f"a mask of shape {tuple(mask.shape)} and {mask.dtype} must be boolean of shape {shapes}")
    counts = mask.reshape(batch, seq, 1)  # (batch, seq, 1)
    total = x.masked_fill(~counts, 0.0).sum(dim=1)  # (batch, d_model)
    return total / counts.sum(dim=1).clamp(min=1)  # (batch, d_model)


# the names of torch's parameters, in the order in which they are replaced by ours
_TORCH_NAMES = {
    "self_attn.out_proj": "attention.w_o",
    "linear1": "feed_forward.linear_1",
    "linear2": "feed_forward.linear_2",
    "norm1": "add_norm_1.norm",
    "norm2": "add_norm_2.norm",
    "norm.weight": "norm.gamma",
    "norm.bias": "norm.beta",
}


def load_torch_weights(encoder: Encoder, torch_encoder: nn.TransformerEncoder) -> Encoder:
    """Copy the weights of a `torch.nn.TransformerEncoder` into an `Encoder` of the same configuration.

    torch stacks the projections of query, key and value in one matrix, (3·d_model, d_model); here they are three.

    Args:
        encoder: what to fill.
        torch_encoder: where the weights come from.

    Returns:
        `encoder`.

    Raises:
        ValueError: the two differ in a size or in a choice that would change the outputs; nothing is copied.

    Source: book chapter 6.
    """
    _check_same_choices(encoder.config, torch_encoder)
    weights = {}
    for name, weight in torch_encoder.state_dict().items():
        if "in_proj" in name:
            for letter, part in zip("qkv", weight.chunk(3), strict=True):  # each (d_model, d_model) or (d_model,)
                weights[name.replace("self_attn.in_proj_", f"attention.w_{letter}.")] = part
        else:
            for theirs, ours in _TORCH_NAMES.items():
                name = name.replace(theirs, ours)
            weights[name] = weight
    theirs = {name: tuple(weight.shape) for name, weight in weights.items()}
    ours = {name: tuple(weight.shape) for name, weight in encoder.state_dict().items()}
    for name in sorted(theirs.keys() | ours.keys()):
        if theirs.get(name) != ours.get(name):
            raise ValueError(f"{name} has shape {theirs.get(name)} in torch's encoder and {ours.get(name)} in this one")
    encoder.load_state_dict(weights)
    return encoder


def _check_same_choices(config: EncoderConfig, torch_encoder: nn.TransformerEncoder) -> None:
    """Raise unless both agree in what their weights' shapes do not show."""
    probe = torch.linspace(-3.0, 3.0, 13, dtype=torch.float64)
    for layer in torch_encoder.layers:
        pairs = {
            "num_heads": (config.num_heads, layer.self_attn.num_heads),
            "norm_first": (config.norm_first, layer.norm_first),
            "eps": (config.eps, layer.norm1.eps),
        }
        for name, (ours, theirs) in pairs.items():
            if ours != theirs:
                raise ValueError(f"{name}={theirs} in torch's encoder, but {name}={ours} in this one")
        if not torch.allclose(layer.activation(probe), ACTIVATIONS[config.activation](probe)):
            raise ValueError(f"torch's encoder has another activation than activation={config.activation!r}")
