"""The exercises of chapter 4, Add & Norm."""

import math
from contextlib import suppress

import torch
from torch import Tensor, nn

from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, CannotJudge, named
from encoder_grader.plan import Plan, Ref, pick
from encoder_lib.add_norm import AddNorm, LayerNorm, layer_norm

NORM_BUILT_INS = ("layer_norm", "native_layer_norm", "batch_norm", "instance_norm", "group_norm", "rms_norm")


def _agreement(one: Tensor, other: Tensor) -> float:
    """1 where two tensors of an answer agree; NaN where there is nothing but zeros."""
    return (1 - (one - other).norm() / other.norm()).item()


def _spread(y: Tensor) -> Tensor:
    """The standard deviation of each vector, over its own entries."""
    return y.std(dim=-1, correction=0)


def _part_of_eps(middle: Tensor, large: Tensor) -> Tensor:
    """ε as a multiple of each vector's variance, told from its output and that of a multiple, whose ε is lost.

    With s² = variance / (v + ε), 1/s² grows by ε / variance from the multiple to the vector, whatever v was taken for.
    """
    return _spread(middle) ** -2 - _spread(large) ** -2


def _direction(y: Tensor) -> Tensor:
    """Where each vector points once it is centred: the same whatever it was divided by."""
    return nn.functional.normalize(y - y.mean(dim=-1, keepdim=True), dim=-1)


def _unshifted(y: Tensor) -> Tensor:
    """Where each vector points, once what was added to all entries alike is taken away."""
    return nn.functional.normalize(y - y.mean(), dim=-1)


def _line(y: Tensor, z: Tensor) -> Tensor:
    """Slope and intercept of y against z, for each feature over all positions."""
    y, z = y.flatten(0, -2), z.flatten(0, -2)  # (positions, d_model)
    slope = ((y - y.mean(0)) * (z - z.mean(0))).sum(0) / (z - z.mean(0)).square().sum(0)
    return torch.stack([slope, y.mean(0) - slope * z.mean(0)])


def _vectors(draw: torch.Generator, *shape: int) -> Tensor:
    """Vectors whose means and deviations differ from position to position."""
    scales = 0.5 + 2.5 * torch.rand(*shape[:-1], 1, generator=draw)
    means = 4 * torch.rand(*shape[:-1], 1, generator=draw) - 2
    return scales * torch.randn(shape, generator=draw) + means


STEP = 3e-3
# right answers are at most 2e-4 off, where they compute in float32; with mean and variance cut off it is 0.2 and more
SLOPE_TOLERANCE = 4e-3


def _plan_slopes(plan: Plan, draw: torch.Generator, name: str, start: Tensor, upstream: Tensor, call) -> None:
    """The values a small step before and behind `start`, in some directions: what a gradient is held against."""
    directions = [torch.randn(start.shape, generator=draw, dtype=torch.float64).to(start) for _ in range(4)]
    plan.hidden[f"slopes of {name}"] = upstream.double(), [direction.double() for direction in directions]
    for number, direction in enumerate(directions):
        for sign in (-1, 1):
            label = f"moved {name} {number} {sign}"
            call(plan.tensor(label, start + sign * STEP * direction), label)


def _slopes(a: Answers, name: str) -> float:
    """1 where the gradient with respect to an input is the slope of the answer's values; −1 where they have none."""
    upstream, directions = a.hidden[f"slopes of {name}"]
    gradient = a[f"gradient of {name}"]
    steps = [a[f"moved {name} {i} 1"] - a[f"moved {name} {i} -1"] for i in range(len(directions))]
    slopes = torch.stack([(upstream * step).sum() / (2 * STEP) for step in steps])
    along = torch.stack([(gradient * each).sum() for each in directions])
    return _agreement(along, slopes) if slopes.any() else -1.0


# --- 1. layer norm by its four steps ---------------------------------------------------------------------------------


def _layer_norm_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=NORM_BUILT_INS)
    d_model, seq = pick(draw, 7, 11), pick(draw, 3, 5)
    # γ = β = 1 leaves standardised entries plus 1, even where the two have changed places
    ones = plan.tensor("ones", torch.ones(d_model))
    scale, shift = torch.randn(d_model, generator=draw) + 2, torch.randn(d_model, generator=draw) - 1
    scale[::3] *= -1
    gamma, beta = plan.tensor("gamma", scale), plan.tensor("beta", shift)
    for other, shape in (("", (2, seq, d_model)), ("other_", (seq + 3, d_model))):
        vectors = _vectors(draw, *shape)
        plan.hidden.setdefault("x", vectors.double())
        x = plan.tensor(f"{other}x", vectors)
        plan.call("layer_norm", x, ones, ones, label=f"{other}plain")
        plan.call("layer_norm", x, gamma, beta, label=f"{other}affine")
    for other, shape in (("one_vector", (d_model,)), ("four_axes", (2, 1, seq, d_model))):
        plan.call("layer_norm", plan.tensor(other, _vectors(draw, *shape)), ones, ones, label=other)

    # so far from zero that in float32 nothing is left of the variance as the mean square less the mean's square
    near = 0.3 * torch.randn(2, seq, d_model, generator=draw)
    plan.call("layer_norm", plan.tensor("x_near_0", near), ones, ones, label="near")
    plan.call("layer_norm", plan.tensor("x_near_1000", near + 1000), ones, ones, label="far")

    # so small that ε outweighs the variance, whichever way that was computed
    small = 3e-5 * torch.randn(2, seq, d_model, generator=draw)
    small[1, 0] = 0  # as the vector of a padding is
    plan.call("layer_norm", plan.tensor("small_x", small), ones, ones, label="small")
    middle = 3e-3 * _vectors(draw, 2, seq, d_model)  # the variance is about as large as ε
    plan.hidden["part of eps"] = 1e-5 / middle.double().var(-1, correction=0)
    plan.call("layer_norm", plan.tensor("middle_x", middle), ones, ones, label="middle")
    plan.call("layer_norm", plan.tensor("large_x", 1e4 * middle), ones, ones, label="large")
    coarse = 0.003 * torch.randn(2, seq, d_model, generator=draw)
    plan.call("layer_norm", plan.tensor("coarse_x", coarse), ones, ones, 0.5, label="coarse")
    plan.hidden["coarse"] = _spread(layer_norm(coarse.double(), torch.ones(d_model), torch.zeros(d_model), 0.5))

    starts = {"x": _vectors(draw, 2, seq, d_model).double(), "gamma": scale.double(), "beta": shift.double()}
    upstream = torch.randn(2, seq, d_model, generator=draw).double()
    there = {name: plan.tensor(f"{name}_in_float64", start) for name, start in starts.items()}
    leaves = {name: plan.tensor(f"{name}_with_gradient", start, requires_grad=True) for name, start in starts.items()}
    y = plan.call("layer_norm", *leaves.values())
    for name, start in starts.items():
        plan.gradient(y, upstream, leaves[name], label=f"gradient of {name}")

        def moved(here: Ref, label: str, name: str = name) -> None:
            plan.call("layer_norm", *(there | {name: here}).values(), label=label)

        _plan_slopes(plan, draw, name, start, upstream, moved)
    return plan


EPS_IN_WORDS = "where ε decides, your outputs are not of the size that the chapter's equation gives"


def _centred(a: Answers) -> tuple:
    outputs, x = [a["plain"], a["other_plain"], a["four_axes"]], a.hidden["x"]
    right = torch.allclose(_unshifted(outputs[0]), _direction(x), atol=1e-3)
    unchanged = torch.allclose(outputs[0], x, rtol=1e-3)
    error = a.raises("one_vector")
    if error is None:
        outputs.append(a["one_vector"])
    else:  # judged beside the others, which may tell what is wrong
        outputs.append(torch.zeros_like(a["plain"][0, 0]))
    return *(_unshifted(y) for y in outputs), right, unchanged, error


def _centred_in_words(got: tuple) -> str:
    *_, right, unchanged, error = got
    if right and error is not None:
        return f"for an x that is one vector, of shape (d_model,), your code raises {error}"
    if unchanged:
        return "with γ and β all ones, x comes back as it was"
    return (
        f"with γ and β all ones{', where x has not three axes' if right else ''}, your vectors are not those of x less "
        "their own mean, not even up to a factor for each vector"
    )


def _divided(a: Answers) -> tuple:
    """The deviations, and whether they stay when every entry is larger by the same number."""
    near, far = _spread(a["near"]), _spread(a["far"])
    return _spread(a["plain"]), _spread(a["other_plain"]), torch.allclose(near, far, rtol=0.01)


def _divided_in_words(got: tuple) -> str:
    words = f"your standardised vectors have standard deviations of {_range(got[0])}"
    return words if got[2] else f"{words}, and they change when 1000 is added to every entry of x"


def _eps_acts(a: Answers) -> tuple:
    """How far ε makes the vectors smaller, by default and given; and whether only the default is another one."""
    small, coarse, part = _spread(a["small"]), _spread(a["coarse"]), _part_of_eps(a["middle"], a["large"])
    given = _agreement(coarse, a.hidden["coarse"]) > 0.999
    multiple = part / a.hidden["part of eps"]
    other = bool((multiple.mean() - 1).abs() > 0.01) and torch.allclose(multiple, multiple.mean(), rtol=0.01)
    return small, coarse, part, given and other


