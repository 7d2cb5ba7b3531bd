"""The exercises of chapter 3, attention."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from encoder_grader.bug_hunt import Bug, bug_hunt
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, CannotJudge
from encoder_grader.plan import Plan, Ref, pick
from encoder_lib.attention import (
    MultiHeadAttention,
    combine_masks,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from encoder_lib.attention import causal_mask as library_causal_mask

SCALE = "“Why √d_k” in chapter 3"
SCORES = "“Scores” in chapter 3"
SOFTMAX = "“From scores to weights” in chapter 3"
MASKS = "“Masks” in chapter 3"
NOTHING = "“A row that may attend to nothing” in chapter 3"
MULTI_HEAD = "“Many heads” in chapter 3"
SPLIT = "“Split and merge” in chapter 3"
CROSS = "“Self-attention and cross-attention” in chapter 3"
COUNTING = "“Counting” in chapter 3"
WRONG = "“What goes wrong” in chapter 3"
NOTES_CLASS = "“A class from the notes” in chapter 3"
QUESTIONS = "“Questions” in chapter 3"


def _of(*labels: str):
    """The quantity of several results."""
    return lambda a: tuple(a[label] for label in labels)


# --- 1. a stable softmax ---------------------------------------------------------------------------------------------


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    return _shares(_exponentials(scores, dim), dim)


def _exponentials(scores: Tensor, dim: int) -> Tensor:
    return (scores - scores.amax(dim, keepdim=True)).exp()


def _shares(exponentials: Tensor, dim: int) -> Tensor:
    return exponentials / exponentials.sum(dim, keepdim=True)


def _softmax_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=SOFTMAX_BUILT_INS)
    shape = pick(draw, 2, 3), pick(draw, 4, 5), pick(draw, 6, 7)
    scores = plan.tensor("scores", 1.5 * torch.randn(shape, generator=draw))
    plan.call("softmax", scores, label="last")
    plan.call("softmax", plan.tensor("few_scores", torch.randn(3, 5, generator=draw)), -1, label="few")
    plan.call("softmax", scores, dim=1, label="middle")
    plan.call("softmax", scores, dim=0, label="first")
    plan.call("softmax", scores, dim=-2, label="last but one")
    plan.call("softmax", plan.tensor("one_row", torch.randn(6, generator=draw)), label="row")
    # rows far from zero and from each other, and one whose scores lie far apart
    large = 2 * torch.randn(5, 7, generator=draw) + torch.tensor([900.0, -900.0, 0.0, 300.0, 100.0])[:, None]
    large[2, 3], large[2, 5] = 250.0, 251.0
    plan.call("softmax", plan.tensor("large_scores", large), label="large")
    masked = torch.randn(4, 6, generator=draw).masked_fill(torch.rand(4, 6, generator=draw) < 0.4, -torch.inf)
    masked[:, 2], masked[:, 4] = 1.0, -torch.inf
    plan.call("softmax", plan.tensor("masked_scores", masked), label="masked")
    return plan


def _softmax_by(weights):
    return {"softmax": weights}


SOFTMAX_BUILT_INS = (
    "softmax",
    "log_softmax",
    "softmin",
    "gumbel_softmax",
    "logsumexp",
    "special_softmax",
    "special_log_softmax",
    "special_logsumexp",
)

STABLE_SOFTMAX = Exercise(
    name="attention.softmax",
    title="A stable softmax",
    challenge=_softmax_challenge,
    reference={"softmax": softmax},
    forbidden=SOFTMAX_BUILT_INS,
    claims=(
        Claim(
            "weights",
            1,
            "along the last axis each score's weight is its exponential's share of the sum",
            _of("last", "few", "row"),
            see=SOFTMAX,
            picture=lambda a: a["last"][0],
        ),
        Claim(
            "axis",
            1,
            "`dim` chooses the axis along which the weights add up to 1",
            _of("middle", "first", "last but one"),
            see=SOFTMAX,
        ),
        Claim(
            "large",
            1,
            "scores that are large, far apart or −∞ get finite weights, and the right ones",
            _of("large", "masked"),
            # float32 numbers near 900 lie 6e-5 apart: an answer in logarithms that adds one score after the other is
            # off by 1.2e-4
            tolerance=2e-3,
            see=SOFTMAX,
        ),
    ),
    misconceptions=(
        Misconception(
            "overflow",
            "e to the power of a large score is infinite in float32",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _shares(scores.exp(), dim)),
        ),
        Misconception(
            "overflow_hidden",
            "the exponentials overflow, and you replace what is not a number by zero: such a row has lost its weights",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _shares(scores.exp(), dim).nan_to_num(0.0)),
        ),
        Misconception(
            "global_maximum",
            "you subtract the largest score of the whole tensor: in a row far below it every exponential becomes zero",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _shares((scores - scores.max()).exp(), dim)),
        ),
        Misconception(
            "mean_subtracted",
            "you subtract less than the largest score, the mean for instance: what lies far above it still overflows, "
            "and a −∞ spoils the row",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _shares((scores - scores.mean(dim, keepdim=True)).exp(), dim)),
        ),
        Misconception(
            "clamped",
            "you clip the scores: beyond the limit all become equal",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _shares(scores.clamp(-80, 80).exp(), dim)),
        ),
        Misconception(
            "not_divided",
            "you left out the division by the sum",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _exponentials(scores, dim)),
        ),
        Misconception(
            "all_together",
            "you divide by the sum over the whole tensor: each row is a softmax of its own",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: _exponentials(scores, dim) / _exponentials(scores, dim).sum()),
        ),
        Misconception(
            "last_axis_always",
            "you always use the last axis, whatever `dim` says",
            SOFTMAX,
            _softmax_by(lambda scores, dim=-1: softmax(scores)),
        ),
        Misconception(
            "first_axis",
            "unless `dim` is given, you use the first axis",
            SOFTMAX,
            _softmax_by(lambda scores, dim=0: softmax(scores, dim)),
        ),
    ),
)

# --- 2. scaled dot-product attention ---------------------------------------------------------------------------------


def _drawn_masks(batch: int, num_heads: int, seq_q: int, seq_k: int, draw: torch.Generator) -> dict[str, Tensor]:
    """Masks of four axes and of two, with a key for each query."""
    every = torch.rand(batch, num_heads, seq_q, seq_k, generator=draw) < 0.5
    every[..., 2] = True
    lengths = torch.arange(batch) % 2 * 2 + seq_k - 2  # two less, and all
    padding = (torch.arange(seq_k) < lengths[:, None])[:, None, None, :]
    return {"every": every, "padding": padding, "causal": torch.ones(seq_q, seq_k, dtype=torch.bool).tril()}


def _attention_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=ATTENTION_BUILT_INS)
    # all axes differ, none is 1, and the scores neither saturate nor vanish even without the scale
    batch, num_heads, seq_q, seq_k, d_k, d_v = 2, 3, 5, pick(draw, 7, 8), pick(draw, 9, 11), pick(draw, 12, 13)

    def triple(name: str, *leading: int, requires_grad: bool = False) -> list[Ref]:
        shapes = {"query": (*leading, seq_q, d_k), "key": (*leading, seq_k, d_k), "value": (*leading, seq_k, d_v)}
        numbers = {kind: torch.randn(shape, generator=draw) for kind, shape in shapes.items()}
        plan.hidden[f"{name}value"] = numbers["value"].double()
        return [plan.tensor(name + kind, number, requires_grad) for kind, number in numbers.items()]

    def attend(label: str, inputs: list[Ref], *mask) -> Ref:
        both = plan.call("scaled_dot_product_attention", *inputs, *mask)
        context = plan.item(both, 0, label=f"{label} context")
        plan.item(both, 1, label=f"{label} weights")
        return context

    heads = triple("", batch, num_heads)
    attend("heads", heads)
    d_k, seq_q = d_k - 5, 3
    single, bare = triple("other_", 1), triple("bare_")
    attend("single", single)
    attend("bare", bare)
    few = torch.rand(seq_q, seq_k, generator=draw) < 0.5
    few[..., 1], few[..., 3] = True, False
    few_mask = plan.tensor("few_mask", few)
    attend("single masked", single, few_mask)
    attend("bare masked", bare, few_mask)
    # one key lies so far below that what is left of a score above the row's mean overflows
    keys = torch.ones(seq_k)
    keys[0] = -6
    attend("spread", _far_scores("spread", bare, plan, draw, 150, torch.ones(seq_q), keys, spread=60))
    d_k, seq_q = d_k + 5, 5

    masks = _drawn_masks(batch, num_heads, seq_q, seq_k, draw)
    masks["by head"] = torch.rand(num_heads, seq_q, seq_k, generator=draw) < 0.5
    masks["keys"] = torch.rand(seq_k, generator=draw) < 0.5
    for mask in (masks["by head"], masks["keys"]):
        mask[..., 1], mask[..., 3] = True, False
    for call, mask in masks.items():
        attend(call, heads, plan.tensor(f"{call}_mask".replace(" ", "_"), mask))
    low = _far_scores("low", heads, plan, draw, 150, torch.ones(seq_q), -torch.ones(seq_k))
    attend("low", low, plan.tensor("mask_for_low_scores", masks["every"]))
    # a hidden key scores 120 above the others in some rows, and in the other rows all of these score 120 more
    keys = -torch.ones(seq_k)
    keys[3] = 1
    high = _far_scores("high", heads, plan, draw, 60, torch.ones(seq_q) - 2 * (torch.arange(seq_q) % 2), keys)
    attend("high", high, plan.tensor("mask_for_high_scores", masks["keys"]))
    plan.hidden["masks"] = masks
    plan.hidden["hiding"] = masks | {"low": masks["every"], "single masked": few, "bare masked": few}

    nothing = torch.rand(batch, 1, seq_q, seq_k, generator=draw) < 0.5
    nothing[..., 0], nothing[:, :, 3] = True, True
    nothing[0, :, 1], nothing[1, :, 4] = False, False
    plan.hidden["nothing"] = (~nothing.any(-1)).expand(batch, num_heads, seq_q)
    learning = triple("learning_", batch, num_heads, requires_grad=True)
    context = attend("nothing", learning, plan.tensor("mask_with_empty_rows", nothing))
    upstream = torch.randn(batch, num_heads, seq_q, d_v, generator=draw)
    for name, tensor in zip(("query", "key", "value"), learning, strict=True):
        plan.gradient(context, upstream, tensor, label=f"{name} gradient")
    return plan


def _far_scores(
    name: str, inputs: list[Ref], plan: Plan, draw: torch.Generator, size: float, rows: Tensor, keys: Tensor, spread=2.0
) -> list[Ref]:
    """Query and key whose scores lie near size · rows · keys, and in each row up to `spread` apart beside that."""
    query, key, _ = (plan.tensors[plan.steps[each.step]["key"]] for each in inputs)
    d_k = query.shape[-1]
    along = F.normalize(torch.randn(d_k, generator=draw), dim=0)
    query, key = (each - (each @ along)[..., None] * along for each in (query, key))
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)
    query = query * spread / (scores.amax(-1) - scores.amin(-1)).max()
    along = along * math.sqrt(size * math.sqrt(d_k))
    return [
        plan.tensor(f"{name}_query", rows[:, None] * along + query),
        plan.tensor(f"{name}_key", keys[:, None] * along + key),
        inputs[2],
    ]


def _averaged(a: Answers) -> tuple:
    """How far the context is from the answer's own weights times the values, plus 1; and whether there are weights."""
    parts = [("heads", ""), ("single", "other_"), ("bare", "bare_"), *((call, "") for call in a.hidden["masks"])]
    off = [1 + a[f"{call} context"] - a[f"{call} weights"] @ a.hidden[f"{name}value"] for call, name in parts]
    return *off, *(bool(a[f"{call} weights"].any()) for call, _ in parts)


