"""`check`, the one call of a test cell: challenge, collect and judge, at once, in this process."""

import sys

from encoder_grader.collect import clean_state, collect
from encoder_grader.exercise import find
from encoder_grader.judge import judge
from encoder_grader.verdict import Verdict

LOCAL_SEED = 2017  # a learner's own checks use the same numbers each time


def check(name: str, namespace: dict | None = None) -> float:
    """Judge the answer to an exercise, show the verdict and return the points it earns.

    Args:
        name: the exercise, "chapter.exercise": `check("embedding.token_embedding")`.
        namespace: where the answer is looked up; the caller's own names by default.

    Returns:
        The points, a builtin float between 0 and the exercise's maximum.

    Raises:
        ValueError: there is no exercise of this name.
    """
    verdict = verdict_on(name, sys._getframe(1).f_globals if namespace is None else namespace)
    _show(verdict)
    return verdict.points


def verdict_on(name: str, namespace: dict, seed: int = LOCAL_SEED) -> Verdict:
    """The verdict on the answer that `namespace` holds, on the challenge drawn from `seed`."""
    exercise = find(name)
    with clean_state():
        plan = exercise.challenge(seed)
        return judge(exercise, plan, collect(plan, namespace))


def _show(verdict: Verdict) -> None:
    """As HTML in a notebook, as text elsewhere."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(verdict)
    else:
        print(verdict)
