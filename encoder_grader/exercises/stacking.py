"""The exercises of chapter 6, stacking."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from encoder_grader.bug_hunt import Bug, bug_hunt
from encoder_grader.differences import in_figures
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, CannotJudge
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
CONVENTIONS = "“Torch’s conventions” in chapter 6"
COST = "“What it costs” in chapter 6"
POOLING = "“One vector for a sequence” in chapter 6"
TESTING = "“Testing an encoder” in chapter 6"

DROPOUT = "“Dropout in four places” in chapter 6"
WRONG_WAYS = "“What goes wrong” in chapter 6"

WIDE = 256  # of a class token that is long enough for its distribution to be told
TORCHS_OWN = ("multi_head_attention_forward", "_transformer_encoder_layer_fwd")  # what torch's layer calls


def encoder_layer(d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    return stacking.EncoderLayer(EncoderConfig(d_model, num_heads, d_ff, 1, dropout, norm_first=norm_first))


def encoder(num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    return stacking.Encoder(EncoderConfig(d_model, num_heads, d_ff, num_layers, dropout, norm_first=norm_first))


def token_encoder(vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
    config = EncoderConfig(d_model, num_heads, d_ff, num_layers, dropout)
    return stacking.TokenEncoder(config, vocab_size, pad_id, max_len=64)


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


def sizes(draw: torch.Generator, num_heads: int | None = None) -> tuple[int, int, int]:
    """d_model, num_heads and d_ff, all different; `num_heads` 2 or 3 unless given."""
    num_heads = num_heads or pick(draw, 2, 3)
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


def varies(rows: Tensor) -> bool:
    """Whether equal examples (batch, …) have become different ones: something was dropped."""
    return not torch.allclose(rows, rows[:1], atol=1e-4)


def as_float(plan: Plan, made: Ref) -> Ref:
    """What one part of an answer made, in float32: it may be float64, where the part that gets it next is not."""
    return plan.call(plan.attribute(made, "float"))


# --- 1. EncoderLayer --------------------------------------------------------------------------------------------------


def _layer_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=TORCHS_OWN)

    def layer(d_model, num_heads, d_ff, weights, training=False, **options):
        made = plan.call("EncoderLayer", d_model, num_heads, d_ff, **options)
        plan.load(made, weights)
        plan.train(made, training)
        return made

    heads = pick(draw, 2, 3)
    first, second = sizes(draw, heads), sizes(draw, 5 - heads)
    made = layer(*second, layer_weights(draw, second[0], second[2]))
    plan.call(made, plan.tensor("other_x", torch.randn(1, 7, second[0], generator=draw)), label="other post")
    # dropout when none is given: what is left of the one hidden entry, which adds a little to one place, is larger
    little = {n: torch.zeros_like(w) for n, w in layer_weights(draw, second[0], second[2]).items()}
    little["feed_forward.linear_1.bias"][0] = 1
    little["feed_forward.linear_2.weight"][0, 0] = 0.02
    little |= {f"add_norm_{i}.norm.gamma": torch.ones(second[0]) for i in (1, 2)}
    plan.load(made, little)
    row = torch.randn(1, 1, second[0], generator=draw)
    row[..., 0] = 0
    rows = plan.tensor("rows_alike", row.expand(100, 2, -1))
    plan.call(made, rows, label="a little")
    plan.train(made)
    plan.seed(seed)
    plan.call(made, rows, label="a little dropped")

    padding = plan.tensor("padding", lengths_mask([5, 3, 3], 5))
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    both = plan.tensor("both_masks", lengths_mask([5, 3, 3], 5) & causal)
    causal = plan.tensor("causal", causal)
    masks = {"post": {"causal": causal, "padding": padding}, "pre": {"pre causal": causal, "both": both}}
    for kind, norm_first, (d_model, num_heads, d_ff) in (("post", False, first), ("pre", True, second)):
        # the values, and what a position may not see has no influence on it: two examples differ there alone
        weights = layer_weights(draw, d_model, d_ff)
        made = layer(d_model, num_heads, d_ff, weights, dropout=0.0, norm_first=norm_first)
        x = torch.randn(3, 5, d_model, generator=draw)
        x[2, :3] = x[1, :3]
        x[2, 3:] = 3 * torch.randn(2, d_model, generator=draw)
        x = plan.tensor(f"x_{kind}", x)
        output = plan.call(made, x, label=kind)
        plan.reached(output, torch.randn(3, 5, d_model, generator=draw), made, label=f"{kind} reached")
        for name, mask in masks[kind].items():
            plan.call(made, x, mask=mask, label=name)
        # where dropout must not act, with the mask of the last call, and without it
        plan.train(made)
        plan.call(made, x, mask=None if norm_first else mask, label=f"{kind}, train at 0")
        made = layer(d_model, num_heads, d_ff, weights, dropout=0.6, norm_first=norm_first)
        plan.call(made, x, label=f"{kind}, eval at 0.6")

    # and where it acts: one head, one token, one hidden entry and equal rows, so that each place leaves its own trace
    weights = layer_weights(draw, 8, 1)
    weights |= {"attention.w_o.bias": torch.zeros(8), "feed_forward.linear_2.bias": torch.zeros(8)}
    weights |= {"feed_forward.linear_1.bias": torch.tensor([9.0])}  # past the ReLU's corner
    rows = plan.tensor("equal_rows", torch.randn(1, 1, 8, generator=draw).expand(80, 1, 8))
    off = {"attention": "feed_forward.linear_2.weight", "feed-forward": "attention.w_o.weight"}
    off = {name: {other: torch.zeros_like(weights[other])} for name, other in off.items()}
    plan.seed(seed)
    for kind, norm_first in (("post", False), ("pre", True)):
        made = layer(8, 1, 1, weights, training=True, dropout=0.5, norm_first=norm_first)
        for name, zeros in off.items():
            plan.load(made, weights | zeros)
            plan.call(made, rows, label=f"{kind}, {name} dropped")
        plan.load(made, weights | off["attention"] | off["feed-forward"])
        plan.call(made, rows, label=f"{kind} without both")
    return plan


def _no_gradient(a: Answers, kind: str) -> str:
    """Which weight matrix is the first that does not learn; empty where all do."""
    cut_off = [name for name, reached in a[f"{kind} reached"].items() if not reached]
    return f"`{cut_off[0]}` gets no gradient" if cut_off else ""


def _mask_at_work(a: Answers) -> tuple:
    """Whether content that may not be seen leaves the others alone, and content that may be seen does not.

    Then whether the mask is there in training, and gone in a call without one. The last two facts tell mistakes apart:
    whether a mask that hides nothing changes nothing, and a padding mask changes nothing.
    """

    def alike(label: str) -> bool:
        return close(a[label][1, :3], a[label][2, :3])

    def stays(got: str, wrong: str, right: str) -> bool:
        return close(a[got], a[wrong]) and not close(a[right], a[wrong])

    pre = alike("pre causal") and alike("both")
    forgotten, kept = stays("post, train at 0", "post", "padding"), stays("pre, train at 0", "both", "pre")
    all_allowed = close(a["padding"][0], a["post"][0])
    facts = alike("padding"), alike("causal"), pre, not alike("post"), not forgotten, not kept
    return *facts, all_allowed, close(a["padding"], a["post"])


def _mask_in_words(got: tuple) -> str:
    hidden, later, pre, seen, training, gone, *_ = got
    if not seen:
        return "without a mask, what stands at one position has no influence on the others"
    masks = {"with a padding mask": hidden, "with a causal mask": later}
    when = " and ".join(name for name, holds in masks.items() if not holds)
    when = when or ("with `norm_first=True`" if not pre else "in training" if not training else "")
    if when:
        return f"{when}, what stands at a masked position changes the output at positions that may not see it"
    if not gone:
        return "a call without a mask still hides what the mask of an earlier call hid"
    return "a padding mask that hides something changes nothing, or one that hides nothing changes something"


def _dropped(a: Answers) -> tuple:
    """In post-norm and pre-norm, for attention and feed-forward: whether it drops inside, and whether of its output.

    Inside there is one entry, and without it the row is as it would be without both. Then whether no two calls drop
    the same entries, and whether dropout is 0.1 where none is given, told from how much larger it makes what is left.
    """
    facts, calls = [], []
    for kind in ("post", "pre"):
        for name in ("attention", "feed-forward"):
            rows = a[f"{kind}, {name} dropped"][:, 0]
            gone = ((rows - a[f"{kind} without both"][0, 0]).abs() < 1e-4).all(-1)
            facts += [0.25 < gone.double().mean().item() < 0.75]
            facts += [int((~gone).sum()) > 1 and varies(rows[~gone])]
            calls += [gone]
    pairs = zip(calls[:2], calls[2:], strict=True)
    again = any(one.any() and not one.all() and torch.equal(one, other) for one, other in pairs)
    return *facts, not again, _default_dropout(a)


def _default_dropout(a: Answers) -> bool:
    """Whether something is dropped where no `dropout` is given, and what is left is not much larger than at 0.1."""
    kept, dropped = a["a little"][..., 0].max(), a["a little dropped"][..., 0]
    gone, left = dropped.min(), dropped.max()
    return bool(left - gone > 1e-4 and left - gone < 1.4 * (kept - gone))  # 1 / 0.9² times as large


def _dropped_in_words(got: tuple) -> str:
    places = (
        "the attention weights",
        "the attention's output",
        "the inner entries",
        "the feed-forward network's output",
    )
    missing = [place for place, *there in zip(places, got[:4], got[4:8], strict=True) if not all(there)]
    if all(got[:8]):
        return "every call drops the same entries" if not got[8] else "where no `dropout` is given, it is not 0.1"
    where = "" if got[:4] == got[4:8] else " with `norm_first=True`" if all(got[:4]) else " with `norm_first=False`"
    return f"in training, at dropout=0.5, about half should be dropped: not so{where} for {', '.join(missing)}"


def _quiet(a: Answers) -> tuple:
    """In training, with or without the mask that another claim looks for there; in evaluation, at another `dropout`."""
    masked = {"post": "padding", "pre": "both"}
    at_0 = (any(close(a[f"{kind}, train at 0"], a[same]) for same in (kind, masked[kind])) for kind in masked)
    return *at_0, *(close(a[f"{kind}, eval at 0.6"], a[kind]) for kind in masked)


def _quiet_in_words(got: tuple) -> str:
    facts, what = (got[:2], "with dropout=0 the output in training differs from that in evaluation")
    if all(facts):
        facts, what = (got[2:], "in evaluation the output depends on `dropout`")
    return what + ("" if not any(facts) else f" where `norm_first={facts[0]}`")


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


def _length_first(layer, x, mask):
    after = layer.add_norm_1(x, lambda x: layer.attention(x.transpose(0, 1)).transpose(0, 1))
    return layer.add_norm_2(after, layer.feed_forward)


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
        Claim(
            "post",
            2,
            "post-norm: attention, then feed-forward, each in its Add & Norm",
            lambda a: (a["post"], a["other post"], _no_gradient(a, "post")),
            reason=lambda got: got[-1] or None,
            see=ONE_LAYER,
        ),
        Claim(
            "pre",
            1,
            "`norm_first=True`: both sub-layers get the normalised stream",
            lambda a: (a["pre"], _no_gradient(a, "pre")),
            reason=lambda got: got[-1] or None,
            see=ONE_LAYER,
        ),
        Claim(
            "mask",
            1,
            "what the mask hides has no influence, for padding masks and causal ones",
            _mask_at_work,
            reason=_mask_in_words,
            see=EVERY_LAYER,
        ),
        Claim(
            "dropout",
            1,
            "in training, `dropout` acts on the attention weights, the inner entries and both outputs",
            _dropped,
            reason=_dropped_in_words,
            see=DROPOUT,
        ),
        Claim(
            "quiet",
            1,
            "with `dropout=0`, and in evaluation, nothing is dropped",
            _quiet,
            reason=_quiet_in_words,
            see=DROPOUT,
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
            WRONG_WAYS,
            _layer(forward=lambda layer, x, mask: (layer.first(x, mask), layer.add_norm_2(x, layer.feed_forward))[1]),
        ),
        Misconception(
            "second_residual_from_input",
            "your second residual adds the layer's input: it should add what went into the second sub-layer",
            ONE_LAYER,
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
            "length_first",
            "your attention looks from example to example: it takes the batch for the length",
            WRONG_WAYS,
            _layer(forward=_length_first),
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
            CONVENTIONS,
            _layer(mask=lambda mask: None if mask is None else ~mask),
        ),
        Misconception(
            "weights_not_dropped",
            "you do not pass `dropout` on to the attention, whose own default is 0",
            DROPOUT,
            _layer(weights=lambda p: 0.0),
        ),
        Misconception(
            "no_dropout",
            "your layer has no dropout, like the one of note 002",
            DROPOUT,
            _layer(weights=lambda p: 0.0, inner=lambda p: 0.0, outer=lambda p: 0.0),
        ),
        Misconception(
            "default_dropout",
            "not every part of your layer gets `dropout`: a part that does not get it takes its own default",
            DROPOUT,
            _layer(weights=lambda p: 0.0, inner=lambda p: 0.1, outer=lambda p: 0.1),
        ),
    ),
)

# --- 2. Encoder -------------------------------------------------------------------------------------------------------


def _encoder_challenge(seed: int) -> Plan:
    """The learner's encoder beside the learner's own layers, one after another: a wrong layer costs nothing here."""
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()

    def train(encoder: Ref, layers: list[Ref], mode: bool = True) -> None:
        plan.train(encoder, mode)
        for layer in layers:  # a plain list hides its layers from the encoder
            plan.train(layer, mode)

    def chain(encoder: Ref, layers: list[Ref], x: Ref, label: str, mask: Ref | None = None) -> list[Ref]:
        """The encoder's output, and beside it those of its layers one by one, which drop the same: all are returned."""
        names = {0: f"{label} first", 1: f"{label} second", len(layers) - 1: f"{label} by hand"}
        plan.seed(seed)
        outputs = [plan.call(encoder, x, mask=mask, label=label)]
        plan.seed(seed)
        for i, layer in enumerate(layers):
            x = plan.call(layer, x, mask=mask, label=names.get(i))
            outputs.append(x)
        return outputs

    def dropped(layer: Ref, x: Ref, label: str) -> None:
        """What one layer makes of x in training."""
        plan.train(layer)
        plan.seed(seed)
        plan.call(layer, x, label=label)

    plan.seed(seed)
    causal = plan.tensor("causal", torch.ones(7, 7, dtype=torch.bool).tril())
    for kind, norm_first, number in (("post", False, 3), ("pre", True, 2)):
        # never as many heads as layers, though their number would divide the width, too
        num_heads = pick(draw, 1, 2) * 3 if norm_first else 2 * pick(draw, 2, 3)
        widths = d_model, num_heads, d_ff = 12 * pick(draw, 1, 2), num_heads, pick(draw, 19, 23)
        first = {"norm_first": True} if norm_first else {}
        made = plan.call("Encoder", number, *widths, dropout=0.4, **first)
        own = plan.call("EncoderLayer", *widths, dropout=0.4, norm_first=norm_first)
        layers = [plan.item(plan.attribute(made, "layers"), i) for i in range(number)]
        one, three = torch.randn(1, 7, d_model, generator=draw), torch.randn(3, 7, d_model, generator=draw)
        three[1] = one[0]
        three[2, :4] = three[1, :4]  # what its padding hides is all that sets it apart
        one, three = plan.tensor(f"x_{kind}", one), plan.tensor(f"xs_{kind}", three)
        train(made, layers, False)
        for i, layer in enumerate(layers):
            plan.call(layer, one, label=f"{kind} fresh {i}")
        loaded = [layer_weights(draw, d_model, d_ff) for _ in layers]
        for layer, weights in zip([*layers[::-1], own], [*loaded[::-1], loaded[0]], strict=True):
            plan.load(layer, weights)
        output, *outputs = chain(made, layers, one if norm_first else three, kind)
        plan.train(own, False)
        plan.call(own, one if norm_first else three, label=f"{kind} by a layer of one's own")
        dropped(own, one, f"{kind} dropped by a layer of one's own")
        plan.learned(made, label=f"numbers of the {kind} encoder")
        plan.learned(own, label=f"numbers of one {kind} layer")
        if not norm_first:
            plan.call(layers[-1], three, label="post last alone")
            _, first, *_ = chain(made, layers, three, "padding", plan.tensor("padding", lengths_mask([7, 4, 4], 7)))
            plan.call(layers[2], plan.call(layers[1], first), label="padding in the first alone")
            dropped(layers[0], one, "post dropped")
            continue
        upstream = torch.randn(1, 7, d_model, generator=draw)
        plan.reached(output, upstream, made, label="weights of all")
        plan.reached(outputs[0], upstream, layers[0], label="weights of one")
        norm = plan.attribute(made, "norm")
        plan.call(layers[-1], plan.call(norm, outputs[-2]), label="norm between")
        plan.hidden |= {"last": loaded[-1], "d_model": d_model}
        # in training, with a norm at the end that has learned
        plan.load(norm, {name: 1 + torch.randn(d_model, generator=draw) for name in ("gamma", "beta")})
        train(made, layers)
        *_, last = chain(made, layers, three, "causal", causal)
        plan.call(norm, last, label="causal by hand, normalised")
        dropped(layers[0], one, "pre dropped")

    # one layer, no dropout and no norm_first given
    whole = plan.call("Encoder", 1, *widths)
    own = plan.call("EncoderLayer", *widths, dropout=0.1, norm_first=False)
    layer = plan.item(plan.attribute(whole, "layers"), 0)
    for module, label in ((layer, "plain"), (own, "plain, one's own")):
        plan.load(module, loaded[0])
        dropped(module, one, label)
    plan.seed(seed)
    plan.call(whole, one, label="plain whole")
    plan.learned(whole, label="numbers of the plain encoder")
    plan.hidden["layers"] = {"post": 3, "pre": 2}
    return plan


