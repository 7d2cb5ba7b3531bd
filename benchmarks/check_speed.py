"""How long a learner waits for `check`, beside the bare work: each exercise's reference as the answer, and the import.

    python benchmarks/check_speed.py

For every exercise: the median time of `verdict_on` for a right answer and for the dearest wrong one of the catalogue,
beside the bare plan (the learner's code once, the reference once), with the ratios. A wrong answer is compared with the
misconceptions until one explains all of it, so the dearest is one of the last, or one that others look like.
"""

import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from encoder_grader.checking import LOCAL_SEED, verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import Exercise, Misconception, chapters, exercises

RUNS = 7


def seconds(call) -> float:
    """The seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median(call) -> float:
    """The median seconds of a call, after one that warms up."""
    call()
    return statistics.median(seconds(call) for _ in range(RUNS))


def dearest(exercise: Exercise) -> Misconception:
    """The misconception whose check takes longest, each measured twice."""

    def cost(mistake: Misconception) -> float:
        return min(seconds(lambda: verdict_on(exercise.name, exercise.reference | mistake.answer)) for _ in range(2))

    return max(exercise.misconceptions, key=cost)


def importing(statement: str) -> float:
    """The median seconds of a fresh interpreter that runs one statement."""
    return median(lambda: subprocess.run([sys.executable, "-c", statement], check=True))


def main() -> None:
    torch, both = importing("import torch"), importing("import torch; from encoder_grader import check")
    print(f"import torch {torch:.2f} s, with check {both:.2f} s, so check adds {both - torch:.2f} s\n")
    print(f"{'exercise':38} {'bare ms':>8} {'right ms':>9} {'ratio':>6} {'wrong ms':>9} {'ratio':>6}  dearest wrong")
    for exercise in (e for chapter in chapters() for e in exercises(chapter)):
        plan, mistake = exercise.challenge(LOCAL_SEED), dearest(exercise)
        wrong = exercise.reference | mistake.answer
        bare = 2 * median(lambda e=exercise, p=plan: collect(p, e.reference))
        right = median(lambda e=exercise: verdict_on(e.name, e.reference))
        failing = median(lambda e=exercise, w=wrong: verdict_on(e.name, w))
        row = f"{exercise.name:38} {bare * 1e3:8.2f} {right * 1e3:9.2f} {right / bare:6.2f}"
        print(f"{row} {failing * 1e3:9.2f} {failing / bare:6.2f}  {mistake.name}")


if __name__ == "__main__":
    main()
