"""The exercises of chapter 6, stacking."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from encoder_grader.bug_hunt import Bug, bug_hunt
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers
from encoder_grader.plan import Plan, Ref, pick
from encoder_lib import stacking
from encoder_lib.add_norm import AddNorm, LayerNorm
from encoder_lib.attention import MultiHeadAttention, merge_heads, padding_mask, split_heads
from encoder_lib.embedding import PatchEmbedding, TokenEmbedding
from encoder_lib.feed_forward import FeedForward
from encoder_lib.positional_encoding import LearnedPositionalEncoding, SinusoidalPositionalEncoding
from encoder_lib.stacking import EncoderConfig

ONE_LAYER = "“One layer” in chapter 6"
INDEPENDENT = "“Independent layers” in chapter 6"
EVERY_LAYER = "“The mask in every layer” in chapter 6"
FINAL_NORM = "“The final norm” in chapter 6"
TOKENS = "“From tokens” in chapter 6"
PATCHES = "“From patches” in chapter 6"
TORCH = "“The names of the weights” in chapter 6"
COST = "“What it costs” in chapter 6"
POOLING = "“One vector for a sequence” in chapter 6"
TESTING = "“Testing an encoder” in chapter 6"

TORCHS_OWN = ("multi_head_attention_forward", "_transformer_encoder_layer_fwd")  # what torch's layer calls


def encoder_layer(d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    return stacking.EncoderLayer(EncoderConfig(d_model, num_heads, d_ff, 1, dropout, norm_first=norm_first))


def encoder(num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    return stacking.Encoder(EncoderConfig(d_model, num_heads, d_ff, num_layers, dropout, norm_first=norm_first))


def token_encoder(vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
    return stacking.TokenEncoder(EncoderConfig(d_model, num_heads, d_ff, num_layers, dropout), vocab_size, pad_id)


def patch_encoder(image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
    config = EncoderConfig(d_model, num_heads, d_ff, num_layers, dropout, norm_first=True)
    return stacking.PatchEncoder(config, image_size, patch_size, channels, class_token=True, positions="learned")


def layer_weights(draw: torch.Generator, d_model: int, d_ff: int) -> dict[str, Tensor]:
    """Weights for one layer, none of them 0 or 1, with scores of unit size."""

    def normal(*shape):
        return torch.randn(shape, generator=draw)

    shapes = {f"attention.w_{letter}": (d_model, d_model) for letter in "qkvo"}
    shapes |= {"feed_forward.linear_1": (d_ff, d_model), "feed_forward.linear_2": (d_model, d_ff)}
    weights = {}
    for name, (rows, columns) in shapes.items():
        weights[f"{name}.weight"] = normal(rows, columns) / math.sqrt(columns)
        weights[f"{name}.bias"] = 0.3 * normal(rows)
    for number in (1, 2):
        weights[f"add_norm_{number}.norm.gamma"] = 1 + 0.3 * normal(d_model)
        weights[f"add_norm_{number}.norm.beta"] = 0.3 * normal(d_model)
    return weights


def sizes(draw: torch.Generator) -> tuple[int, int, int]:
    """d_model, num_heads and d_ff, all different."""
    num_heads = pick(draw, 2, 3)
    return num_heads * pick(draw, 4, 5), num_heads, pick(draw, 17, 23)


def lengths_mask(lengths: list[int], seq: int) -> Tensor:
    """The padding mask (batch, 1, 1, seq) of sequences of these lengths."""
    return (torch.arange(seq) < torch.tensor(lengths).unsqueeze(1))[:, None, None, :]


def close(one: Tensor, other: Tensor) -> bool:
    """Whether two results are the same numbers, and not zeros or all alike."""
    return torch.allclose(one, other, rtol=1e-4, atol=1e-4) and one.std().item() > 1e-3


def standardised(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def other_content(x: Tensor, draw: torch.Generator, row: int, start: int) -> Tensor:
    """x with something else in one example, from position `start` on."""
    x = x.clone()
    x[row, start:] = 3 * torch.randn(x[row, start:].shape, generator=draw)
    return x


# --- 1. EncoderLayer --------------------------------------------------------------------------------------------------


def _layer_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=TORCHS_OWN)

    def layer(d_model, num_heads, d_ff, weights, training=False, **options):
        made = plan.call("EncoderLayer", d_model, num_heads, d_ff, **options)
        plan.load(made, weights)
        plan.train(made, training)
        return made

    # the values, in two sizes
    for kind, norm_first in (("post", False), ("pre", True)):
        for other, batch, seq in (("", 3, 5), ("other ", 2, 7)):
            d_model, num_heads, d_ff = sizes(draw)
            made = layer(d_model, num_heads, d_ff, layer_weights(draw, d_model, d_ff), norm_first=norm_first)
            x = torch.randn(batch, seq, d_model, generator=draw)
            plan.call(made, plan.tensor(f"{other}{kind} x", x), label=f"{other}{kind}")

    # the masks: what a position may not see has no influence on it
    d_model, num_heads, d_ff = sizes(draw)
    made = layer(d_model, num_heads, d_ff, layer_weights(draw, d_model, d_ff))
    x = torch.randn(3, 5, d_model, generator=draw)
    x, changed = plan.tensor("x", x), plan.tensor("changed x", other_content(x, draw, 1, 3))
    padding = plan.tensor("padding", lengths_mask([5, 3, 4], 5))
    causal = plan.tensor("causal", torch.ones(5, 5, dtype=torch.bool).tril())
    for name, mask in (("plain", None), ("padding", padding), ("causal", causal)):
        plan.call(made, x, mask=mask, label=name)
        plan.call(made, changed, mask=mask, label=f"changed {name}")

    # where dropout acts: one head, one token, one hidden entry and equal rows, so that each place leaves its own trace
    weights = layer_weights(draw, 8, 1)
    weights |= {"attention.w_o.bias": torch.zeros(8), "feed_forward.linear_2.bias": torch.zeros(8)}
    weights |= {"feed_forward.linear_1.bias": torch.tensor([9.0])}  # past the ReLU's corner
    no_attention = {"attention.w_o.weight": torch.zeros(8, 8)}
    no_feed_forward = {"feed_forward.linear_2.weight": torch.zeros(8, 1)}
    rows = plan.tensor("equal rows", torch.randn(1, 1, 8, generator=draw).expand(80, 1, 8))
    plan.seed(seed)
    for name, off in (("attention", no_feed_forward), ("feed-forward", no_attention)):
        made = layer(8, 1, 1, weights | off, training=True, dropout=0.5)
        plan.call(made, rows, label=f"{name} dropped")
    made = layer(8, 1, 1, weights | no_attention | no_feed_forward)
    plan.call(made, rows, label="without both")

    # and where it must not act
    d_model, num_heads, d_ff = sizes(draw)
    weights, x = layer_weights(draw, d_model, d_ff), plan.tensor("quiet x", torch.randn(4, 5, d_model, generator=draw))
    for name, dropout, training in (("eval", 0.0, False), ("train at 0", 0.0, True), ("eval at 0.6", 0.6, False)):
        made = layer(d_model, num_heads, d_ff, weights, training, dropout=dropout)
        plan.call(made, x, label=name)
    return plan


def _both(label: str):
    """The quantity of two calls, in two sizes."""
    return lambda a: (a[label], a[f"other {label}"])


def _mask_at_work(a: Answers) -> tuple:
    """Whether content that may not be seen leaves the others alone, and content that may be seen does not.

    The last fact, whether the mask changes nothing at all, tells a mask that is not there from one turned round.
    """
    hidden = close(a["padding"][1, :3], a["changed padding"][1, :3])
    later = close(a["causal"][1, :3], a["changed causal"][1, :3])
    seen = not close(a["plain"][1, :3], a["changed plain"][1, :3])
    return hidden, later, seen, close(a["padding"], a["plain"])


def _mask_in_words(got: tuple) -> str:
    if not got[2]:
        return "without a mask, what stands at one position has no influence on the others"
    return "what stands at a masked position changes the output at " + ("the others" if not got[0] else "earlier ones")


def _dropped(a: Answers) -> tuple:
    """For attention and feed-forward: whether it drops inside (then whole rows vanish), and whether of its output."""
    facts = []
    for name in ("attention", "feed-forward"):
        rows = a[f"{name} dropped"][:, 0]
        gone = ((rows - a["without both"][0, 0]).abs() < 1e-4).all(-1)
        kept = rows[~gone]
        facts += [0.25 < gone.double().mean().item() < 0.75]
        facts += [len(kept) > 1 and not torch.allclose(kept, kept[:1], atol=1e-4)]
    return tuple(facts)


def _dropped_in_words(got: tuple) -> str:
    places = (
        "the attention weights",
        "the attention's output",
        "the inner entries",
        "the feed-forward network's output",
    )
    missing = [place for place, there in zip(places, got, strict=True) if not there]
    return f"in training, at dropout=0.5, about half should be dropped: not so for {', '.join(missing)}"


class _Layer(nn.Module):
    """An EncoderLayer in which each mistake is a switch."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False, **switches):
        super().__init__()
        self.switches = switches
        inner, outer = switches.get("inner", lambda p: p)(dropout), switches.get("outer", lambda p: p)(dropout)
        norm_first = switches.get("always_first", norm_first)
        self.attention = MultiHeadAttention(d_model, num_heads, switches.get("weights", lambda p: p)(dropout))
        self.add_norm_1 = AddNorm(d_model, outer, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff, inner)
        self.add_norm_2 = self.add_norm_1 if switches.get("one_norm") else AddNorm(d_model, outer, norm_first)

    def forward(self, x, mask=None):
        wrong = self.switches.get("forward")
        if wrong:
            return wrong(self, x, mask)
        return self.add_norm_2(self.first(x, mask), self.feed_forward)

    def first(self, x, mask):
        mask = self.switches.get("mask", lambda mask: mask)(mask)
        return self.add_norm_1(x, lambda x: self.attention(x, mask=mask))


