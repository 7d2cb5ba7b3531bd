"""Exercises in which the learner writes the test: unnamed candidates, some right, each other with one hidden bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers
from encoder_grader.plan import Plan


@dataclass(frozen=True)
class Bug:
    """One wrong candidate; `says` is its claim: a hint at what goes wrong that does not tell how to find it."""

    name: str
    says: str
    candidate: Callable


def _unnamed(candidate: Callable) -> Callable:
    """The candidate under a name that says nothing, also in the message of a call with the wrong arguments."""
    own = getattr(candidate, "__qualname__", "")

    def candidate_(*args, **kwargs):
        try:
            return candidate(*args, **kwargs)
        except TypeError as error:
            raise TypeError(str(error).replace(own, "candidate") if own else str(error)) from None

    candidate_.__name__ = candidate_.__qualname__ = "candidate"
    return candidate_


def bug_hunt(
    name: str,
    title: str,
    function: str,
    reference: Callable,
    right: tuple[Callable, ...],
    bugs: tuple[Bug, ...],
    misconceptions: tuple[Misconception, ...] = (),
    points: float = 1,
    see: str | None = None,
) -> Exercise:
    """Make the exercise: write `function(candidate)`, which passes a right candidate and fails a wrong one.

    To fail a candidate is to raise any error (a failing assert), or to return False. The candidates come in an order
    drawn from the seed, under numbers that say nothing. Each bug caught earns `points`; a test that fails one of the
    right candidates earns nothing.

    Args:
        function: the name of the test that the learner writes.
        reference: a test that tells them all apart.
        right: right candidates, in different styles.
        bugs: the wrong ones.
        see: the section of the book on testing.
    """
    candidates = {f"right {i}": each for i, each in enumerate(right)} | {bug.name: bug.candidate for bug in bugs}

    def challenge(seed: int) -> Plan:
        plan = Plan()
        order = torch.randperm(len(candidates), generator=torch.Generator().manual_seed(seed)).tolist()
        for number, index in enumerate(order):
            kind, candidate = list(candidates.items())[index]
            label = f"candidate {number}"
            plan.call(function, plan.give(label, _unnamed(candidate)), label=label)
            plan.hidden[kind] = label
        return plan

    def passes_right(a: Answers) -> tuple:
        labels = [label for kind, label in a.hidden.items() if kind.startswith("right ")]
        passing = [a.accepts(label) for label in labels]
        return all(passing), any(passing), next(filter(None, map(a.error, labels)), "")

    def catches(bug: Bug) -> Claim:
        return Claim(
            bug.name,
            points,
            bug.says,
            lambda a: a.accepts(a.hidden[bug.name]),
            needs=("right_passes",),
            reason=lambda _: "your test lets this one pass",
            see=see,
        )

    def fails_right(got: tuple) -> str:
        _, passes_one, error = got
        if error:
            return f"it fails a right one: {error}"
        return "it fails a right one" if passes_one else "it fails every right one: is it the wrong way round?"

    first = Claim(
        "right_passes",
        0,
        f"`{function}` lets every right candidate pass",
        passes_right,
        reason=fails_right,
        see=see,
    )
    claims = (first, *map(catches, bugs))
    return Exercise(name, title, challenge, {function: reference}, claims, misconceptions, exactly=True)
