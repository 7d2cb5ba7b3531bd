"""The learner's own pieces of all six notebooks, run together as one encoder on the course's running example.

Each notebook builds on the reference of the chapters before it. Here the notebooks are run in the order of the
chapters, and what a later one imports from `encoder_lib` is the learner's own piece, where there is one. Then the two
sentences and the cat go through these pieces stage by stage, with the same weights as through the reference's, and each
stage is compared. For whatever is missing or not written yet the reference stands in.

    make together, or on any system: python -m encoder_grader.together
"""

from collections.abc import Callable
from pathlib import Path

from encoder_grader.collect import clean_state
from encoder_grader.together.learner import Learner, walk_together
from encoder_grader.together.report import report
from encoder_grader.together.walk import WALKS
from encoder_lib import CHAPTERS

__all__ = ["together"]


def together(folder: Path, progress: Callable[[int], None] = lambda number: None) -> str:
    """Run the notebooks in `folder`, then their pieces as one encoder, and say how it compares with the reference's.

    Args:
        folder: holds the notebooks as exercises/ does, in 1_embedding/embedding.ipynb and so on.
        progress: is told the number of each notebook before it is run.
    """
    with clean_state():
        learner = Learner(folder)
        for number, chapter in enumerate(CHAPTERS, 1):
            progress(number)
            learner.take(chapter)
        return report(learner, {name: walk_together(learner, name) for name in WALKS})
