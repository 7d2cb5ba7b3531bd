"""The model: an encoder, and a linear map from its output to a score for each word of the vocabulary."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from encoder_lib.embedding import Vocabulary
from encoder_lib.stacking import EncoderConfig, TokenEncoder


class Inside(NamedTuple):
    """What the layers compute.

    Args:
        weights: every head's attention weights (batch, num_layers, num_heads, seq, seq), query before key.
        stream: the vectors before the first layer and after each (batch, num_layers + 1, seq, d_model), without the
            final norm.
        hidden: what is between the two maps of each feed-forward network (batch, num_layers, seq, d_ff), after ReLU.
    """

    weights: Tensor
    stream: Tensor
    hidden: Tensor


class MaskedWordModel(nn.Module):
    """Guess the words of a sentence, the masked ones among them.

    Args:
        config: sizes and choices of the encoder.
        vocabulary: the words to guess; all helpers of this package read it here.
    """

    def __init__(self, config: EncoderConfig, vocabulary: Vocabulary):
        super().__init__()
        self.vocabulary = vocabulary
        self.encoder = TokenEncoder(config, len(vocabulary), vocabulary.pad_id, max_len=64)
        self.head = nn.Linear(config.d_model, len(vocabulary))

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (batch, seq) to scores (batch, seq, vocab_size)."""
        return self.head(self.encoder(ids))

    @torch.no_grad()
    def look_inside(self, ids: Tensor) -> Inside:
        """Run the encoder layer by layer and keep what it computes; call it in eval mode.

        Args:
            ids: (batch, seq).

        Returns:
            attention weights, residual stream and hidden activations.
        """
        weights, stream, hidden = [], [self.encoder.embed(ids)], []
        mask = self.encoder.mask(ids)
        for layer in self.encoder.encoder.layers:
            keep = layer.feed_forward.linear_2.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
            weights.append(layer.attention_weights(stream[-1], mask))
            stream.append(layer(stream[-1], mask))
            keep.remove()
        return Inside(*(torch.stack(parts, dim=1) for parts in (weights, stream, hidden)))
