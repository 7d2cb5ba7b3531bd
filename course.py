"""What the commands of the Makefile do: set up, release, build the book, grade a class, open JupyterLab.

`set-up` runs under the system's Python and makes .venv; every other command runs in .venv. A piece of work
is done again only when a file it depends on has changed: its stamp in _build/stamps holds their digest.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from encoder_grader.digest import digest

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BUILD = ROOT / "_build"
BOOK = BUILD / "html"
SAMPLE_CLASS = BUILD / "sample_class"


# ---- steps: one line each, with its seconds; a failed one shows the end of its log


@contextmanager
def step(title):
    print(f"{title} … ", end="", flush=True)
    start = time.monotonic()
    yield
    print(f"{time.monotonic() - start:.0f} s", flush=True)


def run(title, log, *command):
    """Run a command as one step, what it prints going to a log."""
    log = BUILD / "logs" / log
    log.parent.mkdir(parents=True, exist_ok=True)
    with step(title):
        with open(log, "wb") as out:
            failed = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
        if failed:
            text = log.read_text(errors="replace")
            print("failed\n" + "\n".join(text.splitlines()[-40:]), flush=True)
            if "No space left on device" in text:
                raise OSError(28, "No space left on device")
            sys.exit(f"This step failed; its whole log is {log.relative_to(ROOT)}.")


# ---- stamps: what a piece of work was made from


class Stamp:
    """Says whether a piece of work is done: it is, once `write` has seen the digest of its inputs and outputs."""

    def __init__(self, name, *paths):
        self.file = BUILD / "stamps" / name
        self.paths = paths

    def fresh(self):
        return self.file.exists() and self.file.read_text() == digest(ROOT, *self.paths)

    def remove(self):
        self.file.unlink(missing_ok=True)

    def write(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(digest(ROOT, *self.paths))


@contextmanager
def stderr_into(log):
    """Send what this process and the kernels it starts say on stderr to a log."""
    log = BUILD / "logs" / log
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    terminal = os.dup(2)
    with open(log, "wb") as out:
        os.dup2(out.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)


@contextmanager
def alone():
    """Let one command at a time write to _build and exercises, so that `make -j` and two terminals are safe."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another command of the course is at work here; waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---- the commands


