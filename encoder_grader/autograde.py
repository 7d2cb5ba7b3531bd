"""nbgrader's autograde, with staging in front: whatever was handed in, each submission gets a grade.

nbgrader looks for notebooks before it calls any of its hooks, and trips over a file that is missing, renamed or
damaged. So this subclass makes the clean notebooks of staged/ first, and lets nbgrader read those. `install` puts it in
the place of nbgrader's own; nbgrader_config.py calls it, so that `nbgrader autograde`, `make grade` and formgrader all
use it.
"""

import json
import os
import shutil
import traceback
from contextlib import contextmanager
from datetime import datetime
from fcntl import LOCK_EX, LOCK_SH, lockf
from fnmatch import fnmatch
from pathlib import Path
from zlib import crc32

import nbformat
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.converters
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters.autograde import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import parse_utc

from encoder_grader.digest import digest
from encoder_grader.ledger import Ledger
from encoder_grader.release import worked_in
from encoder_grader.staging import Intake, report_cell, take_in

STAGED = "staged"
REPORT = "report.json"
LOCK = ".grading.lock"
ODD = set("<>\"'`&*?[]{}\\|\n\r\t\0")  # in a student's id: they mean something to a page or to a search for files


class StagedAutograde(Autograde):
    """Autograde that reads from staged/, which it makes anew from submitted/."""

    @property
    def _input_directory(self) -> str:
        return STAGED if self._sanitizing else self.coursedir.autograded_directory

    def start(self) -> None:
        """Grade what is asked for, when nobody else is grading it."""
        with _alone(Path(self.coursedir.root), self.coursedir.student_id, self.coursedir.assignment_id):
            super().start()

    def init_notebooks(self) -> None:
        """Stage what is to be graded, then look for notebooks there."""
        self.not_staged: list[str] = []
        self.check_sandbox()
        root, asked = Path(self.coursedir.root), self.coursedir
        submitted = Path(asked.format_path(asked.submitted_directory, "*", "*")).parents[1]
        for old in (root / STAGED).glob("*/*"):
            if self.asked_for(old) and not os.path.lexists(submitted / old.parent.name / old.name):
                shutil.rmtree(old)
        released = self.released(asked.assignment_id)
        for folder in sorted(submitted.glob("*/*")) if released else ():
            if not self.asked_for(folder) or folder.parent.name.startswith("."):
                continue
            if failure := self.stage_one(root, folder, released):
                self.not_staged.append(f"{folder.parent.name}, {folder.name}: {failure}")
        if self.not_staged and not any(self.asked_for(staged) for staged in (root / STAGED).glob("*/*")):
            raise NbGraderException("Not graded: " + "; ".join(self.not_staged))
        super().init_notebooks()

    def check_sandbox(self) -> None:
        """Refuse to grade, before anything is written, where submissions are to run in a cage and none can be had."""
        from encoder_grader.cage import CannotCage, strength
        from encoder_grader.execute import Execute

        if Execute(parent=self).sandbox:
            try:
                strength()
            except CannotCage as why:
                self.log.error("Nothing was graded: %s", why)
                raise NbGraderException(f"Nothing was graded: {why}") from None

    def asked_for(self, folder: Path) -> bool:
        """Whether this <student>/<assignment> is among those to be graded."""
        asked = self.coursedir
        return fnmatch(folder.parent.name, asked.student_id) and fnmatch(folder.name, asked.assignment_id)

    def released(self, assignment: str) -> dict[str, NotebookNode]:
        """The notebooks of an assignment as they were given out: those that the gradebook knows; none if it does not.

        Raises:
            NbGraderException: they are not in the release folder, or somebody has worked in them there.
        """
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                names = sorted(notebook.name for notebook in gradebook.find_assignment(assignment).notebooks)
            except MissingEntry:
                return {}  # nbgrader says so
        folder = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", assignment))
        found = {}
        for name in names:
            file = folder / f"{name}.ipynb"
            wrong = "is missing" if not file.exists() else "is not as it was released" if worked_in(file) else ""
            if wrong:
                words = f"{self.coursedir.release_directory}/{assignment}/{name}.ipynb {wrong}: run make release."
                self.log.error(words)
                raise NbGraderException(words)
            found[name] = nbformat.read(file, as_version=4)
        return found

    def stage_one(self, root: Path, folder: Path, released: dict[str, NotebookNode]) -> str:
        """Stage one submission; why it cannot be, if it cannot: the others are graded all the same."""
        student, assignment = folder.parent.name, folder.name
        try:
            if ODD & set(student) or not student.isprintable():
                raise ValueError("a student's id has no quotes, brackets or wildcards in it: rename the folder")
            for sentence in stage(root, folder, released):
                self.log.warning("%s, %s: %s", student, assignment, sentence)
        except Exception as problem:
            for half in (root / STAGED / student / assignment, root / STAGED / f".{os.getpid()}"):
                shutil.rmtree(half, ignore_errors=True)
            self.log.error(traceback.format_exc())
            self.log.error("%s, %s: not graded: %s", student, assignment, problem)
            return str(problem)
        return ""

    def convert_notebooks(self) -> None:
        """Grade all; at the end say which could not be."""
        super().convert_notebooks()
        if self.not_staged:
            raise NbGraderException("Not graded: " + "; ".join(self.not_staged))

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Whether a submission is to be graded: also when other bytes came in, whatever their time."""
        with _set(self, force=self.force or self.changed(assignment_id, student_id)):
            return super().init_destination(assignment_id, student_id)

    def changed(self, assignment: str, student: str) -> bool:
        """Whether other bytes were graded last."""
        sha256 = report_of(Path(self.coursedir.root), student, assignment)["sha256"]
        file = Path(self.coursedir.format_path(self.coursedir.autograded_directory, student, assignment), REPORT)
        return not file.exists() or json.loads(file.read_text())["sha256"] != sha256

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Enter the submission into the gradebook. A notebook counts as handed in: there is a staged one."""
        with _set(self.coursedir, submitted_directory=STAGED):
            super().init_assignment(assignment_id, student_id)
        staged = Path(self.coursedir.root, STAGED, student_id, assignment_id, REPORT)
        graded = Path(self._format_dest(assignment_id, student_id))
        graded.mkdir(parents=True, exist_ok=True)
        (graded / REPORT).unlink(missing_ok=True)
        shutil.copyfile(staged, graded / REPORT)