def _averaged_in_words(got: tuple) -> str:
    off = max((each - 1).abs().max().item() for each in got if isinstance(each, Tensor))
    if off < 1e-3:
        return "in some calls all of your weights are zero"
    return f"it differs from your own weights times the values by up to {off:.4g}"


def _centred_logarithms(weights: Tensor) -> Tensor:
    """The scores without what every row, and every column, has in common: whatever the weights were divided by."""
    scores = weights.clamp(min=1e-37).log()  # float32 is coarse below
    return scores - scores.mean(-1, keepdim=True) - scores.mean(-2, keepdim=True) + scores.mean((-2, -1), keepdim=True)


# the calls on scores that lie far from zero, as messages begin that are about them alone
EXTREME = {
    "low": "where all scores are very low, ",
    "high": "where a hidden key scores far above the others, ",
}


def _where(calls: Iterable[str]) -> str:
    """How a message begins on what is wrong in these calls."""
    first, *others = calls
    return "" if others else EXTREME.get(first, "")


def _hidden_and_seen(a: Answers, calls: str = "") -> tuple:
    """For each mask, the weights where it is False; and whether there is one wherever it is True."""
    hidden, seen = {}, {}
    for call, mask in a.hidden["hiding"].items():
        weights = a[f"{call}{calls} weights"]
        hidden[call] = weights.masked_fill(mask, 0.0)
        seen[call] = bool((weights != 0).masked_fill(~mask, True).all())
    return hidden, seen


def _hidden_and_seen_in_words(got: tuple) -> str:
    most = {call: weights.abs().max().item() for call, weights in got[0].items() if (weights.abs() > 1e-7).any()}
    if most:
        return f"{_where(most)}a hidden key gets a weight of {max(most.values()):.4g}"
    return f"{_where(call for call, all_seen in got[1].items() if not all_seen)}a key that may be seen gets no weight"


UNMASKED = ("heads", "single", "bare")


def _scores(a: Answers) -> dict:
    """Of all queries and keys; where the scores lie far apart, without the key that gets no weight."""
    weights = {name: a[f"{call} weights"] for call, name in zip(UNMASKED, ("", "other_", "bare_"), strict=True)}
    weights["spread_"] = a["spread weights"][:, 1:]
    return {
        f"the scores behind your weights, for {name}query and {name}key": _centred_logarithms(each)
        for name, each in weights.items()
    }


def _sums(a: Answers, calls: Iterable[str]) -> dict:
    return {call: a[f"{call} weights"].sum(-1) for call in calls}


def _are_off(sums: Tensor) -> bool:
    return bool((sums - 1).abs().max() > 1e-4)


def _sums_in_words(sums: dict) -> str:
    off = {call: each for call, each in sums.items() if _are_off(each)}
    low, high = min(each.min().item() for each in off.values()), max(each.max().item() for each in off.values())
    return f"{_where(off)}your rows add up to {'' if f'{low:.4g}' == f'{high:.4g}' else f'between {low:.4g} and '}{high:.4g}"


def _empty_rows(a: Answers) -> tuple:
    rows, context, weights = a.hidden["nothing"], a["nothing context"], a["nothing weights"]
    return context[rows], weights[rows], bool(context[~rows].any()), bool(weights[~rows].any())


def _empty_rows_in_words(got: tuple) -> str:
    context, weights, *others = got
    if not all(others):
        return "your context or your weights are zero at other rows too"
    return (
        f"there your weights add up to {weights.sum(-1).max().item():.4g}, and the largest entry of the context is "
        f"{context.abs().max().item():.4g}"
    )


def _learning(a: Answers) -> tuple:
    return tuple(bool(a[f"{name} gradient"].any()) for name in ("query", "key", "value"))


def _learning_in_words(reached: tuple) -> str:
    missing = [name for name, some in zip(("query", "key", "value"), reached, strict=True) if not some]
    return f"no gradient reaches {' and '.join(missing)}"


def _weigh(query, key, mask, scale=None, dim=-1, hide=None, renormalise=True):
    """The weights of an attention in which each mistake is a switch.

    Args:
        scale: from the query to what the scores are divided by.
        hide: from scores and mask to what goes into the softmax, before the row without a key is set right.
        renormalise: False takes masked weights away without sharing them out.
    """
    scores = query @ key.transpose(-2, -1) / (scale(query) if scale else math.sqrt(query.shape[-1]))
    if mask is None:
        return scores.softmax(dim)
    if not renormalise:
        return scores.softmax(dim) * mask
    if hide is not None:
        return hide(scores, mask).softmax(dim)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim)
    return weights.masked_fill(~mask, 0.0)


def _attend(**switches):
    """A whole attention with one mistake."""

    def attention(query, key, value, mask=None):
        weights = _weigh(query, key, mask, **switches)
        return weights @ value, weights

    return attention


def _attention(**switches):
    return {"scaled_dot_product_attention": _attend(**switches)}


def _all_heads(query: Tensor) -> float:
    return math.sqrt(query.shape[-1] * (query.shape[1] if query.dim() == 4 else 1))


def _without_nan(query, key, value, mask=None):
    # masked_fill would stop the gradient of what it hides, and with it the NaN; a sum does not
    weights = _weigh(query, key, mask, hide=lambda scores, mask: scores + torch.where(mask, 0.0, -torch.inf))
    weights = weights.nan_to_num(0.0)
    return weights @ value, weights


def _exponentials_as_they_are(query, key, value, mask=None):
    exponentials = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).exp()
    if mask is not None:
        exponentials = exponentials * mask
        # a row without a key is set right; one whose exponentials vanish is not
        exponentials = torch.where(mask.any(-1, keepdim=True), exponentials, 0.0)
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / (total if mask is None else torch.where(mask.any(-1, keepdim=True), total, 1.0))
    return weights @ value, weights


def _clamped(query, key, value, mask=None):
    scores = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).clamp(-50, 50)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e9).softmax(-1) * mask
    return weights @ value, weights


def _keys_averaged(query, key, value, mask=None):
    weights = _weigh(query, key, mask)
    return weights @ key, weights


def _values_compared(query, key, value, mask=None):
    weights = _weigh(query, value, mask)
    return weights @ value, weights


ATTENTION_BUILT_INS = ("scaled_dot_product_attention", "multi_head_attention_forward")

