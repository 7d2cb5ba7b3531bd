"""The exercises of chapter 5, the feed-forward network."""

import math

import torch
from torch import Tensor, nn

from encoder_grader.differences import in_figures
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, named
from encoder_grader.plan import Plan, pick
from encoder_lib.feed_forward import FeedForward, gelu

EQUATION = "“The equation” in chapter 5"
MAPS = "“The two maps” in chapter 5"
ALONE = "“Position by position” in chapter 5"
FOLDS = "“What one layer folds” in chapter 5"
ONE_MAP = "“Without an activation they are one” in chapter 5"
BEND = "“What the bend buys” in chapter 5"
CURVES = "“ReLU and GELU” in chapter 5"
DROPOUT = "“Dropout” in chapter 5"
PARAMETERS = "“Parameters” in chapter 5"
WORK = "“Multiply-adds” in chapter 5"
CROSSING = "“Where the lengths cross” in chapter 5"
WRONG = "“What goes wrong” in chapter 5"


def _both(label: str):
    """The quantity of two calls: the second has other sizes, and shows what the first one left behind."""
    return lambda a: (a[label], a[f"other_{label}"])


def _errors(right: str, **wrong: str):
    """For each value that does not fit, the error of its call and whether that names it; the call `right` has none."""

    def quantity(a: Answers) -> tuple:
        if a.raises(right):
            a[right]  # raises, and says what the error was
        return tuple((word, a.raises(label), a.mentions(label, word)) for label, word in wrong.items())

    return quantity


def _other_error(raised: tuple) -> str:
    value, error, named = next(each for each in raised if each[1:] != ("ValueError", True))
    if error == "ValueError" and not named:
        return f"for {value!r} your ValueError does not name the value that is not allowed"
    return f"for {value!r} your code raises {error or 'no error'}: a ValueError is asked for"


# --- 1. the two maps -------------------------------------------------------------------------------------------------


def feed_forward(x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    return (x @ w_1 + b_1).clamp(min=0) @ w_2 + b_2


def _two_maps_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()

    def call(other: str, kind: str, x: Tensor, d_ff: int) -> None:
        """Call the answer on x with weights of one kind."""
        name, after = other + kind, "" if kind == "maps" else f"_{kind}"
        d_model = x.shape[-1]
        w_1 = torch.randn(d_model, d_ff, generator=draw)
        w_2 = torch.randn(d_ff, d_model, generator=draw)
        b_1, b_2 = torch.zeros(d_ff), torch.zeros(d_model)
        if kind == "maps":  # everything is so far above zero that no activation changes it
            w_1, w_2 = w_1.abs() + 0.5, w_2.abs()
        if kind == "biases":  # x·W₁ is negative in every other unit, x·W₁ + b₁ and the output never are
            x, w_2 = x + 0.5, w_2.abs()
            w_1 = 2 * (w_1.abs() + 0.5)
            w_1[:, 1::2] *= -1  # so far from zero that only ReLU and what is not bent at all can be told apart
            b_1 = (x @ w_1).abs().max() + torch.rand(d_ff, generator=draw) + 6
            b_2 = torch.rand(d_model, generator=draw) * 50 + 10
        if kind == "places":
            b_1, b_2 = torch.randn(d_ff, generator=draw), torch.randn(d_model, generator=draw)
        inputs = {"x": x, "w_1": w_1, "b_1": b_1, "w_2": w_2, "b_2": b_2}
        refs = {part: plan.tensor(f"{other}{part}{after}", value) for part, value in inputs.items()}
        plan.call("feed_forward", *refs.values(), label=name)
        if kind == "places":
            moved = x.clone()
            moved[0, 2] += 5 * torch.randn(d_model, generator=draw)
            refs["x"] = plan.tensor(f"{other}x_moved", moved)
            plan.call("feed_forward", *refs.values(), label=f"{name} moved")

    for other, batch, seq in (("", 2, 3), ("other_", 1, 5)):
        d_model, d_ff = pick(draw, 6, 8), pick(draw, 10, 13)
        same = torch.randn(batch, 1, d_model, generator=draw).expand(-1, seq, -1)  # all positions alike
        square = (torch.rand(batch, 1, d_ff, generator=draw) + 0.5).expand(-1, seq, -1)
        call(other, "maps", square, d_ff)  # as wide inside as outside: a transposed weight fits as well
        call(other, "biases", same.abs(), d_ff)
        call(other, "activated", same, d_ff)
        call(other, "places", torch.randn(batch, seq, d_model, generator=draw), d_ff)
    return plan


def _moved(a: Answers) -> tuple:
    """Which positions' outputs changed, when one position of the input did."""
    pairs = (("places", "places moved"), ("other_places", "other_places moved"))
    return tuple(((a[one] - a[two]).abs() > 1e-6).any(-1) for one, two in pairs)


def _moved_in_words(changed: tuple) -> str:
    if all(each.sum() == 1 for each in changed):
        return "one position of the input was changed, and the output changed at another one"
    counts = " and ".join(f"{int(each.sum())} of {each.numel()}" for each in changed)
    return f"in two tries one position of the input was changed: {counts} positions of the output changed"


def _maps(f):
    return {"feed_forward": f}


def _through_softmax(x: Tensor) -> Tensor:
    return (x @ x.transpose(-1, -2)).softmax(-1) @ x


TWO_MAPS = Exercise(
    name="feed_forward.two_maps",
    title="The two maps",
    challenge=_two_maps_challenge,
    reference={"feed_forward": feed_forward},
    claims=(
        Claim(
            "maps",
            1,
            "where nothing is negative and the biases are zero, the output is x·W₁·W₂",
            _both("maps"),
            see=MAPS,
        ),
        Claim(
            "biases",
            1,
            "b₁ and b₂ are added, each to the output of its own map",
            _both("biases"),
            reason=lambda _: (
                "with biases that are not zero, the output is not the right one: "
                "look at where you add each of them, and how often"
            ),
            needs=("maps",),
            see=MAPS,
        ),
        Claim(
            "activation",
            1,
            "max(0, ·) stands between the two maps, and only there",
            _both("activated"),
            reason=lambda _: (
                "where x·W₁ has entries of both signs, the output is not the right one: "
                "look at what becomes of the negative ones, and where"
            ),
            needs=("maps",),
            see=WRONG,
        ),
        Claim(
            "alone",
            1,
            "an output depends on the input at its own position alone",
            _moved,
            reason=_moved_in_words,
            needs=("maps",),
            see=ALONE,
        ),
    ),
    misconceptions=(
        Misconception(
            "no_activation",
            "you left out max(0, ·): what remains is one linear map",
            ONE_MAP,
            _maps(lambda x, w_1, b_1, w_2, b_2: (x @ w_1 + b_1) @ w_2 + b_2),
        ),
        Misconception(
            "activation_after_both",
            "you applied max(0, ·) after the second map too, so that no output can be negative",
            WRONG,
            _maps(lambda *args: feed_forward(*args).clamp(min=0)),
        ),
        Misconception(
            "activation_at_the_end",
            "max(0, ·) stands after the second map instead of between the two",
            WRONG,
            _maps(lambda x, w_1, b_1, w_2, b_2: ((x @ w_1 + b_1) @ w_2 + b_2).clamp(min=0)),
        ),
        Misconception(
            "activation_first",
            "max(0, ·) stands before the first map instead of between the two",
            WRONG,
            _maps(lambda x, w_1, b_1, w_2, b_2: (x.clamp(min=0) @ w_1 + b_1) @ w_2 + b_2),
        ),
        Misconception(
            "gelu",
            "your activation is GELU: this exercise asks for max(0, ·)",
            CURVES,
            _maps(lambda x, w_1, b_1, w_2, b_2: gelu(x @ w_1 + b_1) @ w_2 + b_2),
        ),
        Misconception(
            "no_b_1",
            "the first map's bias b₁ is missing",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: feed_forward(x, w_1, 0 * b_1, w_2, b_2)),
        ),
        Misconception(
            "no_b_2",
            "the second map's bias b₂ is missing",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: feed_forward(x, w_1, b_1, w_2, 0 * b_2)),
        ),
        Misconception(
            "no_biases",
            "both biases are missing",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: feed_forward(x, w_1, 0 * b_1, w_2, 0 * b_2)),
        ),
        Misconception(
            "bias_after_activation",
            "you added b₁ after max(0, ·): it belongs inside, where it sets the point at which a unit wakes",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: ((x @ w_1).clamp(min=0) + b_1) @ w_2 + b_2),
        ),
        Misconception(
            "transposed",
            "you transposed the weights: they are (in, out) here, so that x·W₁ fits as it stands",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: feed_forward(x, w_1.T, b_1, w_2.T, b_2)),
        ),
        Misconception(
            "swapped",
            "you applied W₂ before W₁",
            MAPS,
            _maps(lambda x, w_1, b_1, w_2, b_2: feed_forward(x, w_2, b_2, w_1, b_1)),
        ),
        Misconception(
            "residual",
            "you added x to the output: the sum is Add & Norm's part",
            EQUATION,
            _maps(lambda x, *rest: x + feed_forward(x, *rest)),
        ),
        Misconception(
            "mixed_positions",
            "your positions mix, as in attention: here every position goes through by itself",
            ALONE,
            _maps(lambda x, *rest: feed_forward(_through_softmax(x), *rest)),
        ),
    ),
)

