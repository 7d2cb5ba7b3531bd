"""Grade a class through nbgrader: autograde, feedback, export; and say by name what was mended or could not be graded.

A class is a folder with submitted/<student>/<assignment>/. A submission is graded again only when what was staged of
it, its assignment or what judges it have changed, and its feedback is written again when its marks have: the file
.graded beside the graded notebook holds the digest of both.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters.base import NbGraderException
from nbgrader.plugins import CsvExportPlugin

from encoder_grader.autograde import STAGED, StagedAutograde, report_of
from encoder_grader.digest import digest
from encoder_grader.late import penalise
from encoder_grader.nbgrader_course import NbgraderFailure, log_of, open_course
from encoder_grader.release import assignments, enter_into_gradebook
from encoder_grader.staging import shown


@dataclass(frozen=True)
class Result:
    """What became of one submission: it was graded, or `failure` says in a sentence why not."""

    assignment: str
    student: str
    seconds: float
    failure: str

    def __str__(self) -> str:
        return f"Grade: {self.assignment}, {self.student} … {self.failure or f'{self.seconds:.0f} s'}"


def grade_class(root: Path, folder: Path, sandbox: bool = True) -> Iterator[Result]:
    """Grade each submission that needs it, one result each, then export all grades to grades.csv.

    Args:
        root: the repository.
        folder: the class, `root` itself or another folder, which then gets its own gradebook.
        sandbox: False runs the students' code without a cage.

    Raises:
        NbgraderFailure: a class cannot be graded here; nothing was.
    """
    course = open_course(root, folder, **({} if sandbox else {"Execute": {"sandbox": False}}))
    grader = StagedAutograde(coursedir=course.coursedir, parent=course)
    released = {}
    try:
        grader.check_sandbox()
        for assignment in assignments(root):
            if folder != root and not entered(root, folder, assignment):
                enter_into_gradebook(root, folder, assignment)
            released[assignment] = grader.released(assignment)
    except NbGraderException as why:
        raise NbgraderFailure(str(why)) from None
    for submission in sorted((folder / "submitted").glob("*/*")):
        student, assignment = submission.parent.name, submission.name
        if student.startswith(".") or assignment.startswith("."):
            continue
        start = time.monotonic()
        if released.get(assignment):
            failure = grade_submission(root, course, grader, submission, released[assignment])
        else:
            failure = f"there is no assignment {shown(assignment)!r}, only {', '.join(released)}"
        if failure is not None:
            yield Result(shown(assignment), shown(student), time.monotonic() - start, failure)
    with Gradebook(course.coursedir.db_url, course.coursedir.course_id) as gradebook:
        CsvExportPlugin(to=str(folder / "grades.csv")).export(gradebook)


def reports(folder: Path) -> list[str]:
    """What was found and mended in the submissions of a class, a line each."""
    lines = []
    for staged in sorted((folder / STAGED).glob("*/*/")):
        student, assignment = staged.parent.name, staged.name
        if (folder / "submitted" / student / assignment).exists():
            said = report_of(folder, student, assignment)["sentences"]
            lines += [f"{student}, {assignment}: {sentence}" for sentence in said]
    return lines


def entered(root: Path, folder: Path, assignment: str) -> bool:
    """Whether the class already has this very source notebook, in its gradebook and as released."""
    source = "solutions/" + assignment
    there = (folder / "gradebook.db").exists() and (folder / "exercises" / assignment).exists()
    return there and digest(root, source) == digest(folder, source)


def judged_by(root: Path, assignment: str) -> str:
    """The digest of all that a grade depends on beside the submission."""
    slug = assignment.partition("_")[2]
    grader = [file for file in (root / "encoder_grader").glob("*.py")]
    chapter = ("encoder_grader/exercises/__init__.py", f"encoder_grader/exercises/{slug}.py")
    return digest(
        root, f"solutions/{assignment}", "nbgrader_config.py", "encoder_lib", "encoder_grader/cage", *grader, *chapter
    )


def grade_submission(
    root: Path, course: NbGraderAPI, grader: StagedAutograde, submission: Path, released: dict[str, NotebookNode]
) -> str | None:
    """Grade one submission: None when there was nothing to do, "" when it worked, or the sentence that says why not.

    Args:
        submission: its folder, <student>/<assignment> in submitted/.
        released: the assignment's notebooks as they were given out.
    """
    student, assignment, folder = submission.parent.name, submission.name, Path(course.coursedir.root)
    if failure := grader.stage_one(folder, submission, released):
        return failure
    graded = folder / "autograded" / student / assignment / ".graded"
    inputs = judged_by(root, assignment) + digest(folder, f"{STAGED}/{student}/{assignment}", "nbgrader_config.py")
    before = json.loads(graded.read_text()) if graded.exists() else {}
    if before.get("inputs") != inputs:
        result = course.autograde(assignment, student)
        if not result["success"]:
            keep_log(root, result, assignment, student)
            return reason(log_of(result))
    penalise(course, assignment, student)
    if before == {"inputs": inputs, "marks": marks(course, assignment, student)}:
        return None
    result = course.generate_feedback(assignment, student)
    if not result["success"]:
        keep_log(root, result, assignment, student)
        return f"no feedback was written: {reason(log_of(result))}"
    graded.write_text(json.dumps({"inputs": inputs, "marks": marks(course, assignment, student)}))
    return ""


def marks(course: NbGraderAPI, assignment: str, student: str) -> list:
    """All that the gradebook says about one submission: scores by hand and by machine, comments, and penalties."""
    with Gradebook(course.coursedir.db_url, course.coursedir.course_id) as gradebook:
        submission = gradebook.find_submission(assignment, student)
        grades = [
            [grade.name, grade.auto_score, grade.manual_score, grade.extra_credit, grade.needs_manual_grade]
            for notebook in submission.notebooks
            for grade in notebook.grades
        ]
        comments = [[comment.name, comment.comment] for nb in submission.notebooks for comment in nb.comments]
        penalties = [[notebook.name, notebook.late_submission_penalty] for notebook in submission.notebooks]
    return sorted(grades) + sorted(comments) + sorted(penalties)


def reason(log: str) -> str:
    """The sentence of nbgrader's log that says what went wrong: its last logged exception's, or its first error."""
    exceptions = re.findall(r"^ +(?:\w+\.)*((?:CannotCage|\w*(?:Error|Exception)\w*): .*)$", log, flags=re.MULTILINE)
    errors = re.findall(r"^\[ERROR\] (.*)$", log, flags=re.MULTILINE)
    return (exceptions[-1:] or errors or ["nbgrader gave no reason"])[0]


def keep_log(root: Path, result: dict, assignment: str, student: str) -> None:
    logs = root / "_build" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / f"grade-{assignment}-{student}.log").write_text(log_of(result))


def grades_table(root: Path, folder: Path) -> str:
    """The grades as text: for each assignment a line for each student, with the points of each exercise."""
    course = open_course(root, folder)
    tables = []
    with Gradebook(course.coursedir.db_url, course.coursedir.course_id) as gradebook:
        for assignment in gradebook.assignments:
            cells = [cell for notebook in assignment.notebooks for cell in notebook.grade_cells]
            rows = [
                [assignment.name, *(cell.name.removeprefix("check_") for cell in cells), "total"],
                ["points", *(f"{cell.max_score:g}" for cell in cells), f"{assignment.max_score:g}"],
            ]
            for submission in sorted(assignment.submissions, key=lambda submission: submission.student_id):
                rows.append([submission.student_id, *points(submission, cells)])
            tables.append(aligned(rows))
    return "\n".join(tables)


def points(submission, cells) -> list[str]:
    """The points of each exercise and their total less the late penalty; a question mark awaits a grade by hand."""
    grades = {grade.name: grade for notebook in submission.notebooks for grade in notebook.grades}
    each = [f"{grades[cell.name].score:g}" + "?" * grades[cell.name].needs_manual_grade for cell in cells]
    total = max(0.0, submission.score - submission.late_submission_penalty)
    return [*each, f"{total:g}" + "?" * submission.needs_manual_grade]


def aligned(rows: list[list[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *numbers]) + "\n")
    return "".join(lines)