def _times_one_layer(a: Answers) -> tuple:
    """How many layers' worth of weights the encoder knows, how many get a gradient in pre-norm, and how many should.

    Then whether the first layer is one of these, and the last; and whether layers that are called one after another, as
    another claim asks, are cut off from it all the same. Weights that one layer alone does not use either are the
    layer's matter.
    """
    known = []
    for encoder, layer in (("post", "post"), ("pre", "pre"), ("plain", "pre")):
        known += [a[f"numbers of the {encoder} encoder"] // max(a[f"numbers of one {layer} layer"], 1)]
    whole, one = list(a["weights of all"].values()), a["weights of one"].values()
    reached, number = sum(whole) / max(sum(one), 1), a.hidden["layers"]["pre"]
    ends = any(whole[: len(one)]), any(whole[-len(one) :])
    return *known, reached, number, *ends, reached < number and _as_by_hand(a, "pre")


def _times_in_words(got: tuple) -> str:
    post, pre, single, reached, number, *_ = got
    if post != 3:
        return f"with num_layers=3, the encoder knows the weights of {_layers(post)}"
    if pre != number:
        return f"with `norm_first=True` and num_layers={number}, the encoder knows the weights of {_layers(pre)}"
    if single != 1:
        return f"with num_layers=1, the encoder knows the weights of {_layers(single)}"
    only = f"only {_layers(reached)}" if reached else "none"
    return f"with `norm_first=True` and num_layers={number}, the gradient reaches the weights of {only}"


def _layers(number: float) -> str:
    return f"{number:g} layer" if number == 1 else f"{number:g} layers"


def _all_differ(a: Answers) -> bool:
    for kind, number in a.hidden["layers"].items():
        outputs = [a[f"{kind} fresh {i}"] for i in range(number)]
        if any(close(one, other) for i, one in enumerate(outputs) for other in outputs[:i]):
            return False
    return True


def _chained(a: Answers) -> tuple:
    """Whether each layer gets what the one before it made; if not, what comes out; and whether all sizes fit."""
    by_hand = a["post by hand"]
    others = (standardised(by_hand), a["post last alone"], a["post second"], a["post first"])
    right = close(a["post"], by_hand) and len(a["plain whole"]) == 1  # whose shape is that of a batch of one
    return right, *(not right and close(a["post"], other) for other in others), _as_own(a, "post")


def _as_own(a: Answers, kind: str) -> bool:
    """Whether the encoder's first layer does what an `EncoderLayer` of these sizes does with its weights."""
    return close(a[f"{kind} first"], a[f"{kind} by a layer of one's own"])


def _chained_in_words(got: tuple) -> str:
    right, *_, first, _ = got
    if first:
        return "the output is that of your first layer: the others are never called, or have no say"
    if not right:
        order = "called in order, each on what the one before it made"
        return f"the output is not that of `num_layers` of your layers, {order}"
    return "your layers do not do what `EncoderLayer(d_model, num_heads, d_ff)` does with the same weights"


def _as_by_hand(a: Answers, name: str) -> bool:
    """Whether the output is that of the layers one after another, with or without a norm at the end."""
    output, by_hand = a[name], a[f"{name} by hand"]
    return close(output, by_hand) or close(output, standardised(by_hand)) or _as_by_the_norm(a, name) is True


def _as_by_the_norm(a: Answers, name: str) -> bool | None:
    """Whether the output is what the encoder's `norm` makes of the layers', or None where there is none to ask."""
    try:
        return close(a[name], a["causal by hand, normalised"]) if name == "causal" else None
    except CannotJudge:  # there is no `norm`, or one of another kind
        return None


def _handed_on(a: Answers) -> tuple:
    """Whether each layer has the mask, with or without a norm at the end: another claim looks at that.

    Where the layers are not called one after another, which is another claim's too, padding must leave no trace, as
    far as it leaves none in the layers. If this is wrong, whether in pre-norm alone, whether the mask changes nothing,
    and whether the first layer alone has it. Then whether the layers drop as a layer of one's own does, where it is
    one; if not, whether in pre-norm alone; and whether they do so where no dropout is given.
    """

    def untouched(label: str) -> bool:
        return close(a[label][1, :4], a[label][2, :4])

    if _as_by_hand(a, "post"):
        post = _as_by_hand(a, "padding")
    else:
        post = untouched("padding") or not untouched("padding by hand")
    pre = _as_by_hand(a, "causal") or not _as_by_hand(a, "pre")
    right = post and pre
    drops = {
        kind: close(a[f"{kind} dropped"], a[f"{kind} dropped by a layer of one's own"]) or not _as_own(a, kind)
        for kind in a.hidden["layers"]
    }
    plain = close(a["plain"], a["plain, one's own"]) or not _as_own(a, "post")
    ignored = not right and close(a["padding"], a["post"])
    ends = (lambda x: x, standardised)
    first_alone = not post and any(close(a["padding"], end(a["padding in the first alone"])) for end in ends)
    return right, post and not pre, ignored, first_alone, all(drops.values()), drops["post"] and not drops["pre"], plain


def _handed_on_in_words(got: tuple) -> str:
    right, masked_post, _, _, drops, drops_post, _ = got
    if not right:
        where = "with `norm_first=True`, " if masked_post else ""
        return f"{where}the output is not that of your layers, each called with the mask"
    if not drops:
        where = " and norm_first=True" if drops_post else ""
        return f"with dropout=0.4{where} your layers do not drop what an `EncoderLayer` made with it drops in training"
    return "where no `dropout` is given, your layers are not made with 0.1"


def _normalised_end(a: Answers) -> tuple:
    """Whether it is there, whatever it is the norm of where another claim fails; whether it learns; the layers' kind.

    Then whether it is there in training, too, and with what it has learned. And if not: whether nothing is there at
    the end, whether a norm follows every layer, whether the layers are post-norm, so that the last one's output before
    its γ and β has mean 0 and variance 1.
    """
    by_hand, own = a["pre by hand"], _as_own(a, "pre")
    right = close(a["pre"], standardised(by_hand if _as_by_hand(a, "post") else a["pre"]))
    learned = a["numbers of the pre encoder"] % a["numbers of one pre layer"] == 2 * a.hidden["d_model"]
    gamma, beta = (a.hidden["last"][f"add_norm_2.norm.{name}"] for name in ("gamma", "beta"))
    inside = (by_hand - beta) / gamma
    post = torch.allclose(inside, standardised(inside), atol=1e-2)
    in_training = not (right and close(a["causal"], a["causal by hand"]))
    unused = right and close(a["causal"], standardised(a["causal by hand"])) and _as_by_the_norm(a, "causal") is False
    facts = right, learned, own, in_training, not unused
    return *facts, close(a["pre"], by_hand), not right and _norm_between(a), not own and post


def _norm_between(a: Answers) -> bool:
    try:
        return close(a["pre"], standardised(a["norm between"]))
    except CannotJudge:  # there is no `norm`, or another of that name
        return False


def _normalised_end_in_words(got: tuple) -> str:
    right, learned, own, in_training, used, *_ = got
    if not right:
        return "the output is not that of `num_layers` layers in order, with one norm after the last"
    if not own:
        return "your layers do not do what `EncoderLayer(…, norm_first=True)` does with the same weights"
    if not learned:
        return "the norm at the end has no γ and β that learn"
    if not in_training:
        return "in training, no norm follows the last layer"
    return "γ and β of the norm at the end change nothing"


class _Encoder(nn.Module):
    """An Encoder in which each mistake is a switch."""

    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False, **switches):
        super().__init__()
        self.switches = switches

        def make():
            inner = switches.get("inner_dropout", dropout)
            return encoder_layer(d_model, num_heads, d_ff, inner, switches.get("layers_first", norm_first))

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
    reference={"Encoder": encoder, "EncoderLayer": encoder_layer},
    claims=(
        Claim(
            "own_parameters",
            1,
            "each of the `num_layers` layers has weights of its own, and the encoder knows them all",
            _times_one_layer,
            reason=_times_in_words,
            see=INDEPENDENT,
        ),
        Claim(
            "different_start",
            1,
            "no two layers start with the same numbers",
            _all_differ,
            reason=lambda _: "two of your fresh layers give the same output for the same input",
            see=INDEPENDENT,
        ),
        Claim(
            "chained",
            1,
            "post-norm: each layer gets what the one before it made, and nothing follows the last",
            _chained,
            reason=_chained_in_words,
            see=FINAL_NORM,
        ),
        Claim(
            "mask",
            1,
            "every layer gets the mask, and was made with `dropout`",
            _handed_on,
            reason=_handed_on_in_words,
            see=EVERY_LAYER,
        ),
        Claim(
            "final_norm",
            1,
            "`norm_first=True`: the layers are pre-norm, and one layer norm follows the last",
            _normalised_end,
            reason=_normalised_end_in_words,
            see=FINAL_NORM,
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
            WRONG_WAYS,
            _encoder(always_input=True),
        ),
        Misconception(
            "dropout_kept_back",
            "you do not pass `dropout` on to your layers: they take their own default",
            DROPOUT,
            _encoder(inner_dropout=0.1),
        ),
        Misconception(
            "norm_first_kept_back",
            "you do not pass `norm_first` on to your layers: they stay post-norm",
            FINAL_NORM,
            _encoder(layers_first=False),
        ),
        Misconception(
            "last_missing",
            "your last layer is never called",
            FINAL_NORM,
            _encoder(order=lambda layers: layers[:-1]),
        ),
    ),
)

