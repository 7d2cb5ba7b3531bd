"""The running example's walk through the encoder, stage by stage, and what the reference makes of each stage."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from encoder_grader.checking import LOCAL_SEED
from encoder_grader.exercise import exercises, find
from encoder_grader.exercises.stacking import layer_weights
from encoder_grader.judge import Answers
from encoder_grader.together.trial import handed_on, run, weights_of
from encoder_lib import CHAPTERS
from encoder_lib.running_example import cat_image, token_ids, vocabulary

PIECES = {  # in the order of the notebooks, each with the exercise that asks for it
    "TokenEmbedding": "embedding.token_embedding",
    "image_to_patches": "embedding.image_to_patches",
    "PatchEmbedding": "embedding.patch_embedding",
    "SinusoidalPositionalEncoding": "positional_encoding.sinusoidal_encoding",
    "LearnedPositionalEncoding": "positional_encoding.learned_encoding",
    "padding_mask": "attention.masks",
    "MultiHeadAttention": "attention.multi_head_attention",
    "LayerNorm": "add_norm.layer_norm_module",
    "AddNorm": "add_norm.add_norm",
    "FeedForward": "feed_forward.module",
    "EncoderLayer": "stacking.encoder_layer",
    "Encoder": "stacking.encoder",
    "TokenEncoder": "stacking.token_encoder",
    "PatchEncoder": "stacking.patch_encoder",
    "masked_mean": "stacking.masked_mean",
}
BUILT_OF_OTHERS = ("EncoderLayer", "Encoder", "TokenEncoder", "PatchEncoder")
PATCH_SIZE = 16
D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS = 16, 2, 24, 2  # small, for answers that loop over every number
LAYER_SIZES = (D_MODEL, NUM_HEADS, D_FF)


def chapter_of(piece: str) -> str:
    """The chapter whose notebook asks for a piece."""
    return PIECES[piece].partition(".")[0]


def place_of(exercise: str) -> str:
    """Where an exercise stands: "exercise 5 of notebook 3"."""
    chapter = exercise.partition(".")[0]
    names = [each.name for each in exercises(chapter)]
    return f"exercise {names.index(exercise) + 1} of notebook {CHAPTERS.index(chapter) + 1}"


def reference(piece: str) -> Any:
    """The reference's piece, with the signature that the exercise states."""
    return find(PIECES[piece]).reference[piece]


class Handed(NamedTuple):
    """What a stage hands on: its output, and the module that made it, for an Add & Norm to go round."""

    output: Tensor
    made: Callable | None


@dataclass(frozen=True)
class Stage:
    """One stage of a walk: what is called, with what, and what the reference makes of it.

    Args:
        title: as the table names it; unique in its walk.
        piece: a name of `PIECES`; empty for what the walk begins with.
        inputs, mask: what the reference's piece gets; a callable among the inputs is a sub-layer.
        sizes, options: of the constructor, where the piece is a class.
        weights: loaded into the module that is made, under the reference's names.
        counts: where the output is compared, or None for everywhere.
        layer: the layer that the stage is a part of, or None.
        handed, answers: what the reference hands on, and its answers, with which others are compared.
    """

    title: str
    piece: str
    inputs: tuple
    mask: Tensor | None = None
    sizes: tuple | None = None
    options: dict = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    counts: Tensor | None = None
    layer: str | None = None
    handed: Handed | None = None
    answers: Answers | None = None


Visit = Callable[..., Handed]  # runs a stage, on whoever's piece: visit(title, piece, *inputs, mask=…, sizes=…, …)


def sentences(visit: Visit) -> None:
    """The two sentences, through a post-norm encoder, to one vector each."""
    pad_id, vocab_size = vocabulary().pad_id, len(vocabulary())
    words = token_ids() != pad_id  # what a whole layer gives at the padding is nobody's business
    weights = _sentence_weights(vocab_size, pad_id)
    encoder = weights_of(weights, "encoder")

    ids, _ = visit("ids", "", token_ids())
    pad = {"pad_id": pad_id}
    embedding = {"sizes": (vocab_size, D_MODEL), "options": pad, "weights": weights_of(weights, "embedding")}
    x, _ = visit("token embedding", "TokenEmbedding", ids, **embedding)
    embedded, _ = visit("+ positional encoding", "SinusoidalPositionalEncoding", x, sizes=(D_MODEL,))
    mask, _ = visit("padding mask", "padding_mask", ids, pad_id)
    _layers(visit, embedded, encoder, {}, mask, words)
    stack = {"sizes": (NUM_LAYERS, *LAYER_SIZES), "weights": encoder, "counts": words}
    visit("all layers", "Encoder", embedded, mask=mask, **stack)
    whole = {"sizes": (vocab_size, *LAYER_SIZES, NUM_LAYERS), "options": pad, "weights": weights}
    x, _ = visit("the whole encoder", "TokenEncoder", ids, counts=words, **whole)
    visit("masked mean", "masked_mean", x, mask)