# --- 2. GELU ---------------------------------------------------------------------------------------------------------


def gelu_derivative(x: Tensor) -> Tensor:
    return _big_phi(x) + x * _small_phi(x)


def _big_phi(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def _small_phi(x: Tensor) -> Tensor:
    return torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


def _gelu_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=GELU_BUILT_INS)
    for other, rows in (("", 7), ("other_", 5)):
        # within ±3 the two forms differ by more than the tolerance, and all of it is reached
        points = torch.linspace(-3, 3, rows * 6) + torch.rand(rows * 6, generator=draw) / 20
        points[0] = 0.0
        x = points[torch.randperm(rows * 6, generator=draw)]
        x = x if other else x.reshape(2, rows, 3)
        plan.hidden[f"{other}x"] = x
        plan.call("gelu", plan.tensor(f"{other}x", x), label=f"{other}exact")
        plan.call("gelu", plan.tensor(f"{other}x_tanh", x), approximate="tanh", label=f"{other}tanh")
        plan.call("gelu_derivative", plan.tensor(f"{other}x_slope", x), label=f"{other}slope")
    # GELU has become flat or straight there: at ±12 a power of e in float32 is infinite, at ±100 one in float64 too
    far = torch.tensor([5.0, -5.0, 12.0, -12.0, 100.0, -100.0]) + torch.rand(6, generator=draw)
    plan.hidden["far_x"] = far
    distant = plan.tensor("x_up_to_101", far)
    plan.call("gelu", distant, label="far_exact")
    plan.call("gelu", distant, approximate="tanh", label="far_tanh")
    plan.call("gelu_derivative", distant, label="far_slope")
    plan.call("gelu", plan.tensor("x_none", x.reshape(rows, 6)), approximate="none", label="none")
    unknown = plan.tensor("x_unknown", points.reshape(2, rows, 3))  # of as many axes as the first x
    for label, form in UNKNOWN_FORMS.items():
        plan.call("gelu", unknown, approximate=form, label=label)
    return plan


ROOT_2_PI = math.sqrt(2 / math.pi)


def _gelus(exact=None, tanh=None, slope=None, unnamed=False) -> dict:
    """GELU with one of its parts replaced."""
    wrong = {"none": exact, "tanh": tanh}

    def form(x: Tensor, approximate: str = "none") -> Tensor:
        if unnamed and approximate not in wrong:
            raise ValueError("unknown form")
        change = wrong.get(approximate)
        return change(x) if change else gelu(x, approximate)

    return ({"gelu": form} if exact or tanh or unnamed else {}) | ({"gelu_derivative": slope} if slope else {})


def _tanh_form(inner, coefficient=ROOT_2_PI):
    return lambda x: 0.5 * x * (1 + torch.tanh(coefficient * inner(x)))


def _curve(label: str):
    """Where a function was asked for its values, and these values; those far from zero each by its own size."""

    def curve(a: Answers) -> tuple:
        near = ((a.hidden[f"{other}x"], a[f"{other}{label}"]) for other in ("", "other_"))
        return *near, *zip(a.hidden["far_x"].split(2), a[f"far_{label}"].split(2), strict=True)

    return curve


def _farthest(right):
    """Says at which x the values are farthest from those of the right function."""

    def words(curves: tuple) -> str:
        x, y = (torch.cat([part.flatten().double() for part in parts]) for parts in zip(*curves, strict=True))
        errors = (y - right(x)).abs()
        worst = errors.argmax()
        small = f", off by {errors[worst]:.1g}" if errors[worst] < 0.01 * y[worst].abs() else ""  # not to be seen
        return f"yours is farthest off at x = {x[worst]:.4g}, where it gives {y[worst]:.4g}{small}"

    return words


