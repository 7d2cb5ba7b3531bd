"""Have the class graded, by the course and by nbgrader as it comes, and write what became of it.

    python -m encoder_grader.faults.run

writes book/faults.json: for each fault the points that are right, those that the course gave and those that nbgrader
gave, and which secrets were read. `make faults` calls it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from nbgrader.api import Gradebook

from encoder_grader.accuracy.cases import ROOT
from encoder_grader.cage.folders import own_folder
from encoder_grader.digest import digest
from encoder_grader.faults.submissions import ALL, ASSIGNMENT, FAULTS, NAME, Fault, Where
from encoder_grader.release import enter_into_gradebook

FILE = ROOT / "book" / "faults.json"
COURSE_ID = "transformer_encoder"
CELL_SECONDS = 20  # for a cell, in both: shorter than the default, so that the endless ones end sooner
STOCK_SECONDS = 240  # after which a submission that hangs nbgrader is given up

STOCK = f"""c = get_config()
c.CourseDirectory.course_id = {COURSE_ID!r}
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.Execute.timeout = {CELL_SECONDS}
"""
DEPENDS_ON = (
    *(f"encoder_grader/{name}.py" for name in ("answering", "autograde", "check_stub", "collect", "execute", "judge")),
    *(f"encoder_grader/{name}.py" for name in ("ledger", "plan", "save_grades", "staging", "trusted", "wire")),
    *("encoder_grader/cage", "encoder_grader/faults", "encoder_grader/exercises/embedding.py", "nbgrader_config.py"),
)


def current_digest() -> str:
    """The digest of what the outcome depends on, as it is now."""
    return digest(ROOT, *DEPENDS_ON)


class Canaries:
    """Secrets in places that no submission may reach, and two servers that none may ask."""

    def __init__(self, folder: Path):
        places = ("gradebook", "solutions", "submission", "environment", "home", "server", "abstract")
        self.tokens = {place: f"canary-{secrets.token_hex(12)}" for place in places}
        self.home = folder / "home"
        self.asked: set[str] = set()
        self._servers = [self._serve("server", socket.AF_INET, ("127.0.0.1", 0))]
        self.abstract = f"encoder-canary-{secrets.token_hex(4)}"
        self._servers.append(self._serve("abstract", socket.AF_UNIX, "\0" + self.abstract))
        self.temporary = tempfile.mkdtemp(prefix="f")  # of this run alone: what it leaves behind can be told by it
        self.where = Where(folder / "class", self.home, self._servers[0].getsockname()[1], self.abstract)

    def _serve(self, name: str, family: int, address) -> socket.socket:
        server = socket.socket(family)
        server.bind(address)
        server.listen(16)

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                self.asked.add(name)
                with connection:
                    token = self.tokens[name]
                    connection.sendall(f"HTTP/1.0 200 OK\r\nContent-Length: {len(token)}\r\n\r\n{token}".encode())

        threading.Thread(target=answer, daemon=True).start()
        return server

    def plant(self, course: Path) -> None:
        """Put the tokens into their places."""
        self.home.mkdir(exist_ok=True)
        (self.home / ".secrets").write_text(self.tokens["home"])
        (course / "solutions" / "canary.txt").write_text(self.tokens["solutions"])
        other = course / "submitted" / "honest_full" / ASSIGNMENT / NAME
        other.write_text(other.read_text().replace("import math", f"import math  # {self.tokens['submission']}", 1))
        with gradebook_of(course) as gradebook:
            gradebook.update_or_create_student("zoe", first_name=self.tokens["gradebook"])

    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "HOME": str(self.home), "TMPDIR": self.temporary} | {
            "GRADER_TOKEN": self.tokens["environment"]
        }

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def read_by(self, course: Path, student: str) -> list[str]:
        """The secrets that stand in what a student gets to see, and do not belong there."""
        text = b""
        for folder in ("autograded", "feedback"):
            for file in (course / folder / student).rglob("*"):
                if file.is_file():
                    text += file.read_bytes()
        own = {"submission"} if student == "honest_full" else set()
        return sorted(place for place, token in self.tokens.items() if token.encode() in text and place not in own)


@contextmanager
def gradebook_of(course: Path):
    with Gradebook(f"sqlite:///{course}/gradebook.db", COURSE_ID) as gradebook:
        yield gradebook


def write_class(folder: Path, faults: list[Fault], config: str) -> Canaries:
    """A course of its own with every submission in it."""
    shutil.rmtree(folder, ignore_errors=True)
    course = folder / "class"
    course.mkdir(parents=True)
    enter_into_gradebook(ROOT, course, ASSIGNMENT)
    (course / "nbgrader_config.py").write_text(config)
    canaries = Canaries(folder)
    for fault in faults:  # the honest ones first: others link to them
        fault.make(course / "submitted" / fault.name / ASSIGNMENT, canaries.where)
    canaries.plant(course)
    return canaries


def nbgrader(course: Path, canaries: Canaries, *command: str, seconds: float | None = None) -> tuple[int | None, str]:
    """Run an nbgrader command in the class's folder: its exit code, None if it had to be ended, and what it said."""
    process = subprocess.Popen(
        ["nbgrader", *command], cwd=course, env=canaries.environment(), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None, "it did not end"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def points(course: Path) -> dict[str, float | None]:
    """Each student's points; None where nothing was graded."""
    with gradebook_of(course) as gradebook:
        found = {}
        for submission in gradebook.assignment_submissions(ASSIGNMENT):
            graded = any(grade.auto_score is not None for notebook in submission.notebooks for grade in notebook.grades)
            found[submission.student_id] = submission.score if graded else None
        return found


def processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def ours(folder: Path, faults: list[Fault], sandbox: bool = True) -> dict:
    """Grade the class with the course's configuration, in one command, twice."""
    config = f'load_subconfig("{ROOT / "nbgrader_config.py"}")\nc = get_config()\nc.Execute.timeout = {CELL_SECONDS}\n'
    config += "" if sandbox else "c.Execute.sandbox = False\n"
    canaries = write_class(folder, faults, config)
    course = folder / "class"
    before, start = processes(), time.monotonic()
    code, said = nbgrader(course, canaries, "autograde", ASSIGNMENT)
    seconds = time.monotonic() - start
    nbgrader(course, canaries, "generate_feedback", ASSIGNMENT)
    first = points(course)
    again = [name for name in ("honest_full", "kill_itself", "nan_answer") if (course / "submitted" / name).exists()]
    for student in again:
        nbgrader(course, canaries, "autograde", ASSIGNMENT, "--student", student, "--force")
    canaries.close()
    left = [pid for pid in processes() - before if _belongs(pid, folder, Path(canaries.temporary))]
    own = own_folder(Path(canaries.temporary)) / "lock"  # the cages' own, which stays for the next ones
    files = [str(path) for path in Path(canaries.temporary).rglob("*") if not path.is_dir() and path != own]
    shutil.rmtree(canaries.temporary)
    return {
        "points": first,
        "finished": code == 0 and set(first) >= {fault.name for fault in faults},
        "regraded": {name: points(course)[name] == first[name] for name in again},
        "secrets": {fault.name: canaries.read_by(course, fault.name) for fault in faults},
        "servers_asked": sorted(canaries.asked),
        "processes_left": len(left),
        "files_left": files,
        "seconds": round(seconds),
        "log": said,
    }


def _belongs(pid: int, *folders: Path) -> bool:
    """Whether a process has one of these folders in its command line, as a cage's first process has."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return any(str(folder).encode() in command for folder in folders)


def stock(folder: Path, faults: list[Fault], report=print) -> dict:
    """Grade the same submissions with nbgrader as it comes, one command each: some would take the others with them."""
    canaries = write_class(folder, faults, STOCK)
    course = folder / "class"
    found: dict[str, dict] = {}
    for fault in faults:
        before = points(course)
        code, said = nbgrader(course, canaries, "autograde", ASSIGNMENT, "--student", fault.name, seconds=STOCK_SECONDS)
        after = points(course)
        others = [name for name, score in before.items() if name != fault.name and after.get(name) != score]
        found[fault.name] = {"points": after.get(fault.name), "failed": code != 0, "others_changed": len(others)}
        if others:  # so that the next ones are measured by themselves
            _restore(course, before)
        found[fault.name]["secrets"] = canaries.read_by(course, fault.name)
        report(f"Faults: stock, {fault.name} … {found[fault.name]['points']}")
    canaries.close()
    shutil.rmtree(canaries.temporary, ignore_errors=True)
    return found


def _restore(course: Path, before: dict[str, float | None]) -> None:
    with gradebook_of(course) as gradebook:
        for submission in gradebook.assignment_submissions(ASSIGNMENT):
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    grade.manual_score = None
        gradebook.db.commit()


def measure(folder: Path, report=print) -> dict:
    """Run everything; the figures, to be written to FILE."""
    tame = [fault for fault in FAULTS if not fault.harms]
    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(stock, folder / "stock", tame, report)
        mine = ours(folder / "ours", FAULTS)
        report(f"Faults: the course … {mine['seconds']} s")
        other = theirs.result()
    rows = {
        fault.name: {
            "kind": fault.kind,
            "says": fault.says,
            "harms": fault.harms,
            "undetectable": fault.undetectable,
            "right": fault.points,
            "ours": mine["points"].get(fault.name),
            "ours_secrets": mine["secrets"][fault.name],
            "stock": other.get(fault.name),
        }
        for fault in FAULTS
    }
    whole = {
        name: mine[name]
        for name in ("finished", "regraded", "servers_asked", "processes_left", "files_left", "seconds")
    }
    return {"digest": current_digest(), "assignment": ASSIGNMENT, "points": ALL, "ours": whole, "faults": rows}


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    figures = measure(ROOT / "_build" / "faults")
    FILE.write_text(json.dumps(figures, indent=1) + "\n")
    rows = figures["faults"].items()
    wrong = [f"{name}: {row['ours']} instead of {row['right']}" for name, row in rows if row["ours"] != row["right"]]
    if wrong:
        sys.exit("\n".join(wrong))
    print("Every submission got the points that are right.")


def read() -> dict:
    """The published figures."""
    return json.loads(FILE.read_text())


if __name__ == "__main__":
    main()