def _eps_acts_in_words(got: tuple) -> str:
    small, _, _, other_default = got
    if other_default:
        return "unless `eps` is given, your ε is not the stated one"
    return (
        f"{EPS_IN_WORDS}: without `eps` given, entries of size 3e-5 come out with standard deviations of "
        f"{_range(small[small > 0])}"
    )


def _slope_in_words(name: str, slope: float) -> str:
    if abs(slope) < 1e-9:  # along no direction does the gradient have a part
        return f"no gradient reaches {name}"
    return f"small steps of {name} change your values otherwise than the gradient that reaches {name} says"


def _lines(a: Answers) -> dict:
    lines = {x: _line(a[f"{other}affine"], a[f"{other}plain"]) for x, other in (("x", ""), ("other_x", "other_"))}
    return {f"what multiplies the standardised entries of {x}, to be γ": line[0] for x, line in lines.items()} | {
        f"what is added to the standardised entries of {x}, to be β": line[1] for x, line in lines.items()
    }


def _reached(a: Answers) -> tuple:
    """Whether a gradient reaches γ and β, and whether it is right there."""
    names = "gamma", "beta"
    return *(a[f"gradient of {name}"].any().item() for name in names), *(_slopes(a, name) for name in names)


def _reached_in_words(got: tuple) -> str:
    if not (got[0] and got[1]):
        return f"no gradient reaches {'β' if got[0] else 'γ' if got[1] else 'either of them'}"
    return _slope_in_words("β", got[3]) if got[2] > 0.99 else _slope_in_words("γ", got[2])


def _normed(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    eps: float = 1e-5,
    *,
    over=lambda x: (-1,),
    centred=True,
    about_mean=True,
    correction=0,
    root=lambda variance, eps: torch.sqrt(variance + eps),
    affine=lambda z, gamma, beta: gamma * z + beta,
    detached=False,
) -> Tensor:
    """A layer_norm in which each mistake is a switch."""
    axes = over(x)
    mean = x.mean(axes, keepdim=True)
    variance = x.var(axes, correction=correction, keepdim=True) if about_mean else x.square().mean(axes, keepdim=True)
    if detached:
        mean, variance = mean.detach(), variance.detach()
    return affine((x - mean if centred else x) / root(variance, eps), gamma, beta)


def _norm(**switches):
    return {"layer_norm": lambda *args, **kwargs: _normed(*args, **kwargs, **switches)}


STEP_1, STEP_2, STEP_3, STEP_4 = (
    f"“Step {number}: {says}” in chapter 4"
    for number, says in enumerate(("the mean", "the variance", "standardise", "scale and shift"), start=1)
)
WHERE_EPS = "“Where ε stands” in chapter 4"
GRADIENT_SECTION = "“The gradient of layer norm” in chapter 4"
AXES_SECTION = "“Layer norm and batch norm” in chapter 4"
WRONG = "“What goes wrong” in chapter 4"

LAYER_NORM = Exercise(
    name="add_norm.layer_norm",
    title="Layer norm in four steps",
    challenge=_layer_norm_challenge,
    reference={"layer_norm": layer_norm},
    forbidden=NORM_BUILT_INS,
    claims=(
        Claim(
            "centred",
            1,
            "each vector is centred by its own mean, whatever axes stand before the last",
            _centred,
            reason=_centred_in_words,
            see=STEP_1,
            picture=lambda a: a["plain"][0],
        ),
        Claim(
            "variance",
            1,
            "each vector is divided by the root of its population variance",
            _divided,
            reason=_divided_in_words,
            see=STEP_2,
        ),
        Claim(
            "eps",
            1,
            "ε stands inside the root, and is 1e-5 unless another is given; a vector of zeros gives no NaN",
            _eps_acts,
            tolerance=1e-3,
            reason=_eps_acts_in_words,
            see=WHERE_EPS,
        ),
        Claim(
            "affine",
            1,
            "γ scales and β shifts what was standardised, entry by entry",
            _lines,
            tolerance=1e-3,
            see=STEP_4,
        ),
        Claim(
            "gradient_of_x",
            1,
            "the gradient with respect to x counts that mean and variance depend on x too",
            lambda a: _slopes(a, "x"),
            tolerance=SLOPE_TOLERANCE,
            reason=lambda slope: _slope_in_words("x", slope),
            see=GRADIENT_SECTION,
        ),
        Claim(
            "gradient_of_gamma",
            1,
            "gradients reach γ and β",
            _reached,
            tolerance=SLOPE_TOLERANCE,
            reason=_reached_in_words,
            see=STEP_4,
        ),
    ),
    misconceptions=(
        Misconception("not_centred", "you do not subtract the mean from x", STEP_3, _norm(centred=False)),
        Misconception(
            "rms_norm",
            "you leave the mean out altogether, as RMSNorm does",
            "“Questions” in chapter 4",
            _norm(centred=False, about_mean=False),
        ),
        Misconception(
            "about_zero",
            "your variance is the mean square of x: take the mean from x before you square",
            STEP_2,
            _norm(about_mean=False),
        ),
        Misconception(
            "unbiased",
            "you divide the squares by d_model − 1: layer norm divides by d_model",
            STEP_2,
            _norm(correction=1),
        ),
        Misconception(
            "not_rooted",
            "you divide by the variance: its root is missing",
            STEP_3,
            _norm(root=lambda variance, eps: variance + eps),
        ),
        Misconception(
            "deviation_in_root",
            "under the root stands the standard deviation: the variance belongs there, not yet rooted",
            STEP_3,
            _norm(root=lambda variance, eps: torch.sqrt(torch.sqrt(variance) + eps)),
        ),
        Misconception(
            "std_plus_eps",
            "you divide by `std` + ε: unless told otherwise it divides the squares by d_model − 1, and ε belongs "
            "under the root",
            WHERE_EPS,
            _norm(correction=1, root=lambda variance, eps: torch.sqrt(variance) + eps),
        ),
        Misconception(
            "eps_outside",
            "you add ε to the standard deviation, outside the root",
            WHERE_EPS,
            _norm(root=lambda variance, eps: torch.sqrt(variance) + eps),
        ),
        Misconception("no_eps", "there is no ε in your root", WHERE_EPS, _norm(root=lambda v, eps: torch.sqrt(v))),
        Misconception(
            "eps_fixed",
            "your ε is always 1e-5, whatever the argument says",
            WHERE_EPS,
            _norm(root=lambda variance, eps: torch.sqrt(variance + 1e-5)),
        ),
        Misconception(
            "over_the_sequence",
            "you average over the positions of a sentence: layer norm averages over the entries of one vector",
            WRONG,
            _norm(over=lambda x: (-2,)),
        ),
        Misconception(
            "second_axis",
            "you name axis 1: the entries of a vector lie there only if x has two axes, so count from the end",
            WRONG,
            _norm(over=lambda x: (1,)),
        ),
        Misconception(
            "third_axis",
            "you name axis 2: the entries of a vector lie there only if x has three axes, so count from the end",
            STEP_4,
            _norm(over=lambda x: (2,)),
        ),
        Misconception(
            "over_the_batch",
            "you average over batch and positions, as batch norm does: layer norm takes the entries of one vector",
            AXES_SECTION,
            _norm(over=lambda x: tuple(range(x.dim() - 1))),
        ),
        Misconception(
            "over_everything",
            "you average over all entries of x at once: each vector has its own mean and variance",
            STEP_1,
            _norm(over=lambda x: tuple(range(x.dim()))),
        ),
        Misconception(
            "detached",
            "your mean and variance are cut off from autograd: for the gradient they count as constants",
            GRADIENT_SECTION,
            _norm(detached=True),
        ),
        Misconception(
            "swapped", "γ and β have changed places", STEP_4, _norm(affine=lambda z, gamma, beta: beta * z + gamma)
        ),
        Misconception(
            "shifted_first",
            "you shift before you scale: β is not multiplied by γ",
            STEP_4,
            _norm(affine=lambda z, gamma, beta: gamma * (z + beta)),
        ),
        Misconception(
            "gamma_cut",
            "your γ is cut off from autograd: it would never learn",
            STEP_4,
            _norm(affine=lambda z, gamma, beta: gamma.detach() * z + beta),
        ),
        Misconception(
            "beta_cut",
            "your β is cut off from autograd: it would never learn",
            STEP_4,
            _norm(affine=lambda z, gamma, beta: gamma * z + beta.detach()),
        ),
        Misconception("no_gamma", "you left out γ", STEP_4, _norm(affine=lambda z, gamma, beta: z + beta)),
        Misconception("no_beta", "you left out β", STEP_4, _norm(affine=lambda z, gamma, beta: gamma * z)),
    ),
)


def _range(x: Tensor) -> str:
    low, high = f"{x.min().item():.4g}", f"{x.max().item():.4g}"
    return low if low == high else f"{low} to {high}"


# --- 2. the module ---------------------------------------------------------------------------------------------------