def _layer(**switches):
    return {"EncoderLayer": lambda *args, **kwargs: _Layer(*args, **kwargs, **switches)}


def _attention_reads_input(layer, x, mask):
    after = layer.add_norm_1(x, lambda _: layer.attention(x, mask=mask))
    return layer.add_norm_2(after, layer.feed_forward)


def _second_residual_from_input(layer, x, mask):
    after = layer.first(x, mask)
    if layer.add_norm_2.norm_first:
        return x + layer.add_norm_2.dropout(layer.feed_forward(layer.add_norm_2.norm(after)))
    return layer.add_norm_2.norm(x + layer.add_norm_2.dropout(layer.feed_forward(after)))


def _feed_forward_first(layer, x, mask):
    after = layer.add_norm_1(x, layer.feed_forward)
    return layer.add_norm_2(after, lambda x: layer.attention(x, mask=mask))


def _no_second_residual(layer, x, mask):
    after = layer.first(x, mask)
    if layer.add_norm_2.norm_first:
        return layer.add_norm_2.dropout(layer.feed_forward(layer.add_norm_2.norm(after)))
    return layer.add_norm_2.norm(layer.add_norm_2.dropout(layer.feed_forward(after)))


def _residual_twice(layer, x, mask):
    after = layer.add_norm_1(x, lambda x: x + layer.attention(x, mask=mask))
    return layer.add_norm_2(after, lambda x: x + layer.feed_forward(x))


ENCODER_LAYER = Exercise(
    name="stacking.encoder_layer",
    title="EncoderLayer",
    challenge=_layer_challenge,
    reference={"EncoderLayer": encoder_layer},
    forbidden=TORCHS_OWN,
    claims=(
        Claim("post", 2, "post-norm: attention, then feed-forward, each in its Add & Norm", _both("post")),
        Claim("pre", 1, "`norm_first=True`: both sub-layers get the normalised stream", _both("pre")),
        Claim(
            "mask",
            1,
            "what the mask hides has no influence, for padding masks and causal ones",
            _mask_at_work,
            reason=_mask_in_words,
        ),
        Claim(
            "dropout",
            1,
            "in training, `dropout` acts on the attention weights, the inner entries and both outputs",
            _dropped,
            reason=_dropped_in_words,
        ),
        Claim(
            "quiet",
            1,
            "with `dropout=0`, and in evaluation, nothing is dropped",
            lambda a: (close(a["train at 0"], a["eval"]), close(a["eval at 0.6"], a["eval"])),
            reason=lambda got: (
                "with dropout=0 the output in training is another than in evaluation"
                if not got[0]
                else "in evaluation the output depends on `dropout`"
            ),
        ),
    ),
    misconceptions=(
        Misconception(
            "always_post",
            "your layer is post-norm whatever `norm_first` says",
            ONE_LAYER,
            _layer(always_first=False),
        ),
        Misconception(
            "always_pre",
            "your layer is pre-norm although `norm_first` is False",
            ONE_LAYER,
            _layer(always_first=True),
        ),
        Misconception(
            "attention_lost",
            "your second sub-layer gets the layer's input, and what the first one made is lost",
            "“What goes wrong” in chapter 6",
            _layer(forward=lambda layer, x, mask: (layer.first(x, mask), layer.add_norm_2(x, layer.feed_forward))[1]),
        ),
        Misconception(
            "second_residual_from_input",
            "your second residual adds the layer's input: it should add what went into the second sub-layer",
            "“What goes wrong” in chapter 6",
            _layer(forward=_second_residual_from_input),
        ),
        Misconception(
            "no_second_residual",
            "your second sub-layer has no residual",
            ONE_LAYER,
            _layer(forward=_no_second_residual),
        ),
        Misconception(
            "residual_twice",
            "you add the residual yourself, and `AddNorm` adds it once more",
            ONE_LAYER,
            _layer(forward=_residual_twice),
        ),
        Misconception(
            "feed_forward_first",
            "your feed-forward network comes before the attention",
            ONE_LAYER,
            _layer(forward=_feed_forward_first),
        ),
        Misconception(
            "one_norm",
            "both your sub-layers share one Add & Norm: each has its own γ and β",
            ONE_LAYER,
            _layer(one_norm=True),
        ),
        Misconception(
            "attention_reads_input",
            "your attention reads the layer's input: in pre-norm, that is not what `AddNorm` hands to its function",
            ONE_LAYER,
            _layer(forward=_attention_reads_input),
        ),
        Misconception(
            "mask_dropped",
            "your attention does not get the mask",
            EVERY_LAYER,
            _layer(mask=lambda mask: None),
        ),
        Misconception(
            "mask_inverted",
            "you turn the mask round: in this book True means that a key may be attended to",
            EVERY_LAYER,
            _layer(mask=lambda mask: None if mask is None else ~mask),
        ),
        Misconception(
            "weights_not_dropped",
            "you do not pass `dropout` on to the attention, whose own default is 0",
            "“Dropout in four places” in chapter 6",
            _layer(weights=lambda p: 0.0),
        ),
        Misconception(
            "no_dropout",
            "your layer has no dropout, like the one of note 002",
            "“Dropout in four places” in chapter 6",
            _layer(weights=lambda p: 0.0, inner=lambda p: 0.0, outer=lambda p: 0.0),
        ),
        Misconception(
            "default_dropout",
            "you do not pass `dropout` on: Add & Norm and the feed-forward network then take their own default",
            "“Dropout in four places” in chapter 6",
            _layer(weights=lambda p: 0.0, inner=lambda p: 0.1, outer=lambda p: 0.1),
        ),
    ),
)

