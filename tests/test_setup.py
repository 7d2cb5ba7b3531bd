"""The commands of the Makefile and the set-up, in a copy of the repository with few packages to install."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SETUPTOOLS = re.search(r"^setuptools==.*$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)[0]


@pytest.fixture
def copy(tmp_path):
    """A copy with the first chapter's exercises, which locks setuptools alone, so that a set-up takes seconds."""
    root = tmp_path / "copy"
    root.mkdir()
    for name in ("Makefile", "course.py", "pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, root)
    for name in ("encoder_lib", "encoder_grader", "exercises/1_embedding"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "requirements.lock").write_text(f"{SETUPTOOLS}\n")
    return root


def environment(**more):
    """The environment without this project's own .venv on PATH."""
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL")}
    path = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if not part.startswith(str(ROOT)))
    return {**kept, "PATH": path, **more}


PYTHON = f"PYTHON={Path(sys.base_prefix, 'bin', 'python3')}"
SET_UP = ".venv/set-up-done"


def make(root, *words, **more):
    command = ["make", "--no-print-directory", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment(**more), timeout=300)


def test_make_alone_lists_every_command():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    listed = re.findall(r"^make ([\w-]+) +\S", make(ROOT).stdout, re.MULTILINE)
    assert sorted(listed) == sorted(targets)


def test_an_old_python_gets_one_sentence(copy, tmp_path):
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.18 && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = make(copy, SET_UP, f"PYTHON={old}")
    assert done.returncode != 0
    assert f"The course needs Python 3.11 or newer and {old} is Python 3.8.18: install a newer one" in done.stdout
    assert not (copy / ".venv").exists()


