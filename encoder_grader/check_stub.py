"""What a notebook imports as `encoder_grader` while a class is graded: a `check` that leaves judging to the grader."""


def check(name: str, namespace: dict | None = None) -> float:
    """Say that the grader judges; a check in a cell of the learner's own earns nothing."""
    print(f"{name}: the grader judges this at its own test cell.")
    return 0.0
