"""The exercises of chapter 1, embedding."""

import math

import torch
from torch import Tensor, nn

from encoder_grader.differences import distance, in_figures
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, named
from encoder_grader.plan import Plan, Ref, pick
from encoder_lib.embedding import PatchEmbedding, TokenEmbedding, image_to_patches

LOOKUP, ROWS_THAT_LEARN = "“Lookup as a product” in chapter 1", "“Which rows learn” in chapter 1"
FACTOR, PADDING = "“Why √d_model” in chapter 1", "“Padding” in chapter 1"
GRID, PATCHES = "“The grid” in chapter 1", "“Patches as rows” in chapter 1"
PROJECTION, COUNTING = "“The projection” in chapter 1", "“Counting” in chapter 1"
CONVOLUTION, WRONG = "“The same as a strided convolution” in chapter 1", "“What goes wrong” in chapter 1"

# --- 1. one-hot product = lookup -------------------------------------------------------------------------------------


def one_hot(ids: Tensor, vocab_size: int) -> Tensor:
    return (ids.unsqueeze(-1) == torch.arange(vocab_size)).float()  # (batch, seq, vocab_size)


def lookup_by_product(ids: Tensor, table: Tensor) -> Tensor:
    return one_hot(ids, table.shape[0]).to(table.dtype) @ table  # (batch, seq, d_model)


def table_gradient(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    return one_hot(ids, vocab_size).flatten(0, 1).T @ upstream.flatten(0, 1)  # (vocab_size, d_model)


def _one_hot_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=ONE_HOT_BUILT_INS)
    for other, batch in (("", 2), ("other_", 3)):
        vocab_size, d_model, seq = pick(draw, 10, 15), pick(draw, 4, 8), pick(draw, 6, 9)
        words = torch.randperm(vocab_size - 2, generator=draw)[:6] + 1  # some words are never used
        words[0] = 0  # the first word is used, the last one is not
        if other:
            words = vocab_size - 1 - words  # the other way round
        rows = torch.randint(5, (batch, seq), generator=draw)
        rows[0, 0], rows[0, 3], rows[1, 2] = 1, 1, 1  # one word three times, over two sentences
        rows[0, 1], rows[1, 0] = 0, 5  # one word in the second sentence alone
        ids = plan.tensor(f"{other}ids", words[rows])
        table = plan.tensor(f"{other}table", torch.randn(vocab_size, d_model, generator=draw))
        upstream = plan.tensor(f"{other}upstream", torch.randn(batch, seq, d_model, generator=draw))
        plan.call("one_hot", ids, vocab_size, label=f"{other}one_hot")
        plan.call("lookup_by_product", ids, table, label=f"{other}lookup")
        plan.call("table_gradient", ids, upstream, vocab_size, label=f"{other}gradient")
    vocab_size, d_model, seq = pick(draw, 5, 9), pick(draw, 3, 7), pick(draw, 3, 5)
    ids = plan.tensor("lone_ids", torch.randint(vocab_size, (1, seq), generator=draw))
    table = plan.tensor("lone_table", torch.randn(vocab_size, d_model, generator=draw))
    upstream = plan.tensor("lone_upstream", torch.randn(1, seq, d_model, generator=draw))
    plan.call("one_hot", ids, vocab_size, label="lone_one_hot")
    plan.call("lookup_by_product", ids, table, label="lone_lookup")
    plan.call("table_gradient", ids, upstream, vocab_size, label="lone_gradient")
    plan.hidden["ids"] = tuple(plan.tensors[f"{each}ids"].flatten() for each in ("", "other_", "lone_"))
    return plan


def _each(label: str):
    """The quantity of three calls: the second has other sizes, and shows what the first one left behind.

    The third has a batch of one.
    """
    return lambda a: (a[label], a[f"other_{label}"], a[f"lone_{label}"])


def _used_rows(a: Answers) -> dict:
    """For each call, which rows have a gradient, and which ids are used."""
    gradients, calls = _each("gradient")(a), (f"table_gradient({each}ids, …)" for each in ("", "other_", "lone_"))
    parts = zip(calls, gradients, a.hidden["ids"], strict=True)
    return {call: (gradient.abs().sum(-1) > 0, ids) for call, gradient, ids in parts}


def _used_rows_in_words(got: dict) -> str:
    for call, (learns, ids) in got.items():
        used = torch.zeros_like(learns).index_fill(0, ids, True)
        if (learns & ~used).any():
            return f"{call}: your gradient is not zero in {_rows(learns & ~used)}, which no id names"
        if (used & ~learns).any():
            return f"{call}: your gradient is zero in {_rows(used & ~learns)}, which ids name"
    return "the rows that differ from zero are not those of the ids"


def _rows(which: Tensor, kind: str = "row") -> str:
    """Some rows in words, the first three by number."""
    places = which.nonzero().flatten().tolist()
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"{kind}{'s' * (len(places) > 1)} {', '.join(map(str, places[:3]))}{more}" if places else f"no {kind}"


def _through(hot) -> dict:
    """A wrong one_hot, and the two other functions when they use it."""
    return {
        "one_hot": hot,
        "lookup_by_product": lambda ids, table: hot(ids, len(table)) @ table,
        "table_gradient": lambda ids, upstream, size: hot(ids, size).flatten(0, 1).T @ upstream.flatten(0, 1),
    }