def test_no_python_gets_one_sentence(copy):
    done = make(copy, SET_UP, "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "No no-such-python here: install Python 3.11 or newer" in done.stdout


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_module_gets_one_sentence(copy, tmp_path, module):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('gone', name='{module}')")
    done = make(copy, SET_UP, PYTHON, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert f"has no module {module}: install it (on Debian and Ubuntu: apt-get install python3-venv)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_gets_one_sentence_and_leaves_no_stamp(copy, tmp_path):
    (tmp_path / "venv.py").write_text("raise OSError(28, 'No space left on device')")
    done = make(copy, SET_UP, PYTHON, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert re.search(r"The disk is full \(\d+ MB free at .*\): the course needs 2.5 GB", done.stderr)
    assert not (copy / SET_UP).exists()


def test_a_failed_step_shows_its_log_and_leaves_no_stamp(copy):
    (copy / "requirements.lock").write_text("setuptools==0.0.0.1\n")
    done = make(copy, SET_UP, PYTHON)
    assert done.returncode != 0
    assert "No matching distribution found for setuptools==0.0.0.1" in done.stdout
    assert "its whole log is _build/logs/packages.log" in done.stderr
    assert not (copy / SET_UP).exists()


def test_an_interrupted_set_up_goes_on(copy):
    started = subprocess.Popen(["make", SET_UP, PYTHON], cwd=copy, env=environment(), start_new_session=True)
    log = copy / "_build" / "logs" / "packages.log"
    while not log.exists() and started.poll() is None:
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    assert not (copy / SET_UP).exists()
    # a package of which pip had written a part, its list of files not yet among it
    packages = next((copy / ".venv" / "lib").glob("python3*")) / "site-packages"
    shutil.rmtree(packages / f"setuptools-{SETUPTOOLS[12:]}.dist-info", ignore_errors=True)
    half = packages / f"setuptools-{SETUPTOOLS[12:]}.dist-info"
    half.mkdir()
    (half / "METADATA").write_text(f"Metadata-Version: 2.1\nName: setuptools\nVersion: {SETUPTOOLS[12:]}\n")

    done = make(copy, SET_UP, PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (copy / SET_UP).exists()
    imported = subprocess.run(
        [copy / ".venv/bin/python", "-c", "import setuptools, encoder_lib; print(setuptools.__version__)"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert imported.stdout.strip() == SETUPTOOLS[12:]
    assert make(copy, SET_UP, PYTHON).stdout.strip().endswith("up to date.")
    (copy / "requirements.lock").touch()
    assert "versions in requirements.lock" in make(copy, SET_UP, PYTHON).stdout


def in_copy(copy, code):
    """Run code beside the copy's course.py, with this environment's packages."""
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_work_is_filled_once_and_never_overwritten(copy):
    assert "1_embedding/embedding.ipynb" in in_copy(copy, "import course; course.fill_work()")
    mine = copy / "work/1_embedding/embedding.ipynb"
    assert mine.read_bytes() == (copy / "exercises/1_embedding/embedding.ipynb").read_bytes()
    mine.write_text("my answers")
    (copy / "exercises/1_embedding/embedding.ipynb").write_text("a new release")
    shutil.copytree(copy / "exercises/1_embedding", copy / "exercises/2_new_chapter")
    printed = in_copy(copy, "import course; course.fill_work()")
    assert mine.read_text() == "my answers"
    assert (copy / "work/2_new_chapter/embedding.ipynb").read_text() == "a new release"
    assert printed == "New in work/: 2_new_chapter/embedding.ipynb\n"
    assert list(copy.glob("work/**/*.copying")) == []


def test_two_commands_at_once_take_turns(copy):
    holder = "import course, time\nwith course.alone():\n    print('in', flush=True)\n    time.sleep(1.5)"
    first = subprocess.Popen([sys.executable, "-c", holder], cwd=copy, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "in\n"
    start = time.monotonic()
    printed = in_copy(copy, "import course\nwith course.alone():\n    print('mine')")
    assert time.monotonic() - start > 1
    assert printed == "Another command of the course is at work here; waiting for it.\nmine\n"
    first.wait()


def test_a_stamp_is_fresh_until_a_file_it_names_changes(copy):
    printed = in_copy(
        copy,
        "import course\nfrom pathlib import Path\nstamp = course.Stamp('s', 'exercises', 'absent')\n"
        "print(stamp.fresh())\nstamp.write()\nprint(stamp.fresh())\n"
        "Path('exercises/new').touch()\nprint(stamp.fresh())\nstamp.remove()\nprint(stamp.fresh())",
    )
    assert printed.split() == ["False", "True", "False", "False"]


@pytest.fixture
def start():
    """Start a server, give its process, end it afterwards."""
    started = []

    def run(*command, **options):
        started.append(subprocess.Popen(command, text=True, **options))
        return started[-1]

    yield run
    for process in started:
        process.terminate()
        process.wait(timeout=30)


def fetch(address, patience=0.0):
    """What stands at an address; for `patience` seconds the server may still be on its way."""
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_serve_shows_the_book_on_this_machine_alone(copy, start):
    page = copy / "_build" / "html" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("the book")
    server = start(sys.executable, "course.py", "serve", "0", cwd=copy, stdout=subprocess.PIPE)
    with server.stdout:
        address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
        assert fetch(address) == "the book"


def test_a_port_in_use_gets_one_sentence(copy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "course.py", "serve", port]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert f"Port {port} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["lab", "formgrader"])
def test_jupyterlab_starts_with_nbgraders_extensions(copy, start, tmp_path, command):
    """`make lab` sees work/ alone; formgrader, started at the root, lists the assignments."""
    (copy / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "solutions/1_embedding", copy / "solutions/1_embedding")
    shutil.copy(ROOT / "nbgrader_config.py", copy)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ("--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=secret")
    start(sys.executable, "course.py", command, *words, cwd=copy, env=environment(HOME=str(tmp_path)))
    address = f"http://127.0.0.1:{port}/"
    page = fetch(f"{address}lab?token=secret", patience=60)
    assert '"@jupyter/nbgrader"' in page
    if command == "lab":
        listed = json.loads(fetch(f"{address}api/contents?token=secret"))["content"]
        assert [entry["name"] for entry in listed] == ["1_embedding"]
    else:
        listed = json.loads(fetch(f"{address}formgrader/api/assignments?token=secret"))
        assert [assignment["name"] for assignment in listed] == ["1_embedding"]


def test_make_grade_grades_a_damaged_file_with_0_and_says_why(copy):
    (copy / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "solutions/1_embedding", copy / "solutions/1_embedding")
    shutil.copy(ROOT / "nbgrader_config.py", copy)
    stub = (copy / "exercises/1_embedding/embedding.ipynb").read_text()
    for student, text in (("ada", stub), ("cut", '{"cells": [')):
        folder = copy / "submitted" / student / "1_embedding"
        folder.mkdir(parents=True)
        (folder / "embedding.ipynb").write_text(text)
    command = [sys.executable, "course.py", "grade", "."]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment())
    assert done.returncode == 0
    assert "cut, 1_embedding: embedding.ipynb is not a notebook" in done.stdout
    assert re.search(r"^ada +0 +0 +0 +0 +0 +0$", done.stdout, re.MULTILINE)
    assert (copy / "feedback/ada/1_embedding/embedding.html").exists()


def test_a_folder_that_is_no_class_gets_one_sentence(copy):
    done = subprocess.run([sys.executable, "course.py", "grade", "--help"], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0
    assert "is no class: put the notebooks into its submitted/<student>/<assignment>/" in done.stderr
    assert not (copy / "--help").exists()


# ---- what is locked


def locked():
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert all(pins), "requirements.lock holds names and versions alone"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def test_the_lock_pins_the_versions_the_course_is_built_on():
    versions = locked()
    assert versions["torch"] == "2.13.0"
    assert versions["jupyter-book"] == "1.0.4.post1"
    assert versions["nbgrader"] == "0.9.6"


def test_every_package_the_course_needs_is_locked_and_installed_in_that_version():
    versions, seen = locked(), set()
    todo = [Requirement("transformer-encoder-course[test]")]
    while todo:
        needed = todo.pop()
        name = canonicalize_name(needed.name)
        for extra in {"", *needed.extras} - {extra for got, extra in seen if got == name}:
            seen.add((name, extra))
            if name == "torch" and extra:
                continue
            for text in metadata.requires(name) or []:
                requirement = Requirement(text)
                gpu = name == "torch" and re.match("nvidia|cuda|triton", requirement.name)
                if not gpu and (not requirement.marker or requirement.marker.evaluate({"extra": extra})):
                    todo.append(requirement)
    names = {name for name, _ in seen} - {"transformer-encoder-course"}
    assert names - set(versions) == set()
    installed = {name: metadata.version(name).partition("+")[0] for name in names}
    assert installed == {name: versions[name] for name in names}


# ---- what CI runs


def test_ci_runs_the_commands_of_the_readme():
    block = re.search(r"```\n((?:make .*\n)+)```", (ROOT / "README.md").read_text())[1]
    assert block == "make course\nmake test\n"
    assert (ROOT / ".ci" / "run").read_text().endswith(block)


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_a_skipped_test_fails_ci_alone(tmp_path, ci, code):
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_a(): pytest.skip('no browser')\ndef test_b(): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ("-p", "tests.conftest", "-n", "2", "-c", tmp_path / "pytest.ini", tmp_path)
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CI": ci})
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert ("1 tests were skipped: install what they need" in done.stdout) == bool(ci)
