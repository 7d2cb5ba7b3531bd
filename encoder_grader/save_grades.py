"""Save the scores: a regrade of the same bytes leaves what was decided by hand, a new submission asks for a look."""

import math
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import compute_checksum, determine_grade, is_solution, is_task

from encoder_grader.autograde import report_of
from encoder_grader.ledger import Ledger


class SaveGrades(SaveAutoGrades):
    """Takes the place of nbgrader's SaveAutoGrades; all scores of a notebook are saved, or none."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Save the scores and nbgrader's own comments of a notebook."""
        told = resources["nbgrader"]
        names = (told["student"], told["assignment"], told["notebook"])
        self.student_id, self.assignment_id, self.notebook_id = names
        root = Path(self.parent.parent.coursedir.root)
        ledger = Ledger(root)
        self.gradebook = Gradebook(told["db_url"])
        with self.gradebook:
            row = self.gradebook.find_submission_notebook(self.notebook_id, self.assignment_id, self.student_id)
            sha256 = report_of(root, self.student_id, self.assignment_id)["sha256"]
            what = f"{sha256} {row.id}"  # with the row, so that another gradebook starts anew
            self._same = ledger.graded(*names) == what
            nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
            self.gradebook.db.commit()
        ledger.was_graded(*names, what)
        return nb, resources

    def _add_score(self, cell: NotebookNode, resources: dict) -> None:
        grade = self.gradebook.find_grade(
            cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
        )
        if not is_solution(cell):
            _bound(cell, grade.max_score)
        grade.auto_score, _ = determine_grade(cell, self.log)
        if not self._same:
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None

    def _add_comment(self, cell: NotebookNode, resources: dict) -> None:
        comment = self.gradebook.find_comment(
            cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
        )
        untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell) and not is_task(cell)
        comment.auto_comment = "No response." if untouched else None


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