UNKNOWN_FORMS = {"unknown": "cubic", "unknown_longer": "tanh_fast", "unknown_shorter": "on"}
GELU_BUILT_INS = ("gelu",)

GELU = Exercise(
    name="feed_forward.gelu",
    title="GELU, exactly",
    challenge=_gelu_challenge,
    reference={"gelu": gelu, "gelu_derivative": gelu_derivative},
    forbidden=GELU_BUILT_INS,
    claims=(
        Claim(
            "exact",
            2,
            "by default, `gelu` is x·Φ(x) exactly",
            lambda a: (*_curve("exact")(a), (a.hidden["other_x"], a["none"].flatten())),
            tolerance=1e-5,  # the tanh form is off by up to 5e-4
            reason=_farthest(gelu),
            see=CURVES,
        ),
        Claim(
            "tanh",
            1,
            '`approximate="tanh"` gives the tanh form',
            _curve("tanh"),
            tolerance=1e-5,
            reason=_farthest(lambda x: gelu(x, "tanh")),
            see=CURVES,
        ),
        Claim(
            "derivative",
            1,
            "`gelu_derivative` is the slope of the exact form",
            _curve("slope"),
            reason=_farthest(gelu_derivative),
            see=CURVES,
        ),
        Claim(
            "unknown",
            1,
            "another `approximate` raises a ValueError that names it",
            _errors("exact", **UNKNOWN_FORMS),
            reason=_other_error,
            see=WRONG,
        ),
    ),
    misconceptions=(
        Misconception(
            "tanh_for_exact",
            "you used the tanh form where the exact one is asked for",
            CURVES,
            _gelus(exact=lambda x: gelu(x, "tanh")),
        ),
        Misconception(
            "tanh_by_default",
            "without `approximate` you give the tanh form: the exact one is the default",
            CURVES,
            {"gelu": lambda x, approximate="tanh": gelu(x, approximate)},
        ),
        Misconception(
            "exact_for_tanh",
            'with `approximate="tanh"` you gave the exact form',
            CURVES,
            _gelus(tanh=gelu),
        ),
        Misconception(
            "erf_without_root",
            "you gave x to erf as it is: erf speaks of a normal number of variance ½",
            CURVES,
            _gelus(exact=lambda x: 0.5 * x * (1 + torch.erf(x))),
        ),
        Misconception(
            "sigmoid_form",
            "you used x·σ(1.702·x), another approximation of GELU",
            CURVES,
            _gelus(exact=lambda x: x * torch.sigmoid(1.702 * x)),
        ),
        Misconception(
            "silu",
            "you used x·σ(x), which is SiLU: GELU has Φ where that has the sigmoid",
            CURVES,
            _gelus(exact=lambda x: x * torch.sigmoid(x)),
        ),
        Misconception(
            "density",
            "you multiplied x by the normal density φ(x): GELU has the cumulative probability Φ(x)",
            CURVES,
            _gelus(exact=lambda x: x * _small_phi(x)),
        ),
        Misconception("without_x", "you returned Φ(x): the factor x is missing", CURVES, _gelus(exact=_big_phi)),
        Misconception(
            "without_half",
            "the factor ½ is missing, so that large inputs come out doubled",
            CURVES,
            _gelus(exact=lambda x: x * (1 + torch.erf(x / math.sqrt(2)))),
        ),
        Misconception(
            "no_cubic_term",
            "the term 0.044715·x³ of the tanh form is missing",
            CURVES,
            _gelus(tanh=_tanh_form(lambda x: x)),
        ),
        Misconception(
            "cubic_term_outside",
            "only x is multiplied by √(2/π) in your tanh form: the factor stands before the bracket",
            CURVES,
            _gelus(tanh=_tanh_form(lambda x: ROOT_2_PI * x + 0.044715 * x**3, 1)),
        ),
        Misconception(
            "no_coefficient",
            "the factor √(2/π) of the tanh form is missing",
            CURVES,
            _gelus(tanh=_tanh_form(lambda x: x + 0.044715 * x**3, 1)),
        ),
        Misconception(
            "product_rule",
            "your slope is Φ(x) alone: both factors of x·Φ(x) change with x",
            CURVES,
            _gelus(slope=_big_phi),
        ),
        Misconception(
            "slope_without_x",
            "your slope is Φ(x) + φ(x): in the product rule, φ(x) keeps the factor x",
            CURVES,
            _gelus(slope=lambda x: _big_phi(x) + _small_phi(x)),
        ),
        Misconception(
            "slope_of_relu",
            "your slope is that of ReLU: 0 or 1 and nothing between",
            CURVES,
            _gelus(slope=lambda x: (x > 0).to(x.dtype)),
        ),
        Misconception(
            "unknown_is_exact",
            "your function takes any other `approximate` without an error",
            WRONG,
            {"gelu": lambda x, approximate="none": gelu(x, approximate if approximate == "tanh" else "none")},
        ),
        Misconception(
            "key_error",
            "your code raises a KeyError, as a dict does: a ValueError is asked for",
            WRONG,
            {"gelu": lambda x, approximate="none": {"none": gelu(x), "tanh": gelu(x, "tanh")}[approximate]},
        ),
        Misconception(
            "unnamed",
            "the ValueError for another `approximate` does not name it",
            WRONG,
            _gelus(unnamed=True),
        ),
    ),
)

# --- 3. the module ---------------------------------------------------------------------------------------------------