# --- 3. from tokens ---------------------------------------------------------------------------------------------------


def whole_sizes(draw: torch.Generator) -> tuple[int, int, int]:
    """d_model, num_heads and d_ff, all different and no number of layers: those asked for are 1 and 2."""
    return 6 * pick(draw, 2, 3), 3 * pick(draw, 1, 2), pick(draw, 19, 23)


def load_layers(plan: Plan, encoders: list[Ref], draw: torch.Generator, number: int, d_model: int, d_ff: int) -> None:
    """Put the same weights into the layers of several of the learner's encoders, and switch them to evaluation."""
    for i in range(number):
        weights = layer_weights(draw, d_model, d_ff)
        for encoder in encoders:
            layer = plan.item(plan.attribute(encoder, "layers"), i)
            plan.load(layer, weights)
            plan.train(layer, False)  # a plain list hides its layers from the encoder


def compare_with_own(plan: Plan, whole: dict[float, Ref], own: dict[float, Ref], rows: Ref) -> None:
    """Count the numbers of encoders, by their dropout, and give them equal examples in training.

    Beside them, the learner's own encoders.
    """
    for p in whole:
        plan.learned(whole[p], label=f"numbers {p}")
        plan.learned(own[p], label=f"own numbers {p}")
        plan.train(whole[p])
        plan.call(whole[p], rows, label=f"dropout {p}")
        plan.call(own[p], as_float(plan, rows), label=f"own dropout {p}")


