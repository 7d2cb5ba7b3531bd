"""The judge alone, on every answer at several seeds."""

import io
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from encoder_grader.accuracy.cases import Case
from encoder_grader.collect import clean_state, collect
from encoder_grader.differences import distance
from encoder_grader.exercise import Exercise, find
from encoder_grader.judge import Answers, CannotJudge, Judge, quantity_of
from encoder_grader.plan import Plan
from encoder_grader.verdict import Verdict

SEEDS = tuple(range(7301, 7311))  # ten that no check of a learner's uses
SECONDS = 10  # for one step; a mutant may loop for ever


@dataclass(frozen=True)
class Outcome:
    """What the judge said of one answer at one seed.

    Args:
        points, maximum: what it earned, and what there was to earn.
        failed: the claims that do not hold.
        named: the misconceptions named, for the claims that fail on their own account; "" where none was recognised.
        error: the largest error of a claim that holds, as a fraction of its tolerance.
        margin: of the claims that fail, the clearest one's error as a multiple of its tolerance.
    """

    points: float
    maximum: float
    failed: frozenset[str]
    named: frozenset[str]
    error: float
    margin: float

    @property
    def full(self) -> bool:
        """Whether it earned every point."""
        return self.points == self.maximum


class Bench:
    """Judges many answers to one exercise at one seed."""

    def __init__(self, exercise: str, seed: int):
        self.exercise: Exercise = find(exercise)
        with clean_state():
            self.plan: Plan = self.exercise.challenge(seed)
            self.judge = Judge(self.exercise, self.plan)

    def outcome(self, case: Case) -> Outcome:
        """Judge one answer."""
        with clean_state():
            with (
                warnings.catch_warnings(action="ignore"),
                redirect_stdout(io.StringIO()),
                redirect_stderr(io.StringIO()),
            ):
                namespace = case.namespace()
                recording = collect(self.plan, namespace, SECONDS)
            verdict = self.judge.verdict(recording)
            return self._outcome(verdict, Answers(self.plan, recording, like=self.judge.reference))

    def _outcome(self, verdict: Verdict, answers: Answers) -> Outcome:
        failed = frozenset(result.claim for result in verdict.results if not result.holds)
        own = [claim for claim in self.exercise.claims if claim.name in failed and not set(claim.needs) & failed]
        named = {result.misconception or "" for result in verdict.results if result.claim in {c.name for c in own}}
        held = [claim for claim in self.exercise.claims if claim.name not in failed]
        return Outcome(
            verdict.points,
            verdict.maximum,
            failed,
            frozenset(named),
            max((self._error(claim, answers) for claim in held), default=0.0),
            max((self._error(claim, answers) for claim in own), default=0.0),
        )

    def _error(self, claim, answers: Answers) -> float:
        """The error of a claim's quantity in units of its tolerance."""
        try:
            got, tolerance = quantity_of(claim, answers)
            return distance(got, self.judge.wanted(claim)) / tolerance
        except CannotJudge:
            return math.inf


def judged(cases: Iterable[Case], seeds: Iterable[int] = SEEDS) -> Iterator[tuple[Case, int, Outcome]]:
    """Judge every answer at every seed."""
    by_exercise: dict[str, list[Case]] = {}
    for case in cases:
        by_exercise.setdefault(case.exercise, []).append(case)
    for exercise, answers in by_exercise.items():
        for seed in seeds:
            bench = Bench(exercise, seed)
            for case in answers:
                yield case, seed, bench.outcome(case)