# --- 2. Encoder -------------------------------------------------------------------------------------------------------


def _encoder_challenge(seed: int) -> Plan:
    """The learner's encoder beside the learner's own layers, one after another: a wrong layer costs nothing here."""
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    num_layers = plan.hidden["num_layers"] = 3

    def layers(encoder: Ref) -> list[Ref]:
        whole = plan.attribute(encoder, "layers")
        return [plan.item(whole, i) for i in range(num_layers)]

    def chain(encoder: Ref, x: Ref, label: str, mask: Ref | None = None) -> None:
        plan.call(encoder, x, mask=mask, label=label)
        each = layers(encoder)
        plan.call(each[-1], x, mask=mask, label=f"{label} last alone")
        for layer in each:
            before, x = x, plan.call(layer, x, mask=mask, label=f"{label} one by one" if layer is each[-1] else None)
            if layer is each[-2]:
                plan.call(layer, before, mask=mask, label=f"{label} without the last")

    for kind, norm_first in (("post", False), ("pre", True)):
        d_model, num_heads, d_ff = sizes(draw)
        made = plan.call("Encoder", num_layers, d_model, num_heads, d_ff, norm_first=norm_first)
        plan.train(made, False)
        for layer in layers(made):
            plan.load(layer, layer_weights(draw, d_model, d_ff))
            plan.train(layer, False)  # a plain list hides its layers from the encoder
        x = plan.tensor(f"{kind} x", torch.randn(3, 7, d_model, generator=draw))
        chain(made, x, kind)
        if kind == "post":
            chain(made, x, "padding", plan.tensor("padding", lengths_mask([7, 4, 2], 7)))
            chain(made, x, "causal", plan.tensor("causal", torch.ones(7, 7, dtype=torch.bool).tril()))

    plan.seed(seed)
    d_model, num_heads, d_ff = sizes(draw)
    fresh = plan.call("Encoder", num_layers, d_model, num_heads, d_ff, dropout=0.0)
    x = plan.tensor("fresh x", torch.randn(2, 5, d_model, generator=draw))
    for i, layer in enumerate(layers(fresh)):
        plan.call(layer, x, label=f"fresh {i}")
        if i == 0:
            first = plan.call(layer, x)
            plan.reached(first, torch.randn(2, 5, d_model, generator=draw), layer, label="weights of one")
    upstream = torch.randn(2, 5, d_model, generator=draw)
    plan.reached(plan.call(fresh, x), upstream, fresh, label="weights of all")
    return plan


def _times_one_layer(a: Answers) -> tuple:
    """How many layers' worth of weights learn, as parameters of the encoder."""
    return sum(a["weights of all"].values()) / sum(a["weights of one"].values()), a.hidden["num_layers"]


def _all_differ(a: Answers) -> bool:
    outputs = [a[f"fresh {i}"] for i in range(a.hidden["num_layers"])]
    return not any(close(one, other) for i, one in enumerate(outputs) for other in outputs[:i])


def _chained(a: Answers) -> tuple:
    """Whether each layer gets what the one before it made; and if not, what the output is instead."""
    by_hand = a["post one by one"]
    others = (standardised(by_hand), a["post last alone"], a["post without the last"])
    right = close(a["post"], by_hand)
    return right, *(not right and close(a["post"], other) for other in others)


def _mask_in_every_layer(a: Answers) -> tuple:
    """With or without a norm at the end: another claim looks at that. And if wrong, whether no layer has a mask."""
    facts = []
    for name in ("padding", "causal"):
        output, by_hand = a[name], a[f"{name} one by one"]
        right = close(output, by_hand) or close(output, standardised(by_hand))
        facts += [right, not right and close(output, a["post"])]
    return tuple(facts)


def _normalised_end(a: Answers) -> tuple:
    """Whether it is there; and if not, whether that is all."""
    return close(a["pre"], standardised(a["pre one by one"])), close(a["pre"], a["pre one by one"])


class _Encoder(nn.Module):
    """An Encoder in which each mistake is a switch."""

    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False, **switches):
        super().__init__()
        self.switches = switches

        def make():
            return encoder_layer(d_model, num_heads, d_ff, dropout, norm_first)

        layers = switches.get("layers", lambda make, n: nn.ModuleList(make() for _ in range(n)))
        self.layers = layers(make, num_layers)
        has_norm = switches.get("norm", norm_first)
        self.norm = LayerNorm(d_model) if has_norm else nn.Identity()

    def forward(self, x, mask=None):
        first = x
        for number, layer in enumerate(self.switches.get("order", lambda layers: layers)(self.layers)):
            source = first if self.switches.get("always_input") else x
            x = layer(source, mask if self.switches.get("masked", lambda number: True)(number) else None)
            if self.switches.get("norm_between"):
                x = self.norm(x)
        return self.norm(x)


def _encoder(**switches):
    return {"Encoder": lambda *args, **kwargs: _Encoder(*args, **kwargs, **switches)}


def _cloned(make, num_layers):
    layer = make()
    return nn.ModuleList(copy.deepcopy(layer) for _ in range(num_layers))


ENCODER = Exercise(
    name="stacking.encoder",
    title="Encoder",
    challenge=_encoder_challenge,
    reference={"Encoder": encoder},
    claims=(
        Claim(
            "own_parameters",
            1,
            "each of the `num_layers` layers has weights of its own, and the encoder knows them all",
            _times_one_layer,
            reason=lambda got: f"{got[0]:g} layers' worth of weights learn, where num_layers={got[1]}",
        ),
        Claim(
            "different_start",
            1,
            "no two layers start with the same numbers",
            _all_differ,
            reason=lambda _: "two of your fresh layers give the same output for the same input",
        ),
        Claim(
            "chained",
            1,
            "post-norm: each layer gets what the one before it made, and nothing follows the last",
            _chained,
            reason=lambda _: "the output is not that of your layers, called one after another",
        ),
        Claim(
            "mask",
            1,
            "every layer gets the mask",
            _mask_in_every_layer,
            reason=lambda _: "the output is not that of your layers, each called with the mask",
        ),
        Claim(
            "final_norm",
            1,
            "`norm_first=True`: one layer norm follows the last layer",
            _normalised_end,
            reason=lambda _: "the output is not the last layer's, normalised",
        ),
    ),
    misconceptions=(
        Misconception(
            "one_layer",
            "you made one layer and use it again and again: all its uses share the same weights",
            INDEPENDENT,
            _encoder(layers=lambda make, n: nn.ModuleList([make()] * n)),
        ),
        Misconception(
            "cloned",
            "your layers are copies of one that was already initialised: they all start equal",
            INDEPENDENT,
            _encoder(layers=_cloned),
        ),
        Misconception(
            "python_list",
            "your layers are in a plain list: the encoder does not know their parameters, and no optimiser will",
            INDEPENDENT,
            _encoder(layers=lambda make, n: [make() for _ in range(n)]),
        ),
        Misconception(
            "mask_first_only",
            "only your first layer gets the mask",
            EVERY_LAYER,
            _encoder(masked=lambda number: number == 0),
        ),
        Misconception("mask_ignored", "no layer of yours gets the mask", EVERY_LAYER, _encoder(masked=lambda _: False)),
        Misconception(
            "no_final_norm",
            "your pre-norm encoder ends without a norm: nothing has normalised the stream itself yet",
            FINAL_NORM,
            _encoder(norm=False),
        ),
        Misconception(
            "norm_after_post",
            "a norm follows your post-norm encoder, which has just normalised its output",
            FINAL_NORM,
            _encoder(norm=True),
        ),
        Misconception(
            "norm_after_each",
            "you apply the final norm after every layer",
            FINAL_NORM,
            _encoder(norm_between=True),
        ),
        Misconception(
            "always_input",
            "each of your layers gets the encoder's input: only the last one has a say",
            "“What goes wrong” in chapter 6",
            _encoder(always_input=True),
        ),
        Misconception(
            "last_missing",
            "your last layer is never called",
            "“What goes wrong” in chapter 6",
            _encoder(order=lambda layers: layers[:-1]),
        ),
    ),
)