def _token_challenge(seed: int) -> Plan:
    """What enters the layers is compared with the paper's; what leaves them, with the learner's own encoder."""
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    d_model, _, d_ff = widths = whole_sizes(draw)
    vocab_size = pick(draw, 24, 29)

    def words(batch: int, seq: int) -> Tensor:
        return torch.randint(7, vocab_size, (batch, seq), generator=draw)

    def make(layers: int, **options) -> Ref:
        return plan.call("TokenEncoder", vocab_size, *widths, layers, **options)

    one, other = plan.tensor("ids", words(3, 5)), plan.tensor("other_ids", words(3, 5))
    same = plan.tensor("one_word", words(1, 1).expand(2, vocab_size + pick(draw, 2, 4)))  # longer than all sizes
    made = make(1, dropout=0.0)
    plan.train(made, False)
    table = torch.randn(vocab_size, d_model, generator=draw) / math.sqrt(d_model)
    plan.load(plan.attribute(made, "embedding"), {"embedding.weight": table})
    embed = plan.attribute(made, "embed")
    for label, ids in (("embedded", one), ("other embedded", other)):
        plan.call(embed, ids, label=label)
    plan.call(embed, same, label="same embedded")
    rows = plan.call(embed, plan.tensor("one_word_twice", plan.tensors["one_word"][:, :4]))
    plan.learned(made, label="numbers of all")
    for part in ("embedding", "encoder"):
        plan.learned(plan.attribute(made, part), label=f"numbers of {part}")

    plan.seed(seed)
    other_pad = pick(draw, 2, 5)
    noisy, default = make(2, dropout=0.5, pad_id=0), make(1, pad_id=other_pad)
    ids = plan.tensor("many_ids", words(9, 7))
    for name, model in (("", noisy), ("default ", default)):
        embed = plan.attribute(model, "embed")
        plan.train(model)
        plan.call(embed, ids, label=f"{name}dropped")
        if model is noisy:
            plan.call(embed, ids, label="dropped again")
        plan.train(model, False)
        plan.call(embed, ids, label=f"{name}kept")
    zeros = plan.call(embed, plan.tensor("word_0", torch.zeros(1, 2, dtype=torch.long)))
    upstream = torch.randn(1, 2, d_model, generator=draw)
    plan.reached(zeros, upstream, plan.attribute(default, "embedding"), label="word 0 learns")
    whole = {0.0: plan.attribute(made, "encoder"), 0.5: plan.attribute(noisy, "encoder")}
    own = {p: plan.call("Encoder", layers, *widths, dropout=p) for p, layers in ((0.0, 1), (0.5, 2))}
    compare_with_own(plan, whole, own, rows)
    whole, own = whole[0.0], own[0.0]
    plan.train(made, False)
    plan.train(own, False)

    def outputs(made: Ref, name: str, ids: Tensor, **masks: Tensor | None) -> Ref:
        """What comes out for ids, and what the encoder makes of their embedding with each mask."""
        ids = plan.tensor(name, ids)
        plan.seed(seed)
        output = plan.call(made, ids, label=name)
        plan.seed(seed)  # layers that drop what they should keep do so alike in both
        embedded = plan.call(plan.attribute(made, "embed"), ids)
        for label, mask in masks.items():
            mask = None if mask is None else plan.tensor(f"{label}_mask_of_{name}", mask)
            by_hand = plan.call(plan.attribute(made, "encoder"), embedded, mask=mask, label=f"{name} {label}")
            if made is default and label == "by_hand":
                compare_gradients(plan, made, output, by_hand, torch.randn(3, 6, d_model, generator=draw))
        return embedded

    load_layers(plan, [whole, own], draw, 1, d_model, d_ff)
    all_seen = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    embedded = outputs(made, "unpadded_ids", words(1, 6), by_hand=all_seen, all_hidden=~all_seen)
    plan.call(own, as_float(plan, embedded), mask=all_seen, label="unpadded_ids by an encoder of one's own")
    _ask_for_pre_norm(plan, whole, d_model, draw)
    for model, pad_id in ((made, 0), (default, other_pad)):
        padded = words(3, 6)
        padded[1, 4:], padded[2, 2:] = pad_id, pad_id
        padded[0, 1] = 3 if pad_id == 0 else 0  # a word like others, whatever its number
        mask = padding_mask(padded, pad_id)
        masks = {"by_hand": mask, "unmasked": None, "inverted": ~mask} if pad_id == 0 else {"by_hand": mask}
        if pad_id:
            masks["pad_0"] = padding_mask(padded, 0)
        outputs(model, "other_padded_ids" if pad_id else "padded_ids", padded, **masks)
        if pad_id == 0:
            plan.train(made)
            outputs(made, "padded_ids_in_training", padded, by_hand=mask)
    plan.hidden["real"] = lengths_mask([6, 4, 2], 6)[:, 0, 0]
    return plan