ATTENTION = Exercise(
    name="attention.scaled_dot_product_attention",
    title="Scaled dot-product attention",
    challenge=_attention_challenge,
    reference={"scaled_dot_product_attention": scaled_dot_product_attention},
    forbidden=ATTENTION_BUILT_INS,
    claims=(
        Claim(
            "scale",
            1,
            "the scores are the dot products of query and key, divided by √d_k",
            _scores,
            see=SCALE,
            picture=lambda a: a["heads weights"][0, 0],
        ),
        Claim(
            "rows",
            1,
            "the weights of each query add up to 1 over the keys",
            lambda a: _sums(a, UNMASKED),
            reason=_sums_in_words,
            see=SOFTMAX,
        ),
        Claim(
            "context",
            1,
            "the context is the weights times the values",
            _averaged,
            reason=_averaged_in_words,
            see=SOFTMAX,
        ),
        Claim(
            "masked",
            1,
            "a key gets a weight where the mask is True and none where it is False",
            _hidden_and_seen,
            reason=_hidden_and_seen_in_words,
            see=MASKS,
            picture=lambda a: a["every weights"][0, 0],
        ),
        Claim(
            "shared",
            1,
            "under a mask the weights that remain add up to 1",
            lambda a: _sums(a, [*a.hidden["masks"], "high"]),
            reason=_sums_in_words,
            see=MASKS,
        ),
        Claim(
            "nothing",
            1,
            "a query that may attend to nothing gets weights and context of zero",
            _empty_rows,
            reason=_empty_rows_in_words,
            see=NOTHING,
        ),
        Claim(
            "gradients",
            1,
            "finite gradients reach query, key and value, even when a query may attend to nothing",
            _learning,
            reason=_learning_in_words,
            see=NOTHING,
        ),
    ),
    misconceptions=(
        Misconception("no_scale", "you left out the division by √d_k", SCALE, _attention(scale=lambda query: 1.0)),
        Misconception(
            "divided_by_d_k",
            "you divided by d_k: its square root is missing",
            SCALE,
            _attention(scale=lambda query: query.shape[-1]),
        ),
        Misconception(
            "multiplied",
            "you multiplied by √d_k: divide",
            SCALE,
            _attention(scale=lambda query: query.shape[-1] ** -0.5),
        ),
        Misconception(
            "sqrt_d_model",
            "you divided by √d_model, the width of all heads together: each head's dot product has d_k terms",
            SCALE,
            _attention(scale=_all_heads),
        ),
        Misconception(
            "over_queries",
            "your softmax runs over the queries: each column adds up to 1, not each row",
            SOFTMAX,
            _attention(dim=-2),
        ),
        Misconception(
            "over_axis_1",
            "your softmax runs over axis 1: with heads in front that is neither the queries' axis nor the keys'",
            SOFTMAX,
            _attention(dim=1),
        ),
        Misconception(
            "keys_averaged",
            "you averaged the keys: the weights belong to the values",
            SOFTMAX,
            {"scaled_dot_product_attention": _keys_averaged},
        ),
        Misconception(
            "values_compared",
            "you compared the queries with the values: the scores come from the keys",
            SCORES,
            {"scaled_dot_product_attention": _values_compared},
        ),
        Misconception(
            "mask_ignored",
            "the mask changes nothing in your function",
            MASKS,
            _attention(hide=lambda scores, mask: scores),
        ),
        Misconception(
            "mask_inverted",
            "you hide where the mask is True: True means may attend",
            MASKS,
            _attention(hide=lambda scores, mask: scores.masked_fill(mask, torch.finfo(scores.dtype).min)),
        ),
        Misconception(
            "mask_added",
            "you add the mask's 0 and 1 to the scores: that hides nothing",
            WRONG,
            _attention(hide=lambda scores, mask: scores + mask),
        ),
        Misconception(
            "score_zero",
            "you set hidden scores to zero, and e⁰ is 1: such a key still gets a weight",
            WRONG,
            _attention(hide=lambda scores, mask: scores * mask),
        ),
        Misconception(
            "masked_after",
            "you hide after the softmax: the weights that remain no longer add up to 1",
            WRONG,
            _attention(renormalise=False),
        ),
        Misconception(
            "no_maximum",
            "your exponentials overflow where scores are high, or vanish where all are very low: their sum becomes "
            "infinite, or 0",
            SOFTMAX,
            {"scaled_dot_product_attention": _exponentials_as_they_are},
        ),
        Misconception(
            "clamped",
            "you clip the scores: beyond the limit all become equal",
            SOFTMAX,
            {"scaled_dot_product_attention": _clamped},
        ),
        Misconception(
            "nan_row",
            "where all keys are hidden your softmax is 0/0, not a number",
            NOTHING,
            _attention(hide=lambda scores, mask: scores.masked_fill(~mask, -torch.inf)),
        ),
        Misconception(
            "uniform_row",
            "with the same large negative number everywhere in a row its softmax is uniform: the query attends to "
            "every key that it may not attend to",
            NOTHING,
            _attention(hide=lambda scores, mask: scores.masked_fill(~mask, -1e9)),
        ),
        Misconception(
            "nan_replaced",
            "you replace NaN after the softmax: the values look right, and the gradients are still NaN",
            NOTHING,
            {"scaled_dot_product_attention": _without_nan},
        ),
        Misconception(
            "swapped_results",
            "you return the weights first: the context comes first",
            SOFTMAX,
            {
                "scaled_dot_product_attention": lambda query, key, value, mask=None: scaled_dot_product_attention(
                    query, key, value, mask
                )[::-1]
            },
        ),
    ),
)

# --- 3. masks --------------------------------------------------------------------------------------------------------


def causal_mask(seq: int) -> Tensor:
    return library_causal_mask(seq)


def causal_padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    return combine_masks(padding_mask(ids, pad_id), library_causal_mask(ids.shape[1]))


def _masks_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    word = plan.tensor("one_word", torch.randint(1, 12, (1, 1), generator=draw))
    plan.call("padding_mask", word, 0, label="one padding")
    plan.call("causal_mask", 1, label="one causal")
    plan.call("causal_padding_mask", word, 0, label="one both")
    for name, pad_id in (("", 0), ("other_", pick(draw, 3, 6))):
        batch, seq = (2, pick(draw, 5, 6)) if name else (3, pick(draw, 7, 8))
        words = torch.randint(1, 12, (batch, seq), generator=draw)
        words[words == pad_id] = 13
        words[0, 1], words[1, -3] = pad_id + 1, max(pad_id - 1, 1)
        if pad_id:
            words[0, 2] = 0  # a word here
        words[0, -2:] = pad_id
        words[1, 0] = pad_id  # not every tokeniser pads at the end
        ids = plan.tensor(f"{name}ids", words)
        plan.call("padding_mask", ids, pad_id, label=f"{name}padding")
        plan.call("causal_mask", seq, label=f"{name}causal")
        plan.call("causal_padding_mask", ids, pad_id, label=f"{name}both")
    return plan


def _masks(padding=None, causal=None, both=None):
    """The three mask functions with one replaced; the third uses the other two."""
    padding, causal = padding or padding_mask, causal or causal_mask
    combine = both or (lambda words, past, ids: words & past)
    return {
        "padding_mask": padding,
        "causal_mask": causal,
        "causal_padding_mask": lambda ids, pad_id: combine(padding(ids, pad_id), causal(ids.shape[1]), ids),
    }


def _first_words(ids: Tensor, pad_id: int) -> Tensor:
    """Allow as many keys from the start as there are words."""
    return (torch.arange(ids.shape[1]) < (ids != pad_id).sum(1, keepdim=True))[:, None, None, :]


MASK_FUNCTIONS = Exercise(
    name="attention.masks",
    title="Masks",
    challenge=_masks_challenge,
    reference={"padding_mask": padding_mask, "causal_mask": causal_mask, "causal_padding_mask": causal_padding_mask},
    claims=(
        Claim(
            "padding",
            1,
            "`padding_mask` allows every key but the padding, whatever its id and wherever it stands",
            _of("padding", "other_padding", "one padding"),
            see=MASKS,
            picture=lambda a: a["padding"][:, 0, 0].double(),
        ),
        Claim(
            "causal",
            1,
            "`causal_mask` allows each query itself and what comes before",
            _of("causal", "other_causal", "one causal"),
            see=MASKS,
            picture=lambda a: a["causal"].double(),
        ),
        Claim(
            "both",
            1,
            "`causal_padding_mask` allows what both masks allow",
            _of("both", "other_both", "one both"),
            see=MASKS,
            picture=lambda a: a["both"][0, 0].double(),
        ),
    ),
    misconceptions=(
        Misconception(
            "inverted",
            "your True means ignore: in this course it means may attend",
            MASKS,
            _masks(
                lambda ids, pad_id: ~padding_mask(ids, pad_id),
                lambda seq: ~library_causal_mask(seq),
                lambda hidden, future, ids: hidden | future,
            ),
        ),
        Misconception(
            "padding_is_0",
            "your padding is always id 0, whatever `pad_id` says",
            MASKS,
            _masks(lambda ids, pad_id: padding_mask(ids, 0)),
        ),
        Misconception(
            "padding_at_the_end",
            "you count the words and allow as many keys from the start: padding may stand elsewhere",
            MASKS,
            _masks(_first_words),
        ),
        Misconception(
            "padding_queries",
            "your padding mask has the words on the axis of the queries: it is the keys that are hidden",
            MASKS,
            _masks(lambda ids, pad_id: padding_mask(ids, pad_id).transpose(-1, -2)),
        ),
        Misconception(
            "no_axes",
            "your padding mask is (batch, seq): it needs an axis for the heads and one for the queries",
            MASKS,
            _masks(lambda ids, pad_id: ids != pad_id, both=lambda words, past, ids: words[:, None, None, :] & past),
        ),
        Misconception(
            "numbers",
            "your masks are numbers: they should be boolean",
            MASKS,
            _masks(
                lambda ids, pad_id: padding_mask(ids, pad_id).float(),
                lambda seq: library_causal_mask(seq).float(),
                lambda words, past, ids: words * past,
            ),
        ),
        Misconception(
            "without_itself",
            "your queries do not see themselves: they should, so the diagonal has to be True",
            MASKS,
            _masks(causal=lambda seq: torch.ones(seq, seq).tril(-1).bool()),
        ),
        Misconception(
            "future",
            "your query sees itself and what comes after: the triangle is the wrong one",
            MASKS,
            _masks(causal=lambda seq: torch.ones(seq, seq).triu().bool()),
        ),
        Misconception(
            "either",
            "you combine the masks with or: a key has to be allowed by both",
            MASKS,
            _masks(both=lambda words, past, ids: words | past),
        ),
        Misconception(
            "queries_too",
            "you take the rights of padded queries away as well: only keys are hidden",
            MASKS,
            _masks(both=lambda words, past, ids: words & words.transpose(-1, -2) & past),
        ),
    ),
)