# --- 3. from tokens ---------------------------------------------------------------------------------------------------


def _token_challenge(seed: int) -> Plan:
    """What enters the layers is compared with the paper's; what leaves them, with the learner's own encoder."""
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    d_model, num_heads, d_ff = sizes(draw)
    vocab_size = pick(draw, 19, 29)

    def words(batch: int, seq: int) -> Tensor:
        return torch.randint(7, vocab_size, (batch, seq), generator=draw)

    def make(pad_id: int, dropout: float) -> Ref:
        made = plan.call("TokenEncoder", vocab_size, d_model, num_heads, d_ff, 2, dropout=dropout, pad_id=pad_id)
        plan.train(made, dropout > 0)
        return made

    one, other = plan.tensor("ids", words(3, 5)), plan.tensor("other_ids", words(3, 5))
    same = plan.tensor("one_word", words(1, 1).expand(2, 9))
    made = make(0, 0.0)
    table = torch.randn(vocab_size, d_model, generator=draw) / math.sqrt(d_model)
    plan.load(plan.attribute(made, "embedding"), {"embedding.weight": table})
    embed = plan.attribute(made, "embed")
    for label, ids in (("embedded", one), ("other embedded", other), ("same embedded", same)):
        plan.call(embed, ids, label=label)

    plan.seed(seed)
    noisy = make(0, 0.5)
    ids = plan.tensor("many_ids", words(9, 7))
    plan.call(plan.attribute(noisy, "embed"), ids, label="dropped")
    plan.train(noisy, False)
    plan.call(plan.attribute(noisy, "embed"), ids, label="kept")

    def outputs(made: Ref, name: str, ids: Tensor, mask: Tensor | None) -> None:
        ids = plan.tensor(name, ids)
        plan.call(made, ids, label=name)
        embedded = plan.call(plan.attribute(made, "embed"), ids)
        mask = None if mask is None else plan.tensor(f"mask of {name}", mask)
        plan.call(plan.attribute(made, "encoder"), embedded, mask=mask, label=f"{name} by hand")

    outputs(made, "unpadded", words(2, 6), None)
    for pad_id in (0, pick(draw, 2, 5)):
        padded = words(3, 6)
        padded[1, 4:], padded[2, 2:] = pad_id, pad_id
        padded[0, 1] = 3 if pad_id == 0 else 0  # a word like others, whatever its number
        outputs(made if pad_id == 0 else make(pad_id, 0.0), f"pad {bool(pad_id)}", padded, padding_mask(padded, pad_id))
    plan.hidden["real"] = lengths_mask([6, 4, 2], 6)[:, 0, 0]
    return plan


def _word_difference(a: Answers) -> Tensor:
    """Two sentences' embeddings minus each other: the positions cancel, the factor does not."""
    return a["embedded"] - a["other embedded"]


def _position_difference(a: Answers) -> Tensor:
    """The same word everywhere, minus its first use: the word cancels."""
    return a["same embedded"][:, 1:] - a["same embedded"][:, :1]


def _embedding_dropped(a: Answers) -> tuple:
    dropped, kept = a["dropped"], a["kept"]
    gone = (dropped == 0) & (kept != 0)
    rest = (dropped / kept)[~gone & (kept.abs() > 1e-3)]
    return 0.4 < gone.double().mean().item() < 0.6, rest.numel() > 0 and bool(((rest - 2).abs() < 1e-2).all())


def _padding_hidden(a: Answers) -> tuple:
    real = a.hidden["real"]
    return tuple(close(a[name][real], a[f"{name} by hand"][real]) for name in ("pad False", "pad True"))


class _TokenEncoder(nn.Module):
    """A TokenEncoder in which each mistake is a switch."""

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0, **switches):
        super().__init__()
        self.switches, self.pad_id = switches, pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        own = switches.get("own_dropout", lambda p: p)(dropout)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=own)
        if switches.get("learned"):
            self.positions = LearnedPositionalEncoding(50, d_model, own)
        self.encoder = encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        root = math.sqrt(self.embedding.d_model)
        x = self.embedding(ids) * self.switches.get("factor", lambda root: 1.0)(root)
        if self.switches.get("positions", True) is False:
            return self.positions.dropout(x)
        if self.switches.get("positions_scaled"):
            return self.positions(x / root) * root
        return self.positions(x)

    def forward(self, ids):
        mask = self.switches.get("mask", lambda ids, pad_id: padding_mask(ids, pad_id))(ids, self.pad_id)
        return self.encoder(self.embed(ids), mask)


def _tokens(**switches):
    return {"TokenEncoder": lambda *args, **kwargs: _TokenEncoder(*args, **kwargs, **switches)}


TOKEN_ENCODER = Exercise(
    name="stacking.token_encoder",
    title="The whole encoder from tokens",
    challenge=_token_challenge,
    reference={"TokenEncoder": token_encoder},
    claims=(
        Claim("scaled", 1, "`embed` takes each word's row times √d_model", _word_difference),
        Claim("positions", 1, "`embed` then adds each position's sines and cosines, once", _position_difference),
        Claim(
            "dropout",
            1,
            "in training, `dropout` acts on the sum of the two",
            _embedding_dropped,
            reason=lambda _: (
                "in training, at dropout=0.5, about half of the entries of `embed` should be 0, the rest doubled"
            ),
        ),
        Claim(
            "layers",
            1,
            "what `embed` makes goes through `encoder`",
            lambda a: close(a["unpadded"], a["unpadded by hand"]),
            reason=lambda _: "without padding, your output is not `encoder(embed(ids))`",
        ),
        Claim(
            "padding",
            1,
            "nothing attends to padding, whatever `pad_id` is",
            _padding_hidden,
            reason=lambda got: (
                "at the words of a padded sentence, your output is not that of `encoder` with a padding mask"
                + (" (for a pad_id other than 0)" if got[0] else "")
            ),
        ),
    ),
    misconceptions=(
        Misconception(
            "no_scale",
            "the factor √d_model is missing",
            TOKENS,
            _tokens(factor=lambda root: 1 / root),
        ),
        Misconception(
            "scaled_twice",
            "you multiply by √d_model, which `TokenEmbedding` has already done",
            TOKENS,
            _tokens(factor=lambda root: root),
        ),
        Misconception(
            "positions_scaled",
            "you add the positions before you multiply by √d_model: they get the factor too",
            TOKENS,
            _tokens(positions_scaled=True),
        ),
        Misconception("no_positions", "your positions are missing", TOKENS, _tokens(positions=False)),
        Misconception(
            "learned", "your positions are learned ones, not sines and cosines", TOKENS, _tokens(learned=True)
        ),
        Misconception(
            "no_dropout",
            "your embedding has no dropout",
            TOKENS,
            _tokens(own_dropout=lambda p: 0.0),
        ),
        Misconception(
            "mask_forgotten",
            "your layers attend to padding: nobody made a mask",
            TOKENS,
            _tokens(mask=lambda ids, pad_id: None),
        ),
        Misconception(
            "mask_inverted",
            "your mask is True at the padding: in this book True means that a key may be attended to",
            TOKENS,
            _tokens(mask=lambda ids, pad_id: ~padding_mask(ids, pad_id)),
        ),
        Misconception(
            "pad_is_0",
            "your mask takes 0 for the padding, whatever `pad_id` is",
            TOKENS,
            _tokens(mask=lambda ids, pad_id: padding_mask(ids, 0)),
        ),
    ),
)

