"""The grader of the Transformer encoder course: `check` for the learner, the flow that grades a class."""


def __getattr__(name: str):
    """Import `check` when it is first used."""
    if name == "check":
        from encoder_grader.checking import check

        globals()["check"] = check
        return check
    raise AttributeError(f"module 'encoder_grader' has no attribute {name!r}")
