"""Generate the notebooks of exercises/ from the source notebooks of solutions/, through nbgrader."""

import shutil
import tempfile
from pathlib import Path

import nbformat
from nbgrader.utils import compute_checksum, is_solution

from encoder_grader.nbgrader_course import NbgraderFailure, log_of, open_course


def assignments(root: Path) -> list[str]:
    """The assignments of solutions/, in chapter order: 1_embedding, 2_positional_encoding, …"""
    names = {notebook.parent.name for notebook in (root / "solutions").glob("*_*/*.ipynb")}
    return sorted(names, key=lambda name: int(name.partition("_")[0]))


def generate(root: Path, assignment: str, exercises: Path) -> None:
    """Write `exercises`/<assignment> from its source, with no gradebook and no other trace."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(root / "solutions" / assignment, Path(folder, "solutions", assignment))
        without_gradebook = {"GenerateAssignment": {"no_database": True}, "SaveCells": {"enabled": False}}
        _generate(root, Path(folder), assignment, **without_gradebook)
        shutil.copytree(Path(folder, "exercises", assignment), exercises / assignment)


def release_assignment(root: Path, assignment: str) -> None:
    """Bring exercises/<assignment> up to date, and with it the gradebook of the repository's own folder."""
    _generate(root, root, assignment, CourseDirectory={"release_directory": "_build/release"})
    released = root / "exercises" / assignment
    for notebook in released.glob("*.ipynb"):
        if worked_in(notebook):
            keep_in_work(root, notebook)
    shutil.rmtree(released, ignore_errors=True)
    shutil.copytree(root / "_build" / "release" / assignment, released)


def enter_into_gradebook(root: Path, class_folder: Path, assignment: str) -> None:
    """Give a class elsewhere its own copy of source and release, and enter the assignment into its gradebook."""
    source = class_folder / "solutions" / assignment
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "solutions" / assignment, source)
    _generate(root, class_folder, assignment)


def _generate(root: Path, folder: Path, assignment: str, **settings: dict) -> None:
    result = open_course(root, folder, **settings).generate_assignment(assignment)
    if not result["success"]:
        raise NbgraderFailure(f"nbgrader could not generate {assignment} in {folder}:\n{log_of(result)}")


def worked_in(notebook: Path) -> bool:
    """Whether a learner wrote into a released notebook: an answer differs from what was released, or a cell was run."""
    cells = nbformat.read(notebook, as_version=4).cells
    return any(
        cell.get("outputs") or (is_solution(cell) and compute_checksum(cell) != cell.metadata.nbgrader.get("checksum"))
        for cell in cells
    )


def keep_in_work(root: Path, notebook: Path) -> None:
    """Copy a notebook that somebody worked in from exercises/ to work/, under a name that is free."""
    folder = root / "work" / notebook.parent.name
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (copy := folder / f"{notebook.stem}-from-exercises-{number}.ipynb").exists():
        number += 1
    shutil.copyfile(notebook, copy)
    print(f"\nexercises/ is generated anew, and somebody worked in {notebook.name}: kept as {copy.relative_to(root)}.")
