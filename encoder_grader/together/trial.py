"""One stage on one piece: make it, load the weights, call it, and compare what comes out with the reference's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from encoder_grader.collect import Recording, collect, load_weights
from encoder_grader.differences import difference
from encoder_grader.judge import Answers, CannotJudge
from encoder_grader.plan import Plan

if TYPE_CHECKING:
    from encoder_grader.together.walk import Stage

TOLERANCE = 1e-4  # a claim's own, see `exercise.Claim`


class Trial(NamedTuple):
    """What came of a stage: its plan, the recording, and the module or function that was called."""

    plan: Plan
    recording: Recording
    made: Callable | None

    @property
    def output(self) -> Tensor:
        """What the stage hands on, in the float type that every piece takes."""
        return handed_on(self.recording.tensors["output"])

    @property
    def absent(self) -> Absent | None:
        """Why there is nothing to compare, where the piece is missing or a stub."""
        for record in self.recording.records:
            if record["status"] == "missing":
                return Absent("not there")
            if "NotImplementedError" in record.get("kinds", ()):
                return Absent("not written yet", (record["line"] or {}).get("function", ""))
        return None


class Absent(NamedTuple):
    """Why the reference stands in for a piece, and the function of the learner's that is a stub."""

    why: str
    function: str = ""


def run(stage: Stage, inputs: tuple, mask: Tensor | None, namespace: dict, like: Callable | None = None) -> Trial:
    """Make the piece that `namespace` holds, load the stage's weights into it, and call it once, in evaluation mode.

    Args:
        stage: what is made and loaded.
        inputs, mask: what it is called with.
        namespace: of the piece.
        like: makes a module of the same build that takes the weights, if this one does not; see `carry_over`.
    """
    plan, made = Plan(), []

    def load_or_carry_over(module, weights):
        try:
            load(module, weights)
        except Exception as error:
            try:
                source = like(*stage.sizes, **stage.options)
                load(source, weights)
                carry_over(source, module)
            except Exception:
                raise error from None

    piece = plan.name(stage.piece)
    if stage.sizes is not None:
        piece = plan.call(piece, *stage.sizes, **stage.options)
        plan.train(piece, False)
        plan.call(plan.give("load", load_or_carry_over), piece, stage.weights, label="weights")
    plan.call(plan.give("keep", made.append), piece)
    inputs = [plan.give("sublayer", each) if callable(each) else each for each in inputs]
    plan.call(piece, *inputs, **({} if mask is None else {"mask": mask}), label="output")
    return Trial(plan, collect(plan, namespace), made[0] if made else None)


def compare(stage: Stage, trial: Trial) -> str | None:
    """What sets a trial apart from the reference's answers; None where they agree."""
    answers = Answers(trial.plan, trial.recording, like=stage.answers)
    try:
        if stage.sizes is not None:
            answers["weights"]  # raises where they could not be loaded
        got, want = answers["output"], stage.answers["output"]
    except CannotJudge as why:
        return str(why)
    if stage.counts is not None:
        got = torch.where(stage.counts.unsqueeze(-1), got, want)
    return difference(got, want, max(TOLERANCE, 2 * answers.rounding))


def handed_on(value: Any, dtype: torch.dtype | None = None) -> Any:
    """A result as the next piece takes it: tensors, with floats in one type, torch's usual one unless given."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if isinstance(value, tuple | list):
        return (list if isinstance(value, list) else tuple)(handed_on(each, dtype) for each in value)
    is_float = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype or torch.get_default_dtype()) if is_float else value


# ---- weights, into modules made of other modules


def load(module: Any, weights: dict[str, Tensor]) -> None:
    """Load weights part by part: each by its own `load_reference`, by name, or by unambiguous shape.

    A layer norm is found whatever it is called, and so are its γ and β, which are ones and zeros to begin with.
    """
    heads = dict.fromkeys(name.partition(".")[0] for name in weights if "." in name)
    parts = {head: _part(module, head) for head in heads}
    own = {name: weight for name, weight in weights.items() if parts.get(name.partition(".")[0]) is None}
    if hasattr(module, "load_reference"):
        try:
            return load_weights(module, weights)
        except Exception:  # it knows the reference's parts, and perhaps not these
            if own:
                raise
    for head, part in parts.items():
        if part is not None:
            load(part, weights_of(weights, head))
    if own.keys() == {"gamma", "beta"}:
        module = the_norm(module) or module
    if own:
        load_weights(module, {_own_name(module, name, weight): weight for name, weight in own.items()})


def weights_of(weights: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """The weights of one part, under the names that they have there."""
    return {name.removeprefix(f"{part}."): weight for name, weight in weights.items() if name.startswith(f"{part}.")}


def carry_over(source: nn.Module, target: nn.Module) -> None:
    """Bring the weights of a module with the reference's parts into one of the same build with the learner's."""
    parameters = dict(source.named_parameters())
    if type(source).__module__.startswith("encoder_lib"):
        return load(target, parameters)
    with torch.no_grad():
        for name, own in target.named_parameters(recurse=False):
            own.copy_(parameters[name])
    for name, child in target.named_children():
        carry_over(source.get_submodule(name), child)


def _part(module: Any, name: str) -> Any:
    """A module's part: under its name, or by its number in a list; a layer norm or encoder also where it is unnamed."""
    if name.isdigit():
        return module[int(name)]
    part = getattr(module, name, None)
    if isinstance(part, nn.Module | list | tuple):
        return part
    if name == "encoder":
        return module if hasattr(module, "layers") else None  # it is one itself, with something in front
    return the_norm(module) if name == "norm" else None


def the_norm(module: nn.Module) -> nn.Module | None:
    """The one layer norm that a module is or holds, told by its own two vectors, and the nearer before the deeper."""
    level = {id(module): module}
    while level:
        norms = [m for m in level.values() if [p.dim() for p in m.parameters(recurse=False)] == [1, 1]]
        if norms:
            return norms[0] if len(norms) == 1 else None
        level = {id(child): child for m in level.values() for child in m.children()}
    return None


def _own_name(module: nn.Module, name: str, weight: Tensor) -> str:
    """The name under which a module keeps γ or β, if it has no parameter of the reference's name."""
    parameters = dict(module.named_parameters(recurse=False))
    start = {"gamma": 1.0, "beta": 0.0}.get(name)
    if name in parameters or start is None:
        return name
    alike = [own for own, p in parameters.items() if p.shape == weight.shape and bool((p == start).all())]
    return alike[0] if len(alike) == 1 else name