def set_up(torch_index=None):
    """Make .venv with the locked versions and both packages. The stamp comes last, so a broken set-up goes on here."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as missing:
        sys.exit(
            f"{sys.executable} has no module {missing.name}: install it (on Debian and Ubuntu: apt-get install "
            "python3-venv), then run the same command again."
        )
    done = VENV / "set-up-done"
    done.unlink(missing_ok=True)
    run("Set-up: a virtual environment in .venv", "venv.log", sys.executable, "-m", "venv", str(VENV))
    for folder in VENV.glob("lib/python3.*/site-packages/*.dist-info"):
        if not (folder / "RECORD").exists():  # pip writes it last: this package was interrupted half-way
            shutil.rmtree(folder)
    pip = (str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install")
    index = ("--extra-index-url", torch_index) if torch_index else ()
    locked = ("-r", "requirements.lock")
    run("Set-up: the versions in requirements.lock, some minutes", "packages.log", *pip, *index, *locked)
    run("Set-up: encoder_lib and encoder_grader", "install.log", *pip, "--no-deps", "--no-build-isolation", "-e", ".")
    done.touch()


def release():
    """Generate each exercises/<assignment> whose source changed, and enter it into the gradebook of this folder."""
    from encoder_grader.nbgrader_course import NbgraderFailure
    from encoder_grader.release import assignments, release_assignment

    for name in assignments(ROOT):
        stamp = Stamp(f"release-{name}", f"solutions/{name}", f"exercises/{name}", "nbgrader_config.py")
        if stamp.fresh() and (ROOT / "gradebook.db").exists():
            continue
        with step(f"Release: {name}"):
            stamp.remove()
            try:
                release_assignment(ROOT, name)
            except NbgraderFailure as failure:
                sys.exit(f"failed\n{failure}")
            stamp.write()


def book():
    """Build the executed book; any warning fails it."""
    sources = ("_config.yml", "_toc.yml", "book", "exercises", "encoder_lib", "encoder_grader", "requirements.lock")
    stamp = Stamp("book", *sources)
    if stamp.fresh() and (BOOK / "index.html").exists():
        return
    # The execution cache knows the cells, not what they import.
    cache = BUILD / ".jupyter_cache"
    drawn = ("book/figure_style.py", "book/figures", "book/trained", "book/accuracy.json", "book/faults.json")
    library = Stamp("book-library", "encoder_lib", "encoder_grader", *drawn, "requirements.lock")
    library_changed = not library.fresh()
    if library_changed:
        shutil.rmtree(cache, ignore_errors=True)
    # Sphinx does not repeat the warnings of pages it skips: after a build that failed, read all of them again.
    again = () if stamp.file.exists() and not library_changed else ("--all",)
    stamp.remove()
    shutil.rmtree(BOOK, ignore_errors=True)  # or the pages of a removed chapter would stay
    library.write()
    jupyter_book = str(VENV / "bin" / "jupyter-book")
    run("Book: the pages, executed", "book.log", jupyter_book, "build", ".", "-W", "-n", "--keep-going", *again)
    stamp.write()


def sample_class():
    """Write the submissions of the sample class anew for each chapter that changed."""
    from encoder_grader.release import assignments
    from encoder_grader.sample_class import write_submissions

    for name in assignments(ROOT):
        slug = name.partition("_")[2]
        stamp = Stamp(
            f"sample-class-{name}",
            f"solutions/{name}",
            f"exercises/{name}",
            "encoder_grader/sample_class/__init__.py",
            f"encoder_grader/sample_class/{slug}.py",
        )
        if not stamp.fresh() or not (SAMPLE_CLASS / "submitted").exists():
            with step(f"Sample class: {name}"):
                stamp.remove()
                write_submissions(ROOT, SAMPLE_CLASS, name)
                stamp.write()


def grade(*arguments):
    """Grade what changed in a class's submitted/, then print its table of grades and what was found and mended."""
    from encoder_grader.grade import grade_class, grades_table, reports
    from encoder_grader.nbgrader_course import NbgraderFailure

    sandbox = "--no-sandbox" not in arguments
    folder = (ROOT / ([word for word in arguments if word != "--no-sandbox"] or [SAMPLE_CLASS])[0]).resolve()
    if folder != SAMPLE_CLASS and not (folder / "submitted").is_dir():
        sys.exit(f"{folder} is no class: put the notebooks into its submitted/<student>/<assignment>/ first.")
    release()
    if folder == SAMPLE_CLASS:
        sample_class()
        sandbox = sandbox and cage_for_the_sample_class()
    elif not sandbox:
        print("No sandbox, as you asked: the students' code runs with your rights, on your files and your network.")
    failures = []
    with stderr_into("grade.log"):
        try:
            for result in grade_class(ROOT, folder, sandbox):
                print(result, flush=True)
                failures += [result] if result.failure else []
        except NbgraderFailure as failure:
            sys.exit(str(failure))
    print(f"\n{grades_table(ROOT, folder)}")
    if found := reports(folder):
        print("Found in the submissions:", *found, "", sep="\n")
    print(f"Grades:   {os.path.relpath(folder / 'grades.csv')}")
    print(f"Feedback: {os.path.relpath(folder / 'feedback')}/<student>/<assignment>/")
    if failures:
        named = "\n".join(f"  {failure.student}, {failure.assignment}: {failure.failure}" for failure in failures)
        sys.exit(f"Not graded, {len(failures)} in all; their logs are in _build/logs:\n{named}")