def _module_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=NORM_BUILT_INS)
    d_model, seq = pick(draw, 7, 11), pick(draw, 4, 6)
    vectors = _vectors(draw, 3, seq, d_model)
    x = plan.tensor("x", vectors)
    ones = torch.ones(d_model)  # for β as well: see the challenge of layer_norm

    fresh = plan.call("LayerNorm", d_model)
    plain, usual = plan.call("LayerNorm", d_model), plan.call("LayerNorm", d_model, eps=1e-5)
    plan.call("LayerNorm", d_model + 13)  # the last one made is not the one that is called
    for module in (plain, usual):
        plan.load(module, {"gamma": ones, "beta": ones})

    y = plan.call(fresh, x)
    for name in ("gamma", "beta"):
        parameter = plan.parameter(fresh, name, (d_model,), label=name)
        plan.gradient(y, torch.randn(vectors.shape, generator=draw), parameter, label=f"gradient of {name}")

    wide = pick(draw, 22, 26)  # in which no d_model can be read
    plan.hidden["widths"] = str(wide), str(d_model)
    plan.call(fresh, plan.tensor("wide_x", torch.randn(2, seq, wide, generator=draw)), label="wide")
    plan.call(fresh, plan.tensor("narrow_x", torch.randn(2, seq, 1, generator=draw)), label="narrow")
    flat = plan.tensor("narrow_sentence", torch.randn(seq, 1, generator=draw))
    plan.call(fresh, flat, label="narrow sentence")
    plan.call(fresh, plan.tensor("fitting_x", torch.randn(2, 1, d_model, generator=draw)), label="fits")
    plan.train(fresh, False)
    plan.call(fresh, flat, label="narrow in evaluation")
    plan.train(fresh)

    plan.call(plain, x, label="plain")
    gamma, beta = torch.randn(d_model, generator=draw) + 2, torch.randn(d_model, generator=draw) - 1
    gamma[::3] *= -1
    plan.load(fresh, {"gamma": gamma, "beta": beta})  # what it kept of its first calls is stale now
    plan.call(fresh, x, label="affine")
    plan.call(usual, x, label="usual eps")

    # what layer_norm gives for the same: the right one, and the learner's own
    upstream = torch.randn(vectors.shape, generator=draw)
    leaf = plan.tensor("x_with_gradient", vectors, requires_grad=True)
    plan.gradient(plan.call(usual, leaf), upstream, leaf, label="gradient of x")
    plan.gradient(plan.call("layer_norm", leaf, ones, ones), upstream, leaf, label="own gradient of x")
    middle = 3e-3 * vectors  # as in the challenge of layer_norm
    small, large_x = plan.tensor("middle_x", middle), plan.tensor("large_x", 1e4 * middle)
    for label, like in (("usual eps", x), ("middle", small), ("large", large_x)):
        plan.call("layer_norm", like, ones, ones, label=f"own {label}")
    start = vectors.clone().requires_grad_()
    right = layer_norm(start, ones, ones)
    (gradient,) = torch.autograd.grad((right * upstream).sum(), start)
    plan.hidden["right"] = {"usual eps": right.detach().double(), "gradient of x": gradient.double()}
    for label, like in (("middle", middle), ("large", 1e4 * middle)):
        plan.hidden["right"][label] = layer_norm(like, ones, ones).double()

    changed = vectors.clone()
    changed[1:] = _vectors(draw, 2, seq, d_model)
    plan.call(plain, plan.tensor("x_beside_others", changed), label="beside others")
    plan.call(plain, plan.tensor("first_sentence", vectors[0]), label="one sentence")
    plan.call(plain, plan.tensor("batch_of_one", vectors[:1]), label="batch of one")
    plan.call(plain, plan.tensor("first_words", vectors[:, :1]), label="one word each")
    plan.call(usual, small, label="middle before")
    for module, like, label in ((plain, x, ""), (fresh, x, "affine "), (usual, small, "middle ")):
        plan.train(module, False)
        plan.call(module, like, label=f"{label}in evaluation")
        plan.train(module)

    large = plan.call("LayerNorm", d_model, eps=100.0)
    plan.load(large, {"gamma": ones, "beta": ones})
    plan.call(large, x, label="large eps output")
    plan.call(usual, small, label="middle")
    plan.call(usual, large_x, label="large")
    plan.attribute(plain, "eps", label="eps")
    plan.attribute(large, "eps", label="large eps")
    return plan


def _as_the_function(a: Answers, label: str) -> tuple[Tensor, bool]:
    """What the module gives, and whether layer_norm gives the same: the right one, or the learner's own.

    The learner's own may be wrong, which costs in its own exercise; so what equals it counts as right here.
    """
    found, right = a[label], a.hidden["right"][label]
    same = _agreement(found, right) > 0.999
    if not same:
        with suppress(CannotJudge):
            same = _agreement(found, a[f"own {label}"]) > 0.999
    return (right if same else found), same


def _scaled_and_shifted(a: Answers) -> tuple:
    line = _line(a["affine"], a["plain"])
    return line, *_as_the_function(a, "usual eps"), *_as_the_function(a, "gradient of x")


def _scaled_in_words(got: tuple) -> str:
    _, _, values, _, gradient = got
    if not values:
        return "with `gamma` and `beta` all ones, your output is not what layer norm gives for them"
    if not gradient:
        return "the values are right, but not the gradient that reaches x"
    return "with another `gamma` and `beta` loaded, your output does not change as they say"


def _eps_used(a: Answers) -> tuple:
    usual, given, large = _spread(a["plain"]), _spread(a["usual eps"]), _spread(a["large eps output"])
    same = torch.allclose(usual, given, rtol=1e-3)
    used = same and bool((large < 0.9 * usual).all())
    (middle, _), (large, _) = _as_the_function(a, "middle"), _as_the_function(a, "large")
    return a["eps"], a["large eps"], used, _part_of_eps(middle, large)


def _eps_in_words(got: tuple) -> str:
    if got[0] != 1e-5 or got[1] != 100.0:
        return f"with the default, `eps` is {got[0]}; with `eps=100.0`, it is {got[1]}"
    if not got[2]:
        return "your outputs do not depend on `eps` as they should"
    return "for entries of size 3e-3, where `eps` counts, your outputs are not those with `eps` inside the root"


def _alone(a: Answers) -> tuple:
    whole = a["plain"]
    return (
        _agreement(a["one sentence"], whole[0]),
        _agreement(a["batch of one"], whole[:1]),
        _agreement(a["one word each"], whole[:, :1]),
        _agreement(a["beside others"][0], whole[0]),
        _agreement(a["in evaluation"], whole),
        _agreement(a["affine in evaluation"], a["affine"]),
        _agreement(a["middle in evaluation"], a["middle before"]),
    )


def _alone_in_words(got: tuple) -> str:
    cases = (
        "a sentence without a batch axis comes out otherwise than in the batch",
        "a batch of one sentence comes out otherwise than the sentence in the batch",
        "the first words alone come out otherwise than within their sentences",
        "a sentence comes out otherwise beside other sentences",
        *3 * ("the batch comes out otherwise in evaluation mode than in training",),
    )
    return next(case for case, each in zip(cases, got, strict=True) if not each > 1 - 1e-4)


def _width_errors(a: Answers) -> tuple:
    """The errors for an input that fits (none) and for some of another width; whether both numbers are named."""
    labels = "fits", "wide", "narrow", "narrow sentence", "narrow in evaluation"
    return *map(a.raises, labels), a.mentions("wide", *a.hidden["widths"])


def _width_error_in_words(got: tuple) -> str:
    fitting, *others, _ = got
    if fitting:
        return f"your code raises {fitting} for an input that fits"
    kinds = "wider", "1 wide", "1 wide, of shape (seq, 1)", "1 wide, in evaluation mode"
    for kind, error in zip(kinds, others, strict=True):
        if error != "ValueError":
            outcome = f"your code raises {error}" if error else "there is no error"
            return f"for an x of another width ({kind}) {outcome}"
    return "your ValueError does not name both numbers"


class _Norm(nn.Module):
    """A LayerNorm in which each mistake is a switch."""

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-5,
        *,
        start=(1.0, 0.0),
        shape=None,
        kind="parameter",
        checked=True,
        function=_normed,
        fixed_eps=None,
    ):
        super().__init__()
        self.d_model, self.checked, self.function = d_model, checked, function
        self.eps = eps
        self.used_eps = eps if fixed_eps is None else fixed_eps
        for name, value in zip(("gamma", "beta"), start, strict=True):
            tensor = torch.full(shape or (d_model,), value)
            if kind == "buffer":
                self.register_buffer(name, tensor)
            else:
                setattr(self, name, nn.Parameter(tensor) if kind == "parameter" else tensor)

    def forward(self, x):
        if self.checked and x.shape[-1] != self.d_model:
            raise ValueError(f"x is {x.shape[-1]} wide, not {self.d_model}")
        return self.function(x, self.gamma, self.beta, self.used_eps)


