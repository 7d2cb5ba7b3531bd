"""nbgrader's autograde, with staging in front: whatever was handed in, each submission gets a grade.

nbgrader looks for notebooks before it calls any of its hooks, and trips over a file that is missing, renamed or
damaged. So this subclass makes the clean notebooks of staged/ first, and lets nbgrader read those. `install` puts it in
the place of nbgrader's own; nbgrader_config.py calls it, so that `nbgrader autograde`, `make grade` and formgrader all
use it.
"""

import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.converters
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.autograde import Autograde

from encoder_grader.ledger import Ledger
from encoder_grader.staging import Intake, take_in

STAGED = "staged"
REPORT = "report.json"


class StagedAutograde(Autograde):
    """Autograde that reads from staged/, which it makes anew from submitted/."""

    @property
    def _input_directory(self) -> str:
        return STAGED if self._sanitizing else self.coursedir.autograded_directory

    def init_notebooks(self) -> None:
        """Stage what is to be graded, then look for notebooks there."""
        root, asked = Path(self.coursedir.root), self.coursedir
        submitted = Path(asked.format_path(asked.submitted_directory, "*", "*")).parents[1]
        for old in (root / STAGED).glob("*/*"):
            if self.asked_for(old):
                shutil.rmtree(old)
        for folder in sorted(submitted.glob("*/*")):
            if (
                self.asked_for(folder)
                and folder.is_dir()
                and not folder.is_symlink()
                and not folder.parent.is_symlink()
            ):
                student, assignment = folder.parent.name, folder.name
                for sentence in self.stage(root, folder, student, assignment):
                    self.log.warning("%s, %s: %s", student, assignment, sentence)
        super().init_notebooks()

    def asked_for(self, folder: Path) -> bool:
        """Whether this <student>/<assignment> is among those to be graded."""
        asked = self.coursedir
        return fnmatch(folder.parent.name, asked.student_id) and fnmatch(folder.name, asked.assignment_id)

    def stage(self, root: Path, folder: Path, student: str, assignment: str) -> list[str]:
        """Make staged/<student>/<assignment>; the sentences on what was found."""
        target = root / STAGED / student / assignment
        names = self.notebooks_of(assignment)
        if not names:
            return []  # nbgrader says that there is no such assignment
        target.mkdir(parents=True)
        intakes: dict[str, Intake] = {}
        for name in names:
            released = Path(
                self.coursedir.format_path(self.coursedir.release_directory, ".", assignment), f"{name}.ipynb"
            )
            intakes[name] = take_in(folder, f"{name}.ipynb", nbformat.read(root / released, as_version=4))
            nbformat.write(intakes[name].notebook, target / f"{name}.ipynb")
        ledger = Ledger(root)
        sha256 = "-".join(intake.sha256 for intake in intakes.values())
        time = ledger.received(student, assignment, sha256, folder)
        (target / "timestamp.txt").write_text(f"{time:%Y-%m-%d %H:%M:%S.%f} UTC\n")
        sentences = [sentence for intake in intakes.values() for sentence in intake.sentences]
        (target / REPORT).write_text(json.dumps({"sha256": sha256, "sentences": sentences}, indent=1))
        return sentences

    def notebooks_of(self, assignment: str) -> list[str]:
        """The notebooks of an assignment, as the gradebook knows it."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                return sorted(notebook.name for notebook in gradebook.find_assignment(assignment).notebooks)
            except MissingEntry:
                return []


def install() -> None:
    """Have nbgrader use StagedAutograde wherever it autogrades."""
    for module in (nbgrader.converters, nbgrader.apps.autogradeapp, nbgrader.apps.api):
        module.Autograde = StagedAutograde