def stage(root: Path, folder: Path, released: dict[str, NotebookNode]) -> list[str]:
    """Make staged/<student>/<assignment> of one submission anew; the sentences on what was found.

    Args:
        root: the class.
        folder: the submission, <student>/<assignment> in submitted/.
        released: the assignment's notebooks as they were given out.
    """
    student, assignment = folder.parent.name, folder.name
    place = root / STAGED / student / assignment
    target = root / STAGED / f".{os.getpid()}" / student / assignment  # in its place only when it is complete
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files = [f"{name}.ipynb" for name in released]
    intakes: dict[str, Intake] = {}
    for name, notebook in released.items():
        file = f"{name}.ipynb"
        intake = intakes[name] = take_in(folder, file, notebook, tuple(other for other in files if other != file))
        if intake.sentences:
            intake.notebook.cells.insert(0, report_cell(intake.sentences, notebook))
        nbformat.write(intake.notebook, target / file)
    sha256 = "-".join(intake.sha256 for intake in intakes.values())
    changed = max(intake.changed for intake in intakes.values()) or folder.lstat().st_ctime
    time = Ledger(root).received(student, assignment, sha256, changed)
    (target / "timestamp.txt").write_text(f"{time:%Y-%m-%d %H:%M:%S.%f} UTC\n")
    sentences = [sentence for intake in intakes.values() for sentence in intake.sentences]
    (target / REPORT).write_text(json.dumps({"sha256": sha256, "sentences": sentences}, indent=1))
    if digest(target, ".") != digest(place, "."):  # somebody else may be grading it
        place.parent.mkdir(exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        target.rename(place)
    shutil.rmtree(root / STAGED / f".{os.getpid()}")
    return sentences


def report_of(root: Path, student: str, assignment: str) -> dict:
    """What staging a submission found: its `sha256` and `sentences`."""
    return json.loads((root / STAGED / student / assignment / REPORT).read_text())


def received(api: NbGraderAPI, assignment_id: str, student_id: str) -> datetime | None:
    """When a submission came in, for formgrader's lists: as staging found, not as the student's timestamp.txt says."""
    file = Path(api.coursedir.root, STAGED, student_id, assignment_id, "timestamp.txt")
    return parse_utc(file.read_text().strip()) if file.exists() else None


@contextmanager
def _alone(root: Path, student: str, assignment: str):
    """Wait until no other process grades these: single students at the same time, a whole class by itself.

    One byte of the lock file stands for the class, and one for each student (two may share one, and then wait).
    """
    whole = any(letter in student for letter in "*?[")
    with open(os.open(root / LOCK, os.O_CREAT | os.O_RDWR, 0o600), "r+") as lock:  # closed, it lets go
        lockf(lock, LOCK_EX if whole else LOCK_SH, 1, 0)
        if not whole:
            lockf(lock, LOCK_EX, 1, 1 + crc32(f"{student}/{assignment}".encode("utf-8", "replace")))
        yield


@contextmanager
def _set(thing, **values):
    before = {name: getattr(thing, name) for name in values}
    for name, value in values.items():
        setattr(thing, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(thing, name, value)


def install() -> None:
    """Have nbgrader use StagedAutograde wherever it autogrades."""
    for module in (nbgrader.converters, nbgrader.apps.autogradeapp, nbgrader.apps.api):
        module.Autograde = StagedAutograde
    NbGraderAPI.get_submitted_timestamp = received
