"""A small trained encoder to look into: it guesses hidden words in sentences of a small grammar.

    from trained import MASK, attention_weights, load

    model, vocabulary, sentences = load()
    weights = attention_weights(model, sentences[0])  # (num_layers, num_heads, seq, seq)

The README beside this file says how it was made and how good it is, and findings.json what was found inside it.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file  # plain tensors: a file of weights that can run no code
from torch import Tensor

from encoder_lib.embedding import Vocabulary, tokenize
from encoder_lib.stacking import EncoderConfig
from trained import grammar
from trained.grammar import MASK, SENTENCES
from trained.model import MaskedWordModel

FOLDER = Path(__file__).resolve().parent


def load() -> tuple[MaskedWordModel, Vocabulary, tuple[str, ...]]:
    """Return the trained model in eval mode, its vocabulary, and sentences to look at, none of them from training."""
    vocabulary = grammar.vocabulary()
    model = MaskedWordModel(EncoderConfig(**figures()["config"]), vocabulary)
    model.load_state_dict(load_file(FOLDER / "weights.safetensors"))
    return model.eval(), vocabulary, SENTENCES


def figures() -> dict:
    """Return what was measured when the weights were made: weights.json."""
    return json.loads((FOLDER / "weights.json").read_text())


def findings() -> dict:
    """Return what was found inside the model, and inside two others like it: findings.json."""
    return json.loads((FOLDER / "findings.json").read_text())


def attention_weights(model: MaskedWordModel, sentence: str) -> Tensor:
    """Return every head's weights for one sentence, (num_layers, num_heads, seq, seq), query before key."""
    return model.look_inside(model.vocabulary.encode([sentence])).weights[0]


def residual_stream(model: MaskedWordModel, sentence: str) -> Tensor:
    """Return the vectors before the first layer and after each, (num_layers + 1, seq, d_model)."""
    return model.look_inside(model.vocabulary.encode([sentence])).stream[0]


def hidden_activations(model: MaskedWordModel, sentence: str) -> Tensor:
    """Return what is between the two maps of each feed-forward network, after ReLU, (num_layers, seq, d_ff)."""
    return model.look_inside(model.vocabulary.encode([sentence])).hidden[0]


@torch.no_grad()
def guesses(model: MaskedWordModel, sentence: str, count: int = 5) -> list[list[tuple[str, float]]]:
    """Return for each gap, written `MASK`, the likeliest words with their probabilities, the likeliest first."""
    probabilities = model(model.vocabulary.encode([sentence]))[0].softmax(dim=-1)  # (seq, vocab_size)
    gaps = [place for place, word in enumerate(tokenize(sentence)) if word == MASK]
    best = [probabilities[place].topk(count).indices.tolist() for place in gaps]
    return [
        [(model.vocabulary.words[index], probabilities[place, index].item()) for index in indices]
        for place, indices in zip(gaps, best, strict=True)
    ]
