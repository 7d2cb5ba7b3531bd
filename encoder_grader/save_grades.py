"""Save the scores: a regrade of the same bytes leaves what was decided by hand, a new submission asks for a look."""

import json
import math
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.preprocessors import SaveAutoGrades

from encoder_grader.autograde import REPORT, STAGED
from encoder_grader.ledger import Ledger


class SaveGrades(SaveAutoGrades):
    """Takes the place of nbgrader's SaveAutoGrades."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Save the scores of a notebook."""
        told = resources["nbgrader"]
        names = (told["student"], told["assignment"], told["notebook"])
        root = Path(self.parent.parent.coursedir.root)
        sha256 = json.loads((root / STAGED / told["student"] / told["assignment"] / REPORT).read_text())["sha256"]
        ledger = Ledger(root)
        self._same = ledger.graded(*names) == sha256
        nb, resources = super().preprocess(nb, resources)
        ledger.was_graded(*names, sha256)
        return nb, resources

    def _add_score(self, cell: NotebookNode, resources: dict) -> None:
        names = (cell.metadata["nbgrader"]["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        grade = self.gradebook.find_grade(*names)
        looked_at = grade.manual_score is not None and not grade.needs_manual_grade
        _bound(cell, grade.max_score)
        super()._add_score(cell, resources)
        if self._same and looked_at:
            grade.needs_manual_grade = False
            self.gradebook.db.commit()


def _bound(cell: NotebookNode, maximum: float) -> None:
    """Make a score in a test cell's outputs a number from 0 to the maximum: nbgrader takes text for full marks."""
    for output in cell.get("outputs", []):
        if output.output_type == "execute_result":
            try:
                score = float(output.data["text/plain"])
            except (KeyError, TypeError, ValueError):
                score = 0.0
            score = min(max(score, 0.0), maximum) if math.isfinite(score) else 0.0
            output.data = {"text/plain": repr(score)}
