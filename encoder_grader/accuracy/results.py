"""The figures of the page “How good is the grader?”: made by `make accuracy`, committed as book/accuracy.json."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from encoder_grader.accuracy.cases import ROOT, Case, cases, equivalent
from encoder_grader.accuracy.judging import SEEDS, Outcome, judged
from encoder_grader.accuracy.real_path import Grade, graded
from encoder_grader.digest import digest
from encoder_grader.exercise import chapters, find

FILE = ROOT / "book" / "accuracy.json"
WRONG = ("misconception", "pair", "mistake", "mutant")

# All that decides a grade, and the answers themselves; not what only shows it.
DEPENDS_ON = (
    *(
        f"encoder_grader/{name}.py"
        for name in ("plan", "collect", "exercise", "differences", "judge", "bug_hunt", "built_ins")
    ),
    *(
        "encoder_grader/exercises",
        "encoder_grader/accuracy",
        "encoder_grader/grade.py",
        "encoder_grader/nbgrader_course.py",
    ),
    *("encoder_lib", "solutions", "exercises", "nbgrader_config.py"),
)


def current_digest() -> str:
    """The digest of what the figures depend on, as it is now."""
    return digest(ROOT, *DEPENDS_ON)


def measure(folder: Path, workers: int, part: int = 0, report=print) -> dict:
    """Judge and grade every known answer; the figures, to be written to FILE.

    Args:
        folder: where the classes are graded.
        workers: how many chapters are at work at once.
        part: sends only so many pairs, mistakes and mutants of each exercise through nbgrader, spread over all, beside
            every right answer and every misconception; 0 sends all.
        report: called with a line for each chapter that is done.
    """
    exercises = {}
    with ProcessPoolExecutor(workers) as pool:
        tasks = {pool.submit(_chapter, chapter, folder / chapter, part): chapter for chapter in chapters()}
        for task in as_completed(tasks):
            exercises |= task.result()
            report(f"Accuracy: {tasks[task]} … done")
    ordered = [
        exercise for chapter in chapters_in_order() for exercise in exercises if exercise.startswith(chapter + ".")
    ]
    return {"digest": current_digest(), "seeds": list(SEEDS), "exercises": {name: exercises[name] for name in ordered}}


def chapters_in_order() -> list[str]:
    """The chapters as the book has them."""
    from encoder_grader.release import assignments

    return [name.partition("_")[2] for name in assignments(ROOT)]


def to_be_graded(known: list[Case], part: int) -> list[Case]:
    """The answers that go the whole way; see `measure`."""
    by_kind: dict[tuple[str, str], list[Case]] = {}
    for case in known:
        by_kind.setdefault((case.exercise, case.kind), []).append(case)
    chosen = []
    for (_, kind), answers in by_kind.items():
        every = 1 if kind in ("right", "misconception") or not part else -(-len(answers) // part)
        chosen += answers[::every]
    return chosen


def _chapter(chapter: str, folder: Path, part: int) -> dict[str, dict]:
    known = cases(chapter)
    outcomes: dict[Case, list[Outcome]] = {case: [] for case in known}
    for case, _, outcome in judged(known):
        outcomes[case].append(outcome)
    grades = dict(graded(to_be_graded(known, part), folder))
    names = dict.fromkeys(case.exercise for case in known)
    return {name: figures(name, {c: outcomes[c] for c in known if c.exercise == name}, grades) for name in names}


def figures(exercise: str, outcomes: dict[Case, list[Outcome]], grades: dict[Case, Grade]) -> dict:
    """The figures of one exercise, from what the judge and the gradebook said of its known answers."""
    right = {case: seen for case, seen in outcomes.items() if case.kind == "right"}
    wrong = {case: seen for case, seen in outcomes.items() if case.kind != "right"}
    margins = {case: min(outcome.margin for outcome in seen) for case, seen in wrong.items()}
    nearest = min(margins, key=margins.get)
    return {
        "points": find(exercise).points,
        "right": {
            "answers": len(right),
            "passed_by_judge": sum(all(outcome.full for outcome in seen) for seen in right.values()),
            "passed_by_nbgrader": sum(grades[case].full for case in right),
            "misnamed": sum(bool(outcome.named - {""}) for seen in right.values() for outcome in seen),
            "largest_error": _number(max(outcome.error for seen in right.values() for outcome in seen)),
        },
        "wrong": {kind: _caught(kind, wrong, grades) for kind in WRONG},
        "equivalent_mutants": len(equivalent(find(exercise))),
        "nearest": {"margin": _number(margins[nearest]), "kind": nearest.kind, "answer": nearest.name},
        "said": {case.name: _said(seen) for case, seen in wrong.items() if case.kind == "misconception"},
        "named_by_nbgrader": sum(grades[case].named for case in wrong if case.kind == "misconception"),
        "pairs": Counter(
            _of_pair(case, outcome) for case, seen in wrong.items() if case.kind == "pair" for outcome in seen
        ),
        "missed": [
            str(case)
            for case, seen in wrong.items()
            if any(o.full for o in seen) or (case in grades and grades[case].full)
        ],
        "refused": [
            str(case) for case, seen in right.items() if not all(o.full for o in seen) or not grades[case].full
        ],
    }


def _caught(kind: str, wrong: dict[Case, list[Outcome]], grades: dict[Case, Grade]) -> dict[str, int]:
    of_kind = {case: seen for case, seen in wrong.items() if case.kind == kind}
    return {
        "answers": len(of_kind),
        "caught_by_judge": sum(not any(outcome.full for outcome in seen) for seen in of_kind.values()),
        "graded": sum(case in grades for case in of_kind),
        "caught_by_nbgrader": sum(case in grades and not grades[case].full for case in of_kind),
    }


def _said(seen: Iterable[Outcome]) -> dict[str, int]:
    """What a misconception was called, and at how many seeds; "" where a claim failed without a name."""
    return dict(Counter(name for outcome in seen for name in sorted(outcome.named)))


def _of_pair(case: Case, outcome: Outcome) -> str:
    """How many of two mistakes were named."""
    return ("neither", "one", "both")[len(set(case.catalogued) & outcome.named)]


def _number(value: float) -> float | None:
    """Three significant digits; None where no number was compared."""
    return float(f"{value:.3g}") if math.isfinite(value) else None


def write(figures: dict) -> None:
    FILE.write_text(json.dumps(figures, indent=1, sort_keys=False) + "\n")


def read() -> dict:
    """The published figures."""
    return json.loads(FILE.read_text())