def _module_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()

    def weights(d_model: int, d_ff: int) -> dict:
        return {
            "linear_1.weight": torch.randn(d_ff, d_model, generator=draw) / 2,
            "linear_1.bias": torch.randn(d_ff, generator=draw),
            "linear_2.weight": torch.randn(d_model, d_ff, generator=draw) / 2,
            "linear_2.bias": torch.randn(d_model, generator=draw),
        }

    # all are made before one is called, and the last one made has other settings than most of those called first
    width, share = pick(draw, 7, 9), pick(draw, 3, 4) / 10
    sizes = {other: (pick(draw, 4, 8), pick(draw, 10, 15)) for other in ("", "other_")}
    networks = {}
    for other in ("", "other_"):
        for activation, keywords in {
            "relu": {} if other else {"activation": "relu"},
            "gelu": {"activation": "gelu"},
        }.items():
            networks[other, activation] = plan.call("FeedForward", *sizes[other], dropout=0.0, **keywords)
    clean, dropping = (
        {kind: plan.call("FeedForward", width, width, dropout=p, activation=kind) for kind in ("relu", "gelu")}
        for p in (0.0, share)
    )
    usual = plan.call("FeedForward", width, width)

    for other, batch, seq in (("", 2, 3), ("other_", 1, 5)):
        d_model, d_ff = sizes[other]
        x = torch.randn(batch, seq, d_model, generator=draw)
        for activation in ("relu", "gelu"):
            network = networks[other, activation]
            far = 5 if other and activation == "relu" else 1  # GELU's two forms part near zero alone
            like = plan.tensor(f"{other}x_{activation}", far * x)
            if other:
                plan.call(network, like)  # what it keeps of its weights now is stale when others are loaded
            plan.load(network, weights(d_model, d_ff))
            plan.train(network, bool(other))
            plan.call(network, like, label=f"{other}{activation}")

    # every input is 1 and every hidden entry 0.75 before the activation; both maps mix two neighbours with unequal
    # weights, so that the values of the output tell what was dropped where
    neighbours = torch.eye(width).roll(1, dims=0)
    mixing = {
        "linear_1.weight": torch.eye(width) / 2 + neighbours / 4,
        "linear_1.bias": torch.zeros(width),
        "linear_2.weight": torch.eye(width) + neighbours / 2,
        "linear_2.bias": torch.zeros(width),
    }
    ones, sequence = plan.tensor("ones", torch.ones(8, 64, width)), plan.tensor("one_of_ones", torch.ones(1, 64, width))
    plan.seed(seed)
    for activation in ("relu", "gelu"):
        plan.load(clean[activation], mixing)
        plan.call(clean[activation], sequence, label=f"clean {activation}")
        network = dropping[activation]
        plan.load(network, mixing)
        plan.call(network, ones, label=f"trained {activation}")
        plan.call(network, ones, label=f"again {activation}")
        plan.train(network, False)
        plan.call(network, ones, label=f"still {activation}")
    plan.load(usual, mixing)
    plan.call(usual, ones, label="by default")

    fine = plan.call("FeedForward", d_model, d_ff, dropout=0.1, activation="gelu", label=None)
    plan.attribute(fine, "training", label="fine")
    for label, name in UNKNOWN_ACTIVATIONS.items():
        plan.call("FeedForward", d_model, d_ff, activation=name, label=label)
    fresh = plan.call("FeedForward", d_model, d_ff)
    upstream = torch.randn(x.shape, generator=draw)
    plan.reached(plan.call(fresh, plan.tensor("x_fresh", x)), upstream, fresh, label="reached")
    learning_x = plan.tensor("x_learning", x, requires_grad=True)
    plan.gradient(plan.call(fresh, learning_x), upstream, learning_x, label="x reached")
    plan.learned(fresh, label="learned")
    plan.hidden |= {"weights": 2 * d_model * d_ff, "dropout": share}
    return plan


def _dropped(a: Answers) -> tuple:
    """For each activation: what should not be so, the output's values, and whether evaluation differs.

    Then the share that stays by default, and `dropout`. An output is the sum of one hidden entry and half of its
    neighbour, each of them 1 without dropout.
    """
    facts = []
    for activation in ("relu", "gelu"):
        clean, output, again, still = (a[f"{kind} {activation}"] for kind in ("clean", "trained", "again", "still"))
        close = 1e-4 * clean.abs().max()
        varies = bool((still - clean[:1, :1]).abs().max() > close)
        if (clean - clean[:1, :1]).abs().max() > close:  # of equal positions: nothing is to be compared with it
            facts.append(("made with dropout=0, your module drops all the same", "", False))
        elif alike := _alike(output, again):  # what its few draws gave is a matter of chance
            facts.append((f"in training, {alike}", "", varies))
        elif not clean.any():
            zeros = "made with dropout=0, your module gives nothing but zeros where nothing is negative"
            facts.append((zeros, "", False))
        else:
            facts.append(("", _values_in_words(output / (clean.mean() / 1.5)), varies))
    return *facts, _share_that_stays(a["by default"]), a.hidden["dropout"]


def _values_in_words(output: Tensor) -> str:
    """The values that occur, to two places, the smallest nine of them."""
    values = dict.fromkeys(f"{round(value, 2) + 0.0:.2f}" for value in output.unique().tolist())  # no -0.00
    return ", ".join(list(values)[:9]) + (" …" if len(values) > 9 else "")


def _share_that_stays(output: Tensor) -> float:
    return round((output > 0.75 * output.max() / 1.5).double().mean().item(), 1)


def _alike(output: Tensor, again: Tensor) -> str:
    """Which entries were dropped alike, though each should have been drawn by itself; empty where none were."""
    close = 1e-4 * output.abs().max()
    others = {
        "every position loses the same entries": output[:, :1],
        "every sequence loses the same entries": output[:1],
        "every call drops the same entries": again,
        "a position loses all of its entries or none": output[..., :1],
    }
    if not (output - output.mean()).abs().max() > close:
        return ""
    return next((words for words, other in others.items() if (output - other).abs().max() <= close), "")


def _dropped_in_words(facts: tuple) -> str:
    *networks, by_default, p = facts
    right = _values_in_words(torch.tensor([0.0, 0.5, 1.0, 1.5]) / (1 - p))
    wrong = [(words, values, varies) for words, values, varies in networks[::-1] if words or values != right or varies]
    if not wrong:
        return f"made without the argument `dropout`, your module keeps a share of {by_default} of its hidden entries"
    words, values, varies = next((fact for fact in wrong if fact[0] or fact[2]), wrong[0])
    if values == right:
        return "in evaluation the output is not that without dropout"
    words = words or (
        f"counted so that every output is 1.5 without dropout (1 from one hidden entry, ½ from another), training with "
        f"dropout={p} gives {values}"
    )
    return words + ("; in evaluation, too, the output is not that without dropout" if varies else "")


def _reached(a: Answers) -> tuple:
    """The weights that no gradient reaches, whether there is a number that learns for each of both maps' weights, and
    whether x is reached.
    """
    lost = ", ".join(f"`{name}`" for name, arrived in a["reached"].items() if not arrived)
    return lost, a["learned"] >= a.hidden["weights"], bool(a["x reached"].any())


