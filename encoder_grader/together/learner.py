"""What a learner's notebooks hold: each piece judged alone, and all of them together."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor, nn

import encoder_grader
from encoder_grader.exercise import exercises
from encoder_grader.together.notebook import Unreadable, fitted, quiet, run_notebook
from encoder_grader.together.trial import Absent, Trial, compare, run
from encoder_grader.together.walk import (
    BUILT_OF_OTHERS,
    PIECES,
    WALKS,
    Handed,
    Stage,
    chapter_of,
    reference,
    reference_stages,
)

CHECK = {id(encoder_grader.check): quiet}  # a learner's own cells may call it; here it has nothing to add


@dataclass(frozen=True)
class Alone:
    """How a stage compares when it is fed with the reference's own input.

    Args:
        reason: what is wrong, or None.
        exercise: the one at fault: the piece's own, or an earlier one of its notebook that it calls.
        by_parts: whether it is right with the reference's parts inside, and wrong with the learner's.
    """

    reason: str | None
    exercise: str = ""
    by_parts: bool = False


class Learner:
    """The learner's notebooks in a folder: the names they define, chapter by chapter, and what is wrong with them.

    `absent` says why the reference stands in for a piece, under whose name `namespaces` then holds the reference's.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.stages = {name: reference_stages(walk) for name, walk in WALKS.items()}
        self.namespaces: dict[str, dict] = {}
        self.absent: dict[str, Absent] = {}
        self.faults: list[str] = []
        self._stand_ins: dict[int, Any] = dict(CHECK)
        self._alone: dict[tuple[str, str], Alone] = {}

    def take(self, chapter: str) -> None:
        """Run a chapter's notebook; what it imports of earlier chapters is the learner's own, where that is there."""
        found, absent = {}, Absent("no notebook")
        try:
            found, errors = run_notebook(chapter, self.folder, self._stand_ins)
            absent = None
            for error in errors:
                self.faults.append(f"{error[0].upper()}{error[1:]}. The cells below it were run all the same.")
        except Unreadable as why:
            self.faults.append(f"{why}. The reference stands in for its pieces.")
        self.namespaces[chapter] = found
        for piece in PIECES:
            if chapter_of(piece) == chapter:
                self._take_piece(piece, absent or self._why_absent(piece))

    def _take_piece(self, piece: str, absent: Absent | None) -> None:
        namespace = self.namespaces[chapter_of(piece)]
        if absent is not None:
            self.absent[piece], namespace[piece] = absent, reference(piece)
        else:
            imported = getattr(import_module(f"encoder_lib.{chapter_of(piece)}"), piece)
            self._stand_ins[id(imported)] = fitted(namespace[piece], imported)

    def _why_absent(self, piece: str) -> Absent | None:
        """Why a piece cannot be used, if it is missing, or a stub in every stage."""
        why = None
        for stage in (stage for stages in self.stages.values() for stage in stages.values() if stage.piece == piece):
            if (why := self.run(stage, stage.inputs, stage.mask).absent) is None:
                break
        return why

    def run(self, stage: Stage, inputs: tuple, mask: Tensor | None) -> Trial:
        """A stage on the learner's piece."""
        namespace = self.namespaces[chapter_of(stage.piece)]
        like = partial(self._make_plain, stage.piece) if stage.piece in BUILT_OF_OTHERS else None
        return run(stage, inputs, mask, namespace, like)

    def _make_plain(self, piece: str, *sizes, **options) -> nn.Module:
        return self._plain[piece](*sizes, **options)

    def alone(self, walk: str, title: str) -> Alone:
        """How a stage of the learner's compares when it gets the reference's input."""
        if (walk, title) not in self._alone:
            stage = self.stages[walk][title]
            reason = compare(stage, self.run(stage, stage.inputs, stage.mask))
            if reason is None:
                self._alone[walk, title] = Alone(None)
            elif stage.piece in BUILT_OF_OTHERS:
                its_own = self._with_the_references_parts(stage)
                self._alone[walk, title] = Alone(its_own or reason, PIECES[stage.piece], by_parts=its_own is None)
            else:
                self._alone[walk, title] = Alone(reason, _at_fault(stage, self.namespaces[chapter_of(stage.piece)]))
        return self._alone[walk, title]

    def _with_the_references_parts(self, stage: Stage) -> str | None:
        """What sets a stage apart from the reference's when only its own code is the learner's."""
        return _with(stage, self._plain, {piece: reference(piece) for piece in BUILT_OF_OTHERS if piece != stage.piece})

    @cached_property
    def _plain(self) -> dict:
        """The names of the last notebook as it is when the learner works on it: built on the reference."""
        return run_notebook("stacking", self.folder, CHECK)[0]


def _at_fault(stage: Stage, namespace: dict) -> str:
    """The exercise behind a wrong piece: an earlier one of its notebook, if the reference's answer to it mends all."""
    own = PIECES[stage.piece]
    for exercise in exercises(chapter_of(stage.piece)):
        if exercise.name == own:
            break
        if _with(stage, namespace, {n: v for n, v in exercise.reference.items() if n in namespace}) is None:
            return exercise.name
    return own


def _with(stage: Stage, namespace: dict, others: dict) -> str | None:
    """What sets a stage apart from the reference's when `others` stand in the learner's namespace."""
    own = dict(namespace)
    namespace.update(others)
    try:
        return compare(stage, run(stage, stage.inputs, stage.mask, namespace))
    finally:
        namespace.update(own)


@dataclass(frozen=True)
class Step:
    """A stage of the learner's walk.

    Args:
        stage: with the reference's inputs and output.
        whose: "yours" or "the reference's"; empty for what the walk begins with.
        fed: whether it got the reference's own input, because an earlier stage had parted from it.
        reason: what is wrong, or None.
        exercise: the one at fault.
        by_parts: whether only the parts it is built of are at fault.
    """

    stage: Stage
    whose: str = ""
    fed: bool = False
    reason: str | None = None
    exercise: str = ""
    by_parts: bool = False


def walk_together(learner: Learner, name: str) -> list[Step]:
    """A walk through the learner's pieces: each is fed with what the one before it made, until one parts.

    From there on each gets the reference's own input, so that one mistake does not hide the next.
    """
    steps, stages = [], learner.stages[name]

    def visit(title: str, piece: str, *inputs, mask=None, **how) -> Handed:
        stage, fed = stages[title], any(step.reason for step in steps)
        if not piece:
            steps.append(Step(stage))
            return stage.handed
        trial = None if fed else learner.run(stage, inputs, mask)
        reason = None if fed else compare(stage, trial)
        if piece in learner.absent:
            steps.append(Step(stage, "the reference's", fed))
        elif fed or reason is not None:
            alone = learner.alone(name, title)
            steps.append(Step(stage, "yours", fed, alone.reason, alone.exercise, alone.by_parts))
            if not fed:
                steps[-1] = _parted(steps[-1], reason)
        else:
            steps.append(Step(stage, "yours"))
        return stage.handed if fed or reason is not None else Handed(trial.output, trial.made)

    WALKS[name](visit)
    return steps


def _parted(step: Step, reason: str) -> Step:
    """A stage that parts from the reference's although all before it were the same."""
    exercise = step.exercise or PIECES[step.stage.piece]
    if step.by_parts:
        reason += ". With the reference's parts inside it is the same: your pieces do not fit together here"
    elif step.reason is None:
        reason += ". Fed with the reference's own input it is the same: small differences before it have added up"
    else:
        reason = step.reason
    return replace(step, reason=reason, exercise=exercise, by_parts=False)
