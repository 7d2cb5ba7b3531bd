"""Running a learner's notebook: its cells in order, in a namespace of its own, whatever goes wrong in one of them."""

import ast
import contextlib
import json
import linecache
import re
from collections.abc import Callable
from functools import partial
from inspect import ismethod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from encoder_grader.collect import collect
from encoder_grader.exercise import exercises
from encoder_grader.judge import Answers
from encoder_grader.plan import Plan
from encoder_grader.together.trial import handed_on, the_norm
from encoder_lib import CHAPTERS

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Unreadable(Exception):
    """There is no notebook, or none that can be read; the message says which."""


def read_cells(chapter: str, folder: Path) -> list[dict]:
    """The cells of a chapter's notebook. Raises `Unreadable`."""
    number = CHAPTERS.index(chapter) + 1
    path = folder / f"{number}_{chapter}" / f"{chapter}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return [{**_kind(cell), "source": "".join(cell["source"])} for cell in cells]
    except FileNotFoundError:
        raise Unreadable(f"Notebook {number} is missing: there is no {path}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable(f"Notebook {number} cannot be read: {path} is not a Jupyter notebook") from None


def _kind(cell: dict) -> dict:
    nbgrader = cell.get("metadata", {}).get("nbgrader", {})
    return {
        "code": cell["cell_type"] == "code",
        "name": nbgrader.get("grade_id"),
        "locked": bool(nbgrader.get("locked")),
    }


def run_notebook(chapter: str, folder: Path, stand_ins: dict[int, Any]) -> tuple[dict, list[str]]:
    """Run the cells in order; of the locked ones only what they import and define: no test, no demonstration.

    Args:
        chapter: whose notebook it is.
        folder: where the notebooks are.
        stand_ins: what takes the place of an imported object, by that object's id.

    Returns:
        the names that are defined in the end; a sentence for each cell that raised an error.

    Raises:
        Unreadable: there is nothing to run.
    """
    namespace = {"__name__": "__main__", "display": quiet}
    plan, labels = Plan(), []
    for index, cell in enumerate(read_cells(chapter, folder), 1):
        if cell["code"]:
            labels.append(f"cell {index}")
            place = _place(chapter, cell, index)
            step = plan.call(
                plan.give(labels[-1], partial(_execute, cell, place, namespace, stand_ins)), label=labels[-1]
            )
            plan.steps[step.step]["says"] = place
    recording = collect(plan, namespace)
    answers = Answers(plan, recording)
    raised = [record for record in recording.records if "NotImplementedError" not in record.get("kinds", ())]
    errors = [answers.error(record["label"]) for record in raised if record["label"] in labels]
    return namespace, [error.replace(", in `<module>`", "", 1) for error in errors if error]


def _place(chapter: str, cell: dict, index: int) -> str:
    """How a cell is named in a sentence, and in Python's own messages."""
    names = [exercise.name for exercise in exercises(chapter)]
    name = f"{chapter}.{cell['name']}"
    which = f"exercise {names.index(name) + 1}" if name in names else f"cell {index}"
    return f"{which} of notebook {CHAPTERS.index(chapter) + 1}"


def _execute(cell: dict, place: str, namespace: dict, stand_ins: dict[int, Any]) -> None:
    source = cell["source"]
    try:
        tree = ast.parse(source, place)
    except SyntaxError:  # perhaps only for the lines that are IPython's: %matplotlib inline, !ls
        tree = ast.parse(re.sub(r"^([ \t]*)[%!].*$", r"\1pass", source, flags=re.MULTILINE), place)
    if cell["locked"]:
        tree.body = [node for node in tree.body if isinstance(node, DEFINITIONS)]
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)  # for messages with the line
    try:
        exec(compile(tree, place, "exec", dont_inherit=True), namespace)
    finally:
        for name, value in list(namespace.items()):
            namespace[name] = stand_ins.get(id(value), value)


def quiet(*args, **kwargs) -> float:
    """Stands in for `check` and `display`."""
    return 0.0


def fitted(piece: Any, like: Callable) -> Any:
    """A learner's piece as a later notebook may use it in the place of the reference's, `like`.

    It takes floats in any type and hands on tensors, with floats in the type that came in: NumPy and float64 are right
    answers, but other pieces may not take them. What the reference's has beyond what the exercise asks for, such as the
    `num_patches` that notebook 6 speaks of, it has too.
    """
    if not (isinstance(piece, type) and issubclass(piece, nn.Module)):
        return lambda *args, **kwargs: handed_on(piece(*args, **kwargs))

    class Fitted(piece):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._made_in, self._like = _float_type(self), ()  # in a tuple, since it is no part of this module
            with contextlib.suppress(Exception):
                self._like = (like(*args, **kwargs),)

        def __call__(self, *args, **kwargs):
            given = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor) and a.is_floating_point()]
            now = _float_type(self)
            dtype = given[0].dtype if given else now if now != self._made_in else None  # now: after a .double()
            if now is not None:
                args, kwargs = handed_on(args, now), {name: handed_on(a, now) for name, a in kwargs.items()}
            return handed_on(super().__call__(*args, **kwargs), dtype)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name == "norm" and (norm := the_norm(self)) is not None:
                    return norm
                for twin in () if name.startswith("_") else self.__dict__.get("_like", ()):
                    value = getattr(twin.train(self.training), name, None)
                    if value is not None and not ismethod(value) and not _learns(value):
                        return value
                raise

    Fitted.__name__, Fitted.__qualname__ = piece.__name__, piece.__qualname__
    return Fitted


def _learns(value: Any) -> bool:
    """Whether a value is or holds weights: those of the learner's module are others."""
    return isinstance(value, nn.Parameter) or (isinstance(value, nn.Module) and any(True for _ in value.parameters()))


def _float_type(module: nn.Module) -> torch.dtype | None:
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), None)
