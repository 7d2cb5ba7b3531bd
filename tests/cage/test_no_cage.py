"""Without a cage, which somebody has to ask for, a notebook still has limits and leaves nothing behind."""

import subprocess
import sys
import time

import psutil
import pytest

from encoder_grader.cage import Cage, Limits, NoCage, open_cage
from encoder_grader.cage.limits import MB


def test_it_has_to_be_asked_for():
    with open_cage() as caged, open_cage(caged=False, hide=[]) as plain:
        assert isinstance(caged, Cage) and isinstance(plain, NoCage)


def test_a_cell_sees_the_course_it_was_given_and_not_the_repository(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "canary")
    module = tmp_path / "given.py"
    module.write_text("number = 17")
    plain = notebook(NoCage({"encoder_lib/given.py": module}))
    assert plain.run("from encoder_lib.given import number; number + 2") == "19"
    assert "No module named 'encoder_lib.attention'" in plain.run("import encoder_lib.attention")
    assert "No module named 'encoder_grader'" in plain.run("import encoder_grader")
    assert plain.run("import os; 'SECRET' in os.environ") == "False"
    plain.run("open('left', 'w').close()")
    assert plain.run("import os; os.kill(os.getpid(), 9)") is None
    assert plain.cage.why_dead() == "its process was killed by signal 9 (killed)"
    plain.restart()
    assert plain.run("import os; 'left' in os.listdir()") == "False"


@pytest.mark.parametrize(
    "source, limits, why",
    [
        ("import time\ntime.sleep(60)", Limits(wall=0.5), "it ran for more than 0.5 seconds"),
        ("while True: pass", Limits(cpu=0.5), "it used more than 0.5 seconds of processor time"),
        (
            "import os\nfor i in range(3): os.fork()\nkept = b'x' * 10**8\nimport time\ntime.sleep(60)",
            Limits(memory=400 * MB),
            "it used more than 400 MB of memory",
        ),
        ("for i in range(10**6): open(f'{i}', 'w').close()", Limits(files=500), "it made more than 500 files"),
    ],
)
def test_limits_hold(program, source, limits, why):
    with NoCage(limits=limits) as plain:
        assert program(source, cage=plain).why == why


def test_a_killed_grader_leaves_no_kernel(tmp_path):
    grader = """
import os, sys, time
from encoder_grader.cage import NoCage
plain = NoCage()
process = plain.run(["-c", "import time; time.sleep(300)"], keep=[])
print(process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    found = subprocess.run([sys.executable, "-c", grader], capture_output=True, text=True, cwd=tmp_path)
    kernel = int(found.stdout)
    for _ in range(100):
        if not psutil.pid_exists(kernel) or psutil.Process(kernel).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    raise AssertionError("the kernel lives on")