class _RunningNorm(_Norm):
    """Batch norm's axes and running averages."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__(d_model, eps)
        self.register_buffer("mean", torch.zeros(d_model))
        self.register_buffer("variance", torch.ones(d_model))

    def forward(self, x):
        if x.shape[-1] != self.d_model:
            raise ValueError(f"x is {x.shape[-1]} wide, not {self.d_model}")
        mean, variance = self.mean, self.variance
        if self.training:
            rows = x.flatten(0, -2)
            mean, variance = rows.mean(0), rows.var(0, correction=0)
            self.mean.lerp_(mean.detach(), 0.1)
            self.variance.lerp_(variance.detach(), 0.1)
        return self.gamma * (x - mean) / torch.sqrt(variance + self.eps) + self.beta


class _UsualEps(_Norm):
    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__(d_model, eps)


def _module(**switches):
    return {"LayerNorm": lambda *args, **kwargs: _Norm(*args, **kwargs, **switches)}


def _on_third_axis(x, gamma, beta, eps):
    return _normed(x, gamma, beta, eps, over=lambda x: (2,))


LAYER_NORM_MODULE = Exercise(
    name="add_norm.layer_norm_module",
    title="The module LayerNorm",
    challenge=_module_challenge,
    reference={"LayerNorm": LayerNorm, "layer_norm": layer_norm},
    forbidden=NORM_BUILT_INS,
    claims=(
        Claim(
            "starts",
            1,
            "`gamma` starts as ones and `beta` as zeros, d_model of each, and both learn",
            lambda a: (
                a["gamma"],
                a["beta"],
                a["gradient of gamma"].any().item(),
                a["gradient of beta"].any().item(),
            ),
            reason=lambda got: (
                f"a fresh `gamma` holds {_range(got[0])}, a fresh `beta` {_range(got[1])}"
                if got[2] and got[3]
                else f"no gradient reaches `{'beta' if got[2] else 'gamma'}`"
            ),
            see=STEP_4,
        ),
        Claim(
            "affine",
            1,
            "the output is `gamma` times the standardised vector, plus `beta`",
            _scaled_and_shifted,
            tolerance=1e-3,
            reason=_scaled_in_words,
            see=STEP_4,
        ),
        Claim(
            "eps",
            1,
            "`eps` is kept and used, and is 1e-5 unless another is given",
            _eps_used,
            tolerance=1e-3,
            reason=_eps_in_words,
            see=WHERE_EPS,
        ),
        Claim(
            "alone",
            1,
            "each vector is normalised by itself: with and without a batch, in training and in evaluation",
            _alone,
            reason=_alone_in_words,
            see=AXES_SECTION,
        ),
        Claim(
            "width_checked",
            1,
            "an x of another width than d_model raises a ValueError",
            _width_errors,
            reason=_width_error_in_words,
            see=WRONG,
        ),
    ),
    misconceptions=(
        Misconception(
            "starts_at_zero",
            "your `gamma` starts at 0: what multiplies has to start at 1 to change nothing",
            STEP_4,
            _module(start=(0.0, 0.0)),
        ),
        Misconception("starts_swapped", "`gamma` starts at 0 and `beta` at 1", STEP_4, _module(start=(0.0, 1.0))),
        Misconception(
            "one_number",
            "`gamma` and `beta` are one number each: every entry of a vector has its own",
            STEP_4,
            _module(shape=(1,)),
        ),
        Misconception(
            "buffers",
            "`gamma` and `beta` do not learn: make each an nn.Parameter that asks for a gradient",
            STEP_4,
            _module(kind="buffer"),
        ),
        Misconception(
            "plain_tensors",
            "`gamma` and `beta` are plain tensors: the module does not know them, and they do not learn",
            STEP_4,
            _module(kind="tensor"),
        ),
        Misconception(
            "swapped",
            "`gamma` and `beta` have changed places",
            STEP_4,
            _module(function=_norm(affine=lambda z, gamma, beta: beta * z + gamma)["layer_norm"]),
        ),
        Misconception(
            "no_affine",
            "neither `gamma` nor `beta` has a part in your output",
            STEP_4,
            _module(function=_norm(affine=lambda z, gamma, beta: z)["layer_norm"]),
        ),
        Misconception(
            "no_beta",
            "`beta` has no part in your output",
            STEP_4,
            _module(function=_norm(affine=lambda z, gamma, beta: gamma * z)["layer_norm"]),
        ),
        Misconception(
            "eps_not_passed_on",
            "you keep `eps`, but compute with 1e-5",
            WHERE_EPS,
            _module(fixed_eps=1e-5),
        ),
        Misconception(
            "eps_of_vit",
            "your default for `eps` is 1e-6: this course takes 1e-5",
            WHERE_EPS,
            {"LayerNorm": _UsualEps},
        ),
        Misconception(
            "batch_statistics",
            "you normalise over the batch and keep running averages for evaluation, as batch norm does",
            AXES_SECTION,
            {"LayerNorm": _RunningNorm},
        ),
        Misconception(
            "third_axis",
            "you name axis 2: without a batch axis the vector lies on another one, so count from the end",
            STEP_4,
            _module(function=_on_third_axis),
        ),
        Misconception(
            "any_width",
            "an x of width 1 is stretched to d_model entries, and no error tells you",
            WRONG,
            _module(checked=False),
        ),
    ),
)

# --- 3. which axes ---------------------------------------------------------------------------------------------------


def batch_norm(x: Tensor, mask: Tensor, eps: float = 1e-5) -> Tensor:
    tokens = x[mask]  # (tokens, d_model)
    y = torch.zeros_like(x)
    y[mask] = (tokens - tokens.mean(0)) / torch.sqrt(tokens.var(0, correction=0) + eps)
    return y


def affected(kind: str, training: bool, mask: Tensor, sentence: int, place: int) -> Tensor:
    itself = torch.zeros_like(mask)
    itself[sentence, place] = mask[sentence, place]
    return mask & mask[sentence, place] if kind == "batch" and training else itself


def _axes_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan(watch=NORM_BUILT_INS)
    for name in ("layer_norm_means", "batch_norm_means", "tokens_per_mean"):
        plan.name(name, label=name)
    seq, d_model = pick(draw, 5, 7), pick(draw, 8, 11)
    offsets = 2 * torch.randn(d_model, generator=draw)  # features that differ, so that axes show
    full = _vectors(draw, 2, seq, d_model) + offsets
    everywhere = torch.ones(2, seq, dtype=torch.bool)
    all_words = plan.tensor("mask", everywhere)
    plan.call("batch_norm", plan.tensor("x", full), all_words, label="full")
    small = 1e-3 * torch.randn(full.shape, generator=draw)  # of which ε outweighs the variance
    small[..., 0] = 0
    plan.call("batch_norm", plan.tensor("small_x", small), all_words, label="small")
    plan.call("batch_norm", plan.tensor("coarse_x", 0.1 * full), all_words, eps=0.5, label="coarse")

    lengths = torch.tensor([seq, seq - 2, seq - 3])
    mask = torch.arange(seq) < lengths[:, None]  # (3, seq)
    padded = (_vectors(draw, 3, seq, d_model) + offsets).masked_fill(~mask[..., None], 7.0)
    packed = padded[mask][None]  # (1, tokens, d_model)
    padded_mask = plan.tensor("padded_mask", mask)
    plan.call("batch_norm", plan.tensor("padded_x", padded), padded_mask, label="padded")
    plan.call("batch_norm", plan.tensor("packed_x", packed), mask[mask][None], label="packed")
    plan.hidden["mask"] = mask

    for label, sentence, place in (("token", 1, pick(draw, 2, seq - 3)), ("padding", 2, pick(draw, seq - 3, seq - 1))):
        for kind in ("layer", "batch"):
            for training in (True, False):
                plan.call("affected", kind, training, padded_mask, sentence, place, label=f"{label} {kind} {training}")
    return plan


def _padding_is_zero(a: Answers) -> tuple:
    mask, y = a.hidden["mask"], a["padded"]
    return bool((y[~mask] == 0).all()), bool((y[mask] != 0).any())


def _affected(kind: str, *modes: bool):
    return lambda a: tuple(a[f"{place} {kind} {training}"] for training in modes for place in ("token", "padding"))


def _standardised_in_words(got: tuple) -> str:
    means, deviations = got[0].mean((0, 1)), got[0].std((0, 1), correction=0)
    if means.abs().max() < 1e-3 and (deviations - 1).abs().max() < 1e-3:
        return f"your features have the mean 0 and the standard deviation 1; but {EPS_IN_WORDS}"
    means = means.masked_fill(means.abs() < 1e-4, 0.0)
    return f"your features have means of {_range(means)} and standard deviations of {_range(deviations)}"


def _batch_normed(
    *,
    squared=None,
    over=None,
    correction=0,
    counted=None,
    zeroed=True,
    summed_all=False,
    root=lambda variance, eps: torch.sqrt(variance + eps),
):
    """A batch_norm with a mistake: other axes, padding counted, padding not set to zero."""

    def norm(x, mask, eps=1e-5):
        here = torch.ones_like(mask) if counted == "all" else mask
        weights = here.unsqueeze(-1).to(x.dtype)
        axes = over or (0, 1)
        count = weights.expand_as(x).sum(axes, keepdim=True).clamp(min=1)
        if summed_all:
            count = torch.full_like(count, x[..., 0].numel())
        mean = (x * weights).sum(axes, keepdim=True) / count
        if squared == "padding":  # which is zero by then
            x, weights = x * weights, torch.ones_like(weights)
        variance = ((x - mean).square() * weights).sum(axes, keepdim=True) / (count - correction)
        y = (x - mean) / root(variance, eps)
        return y.masked_fill(~mask.unsqueeze(-1), 0) if zeroed else y

    return {"batch_norm": norm}


def _layer_axes(x, mask, eps=1e-5):
    d_model = x.shape[-1]
    return layer_norm(x, torch.ones(d_model), torch.zeros(d_model), eps).masked_fill(~mask.unsqueeze(-1), 0)


def _believes(which):
    """An `affected` with a wrong belief: `which(kind, training, mask, sentence, place)`, or None where it is right."""

    def believed(kind, training, mask, sentence, place):
        wrong = which(kind, training, mask, sentence, place)
        return affected(kind, training, mask, sentence, place) if wrong is None else wrong

    return {"affected": believed}


def _own_sentence(mask, sentence, place):
    own = torch.zeros_like(mask)
    own[sentence] = mask[sentence] & mask[sentence, place]
    return own


def _own_place(mask, sentence, place):
    own = torch.zeros_like(mask)
    own[:, place] = mask[:, place] & mask[sentence, place]
    return own


def _even_padding(kind, training, mask, sentence, place):
    if kind == "batch" and training:
        return torch.ones_like(mask)
    itself = torch.zeros_like(mask)
    itself[sentence, place] = True
    return itself


NORM_AXES = Exercise(
    name="add_norm.norm_axes",
    title="Which axes",
    challenge=_axes_challenge,
    reference={
        "batch_norm": batch_norm,
        "affected": affected,
        "layer_norm_means": 32 * 50,
        "batch_norm_means": 512,
        "tokens_per_mean": 12,
    },
    forbidden=NORM_BUILT_INS,
    claims=(
        Claim(
            "counts",
            1,
            "the three numbers are right",
            named("layer_norm_means", "batch_norm_means", "tokens_per_mean"),
            see=AXES_SECTION,
        ),
        Claim(
            "standardised",
            1,
            "without padding, `batch_norm` standardises each feature over batch and positions",
            lambda a: (a["full"], a["small"], a["coarse"]),
            reason=_standardised_in_words,
            see=AXES_SECTION,
            picture=lambda a: a["full"][0],
        ),
        Claim(
            "padding_out",
            1,
            "padding takes no part in `batch_norm`'s means and variances",
            lambda a: _agreement(a["padded"][a.hidden["mask"]], a["packed"][0]),
            reason=lambda _: "the same tokens come out otherwise with padding than without",
            see=AXES_SECTION,
        ),
        Claim(
            "padding_zero",
            1,
            "`batch_norm` gives zeros at the padding, and only there",
            _padding_is_zero,
            reason=lambda got: "padding comes out other than zero" if not got[0] else "the tokens come out as zero too",
            see=AXES_SECTION,
        ),
        Claim(
            "layer",
            1,
            "`affected` is right for layer norm",
            _affected("layer", True, False),
            see=AXES_SECTION,
        ),
        Claim(
            "batch",
            1,
            "`affected` is right for batch norm in training",
            _affected("batch", True),
            see=AXES_SECTION,
        ),
        Claim(
            "batch_eval",
            1,
            "`affected` is right for batch norm in evaluation",
            _affected("batch", False),
            see=AXES_SECTION,
        ),
    ),
    misconceptions=(
        Misconception(
            "counts_swapped",
            "you have the two norms the other way round: layer norm has a mean for each vector, batch norm for each "
            "feature",
            AXES_SECTION,
            {"layer_norm_means": 512, "batch_norm_means": 1600},
        ),
        Misconception(
            "a_mean_for_each_place",
            "batch norm has one mean for each feature: over the batch and over the places",
            AXES_SECTION,
            {"batch_norm_means": 50 * 512},
        ),
        Misconception(
            "padding_counted",
            "you counted the padding among the tokens of the two sentences",
            AXES_SECTION,
            {"tokens_per_mean": 14},
        ),
        Misconception(
            "features",
            "you standardise each vector over its own entries: that is layer norm",
            AXES_SECTION,
            {"batch_norm": _layer_axes},
        ),
        Misconception(
            "batch_only",
            "you average over the batch alone, for each place by itself: batch norm averages over the places too",
            AXES_SECTION,
            _batch_normed(over=(0,)),
        ),
        Misconception(
            "sentence_only",
            "you average over each sentence by itself: batch norm averages over the whole batch",
            AXES_SECTION,
            _batch_normed(over=(1,)),
        ),
        Misconception(
            "unbiased",
            "you divide the squares by one less than there are tokens",
            STEP_2,
            _batch_normed(correction=1),
        ),
        Misconception(
            "no_eps",
            "there is no ε in the root of your `batch_norm`",
            WHERE_EPS,
            _batch_normed(root=lambda variance, eps: torch.sqrt(variance)),
        ),
        Misconception(
            "eps_outside",
            "your `batch_norm` adds ε to the standard deviation, outside the root",
            WHERE_EPS,
            _batch_normed(root=lambda variance, eps: torch.sqrt(variance) + eps),
        ),
        Misconception(
            "eps_fixed",
            "the ε of your `batch_norm` is always 1e-5, whatever the argument says",
            WHERE_EPS,
            _batch_normed(root=lambda variance, eps: torch.sqrt(variance + 1e-5)),
        ),
        Misconception(
            "padding_averaged",
            "padding takes part in your mean and your variance",
            AXES_SECTION,
            _batch_normed(counted="all"),
        ),
        Misconception(
            "padding_squared",
            "you left padding out of the mean, but not out of the squares for the variance",
            AXES_SECTION,
            _batch_normed(squared="padding"),
        ),
        Misconception(
            "divided_by_all",
            "you left padding out of the sums, but still counted it when dividing",
            AXES_SECTION,
            _batch_normed(summed_all=True),
        ),
        Misconception(
            "padding_left",
            "what you give at the padding is not zero: the exercise asks for zeros there",
            AXES_SECTION,
            _batch_normed(zeroed=False),
        ),
        Misconception(
            "layer_sees_sentence",
            "you think layer norm mixes the words of a sentence: each vector has its own mean and variance",
            AXES_SECTION,
            _believes(lambda kind, training, *where: _own_sentence(*where) if kind == "layer" else None),
        ),
        Misconception(
            "batch_sees_sentence",
            "you think batch norm stays within a sentence: it mixes the sentences of a batch",
            AXES_SECTION,
            _believes(lambda kind, training, *where: _own_sentence(*where) if kind == "batch" and training else None),
        ),
        Misconception(
            "batch_sees_place",
            "you think batch norm stays at one place: it has one mean for all places",
            AXES_SECTION,
            _believes(lambda kind, training, *where: _own_place(*where) if kind == "batch" and training else None),
        ),
        Misconception(
            "evaluation_like_training",
            "in evaluation batch norm takes its running averages: no token can change another's output",
            AXES_SECTION,
            _believes(lambda kind, training, *where: affected(kind, True, *where)),
        ),
        Misconception(
            "padding_affected",
            "you count padding among the tokens that change: it comes out as zero, whatever happens",
            AXES_SECTION,
            _believes(_even_padding),
        ),
    ),
)

# --- 4. Add & Norm ---------------------------------------------------------------------------------------------------

LOW, HIGH, OUTPUT = 0.0, 10.0, 1.0  # entries of x, and of what a sub-layer adds everywhere
PROBABILITY, USUAL_PROBABILITY = 0.25, 0.1
KINDS = {"post": False, "pre": True}  # → norm_first
OTHER_SHAPES = ("(batch, seq, 1)", "(batch, 1, d_model)", "(1, seq, d_model)", "(1, batch, seq, d_model)")


def _add_norm_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    d_model, seq = pick(draw, 11, 17), pick(draw, 3, 6)
    width = 2 * pick(draw, 50, 60)
    # all are made before one is called, and the last one made has other settings than those called first
    modules = {kind: plan.call("AddNorm", d_model, dropout=0.0, norm_first=first) for kind, first in KINDS.items()}
    usual = plan.call("AddNorm", d_model, dropout=0.0)
    dropping = {
        kind: plan.call("AddNorm", width, dropout=PROBABILITY, norm_first=first) for kind, first in KINDS.items()
    }
    usual_dropping = plan.call("AddNorm", width)

    weight = torch.randn(d_model, d_model, generator=draw) / math.sqrt(d_model)
    sublayer = plan.linear("sublayer", weight)
    vectors = _vectors(draw, 2, seq, d_model)
    x = plan.tensor("x", vectors)
    plan.hidden["x"], plan.hidden["d_model"] = vectors.double(), d_model
    standardised = layer_norm(vectors, torch.ones(d_model), torch.zeros(d_model))
    plan.hidden["update"] = (standardised @ weight.T).double()  # of pre-norm
    upstream = torch.randn(vectors.shape, generator=draw)
    one = plan.tensor("one_sentence", vectors[:1])

    # sub-layers that change the shape; those made of `type_as` give the same tensor, whatever their input is
    narrow = plan.linear("narrow_sublayer", torch.randn(1, d_model, generator=draw))
    pooling = plan.attribute(plan.tensor("averages", torch.full((1, seq), 1 / seq)), "matmul")  # (batch, 1, d_model)
    one_alone = plan.attribute(one, "type_as")
    stacked = plan.attribute(plan.tensor("four_axes", vectors[None]), "type_as")
    wide = pick(draw, 20, 29)
    wider = plan.attribute(plan.tensor("wide_vectors", torch.randn(2, seq, wide, generator=draw)), "type_as")
    plan.hidden["widths"] = str(wide), str(d_model)
    others = dict(zip(OTHER_SHAPES, (narrow, pooling, one_alone, stacked), strict=True)) | {"wide": wider}

    small_vectors = 0.02 * torch.randn(vectors.shape, generator=draw)
    small, twice = plan.tensor("small_x", small_vectors), plan.tensor("small_x_twice", 2 * small_vectors)
    plan.hidden["small"] = small_vectors.double()
    itself = plan.attribute(plan.tensor("ones", torch.ones(d_model)), "mul")  # a sub-layer that learns nothing
    for kind, add_norm in modules.items():
        plan.train(add_norm, False)  # what is wrong with the dropout costs only where it is asked for
        plan.call(add_norm, x, sublayer, label=kind)
        plan.call(add_norm, one, sublayer, label=f"{kind} one")
        for name, other in others.items():
            plan.call(add_norm, x, other, label=f"{kind} {name}")

        leaf = plan.tensor(f"{kind}_x_with_gradient", vectors, requires_grad=True)
        plan.gradient(plan.call(add_norm, leaf, sublayer), upstream, leaf, label=f"gradient of {kind}")
        plan.attribute(plan.call(add_norm, small, itself, label=f"{kind} small"), "requires_grad", f"{kind} reaches")
        plan.learned(add_norm, label=f"{kind} learned")
        plan.train(add_norm)
        plan.call(add_norm, x, sublayer)
        plan.train(add_norm, False)
        plan.call(add_norm, x, sublayer, label=f"{kind} later")

    # the same with the learner's own LayerNorm: x + sublayer(x) by the tensor's method
    leaf = plan.tensor("x_with_gradient", vectors, requires_grad=True)
    add, norm = plan.attribute(leaf, "add"), plan.call("LayerNorm", d_model)
    post = plan.call(norm, plan.call(add, plan.call(sublayer, leaf)))
    own_update = plan.call(sublayer, plan.call(norm, leaf), label="own update of pre")
    pre = plan.call(add, own_update)
    plan.learned(norm, label="own learned")
    plan.attribute(plan.call(norm, small, label="own small of pre"), "requires_grad", "own reaches")
    plan.call(norm, twice, label="own small of post")
    plan.hidden["gradients"], plan.hidden["directions"] = {}, {}
    start, ones, zeros = vectors.clone().requires_grad_(), torch.ones(d_model), torch.zeros(d_model)
    right_post = layer_norm(start + start @ weight.T, ones, zeros)
    right_pre = start + layer_norm(start, ones, zeros) @ weight.T
    for kind, own, right in (("post", post, right_post), ("pre", pre, right_pre)):
        plan.gradient(own, upstream, leaf, label=f"own gradient of {kind}")
        (gradient,) = torch.autograd.grad((right * upstream).sum(), start)
        plan.hidden["gradients"][kind] = gradient.double()
        plan.hidden["directions"][kind] = _direction((right if kind == "post" else right - start).detach().double())
    plan.train(usual, False)
    plan.call(usual, x, sublayer, label="usual order")

    # whatever its input is, this sub-layer gives the same everywhere: so the few values that come out tell where
    # the dropout fell
    constant = plan.linear("constant_sublayer", torch.zeros(width, width), torch.full((width,), OUTPUT))
    levels = torch.where(torch.rand(8, 16, width, generator=draw) < 0.5, LOW, HIGH)
    two_levels = plan.tensor("two_level_x", levels)
    plan.hidden["low"] = levels == LOW
    for kind, add_norm in dropping.items():
        plan.seed(seed)
        plan.call(add_norm, two_levels, constant, label=f"{kind} training")
        plan.call(add_norm, two_levels, constant, label=f"{kind} again")
        plan.train(add_norm, False)
        plan.call(add_norm, two_levels, constant, label=f"{kind} evaluation")
    plan.call(usual_dropping, two_levels, constant, label="usual training")
    return plan


CUT_OFF = "the values are right, but not the gradient that reaches x: something is cut off from autograd"


def _gradient_is_right(a: Answers, kind: str) -> bool:
    """Whether the gradient is the right one, or the one that the learner's own LayerNorm gives, which may be wrong."""
    found = a[f"gradient of {kind}"]
    # with a part cut off they agree to 0.5 at most, with a norm that divides by one less to 0.95
    if _agreement(found, a.hidden["gradients"][kind]) > 0.8:
        return True
    with suppress(CannotJudge):
        return _agreement(found, a[f"own gradient of {kind}"]) > 0.99
    return False