def _last_use_only(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    gradient = upstream.new_zeros(vocab_size, upstream.shape[-1])
    for row, above in zip(ids.flatten(), upstream.flatten(0, 1), strict=True):
        gradient[row] = above
    return gradient


def _mean_of_uses(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    uses = one_hot(ids, vocab_size).flatten(0, 1).sum(0).clamp(min=1)
    return table_gradient(ids, upstream, vocab_size) / uses.unsqueeze(-1)


def _first_sentence_only(ids: Tensor, upstream: Tensor, vocab_size: int) -> Tensor:
    return table_gradient(ids[:1], upstream[:1], vocab_size)


ONE_HOT_BUILT_INS = ("one_hot", "embedding", "embedding_bag")

ONE_HOT_LOOKUP = Exercise(
    name="embedding.one_hot_lookup",
    title="Lookup as a one-hot product",
    challenge=_one_hot_challenge,
    reference={"one_hot": one_hot, "lookup_by_product": lookup_by_product, "table_gradient": table_gradient},
    forbidden=ONE_HOT_BUILT_INS,
    claims=(
        Claim(
            "one_hot",
            1,
            "`one_hot` has a single 1 for each id, in that id's column",
            _each("one_hot"),
            picture=lambda a: a["one_hot"][0],
            see=LOOKUP,
        ),
        Claim("product", 1, "the product with the table gives each id its row", _each("lookup"), see=LOOKUP),
        Claim(
            "unused",
            1,
            "in the table's gradient the rows of used ids, and only these, differ from zero",
            _used_rows,
            reason=_used_rows_in_words,
            see=ROWS_THAT_LEARN,
        ),
        Claim(
            "summed",
            1,
            "a row that is used several times gets the sum of the gradients above it",
            _each("gradient"),
            see=ROWS_THAT_LEARN,
        ),
    ),
    misconceptions=(
        Misconception(
            "vocabulary_first",
            "you put the vocabulary on the axis before the tokens: it belongs on the last one",
            LOOKUP,
            _through(lambda ids, vocab_size: one_hot(ids, vocab_size).transpose(-1, -2)),
        ),
        Misconception(
            "shifted",
            "your 1 stands one column after the id: ids count from 0",
            LOOKUP,
            _through(lambda ids, vocab_size: one_hot(ids + 1, vocab_size)),
        ),
        Misconception(
            "shifted_around",
            "your 1 stands one column after the id, and the last id's in the first column: ids count from 0",
            LOOKUP,
            _through(lambda ids, vocab_size: one_hot((ids + 1) % vocab_size, vocab_size)),
        ),
        Misconception(
            "counted_from_1",
            "your 1 stands one column before the id: ids count from 0",
            LOOKUP,
            _through(lambda ids, vocab_size: one_hot(ids - 1, vocab_size)),
        ),
        Misconception(
            "counted_from_1_around",
            "your 1 stands one column before the id, and id 0's in the last column: ids count from 0",
            LOOKUP,
            _through(lambda ids, vocab_size: torch.eye(vocab_size)[ids - 1]),
        ),
        Misconception(
            "last_use",
            "each use of a row overwrites what an earlier use left there: their gradients should add up",
            ROWS_THAT_LEARN,
            {"table_gradient": _last_use_only},
        ),
        Misconception(
            "mean_of_uses",
            "you average over the uses of a row: their gradients should add up",
            ROWS_THAT_LEARN,
            {"table_gradient": _mean_of_uses},
        ),
        Misconception(
            "first_sentence",
            "only the first sentence of the batch reaches your gradient",
            ROWS_THAT_LEARN,
            {"table_gradient": _first_sentence_only},
        ),
    ),
)

# --- 2. TokenEmbedding -----------------------------------------------------------------------------------------------


def _token_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    vocab_size, d_model, pad_id = 2 * pick(draw, 20, 30), pick(draw, 90, 120), pick(draw, 3, 9)
    plan = Plan()
    # rows of unit length, so that the output's length tells the factor whichever row it comes from
    table = nn.functional.normalize(torch.randn(vocab_size, d_model, generator=draw), dim=-1)
    words = torch.randint(10, vocab_size, (2, 7), generator=draw)
    words[0, 0], words[1, 6] = 0, vocab_size - 1
    words[0, 5] = words[0, 3] = words[1, 1]  # one word three times
    ids = plan.tensor("ids", words)
    other_ids = plan.tensor("other_ids", torch.randint(vocab_size, (3, 5), generator=draw))
    every = plan.tensor("every_id", torch.randperm(vocab_size, generator=draw).reshape(2, -1))
    padded = words.clone()
    padded[1, 4:], padded[0, 1], padded[0, 2] = pad_id, pad_id - 1, pad_id + 1
    padded_ids = plan.tensor("padded_ids", padded)
    upstream = torch.randn(2, 7, d_model, generator=draw)

    longer = 30 * nn.functional.normalize(torch.randn(20, d_model - 20, generator=draw), dim=-1)
    loaded, smaller = (plan.call("TokenEmbedding", *of.shape) for of in (table, longer))
    plan.load(loaded, {"embedding.weight": table})
    plan.load(smaller, {"embedding.weight": longer})
    plan.call(loaded, ids, label="loaded")
    plan.train(loaded, False)
    plan.call(loaded, other_ids, label="other_loaded")
    plan.call(smaller, plan.tensor("few_ids", torch.randint(20, (1, 6), generator=draw)), label="smaller")
    plan.load(loaded, {"embedding.weight": table.flip(0)})  # as after a step of training
    plan.call(loaded, ids, label="loaded_again")
    plan.hidden |= {"widths": (d_model, d_model, d_model - 20, d_model), "lengths": (1, 1, 30, 1)}
    plan.hidden |= {
        "table": table,
        "upstream": upstream,
        "every": plan.tensors["every_id"].flatten(),
        "pads": (pad_id, 0, None),
    }
    plan.hidden["looked up"] = tuple(plan.tensors[name].flatten() for name in ("padded_ids", "padded_ids", "ids"))

    for kind, pad in (("fresh", pad_id), ("pad 0", 0)):
        plan.seed(seed)
        fresh = plan.call("TokenEmbedding", vocab_size, d_model, pad_id=pad)
        weight = plan.parameter(fresh, "embedding.weight", (vocab_size, d_model))
        plan.call(fresh, every, label=f"{kind} output")
        plan.train(fresh, False)
        plan.gradient(plan.call(fresh, padded_ids), upstream, weight, label=f"{kind} gradient")
    unpadded = plan.call("TokenEmbedding", vocab_size, d_model)
    weight = plan.parameter(unpadded, "embedding.weight", (vocab_size, d_model))
    plan.call(unpadded, every, label="unpadded output")
    plan.train(unpadded, False)
    plan.gradient(plan.call(unpadded, ids), upstream, weight, label="unpadded gradient")

    many = pick(draw, 800, 1000)  # enough weights to tell their distribution
    for label, keywords in (("weights", {"pad_id": pad_id}), ("unpadded weights", {})):
        plan.seed(seed)
        drawn = plan.call("TokenEmbedding", many, d_model, **keywords)
        plan.parameter(drawn, "embedding.weight", (many, d_model), label=label)
    return plan


# a uniform distribution of the right variance lies 13 tolerances away, Xavier's more than that
SPREAD_TOLERANCE = 0.03


def _spread(weight: Tensor) -> Tensor:
    """Mean, standard deviation and kurtosis of the weights times √d_model, where N(0, 1/d_model) gives 0, 1 and 3.

    The kurtosis, here as a fraction of 3, tells a normal distribution from others. Then how far the means of the rows,
    and of the columns, lie apart: little, where all weights are drawn. What chance explains counts as exactly what is
    expected, so that no right answer is near the tolerance.
    """
    weight = weight[weight.abs().sum(-1) > 0] * math.sqrt(weight.shape[-1])  # without the padding row
    if not weight.numel():
        return torch.zeros(5)
    (rows, columns), n = weight.shape, weight.numel()
    kurtosis = ((weight - weight.mean()) ** 4).mean() / weight.var() ** 2 / 3
    spread = torch.stack([weight.mean(), weight.std(), kurtosis, weight.mean(1).std(), weight.mean(0).std()])
    expected = torch.tensor([0, 1, 1, columns**-0.5, rows**-0.5], dtype=spread.dtype)
    # the standard error of each, for n numbers of N(0, 1)
    error = torch.tensor([1, 0.5**0.5, (24 / 9) ** 0.5, 0.5**0.5, 0.5**0.5]) * n**-0.5
    return torch.where((spread - expected).abs() < 6 * error, expected, spread)


def _spread_in_words(spreads: tuple[Tensor, Tensor]) -> str:
    off = [(spread[:3] - torch.tensor([0, 1, 1])).abs() for spread in spreads]
    # more than a padding row of ones sets the rows apart
    alike = [number for number, spread in enumerate(spreads) if spread[3:].max() > 0.5 * spread[1]]
    worst = alike[0] if alike else 0 if off[0].max() >= off[1].max() else 1
    which = "your weights"
    if distance(*spreads) > SPREAD_TOLERANCE:
        which += f" in a module made {'without' if worst else 'with'} a `pad_id`"
    if alike or off[worst].max() < SPREAD_TOLERANCE:
        return f"the rows, or the columns, of {which} are like one another: draw each weight on its own"
    if off[worst][:2].max() < SPREAD_TOLERANCE:
        return f"mean and standard deviation of {which} are right, but their distribution is not the normal one"
    mean, deviation = spreads[worst][:2].tolist()
    return f"times √d_model, {which} have mean {mean:z.2f} and standard deviation {deviation:.2f}, instead of 0 and 1"


# of modules with loaded weights, the calls that a claim looks at, and what they give
LOADED = {
    "loaded": "the vectors of `ids`",
    "other_loaded": "the vectors of `other_ids` in evaluation",
    "smaller": "the vectors of `few_ids`",
    "loaded_again": "the vectors of `ids` once the weights have changed",
}


def _directions(a: Answers) -> dict:
    return {f"{what}, each brought to length 1": nn.functional.normalize(a[of], dim=-1) for of, what in LOADED.items()}


def _factors(a: Answers) -> tuple:
    """How long each row comes out, for one of length 1; the widths; and how long the rows are."""
    lengths = a.hidden["lengths"]
    factors = (a[label].norm(dim=-1) / length for label, length in zip(LOADED, lengths, strict=True))
    return *factors, a.hidden["widths"], lengths


def _factors_in_words(got: tuple) -> str:
    *factors, widths, lengths = got
    off = [(x - math.sqrt(width)).abs().max().item() for x, width in zip(factors, widths, strict=True)]
    worst = off.index(max(off))
    come_out = _range(lengths[worst] * factors[worst])
    return f"at d_model={widths[worst]}, rows of length {lengths[worst]} come out with a length of {come_out}"


def _range(x: Tensor) -> str:
    low, high = x.min().item(), x.max().item()
    return in_figures(high) if math.isclose(low, high, rel_tol=1e-5) else f"{in_figures(low)} to {in_figures(high)}"


PADDED = ("fresh", "pad 0", "unpadded")


def _zero_rows(a: Answers) -> tuple:
    """For each module, the words that come out as zero; and its `pad_id`."""
    order = a.hidden["every"].argsort()
    outputs = (a[f"{kind} output"].flatten(0, 1)[order] for kind in PADDED)
    return tuple((output.abs().sum(-1) == 0, pad) for output, pad in zip(outputs, a.hidden["pads"], strict=True))


def _zero_rows_in_words(got: tuple) -> str:
    for zero, pad in got:
        if pad is not None and not zero.any():
            return f"with `pad_id={pad}`, none of the words comes out as zero from your fresh module"
        if zero.nonzero().flatten().tolist() != ([] if pad is None else [pad]):
            return f"with `pad_id={pad}`, your fresh module gives zeros for {_rows(zero, 'word')}"
    return "other rows than the padding come out as zero"


def _learning_rows(a: Answers) -> tuple:
    """For each module, the rows that get a gradient, its `pad_id`, the ids looked up, and each row's share.

    The shares count where the output is made of the right rows, each as long as the others: what is wrong there is lost
    there.
    """
    ids, loaded = a.plan.tensors["ids"], a["loaded"]
    rows = a.hidden["table"][ids].double()
    lengths = (loaded * rows).sum(-1, keepdim=True)
    sound = distance(loaded, lengths * rows) < 1e-3 and bool(lengths.std() < 1e-3 * lengths.mean().abs())
    facts = []
    for kind, pad, ids in zip(PADDED, a.hidden["pads"], a.hidden["looked up"], strict=True):
        gradient = a[f"{kind} gradient"]
        total = torch.zeros_like(gradient).index_add(0, ids, a.hidden["upstream"].flatten(0, 1).double())
        if pad is not None:
            total[pad] = 0
        share = (gradient if sound else total).norm(dim=-1)
        facts.append((gradient.abs().sum(-1) > 0, pad, ids, share / share.norm().clamp(min=1e-12)))
    return tuple(facts)


def _learning_rows_in_words(got: tuple) -> str:
    for learns, pad, ids, _ in got:
        words = torch.zeros_like(learns).index_fill(0, ids, True)
        if pad is not None:
            words[pad] = False
            if learns[pad]:
                return f"with `pad_id={pad}`, a gradient reaches row {pad}"
        if (words & ~learns).any():
            they = "it was" if (words & ~learns).sum() == 1 else "they were"
            return f"with `pad_id={pad}`, no gradient reaches {_rows(words & ~learns)}, though {they} looked up"
        if (learns & ~words).any():
            return f"with `pad_id={pad}`, a gradient reaches {_rows(learns & ~words)}, which nobody looked up"
    return "a row's gradient is not the sum of those at all places where its word stands"


class _Tokens(nn.Module):
    """A TokenEmbedding in which each mistake is a switch."""

    def __init__(
        self,
        vocab_size,
        d_model,
        pad_id=None,
        *,
        scale=None,
        std=None,
        rezero=True,
        learns=None,
        ignore_pad=False,
        zero_id=None,
        ignore_0=False,
        uniform=False,
    ):
        super().__init__()
        self.scale = math.sqrt(d_model) if scale is None else scale(d_model)
        pad_id = None if ignore_pad or (ignore_0 and not pad_id) else pad_id if zero_id is None else zero_id
        learns = learns is not None and learns(pad_id)
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=None if learns else pad_id)
        if uniform:
            nn.init.xavier_uniform_(self.embedding.weight)
        else:
            nn.init.normal_(self.embedding.weight, std=d_model**-0.5 if std is None else std(d_model))
        if rezero and pad_id is not None:
            with torch.no_grad():
                self.embedding.weight[pad_id] = 0

    def forward(self, ids):
        return self.embedding(ids) * self.scale


def _tokens(**switches):
    return {"TokenEmbedding": lambda *args, **kwargs: _Tokens(*args, **kwargs, **switches)}


TOKEN_EMBEDDING = Exercise(
    name="embedding.token_embedding",
    title="TokenEmbedding",
    challenge=_token_challenge,
    reference={"TokenEmbedding": TokenEmbedding},
    claims=(
        Claim(
            "rows",
            2,
            "each id gets its own row of `embedding.weight`",
            _directions,
            see=LOOKUP,
        ),
        Claim(
            "scaled",
            1,
            "the rows are multiplied by √d_model",
            _factors,
            reason=_factors_in_words,
            see=FACTOR,
        ),
        Claim(
            "initialised",
            1,
            "fresh weights are drawn from N(0, 1/d_model)",
            lambda a: (_spread(a["weights"]), _spread(a["unpadded weights"])),
            tolerance=SPREAD_TOLERANCE,
            reason=_spread_in_words,
            see=FACTOR,
        ),
        Claim(
            "padding_is_zero",
            1,
            "the padding comes out as zero from the start, and no other word does; with `pad_id=None` no word does",
            _zero_rows,
            reason=_zero_rows_in_words,
            see=PADDING,
        ),
        Claim(
            "padding_learns_nothing",
            1,
            "the padding row gets no gradient, and the rows of the words do",
            _learning_rows,
            reason=_learning_rows_in_words,
            see=PADDING,
        ),
    ),
    misconceptions=(
        Misconception(
            "no_scale",
            "you left out the factor √d_model",
            FACTOR,
            _tokens(scale=lambda d_model: 1.0),
        ),
        Misconception(
            "divided",
            "you divided by √d_model: the rows start small and have to grow",
            FACTOR,
            _tokens(scale=lambda d_model: d_model**-0.5),
        ),
        Misconception(
            "scaled_by_width",
            "you multiplied by d_model: its square root is missing",
            FACTOR,
            _tokens(scale=float),
        ),
        Misconception(
            "default_init",
            "your weights are drawn from N(0, 1), nn.Embedding's default",
            FACTOR,
            _tokens(std=lambda d_model: 1.0),
        ),
        Misconception(
            "std_is_variance",
            "you passed the variance 1/d_model where the standard deviation belongs",
            FACTOR,
            _tokens(std=lambda d_model: 1 / d_model),
        ),
        Misconception(
            "xavier",
            "your weights are drawn from Xavier's uniform distribution",
            FACTOR,
            _tokens(uniform=True),
        ),
        Misconception(
            "padding_overwritten",
            "the padding does not come out as zero: perhaps drawing the weights anew overwrote the zeros that "
            "nn.Embedding had put into its row",
            WRONG,
            _tokens(rezero=False),
        ),
        Misconception(
            "padding_ignored",
            "`pad_id` changes nothing in your module",
            PADDING,
            _tokens(ignore_pad=True),
        ),
        Misconception(
            "padding_is_always_0",
            "your padding row is always row 0, whatever `pad_id` says",
            PADDING,
            _tokens(zero_id=0),
        ),
        Misconception(
            "padding_0_ignored",
            "with `pad_id=0` no word comes out as zero, with another `pad_id` its word does: perhaps 0 counts as false "
            "where you ask for a `pad_id`",
            PADDING,
            _tokens(ignore_0=True),
        ),
        Misconception(
            "padding_row_learns",
            "the padding comes out as zero at first, but its row gets a gradient and will not stay so",
            PADDING,
            _tokens(learns=lambda pad_id: True),
        ),
        Misconception(
            "padding_0_learns",
            "with `pad_id=0` the padding row gets a gradient, with another `pad_id` it gets none: perhaps 0 counts as "
            "false where you ask for a `pad_id`",
            PADDING,
            _tokens(learns=lambda pad_id: pad_id == 0),
        ),
    ),
)

# --- 3. images to patches --------------------------------------------------------------------------------------------


def _patches_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=PATCHES_BUILT_INS)
    patch_size, channels, rows = 2 * pick(draw, 1, 3), pick(draw, 2, 3), pick(draw, 2, 3)
    wide = _growing(2, channels, rows * patch_size, (rows + pick(draw, 2, 3)) * patch_size, draw)
    plan.call("image_to_patches", plan.tensor("images", wide), patch_size, label="patches")
    side = 2 * pick(draw, 1, 2) + 1
    tall = _growing(3, channels + 2, 4 * side, 3 * side, draw)
    plan.call("image_to_patches", plan.tensor("other_images", tall), side, label="other_patches")
    # and one in which no pixel is told by its value
    noise = torch.rand(2, channels, 3 * patch_size, 2 * patch_size, generator=draw)
    plan.call("image_to_patches", plan.tensor("noise", noise), patch_size, label="noise")
    lone = _growing(1, 1, 2 * side, 3 * side, draw)
    plan.call("image_to_patches", plan.tensor("lone_images", lone), side, label="lone_patches")
    # one side divides, and so does the number of pixels
    uneven = torch.rand(1, channels, 3 * patch_size // 2, 2 * patch_size, generator=draw)
    plan.call("image_to_patches", plan.tensor("low_images", uneven), patch_size, label="uneven height")
    plan.call("image_to_patches", plan.tensor("narrow_images", uneven.mT), patch_size, label="uneven width")
    odd = torch.rand(1, 1, 3 * patch_size // 2, 5 * patch_size // 2, generator=draw)
    plan.call("image_to_patches", plan.tensor("odd_images", odd), patch_size, label="uneven")
    refused = {"uneven height": uneven, "uneven width": uneven.mT, "uneven": odd}
    plan.hidden["sizes"] = {label: (*images.shape[2:], patch_size) for label, images in refused.items()}
    return plan


def _growing(batch: int, channels: int, height: int, width: int, draw: torch.Generator) -> Tensor:
    """Pixels that grow along (batch, channel, row, column): the order inside a patch shows in which entries grow."""
    steps = torch.rand(batch * channels * height * width, generator=draw) + 0.5
    return steps.cumsum(0).reshape(batch, channels, height, width) / 100


def _pixel_sets(patches: Tensor) -> Tensor:
    """Which pixels share a row, whatever the order of the rows and inside them."""
    rows = patches.sort(dim=-1).values
    return rows.gather(1, rows[..., :1].argsort(dim=1).expand_as(rows))


def _inner_order(patches: Tensor) -> Tensor:
    """In which order the entries of every row come, where (channel, row, column) makes them grow."""
    return patches.argsort(dim=-1, stable=True)


def _by_sum(patches: Tensor) -> Tensor:
    """The rows of every image, ordered by their sums: as they are inside, wherever they stand."""
    return patches.gather(1, patches.sum(-1, keepdim=True).argsort(1).expand_as(patches))


def _sorted_patches(a: Answers) -> dict:
    names = (f"the patches of `{each}images`, the pixels of each sorted" for each in ("", "other_", "lone_"))
    return {name: _pixel_sets(patches) for name, patches in zip(names, _each("patches")(a), strict=True)}


def _errors(right: str, *wrong: str):
    """The errors that inputs which do not fit raise, "unnamed" for one that lacks sizes; the call `right` has none."""

    def quantity(a: Answers) -> tuple:
        if a.raises(right):
            a[right]  # raises, and says what the error was
        errors = {label: a.raises(label) for label in wrong}
        named = {label: a.mentions(label, *map(str, a.hidden["sizes"][label])) for label in wrong}
        return tuple("unnamed" if errors[it] == "ValueError" and not named[it] else errors[it] for it in wrong)

    return quantity


def _other_error(*images: str):
    """Says which of the `images` that do not fit raises no ValueError, or one that does not name the sizes."""

    def in_words(raised: tuple) -> str:
        image, error = next((each, error) for each, error in zip(images, raised, strict=True) if error != "ValueError")
        if error == "unnamed":
            return f"your ValueError for {image} does not name all the sizes that are asked for"
        return f"your code raises {error or 'no error'} for {image}"

    return in_words


def _strips(images: Tensor, patch_size: int) -> Tensor:
    batch, channels, height, width = images.shape
    _whole(height, width, patch_size)
    return images.reshape(batch, -1, channels * patch_size**2)


def _whole(height: int, width: int, patch_size: int) -> None:
    if height % patch_size or width % patch_size:
        raise ValueError(f"{height}×{width} does not divide by {patch_size}")


def _arranged(order: tuple[int, ...]):
    """image_to_patches with another order of the six axes (batch, channel, row, i, column, j)."""

    def cut(images: Tensor, patch_size: int) -> Tensor:
        batch, channels, height, width = images.shape
        _whole(height, width, patch_size)
        grid = images.reshape(batch, channels, height // patch_size, patch_size, width // patch_size, patch_size)
        return grid.permute(order).reshape(batch, -1, channels * patch_size**2)

    return {"image_to_patches": cut}


def _unnamed(images: Tensor, patch_size: int) -> Tensor:
    if any(side % patch_size for side in images.shape[-2:]):
        raise ValueError("the image does not divide into patches")
    return image_to_patches(images, patch_size)


def _cut_off(images: Tensor, patch_size: int) -> Tensor:
    height, width = (side // patch_size * patch_size for side in images.shape[-2:])
    return image_to_patches(images[..., :height, :width], patch_size)


PATCHES_BUILT_INS = ("unfold", "pixel_unshuffle")

IMAGE_TO_PATCHES = Exercise(
    name="embedding.image_to_patches",
    title="Images to patches",
    challenge=_patches_challenge,
    reference={"image_to_patches": image_to_patches},
    forbidden=PATCHES_BUILT_INS,
    claims=(
        Claim(
            "patches",
            2,
            "each row holds the pixels of one square patch, of one image, in all its channels",
            _sorted_patches,
            tolerance=1e-6,  # pixels are moved, not computed
            picture=lambda a: a["patches"][0],
            see=PATCHES,
        ),
        Claim(
            "grid_order",
            1,
            "the patches come from left to right, then from top to bottom",
            lambda a: (*(patches.sum(-1) for patches in _each("patches")(a)), a["noise"].sum(-1)),
            tolerance=1e-6,
            reason=lambda _: "your patches hold the right pixels, but come in another order",
            needs=("patches",),
            picture=lambda a: a["patches"][0],
            see=GRID,
        ),
        Claim(
            "inner_order",
            1,
            "the pixels of a patch come in the order channel, row, column",
            lambda a: (*(_inner_order(patches) for patches in _each("patches")(a)), _by_sum(a["noise"])),
            reason=lambda _: "a patch holds the right pixels, but in another order",
            needs=("patches",),
            picture=lambda a: a["patches"][0],
            see=PATCHES,
        ),
        Claim(
            "indivisible",
            1,
            "an image that does not divide into patches raises a ValueError that names the sizes",
            _errors("patches", "uneven height", "uneven width", "uneven"),
            reason=_other_error(
                "an image whose height does not divide",
                "an image whose width does not divide",
                "an image of which neither side divides",
            ),
            see=WRONG,
        ),
    ),
    misconceptions=(
        Misconception(
            "strips",
            "you reshaped without moving an axis: your rows are runs of neighbouring pixels in reading "
            "order, not squares",
            WRONG,
            {"image_to_patches": _strips},
        ),
        Misconception(
            "column_by_column",
            "your patches run down the columns of the grid first",
            PATCHES,
            _arranged((0, 4, 2, 1, 3, 5)),
        ),
        Misconception(
            "transposed_patch",
            "inside a patch you take the columns before the rows",
            PATCHES,
            _arranged((0, 2, 4, 1, 5, 3)),
        ),
        Misconception(
            "channels_last", "inside a patch you put the channels last", PATCHES, _arranged((0, 2, 4, 3, 5, 1))
        ),
        Misconception(
            "interleaved",
            "you took every pixel at the same place of all patches, instead of all pixels of one "
            "patch: grid axes and patch axes are swapped",
            PATCHES,
            _arranged((0, 3, 5, 1, 2, 4)),
        ),
        Misconception(
            "channels_apart",
            "each channel makes patches of its own: a patch holds all the channels",
            PATCHES,
            _arranged((0, 1, 2, 4, 3, 5)),
        ),
        Misconception(
            "cut_off",
            "an image whose pixels do not fill whole patches goes through: raise a ValueError",
            WRONG,
            {"image_to_patches": _cut_off},
        ),
        Misconception(
            "unnamed",
            "your ValueError does not name height, width and `patch_size`",
            WRONG,
            {"image_to_patches": _unnamed},
        ),
    ),
)

# --- 4. PatchEmbedding -----------------------------------------------------------------------------------------------


def as_convolution(embedding: PatchEmbedding) -> nn.Conv2d:
    """The convolution that computes the same as a patch embedding."""
    size, weight = embedding.patch_size, embedding.projection.weight
    channels = weight.shape[1] // size**2
    convolution = nn.Conv2d(channels, weight.shape[0], kernel_size=size, stride=size)
    with torch.no_grad():
        convolution.weight.copy_(weight.reshape(-1, channels, size, size))
        convolution.bias.copy_(embedding.projection.bias)
    return convolution


def _patch_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    patch_size, channels, d_model, side = pick(draw, 3, 5), pick(draw, 3, 4), pick(draw, 5, 8), pick(draw, 3, 4)
    plan = Plan()

    def images(name: str, rows: int, columns: int, batch: int = 2) -> Ref:
        shape = (batch, channels, rows * patch_size, columns * patch_size)
        return plan.tensor(f"{name}_images", torch.randn(shape, generator=draw))

    def weights(bias: Tensor) -> dict:
        matrix = torch.randn(d_model, channels * patch_size**2, generator=draw) / 7
        return {"projection.weight": matrix, "projection.bias": bias}

    sizes, other_sizes = (patch_size, channels, d_model), (patch_size + 1, channels - 1, d_model + 6)
    embedding = plan.call("PatchEmbedding", side * patch_size, *sizes)
    unbiased = plan.call("PatchEmbedding", (7 - side) * (patch_size + 1), *other_sizes)
    plan.load(embedding, weights(torch.randn(d_model, generator=draw)))
    # one grey value an image: every patch is the same, so that only the projection counts
    grey = torch.rand(2, 1, 1, 1, generator=draw).expand(2, channels, side * patch_size, side * patch_size)
    grey = plan.tensor("plain_images", grey)
    plan.call(embedding, grey, label="plain output")
    plan.load(embedding, weights(torch.randn(d_model, generator=draw)))  # as after a step of training
    plan.call(embedding, grey, label="plain output again")
    plan.hidden["sizes"] = {}
    for label, rows, columns in (
        ("tall", side + 1, side),
        ("wide", side, side + 1),
        ("small", side - 1, side - 1),
        ("flat", 1, side**2),  # as many patches as in an image that fits
    ):
        plan.call(embedding, images(label, rows, columns), label=label)
        plan.hidden["sizes"][label] = rows * patch_size, columns * patch_size
    convolution = plan.call("as_convolution", embedding)
    plan.attribute(convolution, "weight", label="kernel")
    plan.call(convolution, images("square", side, side), label="convolved")

    # without a bias, and in other sizes
    (patch_size, channels, d_model), side = other_sizes, 7 - side
    plan.load(unbiased, weights(torch.zeros(d_model)))
    two = images("two", side, side)
    plan.call(unbiased, two, label="output")
    plan.train(unbiased, False)
    plan.call(unbiased, images("three", side, side, batch=3), label="other_output")
    plan.call(unbiased, images("lone", side, side, batch=1), label="lone_output")
    plan.call(plan.call("as_convolution", unbiased), two, label="other_convolved")

    fresh = plan.call("PatchEmbedding", side * patch_size, patch_size, channels, d_model)
    plan.reached(plan.call(fresh, two), torch.randn(2, side**2, d_model, generator=draw), fresh, label="reached")
    return plan


def _weight_reached(a: Answers) -> bool:
    reached = a["reached"]  # a projection that is kept otherwise has a name of its own
    return reached.get("projection.weight", any(reached.values()))


class _Patches(nn.Module):
    """A PatchEmbedding in which each mistake is a switch."""

    def __init__(
        self,
        image_size,
        patch_size,
        channels,
        d_model,
        *,
        bias=True,
        cut=image_to_patches,
        flip=False,
        frozen=False,
        checked=True,
        named=True,
    ):
        super().__init__()
        self.image_size, self.patch_size, self.bias, self.cut, self.flip = image_size, patch_size, bias, cut, flip
        self.frozen, self.checked, self.named = frozen, checked, named
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images):
        if self.checked and tuple(images.shape[-2:]) != (self.image_size, self.image_size):
            raise ValueError(f"images of {tuple(images.shape)}" if self.named else "images of another size")
        weight, bias = self.projection.weight, self.projection.bias if self.bias else None
        if self.frozen:
            weight, bias = weight.detach(), bias.detach()
        output = nn.functional.linear(self.cut(images, self.patch_size), weight, bias)
        return output.transpose(1, 2) if self.flip else output


def _patch_module(**switches):
    return {"PatchEmbedding": lambda *args, **kwargs: _Patches(*args, **kwargs, **switches)}


def _convolution(**switches):
    """as_convolution with a mistake."""

    def convert(embedding):
        right = as_convolution(embedding)
        if "stride" in switches:
            right.stride = (switches["stride"],) * 2
        with torch.no_grad():
            if switches.get("transposed"):
                right.weight.copy_(right.weight.transpose(-1, -2).clone())
            if switches.get("channels_last"):
                d_model, channels, size, _ = right.weight.shape
                kernel = embedding.projection.weight.reshape(d_model, size, size, channels)
                right.weight.copy_(kernel.permute(0, 3, 1, 2))
            if switches.get("no_bias"):
                right.bias.zero_()
        return right

    return {"as_convolution": convert}


PATCH_EMBEDDING = Exercise(
    name="embedding.patch_embedding",
    title="PatchEmbedding",
    challenge=_patch_challenge,
    reference={"PatchEmbedding": PatchEmbedding, "as_convolution": as_convolution},
    claims=(
        Claim(
            "projected",
            1,
            "each patch goes through the same `projection`, weight and bias",
            lambda a: (a["plain output"], a["plain output again"]),
            see=PROJECTION,
        ),
        Claim("output", 1, "row p of the output belongs to patch p of the image", _each("output"), see=PATCHES),
        Claim(
            "size_checked",
            1,
            "an image of another size than `image_size` raises a ValueError that names its height and width",
            _errors("output", "tall", "wide", "small", "flat"),
            reason=_other_error(
                "an image that is too high",
                "an image that is too wide",
                "a smaller image",
                "an image of another form with the same number of patches",
            ),
            see=COUNTING,
        ),
        Claim(
            "gradients",
            1,
            "gradients reach the projection's weight",
            _weight_reached,
            reason=lambda _: "no gradient reaches the weight: the output does not depend on it, or is cut off from it",
            see=PROJECTION,
        ),
        Claim(
            "convolution",
            2,
            "`as_convolution` gives an nn.Conv2d with the same outputs",
            lambda a: (a["kernel"], a["convolved"], a["other_convolved"]),
            see=CONVOLUTION,
        ),
    ),
    misconceptions=(
        Misconception("no_bias", "your output lacks the projection's bias", PROJECTION, _patch_module(bias=False)),
        Misconception(
            "strips",
            "the projection is right, but its rows are runs of pixels in reading order, not patches",
            WRONG,
            _patch_module(cut=_strips),
        ),
        Misconception(
            "column_by_column",
            "the projection is right, but your patches run down the columns of the grid",
            PATCHES,
            _patch_module(cut=_arranged((0, 4, 2, 1, 3, 5))["image_to_patches"]),
        ),
        Misconception(
            "channels_last",
            "the projection is right, but inside a patch the channels come last",
            PATCHES,
            _patch_module(cut=_arranged((0, 2, 4, 3, 5, 1))["image_to_patches"]),
        ),
        Misconception(
            "transposed_output",
            "your output is (batch, d_model, num_patches): its last two axes have changed places, as after a convolution",
            CONVOLUTION,
            _patch_module(flip=True),
        ),
        Misconception(
            "detached",
            "your output is cut off from the projection's parameters",
            PROJECTION,
            _patch_module(frozen=True),
        ),
        Misconception(
            "any_size",
            "your module takes images of any size that divides: later there are exactly num_patches positions to add",
            COUNTING,
            _patch_module(checked=False),
        ),
        Misconception(
            "unnamed",
            "your ValueError does not name the image's height and width",
            COUNTING,
            _patch_module(named=False),
        ),
        Misconception(
            "stride_1",
            "your convolution moves by one pixel: patches do not overlap",
            CONVOLUTION,
            _convolution(stride=1),
        ),
        Misconception(
            "kernel_transposed",
            "your kernel has rows and columns swapped",
            CONVOLUTION,
            _convolution(transposed=True),
        ),
        Misconception(
            "kernel_channels_last",
            "you cut the weight's rows as (row, column, channel)",
            CONVOLUTION,
            _convolution(channels_last=True),
        ),
        Misconception(
            "convolution_no_bias", "your convolution lacks the bias", CONVOLUTION, _convolution(no_bias=True)
        ),
    ),
)

# --- 5. shapes -------------------------------------------------------------------------------------------------------


def patch_shapes(height: int, width: int, channels: int, patch_size: int, d_model: int) -> tuple:
    """Shape of the patches, shape of the vectors, number of parameters."""
    num_patches, patch_dim = (height // patch_size) * (width // patch_size), channels * patch_size**2
    return (num_patches, patch_dim), (num_patches, d_model), patch_dim * d_model + d_model


def _shapes(num_patches=None, patch_dim=None, parameters=None):
    """`patch_shapes` and the predictions for the notes' image, with parts replaced."""

    def shapes(height, width, channels, patch_size, d_model):
        (n, p), _, _ = patch_shapes(height, width, channels, patch_size, d_model)
        n = n if num_patches is None else num_patches(height, width, patch_size)
        p = p if patch_dim is None else patch_dim(channels, patch_size)
        count = p * d_model + d_model if parameters is None else parameters(n, p, d_model)
        return (n, p), (n, d_model), count

    patches, vectors, count = shapes(224, 224, 1, 16, 512)
    return {"patch_shapes": shapes, "shape_of_patches": patches, "shape_of_vectors": vectors, "num_parameters": count}


def _shapes_challenge(seed: int) -> Plan:
    plan = Plan()
    for name in ("shape_of_patches", "shape_of_vectors", "num_parameters"):
        plan.name(name, label=name)
    draw = torch.Generator().manual_seed(seed)
    widths = pick(draw, 40, 60), pick(draw, 70, 120)
    for label, d_model in zip(("first", "second"), widths, strict=True):
        size, channels, rows = pick(draw, 5, 11), pick(draw, 2, 4), pick(draw, 3, 8)
        arguments = rows * size, (rows + 4) * size, channels, size, d_model
        plan.hidden[label] = f"patch_shapes({', '.join(map(str, arguments))})"
        shapes = plan.call("patch_shapes", *arguments)
        for index, part in enumerate(("patches", "vectors", "parameters")):
            plan.item(shapes, index, label=f"{label} {part}")
    return plan


def _of_both(words: str, *parts: str):
    """The quantity of parts of what the two calls return; `words` say of a part and a call what it is."""
    return lambda a: {words.format(part, a.hidden[n]): a[f"{n} {part}"] for n in ("first", "second") for part in parts}


SHAPES = Exercise(
    name="embedding.shapes",
    title="Shapes and counts",
    challenge=_shapes_challenge,
    reference=_shapes(),
    claims=(
        Claim(
            "prediction",
            1,
            "`shape_of_patches` and `shape_of_vectors` are right for the notes' image of 224×224",
            named("shape_of_patches", "shape_of_vectors"),
            see=COUNTING,
        ),
        Claim(
            "parameters",
            1,
            "`num_parameters` is right for the notes' image",
            named("num_parameters"),
            see=COUNTING,
        ),
        Claim(
            "function_shapes",
            1,
            "`patch_shapes` is right for other sizes, channels and widths",
            _of_both("the shape of the {} by {}", "patches", "vectors"),
            see=COUNTING,
        ),
        Claim(
            "function_parameters",
            1,
            "`patch_shapes` counts the parameters, and the image's size does not change them",
            _of_both("the number of {} by {}", "parameters"),
            see=COUNTING,
        ),
    ),
    misconceptions=(
        Misconception(
            "side_only",
            "you counted the patches along one side: there is a whole grid of them",
            GRID,
            _shapes(num_patches=lambda height, width, size: height // size),
        ),
        Misconception(
            "square_only",
            "you took the image to be square",
            COUNTING,
            _shapes(num_patches=lambda height, width, size: (height // size) ** 2),
        ),
        Misconception(
            "one_channel",
            "you counted the pixels of one channel: a patch holds them all",
            PATCHES,
            _shapes(patch_dim=lambda channels, size: size**2),
        ),
        Misconception(
            "side_of_patch",
            "you took the side of a patch for the number of its pixels",
            PATCHES,
            _shapes(patch_dim=lambda channels, size: channels * size),
        ),
        Misconception(
            "no_bias",
            "you left out the bias",
            COUNTING,
            _shapes(parameters=lambda n, p, d_model: p * d_model),
        ),
        Misconception(
            "one_for_each_patch",
            "you gave each patch a projection of its own: all share one",
            COUNTING,
            _shapes(parameters=lambda n, p, d_model: n * (p * d_model + d_model)),
        ),
        Misconception(
            "bias_per_patch_entry",
            "your bias has an entry for each pixel of a patch: it is added after the projection",
            COUNTING,
            _shapes(parameters=lambda n, p, d_model: p * d_model + p),
        ),
    ),
)

EXERCISES = (ONE_HOT_LOOKUP, TOKEN_EMBEDDING, IMAGE_TO_PATCHES, PATCH_EMBEDDING, SHAPES)
