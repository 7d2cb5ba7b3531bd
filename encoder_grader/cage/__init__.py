"""A cage for an untrusted notebook: its Jupyter kernel inside bubblewrap, with limits."""

from pathlib import Path

from encoder_grader.cage.cage import Cage
from encoder_grader.cage.errors import CannotCage
from encoder_grader.cage.limits import Limits
from encoder_grader.cage.nocage import NoCage
from encoder_grader.cage.strength import describe, strength

__all__ = ["Cage", "CannotCage", "Limits", "NoCage", "describe", "open_cage", "strength"]


def open_cage(
    course: dict[str, Path] | None = None, limits: Limits | None = None, *, caged: bool = True, **settings
) -> Cage | NoCage:
    """A cage, or with `caged=False`, which somebody has to ask for, none. `settings` are those of Cage.

    Raises:
        CannotCage: this machine cannot make one.
    """
    if caged:
        return Cage(course, limits, **settings)
    settings.pop("hide", None)  # nothing can be hidden
    return NoCage(course, limits, **settings)