def _places(a: Answers, label: str) -> Tensor:
    """Each vector's values moved to 0 … 1, which undoes a norm; NaN where all are equal."""
    y = a[label]
    low, high = y.amin(-1, keepdim=True), y.amax(-1, keepdim=True)
    return (y - low) / (high - low)


def _levels(a: Answers, label: str) -> Tensor:
    """Which places between a vector's lowest and highest value are taken: 40 of them, True where there are many."""
    places = _places(a, label)
    return torch.histc(places.nan_to_num(nan=-1), bins=40, min=0, max=1) > 0.01 * places.numel()


def _dropped(a: Answers, label: str, probability: float) -> Tensor:
    """Which entries of the sub-layer's output were dropped, if nothing else was: those nearer to the lower level."""
    kept = OUTPUT / (1 - probability)
    between = torch.where(a.hidden["low"], kept / 2, HIGH - LOW + kept / 2) / (HIGH - LOW + kept)
    return _places(a, label) < between


def _often(dropped: Tensor, probability: float) -> bool:
    """Whether so many were dropped; a right answer is six standard deviations away from being refused."""
    deviation = math.sqrt(probability * (1 - probability) / dropped.numel())
    return abs(dropped.double().mean().item() - probability) < 6 * deviation


def _singly(dropped: Tensor) -> bool:
    """Whether each entry was dropped or kept by itself: not all of a vector, nor the same ones in all of them."""
    return not any(torch.equal(dropped, dropped.roll(1, axis)) for axis in range(dropped.dim()))