def cage_for_the_sample_class():
    """Whether there is a sandbox; without one the sample class is graded all the same, for its code is our own."""
    from encoder_grader.cage import CannotCage, strength

    try:
        return strength() is not None
    except CannotCage as why:
        print(f"No sandbox here, so the sample class, our own code, is graded without: {why}")
        return False


def check_sandbox():
    """Say what the sandbox enforces on this machine; fails where there is none."""
    from encoder_grader.cage import CannotCage, describe, strength

    print(describe())
    try:
        strength()
    except CannotCage:
        sys.exit(1)


def accuracy(part="0"):
    """Judge and grade every answer whose worth is known, and write the figures of the page on it."""
    from encoder_grader.accuracy import results

    release()
    with stderr_into("accuracy.log"):
        figures = results.measure(BUILD / "accuracy", workers=os.cpu_count() or 1, part=int(part))
    results.write(figures)
    wrong = [
        answer for exercise in figures["exercises"].values() for answer in exercise["missed"] + exercise["refused"]
    ]
    print(f"Figures:  {os.path.relpath(results.FILE)}")
    if wrong:
        sys.exit("Judged wrongly:\n" + "\n".join(f"  {answer}" for answer in wrong))


def faults():
    """Grade the class in which everything goes wrong that can, and write the figures of the guide for instructors."""
    from encoder_grader.faults import run as class_of_faults

    release()
    class_of_faults.main()


def course():
    release()
    book()
    grade()
    print(f"Book:     {os.path.relpath(BOOK / 'index.html')}")


def serve(port="8000"):
    handler = partial(SimpleHTTPRequestHandler, directory=str(BOOK))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    except OSError as error:
        sys.exit(f"Port {port} cannot be used ({error.strerror}): choose another, as make serve PORT=8001.")
    print(f"The book: http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


def fill_work():
    """Copy the notebooks of exercises/ that work/ does not have yet; what is there belongs to the learner."""
    work = ROOT / "work"
    work.mkdir(exist_ok=True)
    for source in sorted((ROOT / "exercises").rglob("*.ipynb")):
        target = work / source.relative_to(ROOT / "exercises")
        if ".ipynb_checkpoints" not in source.parts and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial_copy = target.with_suffix(".copying")  # an interrupted copy must not pass for the learner's file
            shutil.copyfile(source, partial_copy)
            partial_copy.rename(target)
            print(f"New in work/: {target.relative_to(work)}", flush=True)


def jupyter_lab(*arguments):
    """Become JupyterLab, so that Ctrl-C and the exit code are its own."""
    os.chdir(ROOT)
    os.execv(VENV / "bin" / "jupyter-lab", ["jupyter-lab", *arguments])


def lab(*arguments):
    fill_work()
    jupyter_lab("--ServerApp.root_dir=work", *arguments)


def together():
    """Run the learner's own pieces of all notebooks in work/ as one encoder."""
    from encoder_grader.together.__main__ import main as run_together

    os.chdir(ROOT)
    run_together("work")


def formgrader(*arguments):
    jupyter_lab("--LabApp.default_url=/formgrader", *arguments)


def main(command, *arguments):
    commands = {"set-up": set_up, "release": release, "book": book, "grade": grade, "course": course}
    commands |= {"accuracy": accuracy, "faults": faults, "check-sandbox": check_sandbox}
    if command != "set-up":
        os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic
    try:
        if command in commands:
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: more threads only wait for one another
            with alone():
                commands[command](*arguments)
        else:
            {"serve": serve, "lab": lab, "together": together, "formgrader": formgrader}[command](*arguments)
    except OSError as error:
        if error.errno != 28:  # ENOSPC
            raise
        free = shutil.disk_usage(ROOT).free // 2**20
        sys.exit(f"The disk is full ({free} MB free at {ROOT}): the course needs 2.5 GB; free some and run this again.")


if __name__ == "__main__":
    main(*sys.argv[1:])