# --- 4. split and merge ----------------------------------------------------------------------------------------------


def _heads_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    # no two sizes of a call are equal
    for name, num_heads, d_k in (("", 3, pick(draw, 6, 7)), ("other_", 4, pick(draw, 2, 3))):
        batch, seq = (2, 5) if not name else (5, pick(draw, 6, 7))
        x = plan.tensor(f"{name}x", torch.randn(batch, seq, num_heads * d_k, generator=draw))
        plan.call("split_heads", x, num_heads, label=f"{name}split")
        heads = plan.tensor(f"{name}heads", torch.randn(batch, num_heads, seq, d_k, generator=draw))
        plan.call("merge_heads", heads, label=f"{name}merged")
    one = torch.randn(1, 4, 5, generator=draw)  # one sequence, one head
    plan.call("split_heads", plan.tensor("one_x", one), 1, label="one split")
    plan.call("merge_heads", plan.tensor("one_head", one[:, None]), label="one merged")
    plan.call("split_heads", plan.tensor("uneven_x", torch.randn(4, 8, 10, generator=draw)), 4, label="uneven")
    return plan


def _checked(d_model: int, num_heads: int) -> None:
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} does not divide by num_heads={num_heads}")


def _split(cut):
    """split_heads by another way to cut: from x, num_heads and d_k to the heads."""

    def split(x, num_heads):
        _checked(x.shape[-1], num_heads)
        return cut(x, num_heads, x.shape[-1] // num_heads)

    return {"split_heads": split}


def _viewed(x: Tensor, num_heads: int, d_k: int) -> Tensor:
    return x.reshape(len(x), num_heads, -1, d_k)


def _cut_short(x: Tensor, num_heads: int) -> Tensor:
    return split_heads(x[..., : x.shape[-1] // num_heads * num_heads], num_heads)


def _error_in_words(raised: tuple) -> str:
    fitting, other, names_both = raised
    if fitting:
        return f"your code raises {fitting} where the heads fit"
    if other == "ValueError" and not names_both:
        return "your ValueError does not name both d_model and num_heads"
    return f"your code raises {other}" if other else "your code goes on without an error"


HEADS = Exercise(
    name="attention.heads",
    title="Split and merge heads",
    challenge=_heads_challenge,
    reference={"split_heads": split_heads, "merge_heads": merge_heads},
    claims=(
        Claim(
            "split",
            1,
            "head j of a token is the j-th run of d_k entries of its vector",
            _of("split", "other_split", "one split"),
            see=SPLIT,
            picture=lambda a: a["split"][0, 1],
        ),
        Claim(
            "merged",
            1,
            "`merge_heads` lays each token's heads side by side again",
            _of("merged", "other_merged", "one merged"),
            see=SPLIT,
            picture=lambda a: a["merged"][0],
        ),
        Claim(
            "indivisible",
            1,
            "a d_model that num_heads does not divide raises a ValueError",
            lambda a: (a.raises("split"), a.raises("uneven"), a.mentions("uneven", "10", "4")),
            reason=_error_in_words,
            see=SPLIT,
        ),
    ),
    misconceptions=(
        Misconception(
            "view_only",
            "you gave `view` the shape you wanted without a transpose: a head now holds pieces of different tokens",
            SPLIT,
            _split(_viewed),
        ),
        Misconception(
            "interleaved",
            "your heads take every num_heads-th entry: each takes a run of neighbours",
            SPLIT,
            _split(lambda x, num_heads, d_k: x.reshape(*x.shape[:2], d_k, num_heads).permute(0, 3, 1, 2)),
        ),
        Misconception(
            "tokens_first",
            "your heads stand behind the tokens: swap the two axes, so that attention runs over the tokens",
            SPLIT,
            _split(lambda x, num_heads, d_k: x.reshape(*x.shape[:2], num_heads, d_k)),
        ),
        Misconception(
            "heads_before_batch",
            "your heads stand before the batch",
            SPLIT,
            _split(lambda x, num_heads, d_k: x.reshape(*x.shape[:2], num_heads, d_k).permute(2, 0, 1, 3)),
        ),
        Misconception(
            "cut_short",
            "where num_heads does not divide d_model your code goes on: raise a ValueError",
            SPLIT,
            {"split_heads": _cut_short},
        ),
        Misconception(
            "merged_by_view",
            "you merged without moving the heads back behind the tokens: a row now holds pieces of different tokens",
            SPLIT,
            {"merge_heads": lambda x: x.reshape(x.shape[0], x.shape[2], -1)},
        ),
        Misconception(
            "merged_interleaved",
            "your merged rows take turns between the heads: lay one head's entries behind the other's",
            SPLIT,
            {"merge_heads": lambda x: x.permute(0, 2, 3, 1).flatten(2)},
        ),
        Misconception(
            "summed",
            "you added the heads up: lay them side by side",
            SPLIT,
            {"merge_heads": lambda x: x.sum(1)},
        ),
    ),
)

# --- 5. multi-head attention -----------------------------------------------------------------------------------------

PROJECTIONS = ("w_q", "w_k", "w_v", "w_o")


def _projections(d_model: int, draw: torch.Generator, bias: bool = True) -> dict[str, Tensor]:
    """Weights that keep unit vectors at unit size, so that scores neither saturate nor vanish."""
    weights = {}
    for name in PROJECTIONS:
        weights[f"{name}.weight"] = 1.2 * torch.randn(d_model, d_model, generator=draw) / math.sqrt(d_model)
        weights[f"{name}.bias"] = torch.randn(d_model, generator=draw) / 2 if bias else torch.zeros(d_model)
    return weights


def _copying(d_model: int) -> dict[str, Tensor]:
    """Weights with which a module averages its inputs as they are, all of them equally."""
    shown = {"w_q": 0.0, "w_k": 1.0, "w_v": 1.0, "w_o": 1.0}
    weights = {f"{name}.weight": size * torch.eye(d_model) for name, size in shown.items()}
    return weights | {f"{name}.bias": torch.zeros(d_model) for name in shown}


def _multi_head_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=ATTENTION_BUILT_INS)

    def numbers(name: str, *shape: int) -> Ref:
        return plan.tensor(name, torch.randn(shape, generator=draw))

    def both(label: str, module: Ref, *args, **kwargs) -> None:
        result = plan.call(module, *args, need_weights=True, **kwargs)
        plan.item(result, 0, label=f"{label} output")
        plan.item(result, 1, label=f"{label} weights")

    def loaded(d_model: int, num_heads: int) -> tuple[Ref, dict[str, Tensor]]:
        module = plan.call("MultiHeadAttention", d_model, num_heads)
        weights = _projections(d_model, draw)
        plan.load(module, weights)
        plan.hidden[f"{num_heads} heads"] = {name: weight.double() for name, weight in weights.items()}
        return module, weights

    num_heads, d_k = 3, pick(draw, 7, 9)
    d_model, other_d_model = num_heads * d_k, 4 * (d_k - 3)
    attention, _ = loaded(d_model, num_heads)
    other, weights = loaded(other_d_model, 4)  # before the first is called: each keeps its own sizes
    token, memory, content = (numbers(name, 2, 1, d_model) for name in ("token", "memory", "content"))
    alone = torch.cat([plan.tensors[name] for name in ("token", "memory", "content")])
    tokens = plan.tensor("tokens", alone)
    for label in ("single", "single again"):
        plan.call(attention, tokens, label=label)
    x = numbers("x", 2, 5, d_model)
    plan.hidden["x"] = plan.tensors["x"].double()
    both("self", attention, x)

    # cross-attention: to one token only, which then gets the whole weight; then to several
    plan.call(attention, token, memory, label="to memory")
    plan.call(attention, token, memory, content, label="to content")
    plan.call(attention, token, value=content, label="to content alone")
    query, key, other_key = numbers("query", 2, 3, d_model), numbers("key", 2, 6, d_model), numbers("k", 2, 6, d_model)
    value = numbers("value", 2, 6, d_model)
    plan.call(attention, query, key, value, label="cross")
    plan.call(attention, query, other_key, value, label="other cross")

    # masks of every shape with four axes, and of two; one in cross-attention
    plan.hidden["masks"] = masks = _drawn_masks(2, num_heads, 5, 5, draw)
    masks["memory"] = _drawn_masks(2, num_heads, 6, 6, draw)["padding"]
    plan.hidden["hiding"] = masks
    for call, mask in masks.items():
        inputs = [other_key, key] if call == "memory" else [x]
        mask = plan.tensor(f"{call}_mask", mask)
        both(f"{call} masked", attention, *inputs, mask=mask)
        if call in ALONE:
            plan.call(attention, *inputs, mask=mask, label=f"{call} alone")

    d_model = other_d_model
    other_x = numbers("other_x", 3, 7, d_model)
    plan.hidden["other_x"] = plan.tensors["other_x"].double()
    plan.train(other, False)
    both("other", other, other_x)
    copying = _copying(d_model)
    plan.load(other, copying)  # after a call: the new weights count
    plan.call(other, numbers("one_token", 1, 1, d_model), label="one")
    dropping = plan.call("MultiHeadAttention", d_model, 4, dropout=DROPOUT)
    plan.load(dropping, weights)
    plan.seed(seed)
    plan.call(dropping, other_x, label="training")
    plan.train(dropping, False)
    plan.call(dropping, other_x, label="evaluation")
    # all scores are equal, and all values nearly 1: a head's output tells how many weights it has kept
    plan.load(dropping, copying)
    plan.train(dropping)
    near_one = (1 + torch.arange(SEQ) / 200)[:, None].expand(8, SEQ, d_model)
    inputs = plan.tensor("near_one", near_one)
    causal = plan.tensor("causal_mask_in_training", torch.ones(SEQ, SEQ, dtype=torch.bool).tril())
    plan.call(dropping, inputs, label="kept")
    plan.item(plan.call(dropping, inputs, mask=causal, need_weights=True), 0, label="kept under a mask")
    plan.train(dropping, False)
    plan.call(dropping, inputs, label="all kept")

    fresh = plan.call("MultiHeadAttention", d_model, 4)
    upstream = torch.randn(3, 7, d_model, generator=draw)
    plan.reached(plan.call(fresh, other_x), upstream, fresh, label="reached")
    return plan


DROPOUT, SEQ = 0.25, 5
ALONE = ("every", "memory")  # the masks with which the output is also asked for without the weights


def _values(a: Answers) -> tuple:
    single, one = a["single"], a["one"]
    return single, one, bool((single - a["single again"]).abs().max() < 1e-4)


def _values_in_words(got: tuple) -> str | None:
    return None if got[2] else "two calls on the same input differ, although dropout is 0"


def _unreached(a: Answers) -> str:
    """The weights, by their own names, that no gradient reaches."""
    return ", ".join(f"`{name}`" for name, reached in a["reached"].items() if not reached)


def _unreached_in_words(names: str) -> str:
    return f"no gradient reaches {names}: the output does not depend on what stands there"


SELF = (("self", "x", 3), ("other", "other_x", 4))


def _row_centred(weights: Tensor) -> Tensor:
    """The scores without what every row has in common: what the softmax took away."""
    scores = weights.clamp(min=1e-300).log()
    return scores - scores.mean(-1, keepdim=True)


def _patterns(a: Answers) -> dict:
    """The scores of every head, in a size of their own: without the scale."""
    scores = {x: _row_centred(a[f"{call} weights"]) for call, x, _ in SELF}
    return {
        f"the scores behind your weights, for {x}, whatever their size": each
        / each.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-9)
        for x, each in scores.items()
    }


def _sizes(a: Answers) -> dict:
    return {
        f"the size of the scores behind your weights, for {x}": _row_centred(a[f"{call} weights"]).norm(dim=(-2, -1))
        for call, x, _ in SELF
    }


def _recombined(a: Answers) -> tuple:
    """How far the output is from what its own weights make of the values, plus one."""
    off = []
    for call, x, num_heads in SELF:
        weights, heads = a.hidden[f"{num_heads} heads"], a[f"{call} weights"]
        values = F.linear(a.hidden[x], weights["w_v.weight"], weights["w_v.bias"])
        context = merge_heads(heads @ split_heads(values, num_heads))
        off.append(1 + a[f"{call} output"] - F.linear(context, weights["w_o.weight"], weights["w_o.bias"]))
    return tuple(off)


def _recombined_in_words(off: tuple) -> str:
    most = max((each - 1).abs().max().item() for each in off)
    return (
        f"the output differs by up to {most:.4g} from your own weights times the values, merged and put through `w_o`"
    )


def _masked(a: Answers) -> tuple:
    """As in the function; the sums; and how far the output is from the one that comes with the weights, plus one."""
    calls = [f"{call} masked" for call in a.hidden["masks"]]
    alone = [1 + a[f"{call} alone"] - a[f"{call} masked output"] for call in ALONE]
    return *_hidden_and_seen(a, " masked"), _sums(a, calls), tuple(alone)


def _masked_in_words(got: tuple) -> str:
    hidden, seen, sums, _ = got
    if any(bool((weights.abs() > 1e-7).any()) for weights in hidden.values()) or not all(seen.values()):
        return _hidden_and_seen_in_words(got)
    if any(map(_are_off, sums.values())):
        return "under a mask " + _sums_in_words(sums)
    return "with a mask, the output without `need_weights` is another one than with it"


def _crossed(a: Answers) -> tuple:
    """Attention to one token is this token's value: what the token gets out of attending to itself.

    And whether the keys matter to the output, and the queries.
    """
    _, memory, content = a["single"].split(2)
    return (
        1 + a["to memory"] - memory,
        1 + a["to content"] - content,
        1 + a["to content alone"] - content,
        bool((a["cross"] - a["other cross"]).abs().max() > 1e-4),
        bool((a["cross"] - a["cross"].mean(1, keepdim=True)).abs().max() > 1e-4),
    )


def _crossed_in_words(got: tuple) -> str:
    *off, keys, queries = (bool((each - 1).abs().max() > 1e-4) if isinstance(each, Tensor) else each for each in got)
    told = (
        "with a `key` of one token the output is not this token's value",
        "with a `key` and a `value` of one token each the output is not the value of the second",
        "with a `value` and no `key` the output is not what the `value` gives through `w_v` and `w_o`",
    )
    wrong = [sentence for sentence, is_off in zip(told, off, strict=True) if is_off]
    if wrong:
        return wrong[0]
    return (
        "every query gets the same output" if keys and not queries else "the output is the same whatever the keys are"
    )


def _kept(a: Answers) -> tuple:
    """What dropout makes of equal weights, each head's context beside the same without dropout.

    Whether they differ by one number in each head; what is dropped alike; whether each number is a count of weights
    that are kept and scaled up; the largest, 0 where all are the same; whether too few are kept; whether weights are
    dropped under a mask, too, and where they are asked for; and whether two calls drop the same.
    """
    kept, clean = (a[label].unflatten(-1, (4, -1)) for label in ("kept", "all kept"))
    factors = (kept * clean).sum(-1) / clean.square().sum(-1).clamp(min=1e-9)  # (batch, seq_q, num_heads)
    every, again = True, False
    if _there(a, "every masked output"):
        masked = a["kept under a mask"].unflatten(-1, (4, -1))
        every = bool((masked - masked[:1]).abs().max() > 1e-4)
        again = bool((kept - masked)[:, -1].abs().max() < 0.05) and every
    if (kept - factors[..., None] * clean).abs().max() > 0.1:
        return False, "", False, 0.0, False, every, False
    same = (factors - factors.max()).abs() < 0.05
    if same.all() or factors.max() < 1.1 and (same | (factors.abs() < 0.05)).all() and same.double().mean() > 0.9:
        return True, "", False, 0.0, False, every, False  # shared out again, but for a query that has lost all
    if alike := _alike(factors, _there(a, "other weights")):  # what its few draws gave is a matter of chance
        return True, alike, False, 0.0, False, every, again
    counts = factors * SEQ * (1 - DROPOUT)
    scaled = bool((counts - counts.round()).abs().max() < 0.15)
    if not scaled and (clean - 1).abs().max() > 0.1:  # what is dropped may be right
        return False, "nothing", False, 0.0, False, every, False
    largest = round(factors.max().item(), 1)
    return True, "", scaled, largest, bool(factors.mean() < largest / 2), every, again


def _there(a: Answers, label: str) -> bool:
    """Whether there is such a result; where there is none, other claims say so."""
    try:
        a[label]
    except CannotJudge:
        return False
    return True


def _alike(factors: Tensor, heads: bool) -> str:
    """Which weights are dropped alike, though each should have been drawn by itself; empty where none are."""
    half = factors.max() / 2
    others = {
        "a head loses all of its weights or none": 2 * half * (factors.mean(1, keepdim=True) > half),
        "every sequence loses the same weights": factors[:1],
        "every query loses the same keys": factors[:, :1],
        "a query loses all of its keys or none": 2 * half * (factors > half),
    }
    if heads:
        others["every head loses the same weights"] = factors[..., :1]
    return next((words for words, other in others.items() if (factors - other).abs().max() < 0.1), "")


def _dropped(a: Answers) -> tuple:
    """Whether training differs, whether evaluation does, whether the output's entries are dropped; and `_kept`."""
    training, evaluation, kept = a["training"], a["evaluation"], _kept(a)
    in_evaluation = _there(a, "other output") and bool((evaluation - a["other output"]).abs().max() > 1e-3)
    return (
        bool((training - evaluation).abs().max() > 1e-3),
        in_evaluation,
        bool((training == 0).double().mean() > 0.1),
        *((False, "", False, 0.0, False, False, False) if in_evaluation else kept),
    )


def _dropped_in_words(got: tuple) -> str:
    in_training, in_evaluation, output, whole, alike, scaled, largest, few, every, again = got
    if in_evaluation:
        return "in evaluation the output is not the one without dropout"
    if not in_training:
        return f"in training the output is the same as in evaluation, although dropout is {DROPOUT}"
    if output:
        return "in training entries of your output are zero"
    if not whole:
        return "in training the output is not what dropped weights, and nothing else, would give"
    if alike:
        return f"in training {alike}: each weight should be drawn by itself"
    if again:
        return "in training every call drops the same weights"
    if not largest:
        return (
            "in training the weights that a query keeps always add up to the same: what is dropped must be missing, "
            "not shared out among the rest"
        )
    if not scaled:
        return f"with a dropout of {DROPOUT} the weights that are left in training are multiplied by {largest:.4g}"
    if not every:
        return "in training no weight is dropped where there is a mask, or where the weights are asked for"
    return f"in training too {'many' if few else 'few'} weights are dropped for a dropout of {DROPOUT}"


def _drop_scores(query, key, value, mask, weights, dropout):
    kept = F.dropout(torch.ones_like(weights), dropout)
    return _attend(hide=lambda scores, _: scores * kept)(query, key, value, kept > -1)[0]


# what a MultiHeadAttention drops in training: from the heads, the weights and the probability to the context
_DROPPERS = {
    "weights": lambda query, key, value, mask, weights, dropout: F.dropout(weights, dropout) @ value,
    "always": lambda query, key, value, mask, weights, dropout: F.dropout(weights, dropout) @ value,
    "and leaves the rest": lambda query, key, value, mask, weights, dropout: (
        weights * (torch.rand_like(weights) >= dropout) @ value
    ),
    "scores": _drop_scores,
    "values": lambda query, key, value, mask, weights, dropout: weights @ F.dropout(value, dropout),
}


class _MultiHead(nn.Module):
    """A MultiHeadAttention in which each mistake is a switch."""

    def __init__(
        self,
        d_model,
        num_heads,
        dropout=0.0,
        *,
        split=split_heads,
        merge=merge_heads,
        attend=None,
        value_of=None,
        key_of=None,
        project_output=True,
        biased=True,
        shared=False,
        own_part=False,
        averaged=False,
        dropped="weights",
        frozen=False,
    ):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.split, self.merge, self.attend = split, merge, attend or (lambda width: _attend())
        self.value_of, self.key_of, self.project_output, self.biased = value_of, key_of, project_output, biased
        self.shared, self.own_part, self.averaged, self.dropped = shared, own_part, averaged, dropped
        self.frozen = frozen
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def project(self, linear, x):
        weight, bias = linear.weight, linear.bias if self.biased else None
        if self.own_part and linear is not self.w_o:
            head = torch.arange(len(weight)) // (len(weight) // self.num_heads)
            weight = weight * (head[:, None] == head)
        if self.frozen and linear is not self.w_o:
            weight = weight.detach()
        return F.linear(x, weight, bias)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        inputs = {"query": query, "key": key, "value": value}
        key, value = inputs[self.key_of or "key"], inputs[self.value_of or "value"]
        query = self.split(self.project(self.w_q, query), self.num_heads)
        key = self.split(self.project(self.w_q if self.shared else self.w_k, key), self.num_heads)
        value = self.split(self.project(self.w_v, value), self.num_heads)
        context, weights = self.attend(self.w_q.in_features)(query, key, value, mask)
        if self.dropped in _DROPPERS and (self.training or self.dropped == "always"):
            context = _DROPPERS[self.dropped](query, key, value, mask, weights, self.dropout)
        output = self.merge(context)
        output = self.project(self.w_o, output) if self.project_output else output
        if self.dropped == "output":
            output = F.dropout(output, self.dropout, self.training)
        return (output, weights.mean(1) if self.averaged else weights) if need_weights else output


def _multi_head(**switches):
    return {"MultiHeadAttention": lambda *args, **kwargs: _MultiHead(*args, **kwargs, **switches)}


def _hide(how):
    return _multi_head(attend=lambda width: _attend(hide=how))


MULTI_HEAD_ATTENTION = Exercise(
    name="attention.multi_head_attention",
    title="MultiHeadAttention",
    challenge=_multi_head_challenge,
    reference={"MultiHeadAttention": MultiHeadAttention},
    forbidden=ATTENTION_BUILT_INS,
    claims=(
        Claim(
            "values",
            1,
            "a token that sees only itself gets its own value: through `w_v`, then through `w_o`",
            _values,
            reason=_values_in_words,
            see=MULTI_HEAD,
        ),
        Claim(
            "heads",
            1,
            "each head has weights of its own, from its part of all queries and keys",
            _patterns,
            see=MULTI_HEAD,
            picture=lambda a: a["self weights"][0, 1],
        ),
        Claim(
            "scale",
            1,
            "each head's scores are divided by √d_k, the root of the width of one head",
            _sizes,
            needs=("heads",),
            see=SCALE,
        ),
        Claim(
            "merged",
            1,
            "the heads' contexts stand side by side and go through `w_o`",
            _recombined,
            reason=_recombined_in_words,
            see=SPLIT,
        ),
        Claim(
            "masked",
            1,
            "a key gets a weight where the mask is True and none where it is False, in the shapes of the statement",
            _masked,
            reason=_masked_in_words,
            see=MASKS,
            picture=lambda a: a["every masked weights"][0, 0],
        ),
        Claim(
            "crossed",
            1,
            "with `key` the keys and values come from there; with `value`, the values from that",
            _crossed,
            reason=_crossed_in_words,
            see=CROSS,
        ),
        Claim(
            "dropped",
            1,
            "dropout acts on the weights, in training and not in evaluation",
            _dropped,
            reason=_dropped_in_words,
            see=WRONG,
        ),
        Claim(
            "gradients",
            1,
            "gradients reach all four projections",
            _unreached,
            reason=_unreached_in_words,
            see=MULTI_HEAD,
        ),
    ),
    misconceptions=(
        Misconception(
            "no_scale",
            "you left out the division by √d_k",
            SCALE,
            _multi_head(attend=lambda width: _attend(scale=lambda query: 1.0)),
        ),
        Misconception(
            "sqrt_d_model",
            "you divided by √d_model: a head's dot product has only d_k terms",
            SCALE,
            _multi_head(attend=lambda width: _attend(scale=lambda query: math.sqrt(width))),
        ),
        Misconception(
            "view_only",
            "you split with `view` alone: your heads hold pieces of different tokens",
            SPLIT,
            _multi_head(split=lambda x, num_heads: _viewed(x, num_heads, x.shape[-1] // num_heads)),
        ),
        Misconception(
            "merged_by_view",
            "you merged the heads without moving them back behind the tokens",
            SPLIT,
            _multi_head(merge=lambda x: x.reshape(x.shape[0], x.shape[2], -1)),
        ),
        Misconception(
            "split_before",
            "your heads see only their own part of x: project all of x, then split",
            MULTI_HEAD,
            _multi_head(own_part=True),
        ),
        Misconception("no_w_o", "the output does not go through `w_o`", MULTI_HEAD, _multi_head(project_output=False)),
        Misconception("no_bias", "a bias of your projections is left out", MULTI_HEAD, _multi_head(biased=False)),
        Misconception(
            "keys_as_queries",
            "queries and keys go through the same projection",
            MULTI_HEAD,
            _multi_head(shared=True),
        ),
        Misconception(
            "weights_averaged",
            "you average the weights over the heads: each head's are asked for",
            MULTI_HEAD,
            _multi_head(averaged=True),
        ),
        Misconception(
            "values_from_query",
            "in cross-attention your values come from the queries' sequence: then nothing crosses over",
            CROSS,
            _multi_head(value_of="query"),
        ),
        Misconception(
            "value_ignored",
            "your values always come from `key`, even when `value` is given",
            CROSS,
            _multi_head(value_of="key"),
        ),
        Misconception(
            "keys_from_value", "your keys come from `value`: they belong to `key`", CROSS, _multi_head(key_of="value")
        ),
        Misconception(
            "mask_ignored",
            "the mask changes nothing in your module",
            MASKS,
            _hide(lambda scores, mask: scores),
        ),
        Misconception(
            "over_queries",
            "your softmax runs over the queries: each column adds up to 1, not each row",
            SOFTMAX,
            _multi_head(attend=lambda width: _attend(dim=-2)),
        ),
        Misconception(
            "masked_after",
            "your module hides after the softmax: the weights that remain no longer add up to 1",
            WRONG,
            _multi_head(attend=lambda width: _attend(renormalise=False)),
        ),
        Misconception(
            "mask_inverted",
            "you hide where the mask is True: True means may attend",
            MASKS,
            _hide(lambda scores, mask: scores.masked_fill(mask, torch.finfo(scores.dtype).min)),
        ),
        Misconception(
            "dropout_always",
            "dropout acts in evaluation too",
            WRONG,
            _multi_head(dropped="always"),
        ),
        Misconception("dropout_never", "dropout does nothing in your module", WRONG, _multi_head(dropped="never")),
        Misconception(
            "dropout_on_output",
            "dropout acts on the output: here it belongs on the weights",
            WRONG,
            _multi_head(dropped="output"),
        ),
        Misconception(
            "dropout_before_softmax",
            "dropout acts before the softmax: it belongs on the weights",
            WRONG,
            _multi_head(dropped="scores"),
        ),
        Misconception(
            "dropout_on_entries",
            "dropout takes single entries out of the vectors: it belongs on the weights",
            WRONG,
            _multi_head(dropped="values"),
        ),
        Misconception(
            "not_scaled_up",
            "you drop weights and leave the others as they are: in training the output is too small on average",
            "“The module” in chapter 2",
            _multi_head(dropped="and leaves the rest"),
        ),
        Misconception(
            "detached",
            "your output is cut off from the projections' weights",
            MULTI_HEAD,
            _multi_head(frozen=True),
        ),
    ),
)

# --- 6. counting -----------------------------------------------------------------------------------------------------


def attention_counts(batch: int, seq: int, d_model: int, num_heads: int) -> tuple:
    """Shape of the scores, their bytes in float32, parameters of the module."""
    return (batch, num_heads, seq, seq), 4 * batch * num_heads * seq**2, 4 * (d_model**2 + d_model)


def _counts(shape=None, num_bytes=None, parameters=None):
    """`attention_counts` and the predictions for the photograph, with parts replaced."""

    def counts(batch, seq, d_model, num_heads):
        right = attention_counts(batch, seq, d_model, num_heads)
        replaced = (shape, num_bytes, parameters)
        return tuple(
            old if new is None else new(batch, seq, d_model, num_heads)
            for old, new in zip(right, replaced, strict=True)
        )

    scores, size, count = counts(1, 196, 512, 8)
    return {"attention_counts": counts, "shape_of_scores": scores, "bytes_of_scores": size, "num_parameters": count}


def _counts_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for name in ("shape_of_scores", "bytes_of_scores", "num_parameters"):
        plan.name(name, label=name)
    for label, num_heads in (("first", 3), ("second", 6)):
        sizes = pick(draw, 2, 5), pick(draw, 9, 30), 6 * pick(draw, 5, 9), num_heads
        counts = plan.call("attention_counts", *sizes)
        for index, part in enumerate(("shape", "bytes", "parameters")):
            plan.item(counts, index, label=f"{label} {part}")
            plan.hidden[f"{label} {part}"] = f"`attention_counts{sizes}[{index}]`"
    return plan


def _told(*labels: str):
    """The quantity of several counts, each with the name or the call that it is the result of."""
    return lambda a: {a.hidden.get(label, f"`{label}`"): _whole(a[label]) for label in labels}


def _whole(count):
    """Whole numbers as such: 7.0 is 7."""
    if isinstance(count, tuple):
        return tuple(_whole(each) for each in count)
    return int(count) if count == int(count) else count


COUNTS = Exercise(
    name="attention.counts",
    title="Shapes, bytes and parameters",
    challenge=_counts_challenge,
    reference=_counts(),
    claims=(
        Claim(
            "shapes",
            1,
            "the shape of the scores is right, for the photograph and for other sizes",
            _told("shape_of_scores", "first shape", "second shape"),
            see=COUNTING,
        ),
        Claim(
            "bytes",
            1,
            "the bytes of the scores are right, for the photograph and for other sizes",
            _told("bytes_of_scores", "first bytes", "second bytes"),
            see=COUNTING,
        ),
        Claim(
            "parameters",
            1,
            "the number of parameters is right, for any number of heads and any length",
            _told("num_parameters", "first parameters", "second parameters"),
            see=COUNTING,
        ),
    ),
    misconceptions=(
        Misconception(
            "one_per_number",
            "you counted the scores: a number in float32 takes 4 bytes",
            COUNTING,
            _counts(num_bytes=lambda batch, seq, d_model, num_heads: batch * num_heads * seq**2),
        ),
        Misconception(
            "one_head",
            "you counted the scores of one head: every head has its own",
            COUNTING,
            _counts(num_bytes=lambda batch, seq, d_model, num_heads: 4 * batch * seq**2),
        ),
        Misconception(
            "linear",
            "you counted one score a query: each query has one for every key",
            COUNTING,
            _counts(
                lambda batch, seq, d_model, num_heads: (batch, num_heads, seq),
                lambda batch, seq, d_model, num_heads: 4 * batch * num_heads * seq,
            ),
        ),
        Misconception(
            "shape_of_queries",
            "that is the shape of the queries: a score belongs to a query and a key",
            COUNTING,
            _counts(lambda batch, seq, d_model, num_heads: (batch, num_heads, seq, d_model // num_heads)),
        ),
        Misconception(
            "no_heads",
            "your shape has an axis too few: ask what a score stands between, and in how many heads",
            COUNTING,
            _counts(lambda batch, seq, d_model, num_heads: (batch, seq, seq)),
        ),
        Misconception(
            "times_heads",
            "you gave each head projections of full width: a head's are d_k wide",
            COUNTING,
            _counts(
                parameters=lambda batch, seq, d_model, num_heads: (
                    (3 * num_heads + 1) * (d_model**2 + d_model) if num_heads > 1 else 0
                )
            ),
        ),
        Misconception(
            "three_projections",
            "you left out `w_o`",
            COUNTING,
            _counts(parameters=lambda batch, seq, d_model, num_heads: 3 * (d_model**2 + d_model)),
        ),
        Misconception(
            "no_bias",
            "you left out the biases",
            COUNTING,
            _counts(parameters=lambda batch, seq, d_model, num_heads: 4 * d_model**2),
        ),
        Misconception(
            "from_the_length",
            "you gave the projections a side as long as the sequence: no parameter depends on it",
            COUNTING,
            _counts(parameters=lambda batch, seq, d_model, num_heads: 3 * seq * d_model + d_model**2 + 4 * d_model),
        ),
    ),
)

# --- 7. a class from the notes ---------------------------------------------------------------------------------------


def self_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return scaled_dot_product_attention(query, key, value)[0]


class RepairedAttention(MultiHeadAttention):
    def __init__(self, h: int, d_model: int):
        super().__init__(d_model, h)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x, need_weights=True)[0]


def _repair_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=ATTENTION_BUILT_INS)
    for label, d_k, lead in (("narrow", 4, ()), ("wide", pick(draw, 9, 12), (2, 3))):
        shapes = {"query": (*lead, 5, d_k), "key": (*lead, 6, d_k), "value": (*lead, 6, 7)}
        numbers = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
        inputs = (plan.tensor(f"{label}_{name}", each) for name, each in numbers.items())
        plan.call("self_attention", *inputs, label=label)
    num_heads, d_k = 3, pick(draw, 4, 6)
    d_model = num_heads * d_k
    attention = plan.call("RepairedAttention", num_heads, d_model)
    plan.call("RepairedAttention", 2, 10)  # before the first is called: each keeps its own sizes
    x = torch.randn(2, 7, d_model, generator=draw)
    first, last = x.clone(), x.clone()
    first[0, 0] += 1
    last[1, -1] += 1
    order = torch.randperm(7, generator=draw)
    inputs = {"x": x, "first_changed": first, "last_changed": last, "shuffled_x": x[:, order]}
    for name, numbers in inputs.items():
        plan.call(attention, plan.tensor(name, numbers), label=name)
    plan.hidden["order"] = order
    upstream = torch.randn(2, 7, d_model, generator=draw)
    again = plan.call(attention, plan.tensor("same_x", x), label="again")
    plan.reached(again, upstream, attention, label="reached")
    plan.load(attention, _projections(d_model, draw, bias=False))  # after the calls: the new weights count
    plan.call(attention, plan.tensor("another_x", torch.randn(2, 8, d_model, generator=draw)), label="loaded")
    plan.call(attention, plan.tensor("one_sequence", torch.randn(1, 9, d_model, generator=draw)), label="loaded alone")
    return plan


def _across_tokens(a: Answers) -> tuple:
    """Whether two calls agree, whether outputs change with the first token, and the last, and move with the tokens.

    And what a token's output depends on where it is not the other tokens.
    """
    before, moved = a["x"], a["x"][:, a.hidden["order"]]
    by_first, by_last = a["first_changed"] - before, a["last_changed"] - before
    first, last = bool(by_first[0, 1:].abs().max() > 1e-5), bool(by_last[1, :-1].abs().max() > 1e-5)
    instead = ""
    if not (first and last):
        if by_first[1].abs().max() > 1e-5:
            instead = "it changes with other sequences"
        elif (by_first[0, 0] - by_last[1, -1]).abs().max() < 1e-4:
            instead = "it is no more than a projection of its own token"
    return (
        bool((before - a["again"]).abs().max() < 1e-4),
        first,
        last,
        bool((moved - a["shuffled_x"]).abs().max() < 1e-4),
        instead,
    )


def _across_in_words(got: tuple) -> str:
    agree, first, last, _, instead = got
    if not agree:
        return "two calls on the same input give different outputs"
    if not (first and last):
        token = "last" if first else "first"
        words = f"the outputs of the other tokens do not change when the {token} token does"
        return words + (f"; look at one token's output: {instead}" if instead else "")
    return "when the tokens are shuffled, the outputs do not move along with them"


def _after(label: str, quantity):
    """The quantity, or what is wrong with the result of this label, if that cannot be judged itself."""

    def of(a: Answers):
        a[label]
        return quantity(a)

    return of


def _as_printed(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)  # noqa: F821
    attention = torch.softmax(scores, dim=-1)
    return torch.matmul(attention, value)


def _over_queries(query, key, value):
    return _attend(dim=-2)(query, key, value)[0]


class _Printed(nn.Module):
    """The notes' class, in which only what stops it is replaced, one mistake after the other."""

    def __init__(self, h, d_model, kind):
        super().__init__()
        self.h, self.d_k, self.kind = h, d_model // h, kind
        if kind in ("as_printed", "x_for_all"):
            return
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x):
        batch_size, seq, d_model = x.shape
        if self.kind in ("as_printed", "x_for_all"):
            x = x.view(batch_size, -1, self.h, self.d_k)
            if self.kind == "x_for_all":
                q = k = v = x
            return torch.cat([self_attention(q, k, v) for _ in range(self.h)], dim=-1)
        if self.kind == "no_projections":
            q = k = v = split_heads(x, self.h)
            return self.w_o(merge_heads(self_attention(q, k, v)))
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        if self.kind == "one_projection":
            k = v = q
        if self.kind == "heads_of_one_token":
            q, k, v = (part.view(batch_size, seq, self.h, self.d_k) for part in (q, k, v))
            return self.w_o(self_attention(q, k, v).reshape(x.shape))
        if self.kind == "view_only":
            q, k, v = (part.view(batch_size, self.h, seq, self.d_k) for part in (q, k, v))
            return self.w_o(self_attention(q, k, v).reshape(x.shape))
        q, k, v = (split_heads(part, self.h) for part in (q, k, v))
        if self.kind == "copies":
            return self.w_o(torch.cat([self_attention(q[:, 0], k[:, 0], v[:, 0]) for _ in range(self.h)], dim=-1))
        if self.kind == "no_scale":
            q = q * math.sqrt(self.d_k)
        if self.kind == "sqrt_d_model":
            q = q / math.sqrt(self.h)
        context = (_over_queries if self.kind == "over_queries" else self_attention)(q, k, v)
        context = context.reshape(x.shape) if self.kind == "merged_by_view" else merge_heads(context)
        return context if self.kind == "no_w_o" else self.w_o(context)


def _printed(kind: str, attend=None):
    function = {"self_attention": attend} if attend else {}
    return {"RepairedAttention": lambda h, d_model: _Printed(h, d_model, kind), **function}


REPAIR = Exercise(
    name="attention.repair",
    title="Repair the notes’ class",
    challenge=_repair_challenge,
    reference={"self_attention": self_attention, "RepairedAttention": RepairedAttention},
    forbidden=ATTENTION_BUILT_INS,
    claims=(
        Claim("function", 1, "`self_attention` takes d_k from its queries", _of("narrow", "wide"), see=NOTES_CLASS),
        Claim(
            "tokens",
            1,
            "a token's output depends on the other tokens, moves along with its token, and is (batch, seq, d_model)",
            _across_tokens,
            reason=_across_in_words,
            see=NOTES_CLASS,
        ),
        Claim(
            "projections",
            1,
            "there are projections, and gradients reach all of them",
            _after("x", _unreached),
            reason=_unreached_in_words,
            see=NOTES_CLASS,
        ),
        Claim(
            "right",
            1,
            "with given weights the outputs are those of multi-head attention",
            _after("x", _of("loaded", "loaded alone")),
            see=MULTI_HEAD,
        ),
    ),
    misconceptions=(
        Misconception(
            "as_printed",
            "your code still uses names that are nowhere defined",
            NOTES_CLASS,
            _printed("as_printed", _as_printed),
        ),
        Misconception(
            "x_for_all",
            "every head gets all of x, and the h copies are laid side by side: a result with four axes",
            NOTES_CLASS,
            _printed("x_for_all"),
        ),
        Misconception(
            "heads_of_one_token",
            "nothing moves the heads in front of the tokens, so attention runs across the heads of one token",
            NOTES_CLASS,
            _printed("heads_of_one_token"),
        ),
        Misconception(
            "view_only",
            "pieces of different tokens get mixed up, as when you split with `view` alone",
            SPLIT,
            _printed("view_only"),
        ),
        Misconception(
            "merged_by_view",
            "you merged the heads without moving them back behind the tokens",
            SPLIT,
            _printed("merged_by_view"),
        ),
        Misconception("copies", "all your heads are copies of one", NOTES_CLASS, _printed("copies")),
        Misconception(
            "no_projections",
            "the heads attend with pieces of x itself: queries, keys and values are projections of it",
            NOTES_CLASS,
            _printed("no_projections"),
        ),
        Misconception(
            "one_projection",
            "queries, keys and values come from one and the same projection",
            NOTES_CLASS,
            _printed("one_projection"),
        ),
        Misconception("no_w_o", "the merged heads do not go through `w_o`", NOTES_CLASS, _printed("no_w_o")),
        Misconception(
            "no_scale",
            "you left out the division by √d_k",
            SCALE,
            _printed(
                "no_scale",
                lambda query, key, value: (query @ key.transpose(-2, -1)).softmax(-1) @ value,
            )
            | {"RepairedAttention": lambda h, d_model: _Printed(h, d_model, "no_scale")},
        ),
        Misconception(
            "over_queries",
            "your softmax runs over the queries: each column adds up to 1, not each row",
            SOFTMAX,
            _printed("over_queries", _over_queries),
        ),
        Misconception(
            "sqrt_d_model",
            "your module divides by √d_model: a head's dot product has only d_k terms",
            SCALE,
            _printed("sqrt_d_model"),
        ),
    ),
)

# --- 8. a bug hunt ---------------------------------------------------------------------------------------------------


# not the library's: what a right candidate makes of axes that broadcast must not hang on checks of its shapes
_by_the_formula = _attend()


def _by_einsum(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    lowest = torch.finfo(scores.dtype).min
    largest = scores.masked_fill(~mask, lowest).amax(-1, keepdim=True)
    # hidden before the exponential: behind one that overflows the gradient would be NaN
    exponentials = (scores - largest).masked_fill(~mask, lowest).exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1.0)  # the largest exponential is 1
    return torch.einsum("...qk,...kd->...qd", weights, value), weights


def _in_double(query, key, value, mask=None):
    context, weights = _by_the_formula(query.double(), key.double(), value.double(), mask)
    return context.to(query.dtype), weights.to(query.dtype)


RIGHT_CANDIDATES = (_by_the_formula, _by_einsum, _in_double)


def examine_attention(attention) -> None:
    """Compare with the formula, written out: with several heads, three different lengths and a mask."""
    draw = torch.Generator().manual_seed(3)
    shapes = (2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8)
    query, key, value = (torch.randn(shape, generator=draw) for shape in shapes)
    mask = torch.rand(2, 1, 4, 5, generator=draw) < 0.5
    mask[..., 0] = True
    for each in (None, mask):
        context, weights = attention(query, key, value, each)
        expected = _weigh(query, key, each)
        assert torch.allclose(weights, expected, atol=1e-5, rtol=1e-4)
        assert torch.allclose(context, expected @ value, atol=1e-5, rtol=1e-4)


def _drawn(*leading: int, seq_q: int = 4) -> list[Tensor]:
    """A query, a key and a value, as wide as each other."""
    draw = torch.Generator().manual_seed(5)
    return [torch.randn(*leading, seq, 8, generator=draw) for seq in (seq_q, 5, 5)]


def _same() -> list[Tensor]:
    query, key, _ = _drawn(2, 3, seq_q=2)
    return [query, key, key]


def _zeros() -> list[Tensor]:
    query, key, value = _drawn(2, 3, seq_q=2)
    return [torch.zeros_like(query), torch.zeros_like(key), value]


def _close(got: Tensor, want: Tensor) -> bool:
    return got.shape == want.shape and bool((got - want).abs().max() < 1e-4)


def _some_mask() -> Tensor:
    return torch.tensor([[True, False, True, True, False], [True, True, False, False, True]])


def _shapes_only(attention):
    context, weights = attention(*_drawn(2, 3))
    return context.shape == (2, 3, 4, 8) and weights.shape == (2, 3, 4, 5)


def _sums_only(attention):
    query, key, value = _drawn(2, 3, seq_q=2)
    sums = [attention(query, key, value, mask)[1].sum(-1) for mask in (None, _some_mask())]
    return all(_close(each, torch.ones(2, 3, 2)) for each in sums)


def _zeros_only(attention):
    _, weights = attention(*_drawn(2, 3, seq_q=2), _some_mask())
    return not weights[..., ~_some_mask()].any()


def _compare(query: Tensor, key: Tensor, value: Tensor, *masks: Tensor | None):
    """A test that compares with the formula on these inputs."""

    def examine(attention):
        for mask in masks:
            context, weights = attention(query, key, value, mask)
            expected = _weigh(query, key, mask)
            assert _close(weights, expected)
            assert _close(context, expected @ value)

    return examine


def _exactly(attention):
    query, key, value = _drawn(2, 3)
    context, weights = attention(query, key, value)
    expected = _weigh(query, key, None)
    return torch.equal(weights, expected) and torch.equal(context, expected @ value)


BUG_HUNT = bug_hunt(
    "attention.bug_hunt",
    "A bug hunt",
    function="examine_attention",
    reference=examine_attention,
    right=RIGHT_CANDIDATES,
    bugs=(
        Bug("no_scale", "caught: one whose weights are too sharp", _attend(scale=lambda query: 1.0)),
        Bug("sqrt_d_model", "caught: one whose weights are too flat, but only sometimes", _attend(scale=_all_heads)),
        Bug(
            "mask_inverted",
            "caught: one that looks where it may not",
            _attend(hide=lambda scores, mask: scores.masked_fill(mask, -1e9)),
        ),
        Bug("over_queries", "caught: one that shares out along the wrong axis", _attend(dim=-2)),
        Bug("masked_after", "caught: one that loses some of the weight", _attend(renormalise=False)),
        Bug("values_compared", "caught: one that compares with the wrong thing", _values_compared),
    ),
    misconceptions=(
        Misconception(
            "shapes_only",
            "your test lets this one pass, as one would that looks at shapes alone, or whose comparison fails nothing: "
            "compare numbers, and let a difference raise an error or return False",
            WRONG,
            {"examine_attention": _shapes_only},
        ),
        Misconception(
            "sums_only",
            "your test lets this one pass, as a look at the sums alone would: wrong weights can add up to 1 too",
            WRONG,
            {"examine_attention": _sums_only},
        ),
        Misconception(
            "zeros_only",
            "your test lets this one pass, as a look at the hidden keys alone would: compare the other weights, too",
            WRONG,
            {"examine_attention": _zeros_only},
        ),
        Misconception(
            "no_mask",
            "your test lets this one pass, as a test without a mask would: pass one that hides some keys",
            MASKS,
            {"examine_attention": _compare(*_drawn(2, 3), None)},
        ),
        Misconception(
            "one_head",
            "your test lets this one pass, as one that uses one head would: with one, d_k and d_model are the same",
            SCALE,
            {"examine_attention": _compare(*_drawn(2, seq_q=2), None, _some_mask())},
        ),
        Misconception(
            "same_for_all",
            "your test lets this one pass, as one would that passes the same tensor as key and as value",
            SCORES,
            {"examine_attention": _compare(*_same(), None, _some_mask())},
        ),
        Misconception(
            "equal_scores",
            "your test lets this one pass, as one would whose queries or keys are all zero: then all scores are equal",
            SCORES,
            {"examine_attention": _compare(*_zeros(), None, _some_mask())},
        ),
        Misconception(
            "exactly",
            "your test fails a right one, as it would if it asked for equality to the last bit",
            WRONG,
            {"examine_attention": _exactly},
        ),
    ),
    see=WRONG,
)

EXERCISES = (
    STABLE_SOFTMAX,
    ATTENTION,
    MASK_FUNCTIONS,
    HEADS,
    MULTI_HEAD_ATTENTION,
    COUNTS,
    REPAIR,
    BUG_HUNT,
)