def _dropout(a: Answers, kind: str) -> tuple:
    dropped = _dropped(a, f"{kind} training", PROBABILITY)
    levels = torch.stack([_levels(a, f"{kind} {mode}") for mode in ("training", "evaluation")])
    afresh = not torch.equal(a[f"{kind} training"], a[f"{kind} again"])
    if kind == "pre":
        return levels, _often(dropped, PROBABILITY), _singly(dropped), afresh
    usual = _often(_dropped(a, "usual training", USUAL_PROBABILITY), USUAL_PROBABILITY)
    return levels, _often(dropped, PROBABILITY), _singly(dropped), afresh, usual


def _dropout_in_words(got: tuple) -> str:
    levels, often, singly, afresh, *usual = got
    if levels[1].sum() > 2:
        return "in evaluation yours drops something, or does not take each vector by itself"
    if levels[0].sum() == 4 and not often:
        return "in training the entries that are added are not dropped with the probability `dropout`"
    if often and not singly:
        return "in training yours drops whole vectors, or the same entries of all: each entry is dropped by itself"
    if often and not afresh:
        return "in training yours drops the same entries at every call"
    if often and usual == [False]:
        return "unless `dropout` is given, yours drops another share than the exercise states"
    return (
        "in training yours is not what comes of dropping single entries of the sub-layer's output, each with the "
        "probability `dropout`, and scaling up the others, before the sum"
    )


def _dropout_claim(kind: str, says: str) -> Claim:
    return Claim(
        f"{kind}_dropout",
        1,
        f"{says}, dropout falls on the sub-layer's output, before the sum, and only in training",
        lambda a: _dropout(a, kind),
        reason=_dropout_in_words,
        see=DROPOUT_SECTION,
    )


def _points_right(a: Answers, kind: str, direction: Tensor) -> bool:
    return torch.allclose(direction, a.hidden["directions"][kind], atol=1e-3)


def _norm_held(a: Answers, kind: str) -> tuple[bool, bool, bool]:
    """Whether the module holds one norm that learns, whether that one is at work, and whether its ε is the usual one.

    What the learner's own LayerNorm does counts as right, too.
    """
    learned, reached = a[f"{kind} learned"] == 2 * a.hidden["d_model"], a[f"{kind} reaches"]
    normed = a[f"{kind} small"] - (a.hidden["small"] if kind == "pre" else 0)
    small = bool(_spread(normed).min() > 0.85)  # with ε as 1e-3 it is 0.6, with a variance divided by one less 0.92
    with suppress(CannotJudge):
        learned, reached = learned or a[f"{kind} learned"] == a["own learned"], reached or not a["own reaches"]
        small = small or _agreement(normed, a[f"own small of {kind}"]) > 0.99
    return learned, reached, small


def _steady(a: Answers, kind: str) -> tuple[bool, bool]:
    """Whether in evaluation a sentence alone comes out as among others, and the same after a pass in training."""
    whole = a[kind]
    return _agreement(a[f"{kind} one"], whole[:1]) > 0.999, _agreement(a[f"{kind} later"], whole) > 0.999


def _held_in_words(learned: bool, reached: bool, small: bool, one: bool, later: bool) -> str:
    """What is wrong beside the values; empty where nothing is."""
    if not one:
        return "a batch of one sentence comes out otherwise than that sentence among others"
    if not later:
        return "in evaluation your output is another one after a call in training"
    if not learned:
        return "the parameters of your module are not those of one layer norm of width d_model: a γ and a β"
    if not reached:
        return "the layer norm that your module holds has no part in the output"
    return "" if small else "where the entries of x are small, of size 0.02, what your norm gives is too small"


