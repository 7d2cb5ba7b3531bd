"""What lateness costs: a part of the points for each day, none by default."""

import math

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Float

DAY = 24 * 60 * 60  # seconds


class LatePenalty(BasePlugin):
    """Takes a part of the points for each day that has begun since the due date."""

    per_day = Float(0.0, min=0.0, max=1.0, help="The part of the points that each day costs: 0.1, say.").tag(
        config=True
    )

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """The points that a notebook loses, to two places."""
        return round(score * min(1.0, self.per_day * math.ceil(total_seconds_late / DAY)), 2)


def penalise(course: NbGraderAPI, assignment: str, student: str) -> None:
    """Work a submission's penalty out again: its due date, its extension or its marks may have changed."""
    with Gradebook(course.coursedir.db_url, course.coursedir.course_id) as gradebook:
        notebooks = [notebook.name for notebook in gradebook.find_assignment(assignment).notebooks]
    for notebook in notebooks:
        told = {"student": student, "assignment": assignment, "notebook": notebook, "db_url": course.coursedir.db_url}
        AssignLatePenalties(parent=course).preprocess(NotebookNode(cells=[]), {"nbgrader": told})
