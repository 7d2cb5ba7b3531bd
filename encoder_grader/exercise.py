"""What an exercise is: claims with points, a challenge, the reference, and the misconceptions that have a name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from encoder_grader.plan import Plan

if TYPE_CHECKING:
    from encoder_grader.judge import Answers


@dataclass(frozen=True)
class Claim:
    """One thing that a right answer does, and the points it earns.

    Args:
        name: a slug, unique in its exercise.
        points: what the claim earns when it holds.
        says: the claim in the learner's words, "the rows are multiplied by √d_model".
        quantity: what the claim is about, computed from the answers: a tensor, a number, a fact or a tuple of these.
            The claim holds when the learner's quantity equals the reference's. The keys of a dict say what its values
            are: the first that is wrong is named.
        tolerance: the error allowed, as a fraction of the largest magnitude in the reference's quantity.
        reason: says in words what is wrong with a quantity of the learner's, where the numbers alone say little.
        needs: names of claims that have to hold before this one can earn anything.
        picture: chooses a 2-D tensor to be shown, yours beside the expected, when the claim fails.
        see: the section of the book to look at where what is wrong has no name.
    """

    name: str
    points: float
    says: str
    quantity: Callable[[Answers], Any]
    tolerance: float = 1e-4
    reason: Callable[[Any], str] | None = None
    needs: tuple[str, ...] = ()
    picture: Callable[[Answers], Any] | None = None
    see: str | None = None


@dataclass(frozen=True)
class Misconception:
    """A wrong answer that has a name.

    Args:
        name: a slug, unique in its exercise.
        says: what was done, in the learner's words: "you left out the factor √d_model".
        see: the section of the book that clears it up.
        answer: the wrong implementation, under the name (or names) the exercise asks for.
    """

    name: str
    says: str
    see: str
    answer: dict[str, Any]


@dataclass(frozen=True)
class Exercise:
    """One exercise: `challenge(seed)` makes the plan, the claims judge what came of it.

    Args:
        name: "chapter.exercise", as the notebook's `check` names it.
        title: as the notebook's heading names it.
        challenge: makes the plan of calls, with inputs drawn from the seed.
        reference: right implementations, under the names the exercise asks for.
        claims: in the order in which they are shown.
        misconceptions: the catalogue a failing claim is compared with.
        forbidden: functions that may not be called, because writing them is the exercise.
        exactly: whether a misconception is named only where it predicts no failure that did not happen. For facts that
            many mistakes have in common: that a test lets a bug pass.
    """

    name: str
    title: str
    challenge: Callable[[int], Plan]
    reference: dict[str, Any]
    claims: tuple[Claim, ...]
    misconceptions: tuple[Misconception, ...] = ()
    forbidden: tuple[str, ...] = ()
    exactly: bool = False

    def __post_init__(self):
        names = [claim.name for claim in self.claims]
        late = [need for i, claim in enumerate(self.claims) for need in claim.needs if need not in names[:i]]
        if len(set(names)) < len(names) or late:
            raise ValueError(f"exercise {self.name}: its claims {names} repeat a name, or need {late} too early")

    @property
    def points(self) -> float:
        """The most that can be earned."""
        return float(sum(claim.points for claim in self.claims))


def chapters() -> list[str]:
    """The chapters that have exercises: the modules of `encoder_grader.exercises`."""
    package = importlib.import_module("encoder_grader.exercises")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def exercises(chapter: str) -> tuple[Exercise, ...]:
    """All exercises of a chapter, in the notebook's order."""
    return importlib.import_module(f"encoder_grader.exercises.{chapter}").EXERCISES


def find(name: str) -> Exercise:
    """The exercise called `name`.

    Raises:
        ValueError: there is none of this name; the message offers the nearest.
    """
    chapter = str(name).split(".")[0]
    found = exercises(chapter) if chapter in chapters() else ()
    for exercise in found:
        if exercise.name == name:
            return exercise
    known = [exercise.name for each in chapters() for exercise in exercises(each)]
    near = get_close_matches(str(name), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"the exercises are {', '.join(known)}"
    raise ValueError(f"there is no exercise {name!r}; {hint}")