def cat(visit: Visit) -> None:
    """The photograph, through a pre-norm encoder with a class token."""
    side = cat_image().shape[-1]
    num_patches = (side // PATCH_SIZE) ** 2
    weights = _cat_weights(num_patches)
    encoder, pre = weights_of(weights, "encoder"), {"norm_first": True}

    pixels, _ = visit("pixels", "", cat_image())
    visit("patches", "image_to_patches", pixels, PATCH_SIZE)
    embedding = {"sizes": (side, PATCH_SIZE, 1, D_MODEL), "weights": weights_of(weights, "embedding")}
    x, _ = visit("patch embedding", "PatchEmbedding", pixels, **embedding)
    x = torch.cat([weights["class_token"], x], dim=1)  # (1, 1 + num_patches, d_model)
    positions = {"sizes": (num_patches + 1, D_MODEL), "weights": weights_of(weights, "positions")}
    embedded, _ = visit("class token, + positions", "LearnedPositionalEncoding", x, **positions)
    x = _layers(visit, embedded, encoder, pre)
    visit("final norm", "LayerNorm", x, sizes=(D_MODEL,), weights=weights_of(encoder, "norm"))
    stack = {"sizes": (NUM_LAYERS, *LAYER_SIZES), "weights": encoder, "options": pre}
    visit("all layers, final norm", "Encoder", embedded, **stack)
    whole = {"sizes": (side, PATCH_SIZE, 1, *LAYER_SIZES, NUM_LAYERS), "weights": weights}
    visit("the whole encoder", "PatchEncoder", pixels, **whole)


WALKS = {"The two sentences": sentences, "The cat": cat}


def _layers(visit: Visit, x: Tensor, encoder: dict, options: dict, mask=None, counts=None) -> Tensor:
    """Each layer in its parts, and the same in one piece."""
    for number in range(1, NUM_LAYERS + 1):
        layer, weights, entered = f"layer {number}", weights_of(encoder, f"layers.{number - 1}"), x
        attention = ("attention", "MultiHeadAttention", (D_MODEL, NUM_HEADS), mask)
        x = _sublayer(visit, layer, 1, x, weights, options, *attention)
        x = _sublayer(visit, layer, 2, x, weights, options, "feed-forward", "FeedForward", (D_MODEL, D_FF))
        whole = {"sizes": LAYER_SIZES, "options": options, "weights": weights, "counts": counts, "layer": layer}
        visit(f"{layer} in one piece", "EncoderLayer", entered, mask=mask, **whole)
    return x


def _sublayer(visit, layer, number, x, weights, options, name, piece, sizes, mask=None) -> Tensor:
    """Attention or the feed-forward network, and the Add & Norm around it."""
    norm, reads = f"add_norm_{number}", x
    if options.get("norm_first"):
        inner = {"sizes": (D_MODEL,), "weights": weights_of(weights, f"{norm}.norm"), "layer": layer}
        reads, _ = visit(f"norm {number} of {layer}", "LayerNorm", x, **inner)
    inner = {"sizes": sizes, "weights": weights_of(weights, name.replace("-", "_")), "layer": layer}
    _, made = visit(f"{name} of {layer}", piece, reads, mask=mask, **inner)
    outer = {"sizes": (D_MODEL,), "options": options, "weights": weights_of(weights, norm), "layer": layer}
    x, _ = visit(f"add & norm {number} of {layer}", "AddNorm", x, _as_function(made, mask), **outer)
    return x


def _as_function(made: Callable, mask: Tensor | None) -> Callable[[Tensor], Tensor]:
    """What an Add & Norm is handed: a module and its mask as one function."""
    options = {} if mask is None else {"mask": mask}
    return lambda x: handed_on(made(handed_on(x), **options))


def _sentence_weights(vocab_size: int, pad_id: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(LOCAL_SEED)
    table = torch.randn(vocab_size, D_MODEL, generator=draw) / D_MODEL**0.5
    table[pad_id] = 0.0
    return {"embedding.embedding.weight": table} | _encoder_weights(draw)


def _cat_weights(num_patches: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(LOCAL_SEED)

    def normal(*shape):
        return torch.randn(shape, generator=draw)

    return {
        "embedding.projection.weight": normal(D_MODEL, PATCH_SIZE**2) / PATCH_SIZE,
        "embedding.projection.bias": 0.3 * normal(D_MODEL),
        "class_token": normal(1, 1, D_MODEL),
        "positions.table": 0.5 * normal(num_patches + 1, D_MODEL),
        **_encoder_weights(draw),
        "encoder.norm.gamma": 1 + 0.3 * normal(D_MODEL),
        "encoder.norm.beta": 0.3 * normal(D_MODEL),
    }


def _encoder_weights(draw: torch.Generator) -> dict[str, Tensor]:
    layers = {f"encoder.layers.{i}.": layer_weights(draw, D_MODEL, D_FF) for i in range(NUM_LAYERS)}
    return {prefix + name: weight for prefix, weights in layers.items() for name, weight in weights.items()}


def reference_stages(walk: Callable[[Visit], None]) -> dict[str, Stage]:
    """The stages of a walk by title, with what the reference makes of them."""
    stages = {}

    def visit(title: str, piece: str, *inputs, mask=None, **how) -> Handed:
        stage = Stage(title, piece, inputs, mask, **how)
        if piece:
            trial = run(stage, inputs, mask, {piece: reference(piece)})
            answers = Answers(trial.plan, trial.recording)
            stage = replace(stage, handed=Handed(trial.output, trial.made), answers=answers)
        else:
            stage = replace(stage, handed=Handed(inputs[0], None))
        stages[title] = stage
        return stage.handed

    walk(visit)
    return stages