def _post(a: Answers) -> tuple:
    direction = _direction(a["post"])
    normalised = bool((_spread(a["post"]) - 1).abs().max() < 0.1)
    in_training = bool(_spread(a["post training"]).max() < 2)  # of x it is about 5
    usual = _points_right(a, "post", _direction(a["usual order"]))
    right = _points_right(a, "post", direction)
    gradient = _gradient_is_right(a, "post")
    return direction, right, normalised, in_training, usual, gradient, *_norm_held(a, "post"), *_steady(a, "post")


def _post_in_words(got: tuple) -> str:
    _, right, normalised, in_training, usual, gradient, *held = got
    if not normalised:
        return "the vectors of your output are not normalised, each by itself"
    if not right:
        return "your output is normalised, but is not the norm of x + sublayer(x)"
    if not in_training:
        return "in training the vectors of your output are not normalised, each by itself"
    if not usual:
        return "unless `norm_first` is given, your output is not the one with `norm_first=False`"
    return _held_in_words(*held) if gradient else CUT_OFF


def _pre(a: Answers) -> tuple:
    update = a["pre"] - a.hidden["x"]
    direction = _direction(update)
    in_training = bool(_spread(a["pre training"]).min() > 2)  # as x came, it is about 5
    # a layer norm of the learner's own may divide by something else, but what is fed has to come from it
    sizes = _agreement(update.norm(dim=-1), a.hidden["update"].norm(dim=-1)) > 0.9
    if not sizes:
        with suppress(CannotJudge):
            sizes = _agreement(update, a["own update of pre"]) > 0.99
    right = sizes and _points_right(a, "pre", direction)
    return direction, right, in_training, _gradient_is_right(a, "pre"), *_norm_held(a, "pre"), *_steady(a, "pre")


def _pre_in_words(got: tuple) -> str:
    _, right, in_training, gradient, *held = got
    if not right:
        return "what your output adds to x is not what the sub-layer makes of the norm of x"
    if not in_training:
        return "in training your output is not x, as it came, and something added"
    return _held_in_words(*held) if gradient else CUT_OFF


def _refused(a: Answers) -> tuple:
    """The errors that a fitting sub-layer (none) and some that change the shape raise; whether one names the shapes,
    and whether no call does anything.
    """
    errors = [
        a.raises(" ".join([kind, *shape])) for shape in ((), *((name,) for name in OTHER_SHAPES)) for kind in KINDS
    ]
    widths = a.hidden["widths"]
    named = [a.raises(f"{kind} wide") == "ValueError" and a.mentions(f"{kind} wide", *widths) for kind in KINDS]
    return *errors, *named, not any(errors) and all(_idle(a, kind) for kind in KINDS)


def _idle(a: Answers, kind: str) -> bool:
    try:
        return torch.allclose(a[kind], a.hidden["x"], rtol=1e-4)
    except CannotJudge:
        return True


def _refused_in_words(got: tuple) -> str:
    if got[0] or got[1]:
        return f"your code raises {got[0] or got[1]} for a sub-layer that keeps the shape"
    cases = [(shape, order) for shape in OTHER_SHAPES for order in KINDS.values()]
    for (shape, order), error in zip(cases, got[2:-3], strict=True):
        if error != "ValueError":
            outcome = f"raises {error}" if error else "leads to no error"
            return f"with `norm_first={order}`, a sub-layer that gives the shape {shape} {outcome}"
    return "where the sub-layer gives vectors of another width, there is no ValueError that names both shapes"


class _AddNorm(nn.Module):
    """An AddNorm in which each mistake is a switch: `post` and `pre` are formulas of (x, f, norm, drop)."""

    def __init__(self, d_model, dropout=0.1, norm_first=False, *, post=None, pre=None, checked=True, always=False):
        super().__init__()
        self.norm, self.dropout, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first
        self.post = post or (lambda x, f, norm, drop: norm(x + drop(f(x))))
        self.pre = pre or (lambda x, f, norm, drop: x + drop(f(norm(x))))
        self.checked, self.always = checked, always

    def forward(self, x, sublayer):
        def checked(y):
            output = sublayer(y)
            if self.checked and output.shape != x.shape:
                raise ValueError(f"{tuple(output.shape)} is not {tuple(x.shape)}")
            return output

        formula = self.pre if self.norm_first else self.post
        drop = (lambda y: nn.functional.dropout(y, self.dropout.p)) if self.always else self.dropout
        return formula(x, checked, self.norm, drop)


def _add_norm(**switches):
    return {"AddNorm": lambda *args, **kwargs: _AddNorm(*args, **kwargs, **switches)}


POST_PRE = "“Post-norm and pre-norm” in chapter 4"
DROPOUT_SECTION = "“Dropout before the sum” in chapter 4"

ADD_NORM = Exercise(
    name="add_norm.add_norm",
    title="Add & Norm, post and pre",
    challenge=_add_norm_challenge,
    reference={"AddNorm": AddNorm, "LayerNorm": LayerNorm},
    claims=(
        Claim(
            "post",
            1,
            "with `norm_first=False` the output is the norm of x + sublayer(x)",
            _post,
            reason=_post_in_words,
            see=POST_PRE,
        ),
        Claim(
            "pre",
            1,
            "with `norm_first=True` it is x, as it came, + sublayer(the norm of x)",
            _pre,
            reason=_pre_in_words,
            see=POST_PRE,
        ),
        _dropout_claim("post", "post-norm"),
        _dropout_claim("pre", "pre-norm"),
        Claim(
            "shape_checked",
            1,
            "a sub-layer that changes the shape raises a ValueError",
            _refused,
            reason=_refused_in_words,
            see=WRONG,
        ),
    ),
    misconceptions=(
        Misconception(
            "always_post",
            "`norm_first` changes nothing: yours is always post-norm",
            POST_PRE,
            _add_norm(pre=lambda x, f, norm, drop: norm(x + drop(f(x)))),
        ),
        Misconception(
            "always_pre",
            "where post-norm is asked for, you normalise before the sub-layer",
            POST_PRE,
            _add_norm(post=lambda x, f, norm, drop: x + drop(f(norm(x)))),
        ),
        Misconception(
            "output_normalised",
            "you normalise the sub-layer's output and add x afterwards",
            POST_PRE,
            _add_norm(post=lambda x, f, norm, drop: x + norm(drop(f(x)))),
        ),
        Misconception(
            "no_residual",
            "there is no residual in your post-norm: x is not added",
            WRONG,
            _add_norm(post=lambda x, f, norm, drop: norm(drop(f(x)))),
        ),
        Misconception(
            "post_from_normalised",
            "your post-norm feeds the norm of x to the sub-layer as well",
            POST_PRE,
            _add_norm(post=lambda x, f, norm, drop: norm(x + drop(f(norm(x))))),
        ),
        Misconception(
            "residual_normalised",
            "your pre-norm adds the norm of x, not x itself: the residual path has to stay free",
            POST_PRE,
            _add_norm(pre=lambda x, f, norm, drop: norm(x) + drop(f(norm(x)))),
        ),
        Misconception(
            "pre_without_residual",
            "there is no residual in your pre-norm: x is not added",
            WRONG,
            _add_norm(pre=lambda x, f, norm, drop: drop(f(norm(x)))),
        ),
        Misconception(
            "pre_not_normalised",
            "your pre-norm hands x to the sub-layer as it came, not normalised",
            POST_PRE,
            _add_norm(pre=lambda x, f, norm, drop: x + drop(f(x))),
        ),
        Misconception(
            "pre_output_normalised",
            "your pre-norm normalises what comes out of the sub-layer, not what goes in",
            POST_PRE,
            _add_norm(pre=lambda x, f, norm, drop: x + drop(norm(f(x)))),
        ),
        Misconception(
            "pre_and_post",
            "your pre-norm normalises the sum as well",
            POST_PRE,
            _add_norm(pre=lambda x, f, norm, drop: norm(x + drop(f(norm(x))))),
        ),
        Misconception(
            "no_dropout",
            "no dropout falls on the single entries of your sub-layer's output",
            DROPOUT_SECTION,
            _add_norm(post=lambda x, f, norm, drop: norm(x + f(x)), pre=lambda x, f, norm, drop: x + f(norm(x))),
        ),
        Misconception(
            "dropout_on_the_sum",
            "your dropout falls on the sum, and so on x as well",
            DROPOUT_SECTION,
            _add_norm(
                post=lambda x, f, norm, drop: norm(drop(x + f(x))), pre=lambda x, f, norm, drop: drop(x + f(norm(x)))
            ),
        ),
        Misconception(
            "dropout_at_the_end",
            "your dropout falls on the norm's output",
            DROPOUT_SECTION,
            _add_norm(post=lambda x, f, norm, drop: drop(norm(x + f(x)))),
        ),
        Misconception(
            "dropout_in_evaluation",
            "your dropout goes on in evaluation",
            "“What goes wrong” in chapter 3",
            _add_norm(always=True),
        ),
        Misconception(
            "any_shape",
            "a sub-layer's output of width 1 is stretched over x, and no error tells you",
            WRONG,
            _add_norm(checked=False),
        ),
    ),
)

# --- 5. the gradient that reaches the first layer --------------------------------------------------------------------


def predict(slope: float, num_layers: int) -> tuple[float, float]:
    return abs(1 + slope) ** num_layers, abs(slope) ** num_layers


def first_gradients(layers: list, x: Tensor, upstream: Tensor) -> tuple[float, float]:
    return _measured(layers, x, upstream)