def _reached_in_words(facts: tuple) -> str:
    lost, enough, x = facts
    if lost:
        return f"no gradient arrives at {lost}"
    return "no gradient comes back to x" if enough else "not all of your weights are parameters that learn"


class _Network(nn.Module):
    """A FeedForward in which each mistake is a switch."""

    def __init__(
        self,
        d_model,
        d_ff,
        dropout=0.1,
        activation="relu",
        *,
        curves=None,
        ending=None,
        beginning=None,
        residual=False,
        where="hidden",
        drop=nn.functional.dropout,
        bias=True,
        swapped=False,
        frozen=False,
        lenient=None,
        error=ValueError,
        word=True,
    ):
        super().__init__()
        known = {"relu": torch.relu, "gelu": gelu}
        if activation not in known and lenient is None:
            raise error(f"activation={activation!r}" if word else "unknown activation")
        if swapped:
            d_model, d_ff = d_ff, d_model
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = (known | (curves or {})).get(activation, lenient)
        self.ending, self.beginning, self.where, self.p, self.drop = ending, beginning, where, dropout, drop
        self.bias, self.frozen, self.residual = bias, frozen, residual

    def forward(self, x):
        return x + self.mapped(x) if self.residual else self.mapped(x)

    def mapped(self, x):
        def linear(layer, x):
            weight, bias = layer.weight, layer.bias if self.bias else None
            if self.frozen:
                weight, bias = weight.detach(), bias.detach()
            return nn.functional.linear(x, weight, bias)

        def drop(place, x):
            return self.drop(x, self.p, training=self.training) if place in self.where else x

        x = self.beginning(x) if self.beginning else x
        hidden = self.activation(drop("before", linear(self.linear_1, drop("input", x))))
        output = drop("output", linear(self.linear_2, drop("hidden", hidden)))
        return self.ending(output) if self.ending else output


_Network.__name__ = "FeedForward"  # as messages of `collect` call the learner's


def _network(**switches) -> dict:
    return {"FeedForward": lambda *args, **kwargs: _Network(*args, **kwargs, **switches)}


def _identity(x: Tensor) -> Tensor:
    return x


def _unscaled(x: Tensor, p: float, training: bool) -> Tensor:
    return x * (torch.rand_like(x) >= p) if training else x


def _one_mask(x: Tensor, p: float, training: bool) -> Tensor:
    return x * nn.functional.dropout(torch.ones(x.shape[-1]), p, training)


def _keep_probability(x: Tensor, p: float, training: bool) -> Tensor:
    return nn.functional.dropout(x, 1 - p, training) if p else x


UNKNOWN_ACTIVATIONS = {"unknown": "swish", "unknown_here": "elu"}  # torch knows the second, and "relu" contains it

MODULE = Exercise(
    name="feed_forward.module",
    title="FeedForward",
    challenge=_module_challenge,
    reference={"FeedForward": FeedForward},
    claims=(
        Claim("relu", 2, "with ReLU, the default, the output is that of the two maps", _both("relu"), see=MAPS),
        Claim(
            "gelu",
            1,
            '`activation="gelu"` puts the exact GELU in its place',
            _both("gelu"),
            tolerance=1e-5,
            see=CURVES,
        ),
        Claim(
            "dropout",
            2,
            "dropout falls on the hidden entries after the activation and nowhere else, in training only",
            _dropped,
            reason=_dropped_in_words,
            see=DROPOUT,
        ),
        Claim(
            "unknown",
            1,
            "an unknown activation raises a ValueError that names it",
            _errors("fine", **UNKNOWN_ACTIVATIONS),
            reason=_other_error,
            see=WRONG,
        ),
        Claim(
            "gradients",
            1,
            "gradients reach both weights, and x",
            _reached,
            reason=_reached_in_words,
            see=MAPS,
        ),
    ),
    misconceptions=(
        Misconception(
            "no_activation",
            "there is no activation between your two maps: together they are one linear map",
            ONE_MAP,
            _network(curves={"relu": _identity, "gelu": _identity}),
        ),
        Misconception(
            "activation_after_both",
            "an activation follows the second map too",
            WRONG,
            _network(ending=torch.relu),
        ),
        Misconception(
            "activation_first",
            "your activation stands before the first map instead of between the two",
            WRONG,
            _network(beginning=torch.relu, curves={"relu": _identity, "gelu": _identity}),
        ),
        Misconception(
            "always_relu",
            "your module uses ReLU whatever `activation` says",
            CURVES,
            _network(curves={"gelu": torch.relu}),
        ),
        Misconception(
            "always_gelu",
            "your module uses GELU whatever `activation` says",
            CURVES,
            _network(curves={"relu": gelu}),
        ),
        Misconception(
            "tanh_form",
            "your GELU is the tanh form: the exact one is asked for",
            CURVES,
            _network(curves={"gelu": lambda x: gelu(x, "tanh")}),
        ),
        Misconception(
            "sigmoid_form",
            "your GELU is x·σ(1.702·x), an approximation: the exact one is asked for",
            CURVES,
            _network(curves={"gelu": lambda x: x * torch.sigmoid(1.702 * x)}),
        ),
        Misconception(
            "residual",
            "your module adds x to its output: the sum is Add & Norm's part",
            EQUATION,
            _network(residual=True),
        ),
        Misconception("no_bias", "your maps do not add their biases", MAPS, _network(bias=False)),
        Misconception(
            "no_dropout",
            "your module drops nothing, whatever `dropout` says",
            DROPOUT,
            _network(where=()),
        ),
        Misconception(
            "dropout_in_evaluation",
            "your dropout goes on in evaluation: it has to follow `self.training`, as nn.Dropout does by itself",
            DROPOUT,
            _network(drop=lambda x, p, training: nn.functional.dropout(x, p, True)),
        ),
        Misconception(
            "modes_confused",
            "your module drops in evaluation and not in training",
            DROPOUT,
            _network(drop=lambda x, p, training: nn.functional.dropout(x, p, not training)),
        ),
        Misconception(
            "dropout_on_output",
            "your dropout falls on the output, as the paper's does: here Add & Norm sees to that, and hidden entries "
            "are to be dropped",
            DROPOUT,
            _network(where=("output",)),
        ),
        Misconception(
            "dropout_twice",
            "your dropout falls on the hidden entries and on the output as well: Add & Norm will drop there again",
            DROPOUT,
            _network(where=("hidden", "output")),
        ),
        Misconception(
            "dropout_on_input",
            "your dropout falls on the module's input",
            DROPOUT,
            _network(where=("input",)),
        ),
        Misconception(
            "dropout_before_activation",
            "your dropout stands before the activation: with ReLU nobody can tell, with GELU the entries that stay are "
            "scaled before they are bent",
            DROPOUT,
            _network(where=("before",)),
        ),
        Misconception(
            "dropout_unscaled",
            "the entries that stay are not divided by 1 − p, so that evaluation sees larger numbers than training",
            DROPOUT,
            _network(drop=_unscaled),
        ),
        Misconception(
            "one_mask",
            "your dropout draws one mask for all positions: each hidden entry of each position has a chance of its own",
            DROPOUT,
            _network(drop=_one_mask),
        ),
        Misconception(
            "keep_probability",
            "you took `dropout` for the share that stays: it is the share that is dropped",
            DROPOUT,
            _network(drop=_keep_probability),
        ),
        Misconception(
            "sizes_swapped",
            "d_model and d_ff are swapped: `linear_1` leads from d_model to d_ff, `linear_2` back",
            MAPS,
            _network(swapped=True),
        ),
        Misconception("detached", "your output is cut off from the maps' weights", MAPS, _network(frozen=True)),
        Misconception(
            "unknown_is_relu",
            "your module can be made with an unknown activation, without an error",
            WRONG,
            _network(lenient=torch.relu),
        ),
        Misconception(
            "key_error",
            "your code raises a KeyError, as a dict does: a ValueError is asked for",
            WRONG,
            _network(error=KeyError),
        ),
        Misconception(
            "unnamed",
            "the ValueError for an unknown activation does not name it",
            WRONG,
            _network(word=False),
        ),
    ),
)