# --- 4. from patches --------------------------------------------------------------------------------------------------


def _patch_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    d_model, num_heads, d_ff = sizes(draw)
    patch_size, channels, side = pick(draw, 2, 3), pick(draw, 2, 3), pick(draw, 3, 4)
    num_patches = side**2

    def make() -> Ref:
        size = side * patch_size
        made = plan.call("PatchEncoder", size, patch_size, channels, d_model, num_heads, d_ff, 2, dropout=0.0)
        plan.train(made, False)
        return made

    def images(name: str) -> Ref:
        shape = (2, channels, side * patch_size, side * patch_size)
        return plan.tensor(name, torch.randn(shape, generator=draw))

    made = make()
    matrix = torch.randn(d_model, channels * patch_size**2, generator=draw) / 3
    weights = {"projection.weight": matrix, "projection.bias": torch.randn(d_model, generator=draw)}
    plan.load(plan.attribute(made, "embedding"), weights)
    one, other = images("images"), images("other images")
    embed = plan.attribute(made, "embed")
    embedded = plan.call(embed, one, label="embedded")
    plan.call(embed, other, label="other embedded")
    output = plan.call(made, one, label="output")
    plan.call(plan.attribute(made, "encoder"), embedded, label="output by hand")

    class_token = plan.parameter(made, "class_token", (1, 1, d_model))
    upstream = torch.randn(2, num_patches + 1, d_model, generator=draw)
    plan.gradient(output, upstream, class_token, label="class token's gradient")

    placed = make()
    for name in ("first", "second"):
        table = torch.randn(num_patches + 1, d_model, generator=draw)
        positions = plan.attribute(placed, "positions")
        plan.load(positions, {"table": table})
        embedded = plan.call(plan.attribute(placed, "embed"), one, label=f"{name} table")
    plan.reached(embedded, upstream, positions, label="table learns")

    # a stream that is large beside what sub-layers add: pre-norm hardly changes its direction
    large = plan.tensor("large", 1e4 * torch.randn(2, 5, d_model, generator=draw))
    plan.hidden["large"] = plan.tensors["large"]
    plan.call(plan.attribute(made, "encoder"), large, label="large")
    own = plan.call("Encoder", 2, d_model, num_heads, d_ff, dropout=0.0, norm_first=True)
    plan.call(own, large, label="own large")
    return plan


def _varies(a: Answers) -> Tensor:
    """For each row of `embed`, whether it depends on the image."""
    return (a["embedded"] - a["other embedded"]).abs().amax((0, 2)) > 1e-4


def _in_front(a: Answers) -> tuple:
    varies = _varies(a)
    return not varies[0], bool(varies[1:].any())


def _patch_rows(a: Answers) -> Tensor:
    """What a change of the image changes, wherever the class token stands."""
    return (a["embedded"] - a["other embedded"])[:, _varies(a)]


def _pre_norm_layers(a: Answers) -> tuple:
    """Whether the output is that of `encoder`, and whether this is pre-norm, as far as the learner's Encoder can be."""

    def is_pre_norm(label: str) -> bool:
        return (standardised(a[label]) - standardised(a.hidden["large"])).abs().max().item() < 0.05

    return close(a["output"], a["output by hand"]), is_pre_norm("large") or not is_pre_norm("own large")


class _PatchEncoder(nn.Module):
    """A PatchEncoder in which each mistake is a switch."""

    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1, **switches):
        super().__init__()
        self.switches = switches
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model) * 0.02)
        if switches.get("fixed"):
            self.class_token.requires_grad_(False)
        num_positions = self.embedding.num_patches + switches.get("more", 1)
        self.positions = LearnedPositionalEncoding(num_positions, d_model, dropout)
        if switches.get("sinusoidal"):
            self.positions = SinusoidalPositionalEncoding(d_model, num_positions, dropout)
        self.encoder = encoder(num_layers, d_model, num_heads, d_ff, dropout, switches.get("norm_first", True))

    def embed(self, images):
        x = self.embedding(images)
        return self.switches.get("join", lambda me, token, x: me.positions(torch.cat([token, x], 1)))(
            self, self.class_token.expand(len(x), -1, -1), x
        )

    def forward(self, images):
        return self.encoder(self.embed(images))


def _patches(**switches):
    return {"PatchEncoder": lambda *args, **kwargs: _PatchEncoder(*args, **kwargs, **switches)}


PATCH_ENCODER = Exercise(
    name="stacking.patch_encoder",
    title="The whole encoder from patches",
    challenge=_patch_challenge,
    reference={"PatchEncoder": patch_encoder, "Encoder": encoder},
    claims=(
        Claim(
            "in_front",
            1,
            "`embed` puts the class token in front, the same for every image",
            _in_front,
            reason=lambda got: f"{'no row' if got[0] else 'row 0'} of `embed` depends on the image",
        ),
        Claim("patches", 1, "the other rows are the patches' vectors, in order", _patch_rows),
        Claim(
            "positions",
            1,
            "every row, the class token's too, gets its own learned position",
            lambda a: (a["second table"] - a["first table"], any(a["table learns"].values())),
            reason=lambda got: (
                "when the table of `positions` changes, the rows of `embed` do not change by just as much"
                if got[1]
                else "the table of `positions` gets no gradient"
            ),
        ),
        Claim(
            "learned",
            1,
            "the class token is a parameter of shape (1, 1, d_model), and learns",
            lambda a: bool(a["class token's gradient"].abs().sum() > 0),
            reason=lambda _: "the class token has no part in the output",
        ),
        Claim(
            "layers",
            1,
            "what `embed` makes goes through `encoder`, which is pre-norm",
            _pre_norm_layers,
            reason=lambda got: (
                "your output is not `encoder(embed(images))`" if not got[0] else "your `encoder` is post-norm"
            ),
        ),
    ),
    misconceptions=(
        Misconception(
            "at_the_end",
            "your class token stands behind the patches",
            PATCHES,
            _patches(join=lambda me, token, x: me.positions(torch.cat([x, token], 1))),
        ),
        Misconception(
            "without_position",
            "your class token joins after the positions were added, and has none itself",
            PATCHES,
            _patches(more=0, join=lambda me, token, x: torch.cat([token, me.positions(x)], 1)),
        ),
        Misconception(
            "no_class_token",
            "there is no class token among your rows",
            PATCHES,
            _patches(more=0, join=lambda me, token, x: me.positions(x)),
        ),
        Misconception(
            "mean_for_class_token",
            "in place of a learned class token you put the mean of the patches",
            PATCHES,
            _patches(join=lambda me, token, x: me.positions(torch.cat([x.mean(1, keepdim=True), x], 1))),
        ),
        Misconception(
            "fixed", "your class token does not learn: make it an nn.Parameter", PATCHES, _patches(fixed=True)
        ),
        Misconception(
            "sinusoidal",
            "your positions are sines and cosines; ViT learns its table",
            PATCHES,
            _patches(sinusoidal=True),
        ),
        Misconception("post_norm", "your encoder is post-norm: ViT is pre-norm", PATCHES, _patches(norm_first=False)),
    ),
)