def _measured(
    layers, x, upstream, *, step=lambda start, x, layer: x + layer(x), size=torch.Tensor.norm, swapped=False
) -> tuple[float, float]:
    """first_gradients, in which each mistake is a switch."""
    sizes = []
    for each in (step, lambda start, x, layer: layer(x)):
        start = x.detach().clone().requires_grad_()
        stream = start
        for layer in layers:
            stream = each(start, stream, layer)
        (gradient,) = torch.autograd.grad((stream * upstream).sum(), start)
        sizes.append(size(gradient).item())
    return tuple(reversed(sizes)) if swapped else tuple(sizes)


SIZES = "with", "without"


def _depth_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    plan.name("num_paths", label="num_paths")
    plan.name("paths_through_two", label="paths_through_two")
    for label, low, high, few in (("small", 0.2, 0.4, 1), ("minus", -0.9, -0.6, 2), ("below", -1.5, -1.2, 2)):
        slope = round(low + (high - low) * torch.rand((), generator=draw).item(), 3)
        odd = 2 * pick(draw, few, 2 * few) + 1
        for parity, num_layers in (("odd", odd), ("even", odd + 1)):
            prediction = plan.call("predict", slope, num_layers)
            for index, kind in enumerate(SIZES):
                plan.item(prediction, index, label=f"{label} {parity} {kind}")
    # the few are strong, so that with residuals and without the sizes do not differ by much
    for label, num_layers, strength in (("few", pick(draw, 3, 4), 1.5), ("all", 24, 1.0)):
        d_model, seq = pick(draw, 5, 9), pick(draw, 2, 4)
        scale = strength / math.sqrt(d_model)
        layers = [
            plan.linear(f"layer_{i}", scale * torch.randn(d_model, d_model, generator=draw)) for i in range(num_layers)
        ]
        if label == "few":  # and one that is neither linear nor a module: the larger of x and a level
            level = plan.tensor("level", torch.randn(d_model, generator=draw))
            layers.insert(2, plan.attribute(level, "maximum"))
        x = plan.tensor(f"{label}_x", torch.randn(2, seq, d_model, generator=draw))
        upstream = plan.tensor(f"{label}_upstream", torch.randn(2, seq, d_model, generator=draw))
        for again in ("", " again") if label == "few" else ("",):
            measured = plan.call("first_gradients", layers, x, upstream)
            for index, kind in enumerate(SIZES):
                plan.item(measured, index, label=f"{label}{again} {kind}")
    return plan


def _predicted(*slopes: str):
    labels = [f"{slope} {parity} {kind}" for parity in ("odd", "even") for slope in slopes for kind in SIZES]
    return lambda a: tuple(a[label] for label in labels)


def _measurement(kind: str):
    labels = {"for a few layers": "few", "for 24 layers": "all", "for the few layers again": "few again"}
    return lambda a: {says: a[f"{label} {kind}"] for says, label in labels.items()}


def _measured_in_words(got: dict) -> str | None:
    few, _, again = got.values()
    if abs(again - few) > 1e-3 * abs(few):
        return f"called twice with the same layers and the same x, yours gives {few:.4g} and then {again:.4g}"
    return None


def _predicts(**wrong):
    """A `predict` with one of its two parts replaced."""

    def predicted(slope, num_layers):
        parts = dict(zip(("with_", "without"), predict(slope, num_layers), strict=True))
        return tuple(wrong[name](slope, num_layers) if name in wrong else part for name, part in parts.items())

    return {"predict": predicted}


def _measures(**switches):
    return {"first_gradients": lambda *args: _measured(*args, **switches)}


def _accumulated(layers, x, upstream):
    """The second stack's gradient comes on top of the first one's."""
    first, second = [], []
    start = x.detach().clone().requires_grad_()
    for sizes, residual in ((first, True), (second, False)):
        stream = start
        for layer in layers:
            stream = stream + layer(stream) if residual else layer(stream)
        (stream * upstream).sum().backward()
        sizes.append(start.grad.norm().item())
    return first[0], second[0]


IDENTITY_PATH = "“What it does to gradients” in chapter 4"
DEPTH_SECTION = "“Depth” in chapter 4"

GRADIENT_DEPTH = Exercise(
    name="add_norm.gradient_depth",
    title="The gradient that reaches the first layer",
    challenge=_depth_challenge,
    reference={
        "num_paths": 2**24,
        "paths_through_two": math.comb(24, 2),
        "predict": predict,
        "first_gradients": first_gradients,
    },
    claims=(
        Claim(
            "paths",
            1,
            "`num_paths` and `paths_through_two` are right for 24 layers",
            named("num_paths", "paths_through_two"),
            see=IDENTITY_PATH,
        ),
        Claim(
            "predicted",
            1,
            "`predict` is right for slopes above 0",
            _predicted("small"),
            see=IDENTITY_PATH,
        ),
        Claim(
            "predicted_negative",
            1,
            "`predict` is right for slopes below 0",
            _predicted("minus", "below"),
            see=IDENTITY_PATH,
        ),
        Claim(
            "without",
            1,
            "`first_gradients` measures the stack without residuals",
            _measurement("without"),
            tolerance=1e-3,
            reason=_measured_in_words,
            see=DEPTH_SECTION,
        ),
        Claim(
            "with",
            2,
            "`first_gradients` measures the stack with residuals",
            _measurement("with"),
            tolerance=1e-3,
            reason=_measured_in_words,
            see=DEPTH_SECTION,
        ),
    ),
    misconceptions=(
        Misconception(
            "one_path_a_layer",
            "you counted one path for each layer: at every layer a path may go round or through",
            IDENTITY_PATH,
            {"num_paths": 24},
        ),
        Misconception(
            "two_paths_a_layer",
            "you added up the two ways of each layer: they multiply",
            IDENTITY_PATH,
            {"num_paths": 48},
        ),
        Misconception(
            "ordered_pairs",
            "you counted each pair of layers twice",
            IDENTITY_PATH,
            {"paths_through_two": 24 * 23},
        ),
        Misconception(
            "added",
            "you added the identity once, to the whole stack: each layer has its own",
            IDENTITY_PATH,
            _predicts(with_=lambda slope, n: abs(1 + slope**n)),
        ),
        Misconception(
            "first_order",
            "you stopped after the paths through one layer",
            IDENTITY_PATH,
            _predicts(with_=lambda slope, n: abs(1 + n * slope)),
        ),
        Misconception(
            "sign_lost",
            "you took a negative slope for a positive one: it weakens the identity",
            IDENTITY_PATH,
            _predicts(with_=lambda slope, n: (1 + abs(slope)) ** n),
        ),
        Misconception(
            "negative_size",
            "your sizes of gradients can be negative",
            IDENTITY_PATH,
            {"predict": lambda slope, n: ((1 + slope) ** n, slope**n)},
        ),
        Misconception(
            "once_around_all",
            "you add the stack's input once, at the end: each layer adds its own input",
            "“The residual” in chapter 4",
            {
                "first_gradients": lambda layers, x, upstream: (
                    _around_all(layers, x, upstream),
                    _measured(layers, x, upstream)[1],
                )
            },
        ),
        Misconception(
            "from_the_start",
            "every layer adds the stack's first input: it should add its own",
            "“The residual” in chapter 4",
            _measures(step=lambda start, x, layer: start + layer(x)),
        ),
        Misconception(
            "residual_cut_off",
            "no gradient goes through your residual: it is cut off from autograd",
            IDENTITY_PATH,
            _measures(step=lambda start, x, layer: x.detach() + layer(x)),
        ),
        Misconception(
            "never_residual",
            "your first number is that of a stack without residuals: there each layer adds its input to what it gives",
            "“The residual” in chapter 4",
            _measures(step=lambda start, x, layer: layer(x)),
        ),
        Misconception(
            "always_residual",
            "your second number is that of a stack with residuals: it should be that of the layers alone",
            "“The residual” in chapter 4",
            {"first_gradients": lambda layers, x, upstream: 2 * _measured(layers, x, upstream)[:1]},
        ),
        Misconception(
            "accumulated",
            "your second gradient comes on top of the first: .grad adds up until you clear it",
            DEPTH_SECTION,
            {"first_gradients": _accumulated},
        ),
        Misconception(
            "upstream_ignored",
            "you left out `upstream`, the gradient that arrives from above",
            IDENTITY_PATH,
            {"first_gradients": lambda layers, x, upstream: _measured(layers, x, torch.ones_like(upstream))},
        ),
        Misconception(
            "sum_of_sizes",
            "you added up the entries' sizes: a norm is the root of the sum of squares",
            DEPTH_SECTION,
            _measures(size=lambda gradient: gradient.abs().sum()),
        ),
        Misconception(
            "order_swapped",
            "your two numbers have changed places: the one with residuals comes first",
            DEPTH_SECTION,
            _measures(swapped=True),
        ),
        Misconception(
            "layers_reversed",
            "you go through the layers from the last to the first",
            DEPTH_SECTION,
            {"first_gradients": lambda layers, x, upstream: _measured(layers[::-1], x, upstream)},
        ),
    ),
)


def _around_all(layers, x, upstream):
    def stack(y):
        for layer in layers:
            y = layer(y)
        return y

    return _measured([stack], x, upstream)[0]


EXERCISES = (LAYER_NORM, LAYER_NORM_MODULE, NORM_AXES, ADD_NORM, GRADIENT_DEPTH)