# --- 4. two maps without an activation -------------------------------------------------------------------------------


def collapse(w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> tuple[Tensor, Tensor]:
    return w_1 @ w_2, b_1 @ w_2 + b_2


def largest_rank(d_in: int, d_hidden: int, d_out: int) -> int:
    return min(d_in, d_hidden, d_out)


def _predicted_ranks(rank) -> dict:
    return {
        "largest_rank": rank,
        "rank_through_2048": rank(512, 2048, 512),
        "rank_through_64": rank(512, 64, 512),
    }


def _collapse_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for other, wider in (("", True), ("other_", False)):
        d_model, d_ff = pick(draw, 5, 8), pick(draw, 10, 13) if wider else pick(draw, 2, 4)
        shapes = {"w_1": (d_model, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d_model), "b_2": (d_model,)}
        parts = [plan.tensor(f"{other}{name}", torch.randn(shape, generator=draw)) for name, shape in shapes.items()]
        merged = plan.call("collapse", *parts)
        plan.item(merged, 0, label=f"{other}weight")
        plan.item(merged, 1, label=f"{other}bias")
    plan.name("rank_through_2048", label="rank_through_2048")
    plan.name("rank_through_64", label="rank_through_64")
    small, middle, large = sorted((pick(draw, 3, 9), pick(draw, 20, 30), pick(draw, 50, 60)))
    for number, sizes in enumerate(((small, middle, large), (large, small, middle), (middle, large, small))):
        plan.call("largest_rank", *sizes, label=f"rank {number}")
        plan.hidden[f"widths {number}"] = sizes
    return plan


def _ranks(a: Answers) -> tuple:
    return tuple((a.hidden[f"widths {number}"], a[f"rank {number}"]) for number in range(3))


def _ranks_in_words(got: tuple) -> str:
    widths, rank = next(((widths, rank) for widths, rank in got if rank != min(widths)), got[0])
    return f"for {' → '.join(map(str, widths))} yours gives {in_figures(rank)}"


def _collapsed(weight=None, bias=None) -> dict:
    def merge(*parts):
        right = collapse(*parts)
        return (weight(*parts) if weight else right[0], bias(*parts) if bias else right[1])

    return {"collapse": merge}


COLLAPSE = Exercise(
    name="feed_forward.collapse",
    title="Two maps become one",
    challenge=_collapse_challenge,
    reference={"collapse": collapse} | _predicted_ranks(largest_rank),
    claims=(
        Claim(
            "weight",
            1,
            "`W` does to x what both weights do one after the other",
            _both("weight"),
            reason=lambda _: (
                "take a row x through both weights, one after the other: your W makes something else of it"
            ),
            see=ONE_MAP,
        ),
        Claim(
            "bias",
            1,
            "`b` is what both maps make of x = 0",
            _both("bias"),
            reason=lambda _: "put x = 0 into both maps and follow b₁ and b₂: something other than your b comes out",
            see=ONE_MAP,
        ),
        Claim(
            "prediction",
            1,
            "`rank_through_2048` and `rank_through_64` are right",
            named("rank_through_2048", "rank_through_64"),
            see=ONE_MAP,
        ),
        Claim("rank", 1, "`largest_rank` is right for any three widths", _ranks, reason=_ranks_in_words, see=ONE_MAP),
    ),
    misconceptions=(
        Misconception(
            "first_bias_forgotten",
            "you returned b₂ as it is: b₁ goes through the second map, too",
            ONE_MAP,
            _collapsed(bias=lambda w_1, b_1, w_2, b_2: b_2),
        ),
        Misconception(
            "second_bias_forgotten",
            "your bias lacks b₂",
            ONE_MAP,
            _collapsed(bias=lambda w_1, b_1, w_2, b_2: b_1 @ w_2),
        ),
        Misconception(
            "bias_bent",
            "your bias still has max(0, ·) in it: this exercise has no activation",
            ONE_MAP,
            _collapsed(bias=lambda w_1, b_1, w_2, b_2: b_1.clamp(min=0) @ w_2 + b_2),
        ),
        Misconception(
            "order_reversed",
            "you multiplied in the wrong order: a row x meets W₁ first, from the right",
            ONE_MAP,
            _collapsed(weight=lambda w_1, b_1, w_2, b_2: w_2 @ w_1),
        ),
        Misconception(
            "weight_transposed",
            "your W is transposed: as (in, out), W₁ stands on the left",
            ONE_MAP,
            _collapsed(weight=lambda w_1, b_1, w_2, b_2: (w_1 @ w_2).T),
        ),
        Misconception(
            "hidden_width_ignored",
            "you left the hidden width out: everything has to pass through it",
            ONE_MAP,
            _predicted_ranks(lambda d_in, d_hidden, d_out: min(d_in, d_out)),
        ),
        Misconception(
            "rank_is_hidden_width",
            "you took the hidden width itself: a matrix cannot have a rank above either of its sides",
            ONE_MAP,
            _predicted_ranks(lambda d_in, d_hidden, d_out: d_hidden),
        ),
        Misconception(
            "largest_width",
            "you took the largest width: a rank is bounded by the smallest",
            ONE_MAP,
            _predicted_ranks(max),
        ),
        Misconception(
            "input_width_only",
            "you looked at the input's width alone",
            ONE_MAP,
            _predicted_ranks(lambda d_in, d_hidden, d_out: d_in),
        ),
    ),
)

# --- 5. weights by hand ----------------------------------------------------------------------------------------------


def absolute() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.tensor([[1.0, -1.0]]), torch.zeros(2), torch.tensor([[1.0], [1.0]]), torch.zeros(1)


def exclusive_or() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    w_1 = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    return w_1, torch.tensor([0.0, -1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)


PARTS = ("w_1", "b_1", "w_2", "b_2")
CORNERS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def _by_hand_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for name in ("absolute", "exclusive_or"):
        made = plan.call(name)
        for number, part in enumerate(PARTS):
            plan.item(made, number, label=f"{name} {part}")
    points = torch.cat([torch.randn(9, generator=draw), torch.tensor([0.0, 0.02, -0.02, 40.0, -40.0])])
    plan.hidden["points"] = points.double().unsqueeze(-1)  # (points, 1)
    return plan


def _outputs(name: str, a: Answers, x: Tensor) -> Tensor:
    return feed_forward(x, *(a[f"{name} {part}"] for part in PARTS))[:, 0]


def _at_points(a: Answers) -> tuple:
    """Near zero and far away are compared apart, so that the small numbers count."""
    outputs = _outputs("absolute", a, a.hidden["points"])
    return outputs[-4:-2], outputs


def _points_in_words(got: tuple) -> str:
    return "at 0.02, −0.02, 40 and −40 your network gives " + ", ".join(f"{y:.4g}" for y in got[1][-4:].tolist())


def _at_corners(a: Answers) -> Tensor:
    return _outputs("exclusive_or", a, CORNERS)


def _corners_in_words(outputs: Tensor) -> str:
    return "at (0, 0), (0, 1), (1, 0) and (1, 1) your network gives " + ", ".join(f"{y:.4g}" for y in outputs.tolist())


def _weights(name: str, w_1, b_1, w_2, b_2) -> dict:
    return {name: lambda: tuple(torch.tensor(part, dtype=torch.float32) for part in (w_1, b_1, w_2, b_2))}


def _hand_absolute(*parts) -> dict:
    return _weights("absolute", *parts)


def _hand_or(*parts) -> dict:
    return _weights("exclusive_or", *parts)


BOTH = [[1, 1], [1, 1]]

BY_HAND = Exercise(
    name="feed_forward.by_hand",
    title="Weights by hand",
    challenge=_by_hand_challenge,
    reference={"absolute": absolute, "exclusive_or": exclusive_or},
    claims=(
        Claim(
            "absolute",
            1,
            "with the weights of `absolute`, FFN(x) is the absolute value of every x",
            _at_points,
            reason=_points_in_words,
            see=FOLDS,
        ),
        Claim(
            "exclusive_or",
            2,
            "with the weights of `exclusive_or`, FFN is 1 at (0, 1) and (1, 0), and 0 at (0, 0) and (1, 1)",
            _at_corners,
            reason=_corners_in_words,
            see=BEND,
        ),
    ),
    misconceptions=(
        Misconception(
            "half",
            "your network gives x where x is positive and 0 elsewhere: the other half of |x| needs a unit of its own",
            FOLDS,
            _hand_absolute([[1, 1]], [0, 0], [[0.5], [0.5]], [0]),
        ),
        Misconception(
            "straight",
            "your two units add up to x itself: the second enters with the wrong sign",
            FOLDS,
            _hand_absolute([[1, -1]], [0, 0], [[1], [-1]], [0]),
        ),
        Misconception(
            "upside_down",
            "your network gives −|x|",
            FOLDS,
            _hand_absolute([[1, -1]], [0, 0], [[-1], [-1]], [0]),
        ),
        Misconception(
            "inclusive",
            "your network computes OR: it is 1 at (1, 1), too",
            BEND,
            _hand_or(BOTH, [0, -1], [[1], [-1]], [0]),
        ),
        Misconception(
            "sum",
            "your network adds the two inputs: nothing pulls the output down at (1, 1)",
            BEND,
            _hand_or(BOTH, [0, 0], [[0.5], [0.5]], [0]),
        ),
        Misconception(
            "conjunction",
            "your network computes AND",
            BEND,
            _hand_or(BOTH, [-1, -1], [[0.5], [0.5]], [0]),
        ),
        Misconception(
            "turned_round",
            "your network is 1 where it should be 0, and 0 where it should be 1",
            BEND,
            _hand_or(BOTH, [0, -1], [[-1], [2]], [1]),
        ),
        Misconception(
            "best_line",
            "your network gives ½ everywhere, the best that a linear map can do",
            BEND,
            _hand_or([[0, 0], [0, 0]], [0, 0], [[0], [0]], [0.5]),
        ),
    ),
)

# --- 6. parameters and multiply-adds ---------------------------------------------------------------------------------


def attention_parameters(d_model: int) -> int:
    return 4 * (d_model * d_model + d_model)


def feed_forward_parameters(d_model: int, d_ff: int) -> int:
    return d_model * d_ff + d_ff + d_ff * d_model + d_model


def attention_multiply_adds(batch: int, seq: int, d_model: int) -> int:
    return batch * (4 * seq * d_model**2 + 2 * seq**2 * d_model)


def feed_forward_multiply_adds(batch: int, seq: int, d_model: int, d_ff: int) -> int:
    return batch * seq * 2 * d_model * d_ff


def crossover(d_model: int, d_ff: int) -> int:
    return d_ff - 2 * d_model


def _counted(attention=attention_parameters, network=feed_forward_parameters) -> dict:
    """The two counts of parameters, and the predictions that go with them."""
    return {
        "attention_parameters": attention,
        "feed_forward_parameters": network,
        "paper_attention": attention(512),
        "paper_feed_forward": network(512, 2048),
    }


def _counts_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for name in ("paper_attention", "paper_feed_forward"):
        plan.name(name, label=name)
    sizes = plan.hidden["sizes"] = {}
    for other, smallest in (("", 2), ("other_", 5)):
        batch = smallest + pick(draw, 0, 2)  # another one in each call
        seq, d_model = 2 * pick(draw, 10, 30) + 1, 8 * pick(draw, 3, 9)  # never the same
        d_ff = d_model * 3 + 2 * pick(draw, 1, 4) + (1 if other else 0)  # one crossover is even, the other odd
        sizes |= {
            f"{other}attention_parameters": (d_model,),
            f"{other}feed_forward_parameters": (d_model, d_ff),
            f"{other}attention_multiply_adds": (batch, seq, d_model),
            f"{other}feed_forward_multiply_adds": (batch, seq, d_model, d_ff),
            f"{other}crossover": (d_model, d_ff),
        }
    for label, numbers in sizes.items():
        plan.call(label.removeprefix("other_"), *numbers, label=label)
    return plan


def _results(*functions: str):
    """What some functions gave, each with its name and sizes."""
    labels = [f"{other}{function}" for function in functions for other in ("", "other_")]
    return lambda a: tuple((label.removeprefix("other_"), a.hidden["sizes"][label], a[label]) for label in labels)


def _results_in_words(got: tuple) -> str:
    name, sizes, value = next(each for each in got if each[2] != COUNTS.reference[each[0]](*each[1]))
    return f"`{name}({', '.join(map(str, sizes))})` gives {in_figures(value)}, which is not right"


def _work(attention=None, network=None) -> dict:
    return {
        name: count
        for name, count in {"attention_multiply_adds": attention, "feed_forward_multiply_adds": network}.items()
        if count
    }


COUNTS = Exercise(
    name="feed_forward.counts",
    title="Parameters and multiply-adds",
    challenge=_counts_challenge,
    reference={
        **_counted(),
        **_work(attention_multiply_adds, feed_forward_multiply_adds),
        "crossover": crossover,
    },
    claims=(
        Claim(
            "prediction",
            1,
            "`paper_attention` and `paper_feed_forward` are right for the paper's sizes",
            named("paper_attention", "paper_feed_forward"),
            see=PARAMETERS,
        ),
        Claim(
            "parameters",
            1,
            "both functions count the parameters, biases too, for any sizes",
            _results("attention_parameters", "feed_forward_parameters"),
            reason=_results_in_words,
            see=PARAMETERS,
        ),
        Claim(
            "network_work",
            1,
            "`feed_forward_multiply_adds` is right for a whole batch",
            _results("feed_forward_multiply_adds"),
            reason=_results_in_words,
            see=WORK,
        ),
        Claim(
            "attention_work",
            1,
            "`attention_multiply_adds` is right for a whole batch",
            _results("attention_multiply_adds"),
            reason=_results_in_words,
            see=WORK,
        ),
        Claim(
            "crossover",
            1,
            "`crossover` is the length at which both cost the same",
            _results("crossover"),
            reason=_results_in_words,
            see=CROSSING,
        ),
    ),
    misconceptions=(
        Misconception(
            "no_biases",
            "you left out the biases",
            PARAMETERS,
            _counted(lambda d: 4 * d * d, lambda d, d_ff: 2 * d * d_ff),
        ),
        Misconception(
            "one_bias",
            "the feed-forward network has two biases, one as wide as the hidden layer and one as wide as the output",
            PARAMETERS,
            _counted(network=lambda d, d_ff: 2 * d * d_ff + d_ff),
        ),
        Misconception(
            "two_hidden_biases",
            "you gave both maps a bias of width d_ff: the second map's output is d_model wide",
            PARAMETERS,
            _counted(network=lambda d, d_ff: 2 * d * d_ff + 2 * d_ff),
        ),
        Misconception(
            "one_map",
            "you counted one of the two maps",
            PARAMETERS,
            _counted(network=lambda d, d_ff: d * d_ff + d_ff),
        ),
        Misconception(
            "no_output_projection",
            "you counted the projections to query, key and value, and forgot W_O",
            PARAMETERS,
            _counted(attention=lambda d: 3 * (d * d + d)),
        ),
        Misconception(
            "per_token",
            "you counted for a single token: a batch has batch · seq of them",
            WORK,
            _work(network=lambda batch, seq, d, d_ff: 2 * d * d_ff),
        ),
        Misconception(
            "one_sequence",
            "you counted for one sequence: the batch has several",
            WORK,
            _work(
                lambda batch, seq, d: attention_multiply_adds(1, seq, d),
                lambda batch, seq, d, d_ff: feed_forward_multiply_adds(1, seq, d, d_ff),
            ),
        ),
        Misconception(
            "operations",
            "you counted multiplications and additions apart: one multiply-add is both",
            WORK,
            _work(
                lambda *sizes: 2 * attention_multiply_adds(*sizes),
                lambda *sizes: 2 * feed_forward_multiply_adds(*sizes),
            ),
        ),
        Misconception(
            "no_products",
            "you counted the four projections alone: the scores and the mean of the values cost as well",
            WORK,
            _work(lambda batch, seq, d: batch * 4 * seq * d**2),
        ),
        Misconception(
            "one_product",
            "you counted one of the two products that grow with seq²",
            WORK,
            _work(lambda batch, seq, d: batch * (4 * seq * d**2 + seq**2 * d)),
        ),
        Misconception(
            "no_projections",
            "you counted the products of seq² alone: the four projections cost as well",
            WORK,
            _work(lambda batch, seq, d: batch * 2 * seq**2 * d),
        ),
        Misconception(
            "crossover_without_projections",
            "your length is where the products of seq² alone cost as much as the feed-forward network: attention's "
            "projections count as well",
            CROSSING,
            {"crossover": lambda d, d_ff: d_ff},
        ),
        Misconception(
            "crossover_with_one_product",
            "your length would be right if one product grew with seq²: there are two",
            CROSSING,
            {"crossover": lambda d, d_ff: 2 * (d_ff - 2 * d)},
        ),
        Misconception(
            "crossover_of_everything",
            "your length is where the products of seq² cost as much as all the rest of the layer",
            CROSSING,
            {"crossover": lambda d, d_ff: d_ff + 2 * d},
        ),
        Misconception(
            "crossover_inside_attention",
            "your length is where attention's products of seq² cost as much as its own projections",
            CROSSING,
            {"crossover": lambda d, d_ff: 2 * d},
        ),
    ),
)

EXERCISES = (TWO_MAPS, GELU, MODULE, COLLAPSE, BY_HAND, COUNTS)