def compare_gradients(plan: Plan, made: Ref, output: Ref, by_hand: Ref, upstream: Tensor) -> None:
    """Ask which weights the gradient reaches from the output, and from `encoder` called by hand."""
    plan.reached(output, upstream, made, label="reached")
    plan.reached(by_hand, upstream, made, label="reached by_hand")


def _reached(a: Answers, label: str) -> set[str]:
    """The names of the weights that the gradient reaches; none where it cannot be taken."""
    try:
        return {name for name, reached in a[label].items() if reached}
    except CannotJudge:
        return set()


def _ask_for_pre_norm(plan: Plan, encoder: Ref, d_model: int, draw: torch.Generator) -> None:
    """A stream that is large beside what sub-layers add: pre-norm hardly changes its direction."""
    large = plan.tensor("large", 1e4 * torch.randn(2, 5, d_model, generator=draw))
    plan.hidden["large"] = plan.tensors["large"]
    plan.call(encoder, large, label="large")


def _is_pre_norm(a: Answers) -> bool:
    return (standardised(a["large"]) - standardised(a.hidden["large"])).abs().max().item() < 0.05


def _all_hidden(a: Answers) -> bool:
    """Whether nothing attends to the words of a sentence without padding."""
    return "real" in a.hidden and close(a["unpadded_ids"], a["unpadded_ids all_hidden"])


def _through_encoder(name: str, norm_first: bool, alone: str | None = None):
    """The quantity: whether the output is that of `encoder`, and whether this is one as it should be.

    Compared with the learner's own `Encoder` of these sizes, so that no mistake in that costs a point here. If it is
    another, whether post-norm and pre-norm are mixed up. Two encoders differ by the layers that one has more; what
    else an encoder may hold cancels. `alone` is the output of one example alone.
    """

    def quantity(a: Answers) -> tuple:
        as_own = close(a[f"{name} by_hand"], a[f"{name} by an encoder of one's own"])
        kind = as_own or _is_pre_norm(a) == norm_first
        as_own = as_own and a["numbers 0.0"] - a["numbers 0.5"] == a["own numbers 0.0"] - a["own numbers 0.5"]
        quiet, noisy = (varies(a[f"dropout {p}"]) == varies(a[f"own dropout {p}"]) for p in (0.0, 0.5))
        through = close(a[name], a[f"{name} by_hand"])
        if alone is not None:
            a[alone]  # raises where it is no batch of one
            if not through:
                _same_in_every_call(a)
        learns = _reached(a, "reached by_hand") <= _reached(a, "reached")
        return through, as_own, kind, quiet, noisy, learns, not through and _all_hidden(a)

    return quantity


def _encoder_in_words(got: tuple, output: str, expected: str, where: str = "") -> str:
    by_hand, as_own, _, quiet, noisy, *_ = got
    if not by_hand:
        return f"{where}your output is not that of `{output}`"
    if not as_own:
        sizes = "the sizes you were given (num_layers, num_heads and d_ff, too)"
        return f"`encoder` is not a {expected} `Encoder` of {sizes}"
    if quiet and noisy:
        return f"some weights get a gradient from `{output}`, but none from your output"
    p, drops = (0, "something") if not quiet else (0.5, "nothing")
    return f"with dropout={p} your `encoder` drops {drops} in training"


def _word_difference(a: Answers) -> dict:
    """Two sentences' embeddings minus each other: the positions cancel, the factor does not.

    And whether the row of word 0 learns where the padding is another.
    """
    difference = a["embedded"] - a["other embedded"]
    return {"`embed` of some words, less that of others": difference, "word 0 learns": any(a["word 0 learns"].values())}


def _word_difference_in_words(got: dict) -> str | None:
    return None if got["word 0 learns"] else "with a pad_id other than 0, the row of word 0 gets no gradient"


def _position_difference(a: Answers) -> dict:
    """The same word everywhere, minus its first use: the word cancels."""
    if a["numbers of all"] > a["numbers of embedding"] + a["numbers of encoder"]:
        raise CannotJudge("numbers beside those of `embedding` and `encoder` learn", ("learned positions",))
    same = a["same embedded"]
    return {"`embed` of one word at all positions, less that at position 0": same - same[:, :1]}


def _embedding_dropped(a: Answers) -> tuple:
    """How much is dropped, if that is not about half; whether the rest is doubled; and whether nothing happens at all.

    Whether other entries are dropped the next time; and whether the default is 0.1, which the rest tells exactly.
    """
    dropped, kept = a["dropped"], a["kept"]
    gone = (dropped == 0) & (kept != 0)
    nothing, anew = torch.allclose(dropped, kept, atol=1e-4), not torch.equal(dropped, a["dropped again"])
    by_default = _rest_is_divided(a["default dropped"], a["default kept"], 0.9)
    share = gone.double().mean().item()
    share = "" if 0.4 < share < 0.6 else f"{100 * share:.0f} %"
    return share, _rest_is_divided(dropped, kept, 0.5), nothing, anew, by_default


def _rest_is_divided(dropped: Tensor, kept: Tensor, share: float) -> bool:
    """Whether what dropout left is divided by the share that stays."""
    rest = (dropped / kept)[(dropped != 0) & (kept.abs() > 1e-3)]
    return rest.numel() > 0 and bool(((rest * share - 1).abs() < 5e-3).all())


def _embedding_dropped_in_words(got: tuple) -> str:
    share, doubled, _, anew, _ = got
    if share or not doubled:
        yours = f"in yours {share} are 0" if share else "in yours the rest is not"
        right = "about half of the entries of `embed` should be 0, the rest doubled"
        return f"in training, at dropout=0.5, {right}: {yours}"
    if not anew:
        return "in training, `embed` drops the same entries in every call"
    return "made without `dropout`, your TokenEncoder does not drop at the default rate that the exercise states"