# --- 5. torch's weights -----------------------------------------------------------------------------------------------

_PARTS = {
    "self_attn.out_proj.weight": "attention.w_o.weight",
    "self_attn.out_proj.bias": "attention.w_o.bias",
    "linear1.weight": "feed_forward.linear_1.weight",
    "linear1.bias": "feed_forward.linear_1.bias",
    "linear2.weight": "feed_forward.linear_2.weight",
    "linear2.bias": "feed_forward.linear_2.bias",
    "norm1.weight": "add_norm_1.norm.gamma",
    "norm1.bias": "add_norm_1.norm.beta",
    "norm2.weight": "add_norm_2.norm.gamma",
    "norm2.bias": "add_norm_2.norm.beta",
}
_PROJECTIONS = tuple(f"attention.w_{letter}.{kind}" for letter in "qkv" for kind in ("weight", "bias"))
_MAPS = tuple(name for name in _PARTS.values() if "gamma" not in name and "beta" not in name)
_NORMS = tuple(name for name in _PARTS.values() if "gamma" in name or "beta" in name)


def from_torch(
    state_dict: dict, letters: str = "qkv", split=lambda fused: fused.chunk(3), names: dict = _PARTS
) -> dict:
    """torch's names to ours; the arguments make the mistakes."""
    weights = {}
    for name, tensor in state_dict.items():
        if "in_proj" in name:
            kind = name.rpartition("_")[2]
            for letter, part in zip(letters, split(tensor), strict=True):
                weights[f"attention.w_{letter}.{kind}"] = part
        else:
            weights[names[name]] = tensor
    return weights


def torch_layer_weights(draw: torch.Generator, d_model: int, d_ff: int) -> dict[str, Tensor]:
    """The state dict of an nn.TransformerEncoderLayer, with numbers of our own."""
    ours = layer_weights(draw, d_model, d_ff)
    theirs = {name: ours[other] for name, other in _PARTS.items()}
    for kind in ("weight", "bias"):
        theirs[f"self_attn.in_proj_{kind}"] = torch.cat([ours[f"attention.w_{letter}.{kind}"] for letter in "qkv"])
    return theirs


def _torch_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for label, without in (("mapped", ()), ("unbiased", ("bias",))):
        num_heads = pick(draw, 2, 3)
        weights = torch_layer_weights(draw, 3 * num_heads, pick(draw, 11, 16))
        shuffled = [list(weights)[i] for i in torch.randperm(len(weights), generator=draw)]
        given = {n: plan.tensor(f"{label} {n}", weights[n]) for n in shuffled if not n.endswith(without or "nothing")}
        mapped = plan.call("from_torch", given, label=label)
        if label == "mapped":
            for name in (*_PROJECTIONS, *_PARTS.values()):
                plan.item(mapped, name, label=name)
    return plan


def _tensors(a: Answers, label: str) -> dict:
    """What is known of each tensor in a result, by name, before anything about it is asked."""
    record = next(record for record in a.recording.records if record["label"] == label)
    if record["status"] != "ok" or record["value"]["kind"] != "dict":
        a[label]  # raises, and says what is there instead
    return record["value"]["parts"]


def _names(a: Answers) -> tuple:
    """The names in both results whose tensors hold anything."""
    found = []
    for label in ("mapped", "unbiased"):
        parts = _tensors(a, label).items()
        filled = [name for name, part in parts if "key" not in part or a.recording.tensors[part["key"]].any()]
        found.append(", ".join(sorted(filled)))
    return tuple(found)


def _names_in_words(got: tuple) -> str:
    names = got[0].split(", ") if got[0] else []
    theirs = [name for name in names if name in _PARTS or "in_proj" in name]
    if theirs:
        return f"`{theirs[0]}` is a name of torch's"
    without = got[1].split(", ") if got[1] else []
    return f"you return {len(names)} tensors with numbers in them; from a layer without biases, {len(without)}"


def _parts(names: tuple[str, ...]):
    """The quantity of some tensors; an empty one stands for each that is missing."""
    return lambda a: tuple(a[name] if name in _tensors(a, "mapped") else torch.zeros(0) for name in names)


def _parts_in_words(names: tuple[str, ...]):
    def words(got: tuple[Tensor, ...]) -> str:
        missing = [name for name, tensor in zip(names, got, strict=True) if not tensor.numel()]
        return f"`{missing[0]}` is missing" if missing else "some of them hold other numbers"

    return words


def _wrong_map(**mistakes):
    return {"from_torch": lambda state_dict: from_torch(state_dict, **mistakes)}


def _interleaved(fused: Tensor) -> tuple[Tensor, ...]:
    return fused[0::3], fused[1::3], fused[2::3]


def _weights_only(state_dict: dict) -> dict:
    weights = from_torch(state_dict)
    return {name: weight for name, weight in weights.items() if name not in _PROJECTIONS or name.endswith("weight")}


def _fused_left(state_dict: dict) -> dict:
    return {_PARTS.get(name, name): weight for name, weight in state_dict.items()}


_SWAPPED = {name: other.replace("norm_1", "norm_x") for name, other in _PARTS.items()}
_SWAPPED = {name: other.replace("norm_2", "norm_1").replace("norm_x", "norm_2") for name, other in _SWAPPED.items()}
_TORCH_NORMS = {name: other.replace("gamma", "weight").replace("beta", "bias") for name, other in _PARTS.items()}

FROM_TORCH = Exercise(
    name="stacking.from_torch",
    title="Weights from torch",
    challenge=_torch_challenge,
    reference={"from_torch": from_torch},
    claims=(
        Claim(
            "names",
            1,
            "the result has your layer's names and no others, for a layer without biases too",
            _names,
            reason=_names_in_words,
        ),
        Claim(
            "projections",
            1,
            "`w_q`, `w_k` and `w_v` come from torch's fused matrix and bias",
            _parts(_PROJECTIONS),
            reason=_parts_in_words(_PROJECTIONS),
        ),
        Claim(
            "maps",
            1,
            "`w_o`, `linear_1` and `linear_2` hold what they held in torch",
            _parts(_MAPS),
            reason=_parts_in_words(_MAPS),
        ),
        Claim(
            "norms",
            1,
            "each norm's γ and β stand in the right Add & Norm",
            _parts(_NORMS),
            reason=_parts_in_words(_NORMS),
        ),
    ),
    misconceptions=(
        Misconception(
            "key_first",
            "you take the fused matrix to begin with the keys",
            TORCH,
            _wrong_map(letters="kqv"),
        ),
        Misconception(
            "value_before_key",
            "you take the fused matrix to hold query, value, key in this order",
            TORCH,
            _wrong_map(letters="qvk"),
        ),
        Misconception(
            "interleaved",
            "you take every third row: the fused matrix holds all rows of the query's, then all of the key's",
            TORCH,
            _wrong_map(split=_interleaved),
        ),
        Misconception(
            "cut_columns",
            "you cut the fused matrix along its columns: they belong to the inputs",
            TORCH,
            _wrong_map(split=lambda fused: fused.chunk(3, dim=-1)),
        ),
        Misconception(
            "transposed",
            "you transpose the matrices: both sides keep them as (out, in)",
            TORCH,
            {
                "from_torch": lambda state_dict: {
                    name: weight.T if weight.dim() == 2 else weight for name, weight in from_torch(state_dict).items()
                }
            },
        ),
        Misconception(
            "weights_only",
            "you cut the fused matrix, but not the fused bias",
            TORCH,
            {"from_torch": _weights_only},
        ),
        Misconception("fused_left", "you leave the fused matrix whole", TORCH, {"from_torch": _fused_left}),
        Misconception(
            "torchs_norm_names",
            "your norms still have `weight` and `bias`: in this course they are `gamma` and `beta`",
            TORCH,
            _wrong_map(names=_TORCH_NORMS),
        ),
        Misconception(
            "norms_swapped",
            "you put the first norm into the second Add & Norm, and the second into the first",
            TORCH,
            _wrong_map(names=_SWAPPED),
        ),
    ),
)

