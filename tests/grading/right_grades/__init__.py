"""The right grade of every submission of the sample class, one file a chapter."""

from importlib import import_module


def right_grades(assignment: str) -> dict[str, tuple[tuple[float, ...], str]]:
    """Student → the points of each exercise in the notebook's order, and a phrase of the feedback."""
    return import_module(f"{__name__}.{assignment.partition('_')[2]}").RIGHT