def _padding_hidden(a: Answers) -> tuple:
    """With pad_id 0 and another, whether padding is hidden, in training too; if not, what mask gives this instead."""
    real = a.hidden["real"]

    def same(name: str, how: str) -> bool:
        return close(a[name][real], a[f"{name} {how}"][real])

    hidden = tuple(same(name, "by_hand") for name in ("padded_ids", "other_padded_ids", "padded_ids_in_training"))
    instead = (("padded_ids", "unmasked"), ("padded_ids", "inverted"), ("other_padded_ids", "pad_0"))
    return *hidden, *(not all(hidden) and same(*each) for each in instead)


def _padding_in_words(got: tuple) -> str:
    default, other, *_ = got
    if default and other:
        when, how = "in training, ", ""
    else:
        when, how = "", " (for a pad_id other than 0)" if default else " (made without `pad_id`)" if other else ""
    return f"{when}at the words of a padded sentence, your output is not that of `encoder` with a padding mask{how}"


class _TokenEncoder(nn.Module):
    """A TokenEncoder in which each mistake is a switch."""

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0, **switches):
        super().__init__()
        self.switches, self.pad_id = switches, pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        own = switches.get("own_dropout", lambda p: p)(dropout)
        self.positions = SinusoidalPositionalEncoding(d_model, 64, own)
        if switches.get("learned"):
            self.positions = LearnedPositionalEncoding(50, d_model, own)
        inner = switches.get("inner_dropout", dropout)
        self.encoder = encoder(num_layers, d_model, num_heads, d_ff, inner, switches.get("norm_first", False))

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
    reference={"TokenEncoder": token_encoder, "Encoder": encoder},
    claims=(
        Claim(
            "scaled",
            1,
            "`embed` takes each word's row times √d_model",
            _word_difference,
            reason=_word_difference_in_words,
            see=TOKENS,
        ),
        Claim(
            "positions",
            1,
            "`embed` then adds each position's sines and cosines, once",
            _position_difference,
            see=TOKENS,
        ),
        Claim(
            "dropout",
            1,
            "in training, `dropout` acts on the sum of the two",
            _embedding_dropped,
            reason=_embedding_dropped_in_words,
            see=TOKENS,
        ),
        Claim(
            "layers",
            1,
            "what `embed` makes goes through `encoder`, which is post-norm and made with `dropout`",
            _through_encoder("unpadded_ids", norm_first=False),
            reason=lambda got: _encoder_in_words(got, "encoder(embed(ids))", "post-norm", "for ids without padding "),
            see=TOKENS,
        ),
        Claim(
            "padding",
            1,
            "nothing attends to padding, whatever `pad_id` is",
            _padding_hidden,
            reason=_padding_in_words,
            see=TOKENS,
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
            "your rows come out √d_model times too large (mind that `TokenEmbedding` multiplies already)",
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
            "encoder_default_dropout",
            "you do not pass `dropout` on to your encoder, which takes its own default",
            DROPOUT,
            _tokens(inner_dropout=0.1),
        ),
        Misconception(
            "pre_norm", "your encoder is pre-norm: the paper's is post-norm", TOKENS, _tokens(norm_first=True)
        ),
        Misconception(
            "mask_forgotten",
            "your layers attend to padding, as if there were no mask",
            TOKENS,
            _tokens(mask=lambda ids, pad_id: None),
        ),
        Misconception(
            "mask_inverted",
            "your mask is True at the padding: in this book True means that a key may be attended to",
            CONVENTIONS,
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
    d_model, _, d_ff = widths = whole_sizes(draw)
    patch_size, channels, side = pick(draw, 2, 3), pick(draw, 4, 5), pick(draw, 3, 4)
    num_patches = side**2

    def images(name: str) -> Ref:
        shape = (2, channels, side * patch_size, side * patch_size)
        return plan.tensor(name, torch.randn(shape, generator=draw))

    plan.seed(seed)
    made = plan.call("PatchEncoder", side * patch_size, patch_size, channels, *widths, 2, dropout=0.0)
    noisy = plan.call("PatchEncoder", side * patch_size, patch_size, channels, *widths, 1, dropout=0.5)
    whole = {0.0: plan.attribute(made, "encoder"), 0.5: plan.attribute(noisy, "encoder")}
    own = {p: plan.call("Encoder", n, *widths, dropout=p, norm_first=True) for p, n in ((0.0, 2), (0.5, 1))}

    matrix = torch.randn(d_model, channels * patch_size**2, generator=draw) / 3
    weights = {"projection.weight": matrix, "projection.bias": torch.randn(d_model, generator=draw)}
    plan.load(plan.attribute(made, "embedding"), weights)
    one, other = images("images"), images("other_images")
    embed = plan.attribute(made, "embed")
    plan.call(embed, one, label="embedded in training")
    plan.train(made, False)
    image = plan.tensors["images"][:1]
    compare_with_own(plan, whole, own, plan.call(embed, plan.tensor("one_image_twice", image.expand(2, -1, -1, -1))))
    whole, own = whole[0.0], own[0.0]
    plan.train(made, False)
    plan.train(own, False)
    embedded = plan.call(embed, one, label="embedded")
    plan.call(embed, other, label="other embedded")
    alone = plan.tensor("one_image", image)
    plan.call(embed, alone, label="embedded alone")
    load_layers(plan, [whole, own], draw, 2, d_model, d_ff)
    output = plan.call(made, one, label="output")
    by_hand = plan.call(whole, embedded, label="output by_hand")
    upstream = torch.randn(2, num_patches + 1, d_model, generator=draw)
    compare_gradients(plan, made, output, by_hand, upstream)
    plan.call(made, alone, label="output of one")
    plan.call(own, as_float(plan, embedded), label="output by an encoder of one's own")
    _ask_for_pre_norm(plan, whole, d_model, draw)

    class_token = plan.parameter(made, "class_token", (1, 1, d_model))
    plan.gradient(embedded, upstream, class_token, label="class token's gradient")
    plan.reached(embedded, upstream, plan.attribute(made, "embedding"), label="patches learn")
    wide = plan.call("PatchEncoder", 2, 1, 1, WIDE, 1, 1, 1)  # with the default dropout
    plan.parameter(wide, "class_token", (1, 1, WIDE), label="fresh class token")
    pixels = plan.tensor("small_images", torch.randn(2, 1, 2, 2, generator=draw))
    for training, label in ((True, "dropped"), (False, "kept")):
        plan.train(wide, training)
        plan.call(plan.attribute(wide, "embed"), pixels, label=f"default {label}")

    positions = plan.attribute(made, "positions")
    plan.learned(positions, label="numbers of positions")
    for name in ("first", "second"):
        plan.load(positions, {"table": torch.randn(num_patches + 1, d_model, generator=draw)})
        embedded = plan.call(embed, one, label=f"{name} table")
    plan.reached(embedded, upstream, positions, label="table learns")
    plan.load(made, {"class_token": torch.randn(1, 1, d_model, generator=draw)})
    plan.call(embed, one, label="with another class token")
    return plan


def _varies(a: Answers) -> Tensor:
    """For each row of `embed`, whether it depends on the image."""
    return (a["embedded"] - a["other embedded"]).abs().amax((0, 2)) > 1e-4


def _drawn_anew(a: Answers) -> bool:
    """Whether the same images give something else in every call."""
    return not close(a["embedded in training"], a["embedded"])


def _same_in_every_call(a: Answers) -> None:
    """Raises where the same images give other rows in every call, the class token's among them."""
    if _varies(a)[0] and _drawn_anew(a) and not close(a["embedded alone"], a["embedded"][:1]):
        raise CannotJudge("`embed` gives something else in every call, for the same images", ("drawn anew",))


def _in_front(a: Answers) -> tuple:
    _same_in_every_call(a)
    varies, alone = _varies(a), close(a["embedded alone"], a["embedded"][:1])
    return not varies[0], bool(varies[1:].any()), alone, bool(varies[-1]), bool(varies[0]) and _drawn_anew(a)


def _in_front_in_words(got: tuple) -> str:
    first, others, alone, *_ = got
    if first and others and not alone:
        return "`embed` does not make the same of an image alone as of that image among others"
    return f"{'no row' if first else 'row 0'} of `embed` depends on the image"


def _patch_rows(a: Answers) -> dict:
    """What a change of the image changes, wherever the class token stands; and whether the patches' map learns."""
    _same_in_every_call(a)
    rows, patches = int(_varies(a).sum()), a["embedded"].shape[1] - 1
    if rows != patches:
        message = f"{rows} rows of `embed` depend on the image, where there are {patches} patches"
        raise CannotJudge(message, ("rows", rows - patches, _drawn_anew(a)))
    difference = (a["embedded"] - a["other embedded"])[:, _varies(a)]
    what = "the patches' rows of `embed` for some images, less those for others"
    return {what: difference, "the patches learn": any(a["patches learn"].values())}


def _patch_rows_in_words(got: dict) -> str | None:
    return None if got["the patches learn"] else "the weights of `embedding` get no gradient"


def _class_token_learns(a: Answers) -> tuple:
    """Whether it has a gradient, how its fresh numbers spread, where N(0, 0.02²) gives 0.02; and whether it shows.

    Of numbers with the right spread: on both sides of 0, and some beyond the bound of a uniform distribution.
    """
    shows = not close(a["second table"], a["with another class token"])
    spread = a["fresh class token"].square().mean().sqrt().item() / 0.02
    bounds = {"nothing": 1e-6, "small": 0.7, "right": 1.4, "large": 30, "unit size": 80, "huge": math.inf}
    size = next(size for size, bound in bounds.items() if spread < bound)
    if size == "right":
        fresh = a["fresh class token"] / 0.02
        size = "one-sided" if abs(fresh.mean()) > 0.5 else "bounded" if fresh.abs().max() < 1.733 else size
    return bool(a["class token's gradient"].abs().sum() > 0), size, shows


def _class_token_in_words(got: tuple) -> str:
    learns, size, shows = got
    if not shows:
        return "the class token has no part in what `embed` makes"
    if not learns:
        return "the class token gets no gradient"
    words = {
        "nothing": "all 0",
        "unit size": "of about unit size, which is too large",
        "huge": "far too large",
        "one-sided": "not spread around 0",
        "bounded": "not drawn from a normal distribution",
    }
    return f"the numbers of a fresh class token are {words.get(size, f'too {size}')}"


def _placed(a: Answers) -> tuple:
    """What a change of the table changes; whether the table learns; whether dropout=0 leaves all as it is.

    And whether `embed`, where it drops, does so by default at 0.1.
    """
    _same_in_every_call(a)
    try:
        a["first table"]
    except CannotJudge:
        if a["numbers of positions"] == 0:
            raise CannotJudge("nothing in `positions` learns", ("fixed positions",)) from None
        raise
    dropped, kept = a["default dropped"], a["default kept"]
    by_default = _rest_is_divided(dropped, kept, 0.9) or torch.equal(dropped, kept)
    return a["second table"] - a["first table"], any(a["table learns"].values()), not _drawn_anew(a), by_default


def _placed_in_words(got: tuple) -> str:
    if not got[2]:
        return "with dropout=0 `embed` does not give the same in training as in evaluation"
    if not got[1]:
        return "the table of `positions` gets no gradient"
    if not got[3]:
        return "made without `dropout`, your `embed` drops at another rate than the default that the exercise states"
    return "when the table of `positions` changes, the rows of `embed` do not change by just as much"


class _PatchEncoder(nn.Module):
    """A PatchEncoder in which each mistake is a switch."""

    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1, **switches):
        super().__init__()
        self.switches = switches
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model) * switches.get("std", 0.02))
        if switches.get("fixed"):
            self.class_token.requires_grad_(False)
        num_positions = self.embedding.num_patches + switches.get("more", 1)
        self.positions = LearnedPositionalEncoding(num_positions, d_model, dropout)
        if switches.get("sinusoidal"):
            self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        inner = switches.get("inner_dropout", dropout)
        self.encoder = encoder(num_layers, d_model, num_heads, d_ff, inner, switches.get("norm_first", True))

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
            reason=_in_front_in_words,
            see=PATCHES,
        ),
        Claim(
            "patches",
            1,
            "the other rows are the patches' vectors, in order",
            _patch_rows,
            reason=_patch_rows_in_words,
            see=PATCHES,
        ),
        Claim(
            "positions",
            1,
            "every row, the class token's too, gets its own learned position",
            _placed,
            reason=_placed_in_words,
            see=PATCHES,
        ),
        Claim(
            "learned",
            1,
            "the class token is a parameter of shape (1, 1, d_model), drawn from N(0, 0.02²), and learns",
            _class_token_learns,
            reason=_class_token_in_words,
            see=PATCHES,
        ),
        Claim(
            "layers",
            1,
            "what `embed` makes goes through `encoder`, which is pre-norm and made with `dropout`",
            _through_encoder("output", norm_first=True, alone="output of one"),
            reason=lambda got: _encoder_in_words(got, "encoder(embed(images))", "pre-norm"),
            see=PATCHES,
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
        Misconception("zeros", "your class token starts as zeros", PATCHES, _patches(std=0.0)),
        Misconception(
            "unit_size",
            "your class token starts with numbers of about unit size, as from N(0, 1)",
            PATCHES,
            _patches(std=1.0),
        ),
        Misconception("post_norm", "your encoder is post-norm: ViT is pre-norm", PATCHES, _patches(norm_first=False)),
        Misconception(
            "encoder_default_dropout",
            "you do not pass `dropout` on to your encoder, which takes its own default",
            DROPOUT,
            _patches(inner_dropout=0.1),
        ),
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
        kept = [name for name in shuffled if not name.endswith(without or "nothing")]
        after = "_without_biases" if without else ""
        given = {name: plan.tensor(name + after, weights[name]) for name in kept}
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
    """The names in both results; none where no tensor holds anything."""
    found = []
    for label in ("mapped", "unbiased"):
        parts = _tensors(a, label)
        filled = any(a.recording.tensors[part["key"]].any() for part in parts.values() if "key" in part)
        found.append(", ".join(sorted(parts)) if filled else "")
    return tuple(found)


def _names_in_words(got: tuple) -> str | None:
    everything = {*_PROJECTIONS, *_PARTS.values()}
    weights = {name for name in everything if name.endswith((".weight", ".gamma"))}
    for found, known, where in zip(got, (everything, weights), ("", "from a layer without biases: "), strict=True):
        names = found.split(", ")
        if not found:
            return f"{where}no tensor holds anything but zeros"
        for name in names:
            if name in _PARTS or "in_proj" in name:
                return f"{where}`{name}` is a name of torch's"
        for name in sorted(known.difference(names)):
            return f"{where}`{name}` is missing"
        for name in sorted(set(names) - known):
            return f"{where}`{name}` {'is there all the same' if name in everything else 'is no name of your layer'}"
    return None


def _parts(names: tuple[str, ...], part: str):
    """The quantity of some tensors; an empty one stands for each that is missing.

    Where one is, then also the names with this part in them that are not the layer's: what may stand there instead.
    """

    def quantity(a: Answers) -> tuple:
        found = _tensors(a, "mapped")
        others = sorted(name for name in found if part in name and name not in (*_PROJECTIONS, *_PARTS.values()))
        instead = "" if all(name in found for name in names) else ", ".join(others)
        return *(a[name] if name in found else torch.zeros(0) for name in names), instead

    return quantity


def _parts_in_words(names: tuple[str, ...]):
    def words(got: tuple) -> str | None:
        missing = [name for name, tensor in zip(names, got[:-1], strict=True) if not tensor.numel()]
        return f"`{missing[0]}` is missing" if missing else None

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
            see=TORCH,
        ),
        Claim(
            "projections",
            1,
            "`w_q`, `w_k` and `w_v` come from torch's fused matrix and bias",
            _parts(_PROJECTIONS, "in_proj_weight"),
            reason=_parts_in_words(_PROJECTIONS),
            see=TORCH,
        ),
        Claim(
            "maps",
            1,
            "`w_o`, `linear_1` and `linear_2` hold what they held in torch",
            _parts(_MAPS, "linear"),
            reason=_parts_in_words(_MAPS),
            see=TORCH,
        ),
        Claim(
            "norms",
            1,
            "each norm's γ and β stand in the right Add & Norm",
            _parts(_NORMS, "norm"),
            reason=_parts_in_words(_NORMS),
            see=TORCH,
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
    d_model, seq = pick(draw, 10, 12), pick(draw, 7, 9)

    def mean_of(label: str, counts: Tensor) -> None:
        """The same mean asked for with both masks."""
        x = torch.randn(*counts.shape, d_model, generator=draw) + 0.5
        x = x.masked_fill(~counts.unsqueeze(-1), 9.0)
        plan.call("masked_mean", plan.tensor(f"{label}x", x), plan.tensor(f"{label}mask", counts), label=f"{label}mean")
        wide = plan.tensor(f"{label}padding_mask", counts[:, None, None])
        plan.call("masked_mean", plan.tensor(f"{label}x_again", x), wide, label=f"{label}wide mask")

    counts = lengths_mask([seq, pick(draw, 3, 4), 1], seq)[:, 0, 0]
    counts[1] = counts[1].roll(seq - 5)  # its padding on both sides
    counts[2] = counts[2].roll(2)
    mean_of("", counts)
    mean_of("one_", torch.arange(seq)[None] % 3 > 0)
    mean_of("short_", torch.ones(2, 1, dtype=torch.bool))

    lengths = torch.tensor([4, 0])
    mask = plan.tensor("empty_mask", torch.arange(5) < lengths.unsqueeze(1))
    vectors, upstream = torch.randn(2, 5, d_model, generator=draw), torch.randn(2, d_model, generator=draw)
    x = plan.tensor("empty_x", vectors, requires_grad=True)
    mean = plan.call("masked_mean", x, mask, label="empty")
    plan.gradient(mean, upstream, x, label="gradient")
    plan.hidden["linear"] = vectors, upstream
    return plan


def _same_for_both_masks(a: Answers) -> tuple:
    few = (torch.allclose(a[f"{label}_wide mask"], a[f"{label}_mean"], atol=1e-4) for label in ("one", "short"))
    return close(a["wide mask"], a["mean"]), *few


def _wide_mask_in_words(got: tuple) -> str:
    where = "" if not got[0] else " of a batch of one sentence" if not got[1] else " of sentences of one word"
    return f"the two masks{where} give different results"


def _empty_sentence(a: Answers) -> tuple:
    """Zero for the empty sentence, and no gradient; something for the other, and the gradient that goes with it.

    A mean is linear in the vectors, so that their product with its gradient is the result's with what came from above.
    """
    mean, gradient, (x, upstream) = a["empty"], a["gradient"], a.hidden["linear"]
    made, told = (mean * upstream)[0].sum(), (gradient * x)[0].sum()
    size = (mean * upstream)[0].abs().sum()
    return mean[1], bool(mean[0].any()), gradient[1], bool(gradient[0, :4].any()), abs(made - told).item() < 1e-3 * size


def _empty_in_words(got: tuple) -> str | None:
    mean, other, gradient, reached, linear = got
    if mean.any():
        return "for an empty sentence your result is not zeros"
    if not other:
        return "in a batch with an empty sentence, your result for the other sentence is zeros, too"
    if gradient.any():
        return "the vectors of an empty sentence get a gradient"
    if not reached:
        return "in a batch with an empty sentence, no gradient reaches the other sentence's words"
    if not linear:
        gradient = "the gradient that reaches the other sentence's words"
        return f"in a batch with an empty sentence, {gradient} is not that of your result"
    return None


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
        Claim(
            "mean",
            1,
            "the mean of each sentence's words, whatever stands at the padding",
            lambda a: (a["mean"], a["one_mean"], a["short_mean"]),
            see=POOLING,
        ),
        Claim(
            "wide_mask",
            1,
            "a padding mask (batch, 1, 1, seq) gives the same as a mask (batch, seq)",
            _same_for_both_masks,
            reason=_wide_mask_in_words,
            see=POOLING,
        ),
        Claim(
            "empty",
            1,
            "an empty sentence gives zeros and no gradient, never NaN",
            _empty_sentence,
            reason=_empty_in_words,
            see=POOLING,
        ),
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
        plan.hidden[label] = layers, d_model, d_ff, norm_first
        plan.call("encoder_parameters", *plan.hidden[label], label=label)
    return plan


def _shape_in_words(got: tuple) -> str:
    right = [one == other for one, other in zip(got, COUNTING.reference["output_shape"], strict=True)]
    which = f"its {'second' if right[0] else 'first'} number is not right" if any(right) else "neither number is right"
    return f"`output_shape` is ({', '.join(map(in_figures, got))}): {which}"


def _rule_in_words(got: tuple) -> str:
    sizes, value = next(each for each in got if each[1] != encoder_parameters(*each[0]))
    return f"`encoder_parameters({', '.join(map(str, sizes))})` gives {in_figures(value)}, which is not right"


COUNTING = Exercise(
    name="stacking.counting",
    title="Counting a whole encoder",
    challenge=_counts_challenge,
    reference=_counts(),
    claims=(
        Claim(
            "parameters",
            1,
            "`parameters_of_encoder` is right for ViT-Base's encoder",
            lambda a: a["parameters"],
            reason=lambda got: f"`parameters_of_encoder` is {in_figures(got)}, which is not right",
            see=COST,
        ),
        Claim(
            "shape",
            1,
            "`output_shape` is right for ViT-Base",
            lambda a: a["shape"],
            reason=_shape_in_words,
            see=PATCHES,
        ),
        Claim(
            "rule",
            1,
            "`encoder_parameters` is right for other sizes, post-norm and pre-norm",
            lambda a: tuple((a.hidden[label], a[label]) for label in ("post", "pre")),
            reason=_rule_in_words,
            see=COST,
        ),
    ),
    misconceptions=(
        Misconception("no_biases", "you left out the biases", COST, _counts(biases=0)),
        Misconception(
            "no_norms",
            "each of your layers is short by 4·d_model: as many as its two norms hold, or its square maps' biases, or "
            "the bias of the feed-forward network's first map",
            COST,
            _counts(norms=0),
        ),
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


def _without_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """x with zeros at the padding: what a right candidate makes of the rest stays finite whatever stood there."""
    return x if mask is None else x.masked_fill(~mask[:, 0, 0].unsqueeze(-1), 0.0)


@torch.no_grad()
def by_library(x: Tensor, weights: dict[str, Tensor], mask: Tensor | None = None, training: bool = False) -> Tensor:
    """A right candidate: encoder_lib's own."""
    made = encoder(2, x.shape[-1], 2, len(weights["layers.0.feed_forward.linear_1.bias"]))
    made.load_state_dict(weights)
    return made.to(x.dtype).train(training)(_without_padding(x, mask), mask)


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
    output = made.to(x.dtype).train(training)(_without_padding(x, mask), src_key_padding_mask=hidden)
    return output if hidden is None else output.masked_fill(hidden.unsqueeze(-1), 0.0)


def by_hand(**bugs):
    """A candidate made of plain functions, right or with a bug."""

    @torch.no_grad()
    def run(x: Tensor, weights: dict[str, Tensor], mask: Tensor | None = None, training: bool = False) -> Tensor:
        def drop(x):
            return F.dropout(x, 0.1, training or bugs.get("always_drop", False))

        if not bugs.get("mask_dropped"):
            x = _without_padding(x, mask)
        for i in range(2):
            layer = "layers.0." if bugs.get("shared") else f"layers.{i}."
            w = {name[9:]: weight.to(x.dtype) for name, weight in weights.items() if name.startswith(layer)}
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
    see=TESTING,
)

EXERCISES = (ENCODER_LAYER, ENCODER, TOKEN_ENCODER, PATCH_ENCODER, FROM_TORCH, MASKED_MEAN, COUNTING, BUG_HUNT)