# --- 6. one vector for a sequence -------------------------------------------------------------------------------------


def _mean_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    d_model, seq = pick(draw, 3, 5), pick(draw, 7, 9)
    lengths = [seq, pick(draw, 3, 4), 1]
    mask = lengths_mask(lengths, seq)
    x = torch.randn(3, seq, d_model, generator=draw) + 0.5
    x = x.masked_fill(~mask[:, 0, 0].unsqueeze(-1), 9.0)
    plan.call("masked_mean", plan.tensor("x", x), plan.tensor("mask", mask[:, 0, 0]), label="mean")
    plan.call("masked_mean", plan.tensor("x again", x), plan.tensor("padding_mask", mask), label="wide mask")

    lengths = torch.tensor([4, 0])
    mask = plan.tensor("empty mask", torch.arange(5) < lengths.unsqueeze(1))
    x = plan.tensor("empty x", torch.randn(2, 5, d_model, generator=draw), requires_grad=True)
    mean = plan.call("masked_mean", x, mask, label="empty")
    plan.gradient(mean, torch.randn(2, d_model, generator=draw), x, label="gradient")
    return plan


def _empty_sentence(a: Answers) -> tuple:
    """Zero for the empty sentence, something for the other; and the gradient is that of a sentence without empties."""
    return a["empty"][1], bool(a["empty"][0].any()), a["gradient"][1], bool(a["gradient"][0].any())


def _mean(x: Tensor, mask: Tensor, *, count=None, least: int = 1, mistake=lambda mask: mask) -> Tensor:
    """A masked mean; the arguments make the mistakes."""
    counts = mistake(mask.reshape(x.shape[0], x.shape[1], 1))
    total = x.masked_fill(~counts, 0.0).sum(1)
    return total / (counts.sum(1).clamp(min=least) if count is None else count(counts))


def _wrong_mean(**mistakes):
    return {"masked_mean": lambda x, mask: _mean(x, mask, **mistakes)}


MASKED_MEAN = Exercise(
    name="stacking.masked_mean",
    title="One vector for a sequence",
    challenge=_mean_challenge,
    reference={"masked_mean": stacking.masked_mean},
    claims=(
        Claim("mean", 1, "the mean of each sentence's words, whatever stands at the padding", lambda a: a["mean"]),
        Claim(
            "wide_mask",
            1,
            "a padding mask (batch, 1, 1, seq) gives the same as a mask (batch, seq)",
            lambda a: close(a["wide mask"], a["mean"]),
            reason=lambda _: "the two masks give different results",
        ),
        Claim("empty", 1, "an empty sentence gives zeros and no gradient, never NaN", _empty_sentence),
    ),
    misconceptions=(
        Misconception(
            "unmasked",
            "you average over the padding too",
            POOLING,
            _wrong_mean(mistake=torch.ones_like),
        ),
        Misconception(
            "divided_by_seq",
            "you left the padding out of the sum, but still count it when you divide",
            POOLING,
            _wrong_mean(count=lambda counts: counts.shape[1]),
        ),
        Misconception(
            "mean_of_the_padding",
            "you average what stands at the padding: in this book True marks what counts",
            POOLING,
            _wrong_mean(mistake=torch.logical_not),
        ),
        Misconception("sum", "you add the vectors up, and do not divide", POOLING, _wrong_mean(count=lambda _: 1)),
        Misconception(
            "one_count",
            "you divide each sum by the number of words in the whole batch",
            POOLING,
            _wrong_mean(count=lambda counts: counts.sum()),
        ),
        Misconception("nan", "you divide by zero where a sentence is empty", POOLING, _wrong_mean(least=0)),
        Misconception(
            "first_vector",
            "you return the first vector, as if it were a class token",
            POOLING,
            {"masked_mean": lambda x, mask: x[:, 0]},
        ),
    ),
)

# --- 7. counting ------------------------------------------------------------------------------------------------------


def encoder_parameters(num_layers, d_model, d_ff, norm_first, *, maps=4, biases=1, norms=2, final=None):
    """How many numbers an encoder learns; the keyword arguments make the mistakes."""
    attention = maps * (d_model**2 + biases * d_model)
    feed_forward = 2 * d_model * d_ff + biases * (d_model + d_ff)
    has_final = norm_first if final is None else final
    return num_layers * (attention + feed_forward + norms * 2 * d_model) + has_final * 2 * d_model


VIT_BASE = (12, 768, 3072, True)


def _counts(tokens: int = 197, width: int = 768, **mistakes) -> dict:
    def counted(num_layers, d_model, d_ff, norm_first):
        return encoder_parameters(num_layers, d_model, d_ff, norm_first, **mistakes)

    return {
        "parameters_of_encoder": counted(*VIT_BASE),
        "output_shape": (tokens, width),
        "encoder_parameters": counted,
    }


def _counted_once() -> dict:
    return _counts() | {
        "parameters_of_encoder": encoder_parameters(1, *VIT_BASE[1:]),
        "encoder_parameters": lambda num_layers, *sizes: encoder_parameters(1, *sizes),
    }


def _counts_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    plan.name("parameters_of_encoder", label="parameters")
    plan.name("output_shape", label="shape")
    for label, norm_first in (("post", False), ("pre", True)):
        layers, d_model, d_ff = pick(draw, 3, 9), 6 * pick(draw, 5, 20), pick(draw, 50, 300)
        plan.call("encoder_parameters", layers, d_model, d_ff, norm_first, label=label)
    return plan


COUNTING = Exercise(
    name="stacking.counting",
    title="Counting a whole encoder",
    challenge=_counts_challenge,
    reference=_counts(),
    claims=(
        Claim("parameters", 1, "`parameters_of_encoder` is right for ViT-Base's encoder", lambda a: a["parameters"]),
        Claim("shape", 1, "`output_shape` is right for ViT-Base", lambda a: a["shape"]),
        Claim(
            "rule",
            1,
            "`encoder_parameters` is right for other sizes, post-norm and pre-norm",
            lambda a: (a["post"], a["pre"]),
            reason=lambda got: (
                f"yours gives {got[0]} for a post-norm encoder and {got[1]} for a pre-norm one: "
                "one of the two is not right, or neither"
            ),
        ),
    ),
    misconceptions=(
        Misconception("no_biases", "you left out the biases", COST, _counts(biases=0)),
        Misconception("no_norms", "you left out the norms: each layer has two", COST, _counts(norms=0)),
        Misconception("one_norm", "you counted one norm a layer: there are two", COST, _counts(norms=1)),
        Misconception("no_w_o", "you counted three maps in the attention: W_O is the fourth", COST, _counts(maps=3)),
        Misconception("one_layer", "you counted one layer", COST, _counted_once()),
        Misconception("final_always", "you counted a final norm for post-norm too", COST, _counts(final=True)),
        Misconception("final_never", "you left out pre-norm's final norm", COST, _counts(final=False)),
        Misconception("no_class_token", "you forgot ViT's class token", PATCHES, _counts(tokens=196)),
        Misconception(
            "base_width", "you took the width of the 2017 paper's base model for ViT's", PATCHES, _counts(width=512)
        ),
    ),
)

# --- 8. bug hunt ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def by_library(x: Tensor, weights: dict[str, Tensor], mask: Tensor | None = None, training: bool = False) -> Tensor:
    """A right candidate: encoder_lib's own."""
    made = encoder(2, x.shape[-1], 2, len(weights["layers.0.feed_forward.linear_1.bias"]))
    made.load_state_dict(weights)
    return made.train(training)(x, mask)


@torch.no_grad()
def by_torch(x: Tensor, weights: dict[str, Tensor], mask: Tensor | None = None, training: bool = False) -> Tensor:
    """A right candidate: torch's, which puts zeros at padded positions."""
    layer = nn.TransformerEncoderLayer(
        x.shape[-1], 2, len(weights["layers.0.feed_forward.linear_1.bias"]), batch_first=True
    )
    made = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    theirs = {}
    for i in range(2):
        for name, other in _PARTS.items():
            theirs[f"layers.{i}.{name}"] = weights[f"layers.{i}.{other}"]
        for kind in ("weight", "bias"):
            parts = [weights[f"layers.{i}.attention.w_{letter}.{kind}"] for letter in "qkv"]
            theirs[f"layers.{i}.self_attn.in_proj_{kind}"] = torch.cat(parts)
    made.load_state_dict(theirs)
    hidden = None if mask is None else ~mask[:, 0, 0]
    output = made.train(training)(x, src_key_padding_mask=hidden)
    return output if hidden is None else output.masked_fill(hidden.unsqueeze(-1), 0.0)


def by_hand(**bugs):
    """A candidate made of plain functions, right or with a bug."""

    @torch.no_grad()
    def run(x: Tensor, weights: dict[str, Tensor], mask: Tensor | None = None, training: bool = False) -> Tensor:
        def drop(x):
            return F.dropout(x, 0.1, training or bugs.get("always_drop", False))

        for i in range(2):
            w = {name[9:]: weight for name, weight in weights.items() if name.startswith(f"layers.{i}.")}
            if bugs.get("shared"):
                w = {name[9:]: weight for name, weight in weights.items() if name.startswith("layers.0.")}
            seen = None if i == 1 and bugs.get("mask_dropped") else mask
            attend = _attention_across_examples if bugs.get("examples_mixed") else _attention
            after = _norm(x + drop(attend(x, w, seen, drop)), w, 1)
            source = x if bugs.get("second_input") else after
            hidden = F.relu(F.linear(source, w["feed_forward.linear_1.weight"], w["feed_forward.linear_1.bias"]))
            made = F.linear(drop(hidden), w["feed_forward.linear_2.weight"], w["feed_forward.linear_2.bias"])
            x = _norm(drop(made) + (0.0 if bugs.get("no_residual") else after), w, 2)
        return x

    return run


def _norm(x: Tensor, w: dict[str, Tensor], number: int) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"add_norm_{number}.norm.gamma"], w[f"add_norm_{number}.norm.beta"])


def _attention(x: Tensor, w: dict[str, Tensor], mask: Tensor | None, drop) -> Tensor:
    query, key, value = (
        split_heads(F.linear(x, w[f"attention.w_{c}.weight"], w[f"attention.w_{c}.bias"]), 2) for c in "qkv"
    )
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    context = merge_heads(drop(scores.softmax(-1)) @ value)
    return F.linear(context, w["attention.w_o.weight"], w["attention.w_o.bias"])


def _attention_across_examples(x: Tensor, w: dict[str, Tensor], mask: Tensor | None, drop) -> Tensor:
    """As nn.MultiheadAttention without batch_first: takes what stands at one place of all examples for a sequence."""
    mask = None if mask is None else mask.permute(3, 1, 2, 0)
    return _attention(x.transpose(0, 1), w, mask, drop).transpose(0, 1)


def draw_weights(seed: int, d_model: int = 6, d_ff: int = 10, equal: bool = False) -> dict[str, Tensor]:
    """Weights of two layers, drawn from a seed."""
    draw = torch.Generator().manual_seed(seed)
    layers = [layer_weights(draw, d_model, d_ff) for _ in range(2)]
    return {f"layers.{i}.{n}": w for i in range(2) for n, w in layers[0 if equal else i].items()}


def examine(candidate, *, equal: bool = False, masked: bool = True, real_only: bool = True) -> bool:
    """A test that tells them all apart, by comparing with the library; the keyword arguments make it weaker."""
    draw = torch.Generator().manual_seed(7)
    x, weights = torch.randn(3, 5, 6, generator=draw), draw_weights(8, equal=equal)
    for mask in (None, lengths_mask([5, 2, 3], 5)) if masked else (None,):
        expected, got = by_library(x, weights, mask), candidate(x, weights, mask)
        real = torch.ones(3, 5, dtype=torch.bool) if mask is None or not real_only else mask[:, 0, 0]
        if not torch.allclose(got[real], expected[real], atol=1e-4):
            return False
    return True


def _repeats(candidate) -> bool:
    x, weights = torch.randn(3, 5, 6), draw_weights(8)
    return torch.equal(candidate(x, weights), candidate(x, weights))


def _shape_only(candidate) -> bool:
    x = torch.randn(3, 5, 6)
    return candidate(x, draw_weights(8)).shape == x.shape


BUG_HUNT = bug_hunt(
    name="stacking.bug_hunt",
    title="Bug hunt: write the test",
    function="examine",
    reference=examine,
    right=(by_library, by_torch, by_hand()),
    bugs=(
        Bug("no_residual", "caught: the one that loses something on the way", by_hand(no_residual=True)),
        Bug("second_input", "caught: the one in which a part gets the wrong input", by_hand(second_input=True)),
        Bug("shared", "caught: the one that ignores some of its weights", by_hand(shared=True)),
        Bug("mask_dropped", "caught: the one that lets padding leak", by_hand(mask_dropped=True)),
        Bug("always_drop", "caught: the one that is never quite the same", by_hand(always_drop=True)),
        Bug("examples_mixed", "caught: the one in which sentences overhear each other", by_hand(examples_mixed=True)),
    ),
    misconceptions=(
        Misconception(
            "shape_only",
            "a test of the shape alone lets it pass as well: look at the numbers",
            TESTING,
            {"examine": _shape_only},
        ),
        Misconception(
            "repeats_only",
            "a test that only repeats the call lets it pass as well: compare with what should come out",
            TESTING,
            {"examine": _repeats},
        ),
        Misconception(
            "equal_layers",
            "a test whose two layers have equal weights lets it pass as well",
            TESTING,
            {"examine": lambda candidate: examine(candidate, equal=True)},
        ),
        Misconception(
            "no_mask",
            "a test in which nothing is masked lets it pass as well",
            TESTING,
            {"examine": lambda candidate: examine(candidate, masked=False)},
        ),
        Misconception(
            "too_strict",
            "it fails a right one: perhaps you ask for equal numbers to the last digit, or at padded positions",
            TESTING,
            {"examine": lambda candidate: examine(candidate, real_only=False)},
        ),
    ),
)

EXERCISES = (ENCODER_LAYER, ENCODER, TOKEN_ENCODER, PATCH_ENCODER, FROM_TORCH, MASKED_MEAN, COUNTING, BUG_HUNT)
