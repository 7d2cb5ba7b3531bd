"""What is left when a cage ends, however it ends: nothing."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from encoder_grader.cage import Cage, NoCage
from encoder_grader.cage.folders import HostFolder

# A process that leaves its session and its parent and holds a connection to the outside; the first one stays a while.
DAEMON = """
import os, socket, sys, time
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["EXCHANGE"] + "/talk")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        link.send(b"alive")
        time.sleep(300)
    os._exit(0)
link.close()
time.sleep(float(sys.argv[1]))
"""


def begin_daemon(host, stay):
    with host.listen("talk") as listener:
        process = host.run(["-c", DAEMON, str(stay)], keep=[])
        listener.settimeout(30)
        link, _ = listener.accept()
    link.settimeout(30)
    assert link.recv(100) == b"alive"
    return process, link


def has_hung_up(link):
    """Whether the other side of a connection is gone already."""
    link.settimeout(1)
    with closing(link):
        return link.recv(100) == b""


@pytest.mark.parametrize("kind", [Cage, NoCage])
@pytest.mark.parametrize("stay", [0, 300])
def test_a_daemon_ends_with_its_host(kind, stay):
    host = kind()
    process, link = begin_daemon(host, stay)
    if not stay:
        process.wait(timeout=30)
    host.close()
    assert has_hung_up(link) and not host.folder.exists()


@pytest.mark.parametrize("kind", [Cage, NoCage])
def test_a_daemon_ends_before_the_next_kernel_begins(kind):
    with kind() as host:
        _, link = begin_daemon(host, 300)
        host.run(["-c", ""], keep=[])
        assert has_hung_up(link)


GRADER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from encoder_grader.cage import Cage
from tests.cage.test_ends import begin_daemon
cage = Cage(folder=Path(sys.argv[2]))
process, link = begin_daemon(cage, 300)
with cage.listen("more") as listener:
    pass
print(cage.folder, flush=True)
import os
if sys.argv[3] == "exit":
    sys.exit()
time.sleep(300)
"""


def grader(parent, how):
    """A grader with a daemon in its cage, and the daemon's process on the host."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", GRADER, str(root), str(parent), how], stdout=subprocess.PIPE, text=True
    )
    return process, Path(process.stdout.readline().strip())


def caged_processes(folder):
    """The processes whose view of the file system holds this folder of a cage."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"/{folder.name}/own /run/cage " in (entry / "mountinfo").read_text():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.fixture
def short_path():
    """The path of a unix socket has at most 107 letters."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # a cage may be another user's
        yield Path(folder)


def wait_until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_nothing_outlives_a_grader_that_is_killed(short_path):
    process, folder = grader(short_path, "stay")
    assert len(caged_processes(folder)) >= 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_until(lambda: not caged_processes(folder))
    assert folder.exists()
    with Cage(folder=short_path):
        assert not folder.exists()  # the next one swept it


def test_nothing_outlives_a_grader_that_forgets_to_close(short_path):
    process, folder = grader(short_path, "exit")
    process.wait(timeout=30)
    process.stdout.close()
    assert not folder.exists() and not caged_processes(folder)


def test_a_fork_of_the_grader_takes_no_cage_with_it():
    with Cage() as cage:
        process = cage.run(["-c", "import time; time.sleep(60)"])
        if (child := os.fork()) == 0:
            try:
                cage.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert process.poll() is None and cage.folder.exists()


def test_the_folder_of_a_living_grader_is_not_swept(tmp_path):
    with Cage(folder=tmp_path) as first, Cage(folder=tmp_path) as second:
        assert first.folder.exists() and second.folder.exists()
        assert len(list(first.folder.parent.glob("cage-*"))) == 2
    assert list(first.folder.parent.glob("cage-*")) == []


def test_two_folders_never_have_one_user(tmp_path, monkeypatch):
    monkeypatch.setattr("encoder_grader.cage.folders.USERS", (range(60_706, 60_709),) * 2)
    monkeypatch.setattr("random.randrange", lambda length: 0)
    folders = [HostFolder(tmp_path, with_user=True) for _ in range(3)]
    assert sorted(folder.user for folder in folders) == [60_706, 60_707, 60_708]
    with pytest.raises(Exception, match="every user"):
        HostFolder(tmp_path, with_user=True)
    for folder in folders:
        folder.remove()


def test_a_folder_that_somebody_else_prepared_is_refused(tmp_path):
    (tmp_path / f"encoder-cages-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(Exception, match="belongs to somebody else"):
        Cage(folder=tmp_path)


def test_a_failed_start_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="outside"):
        Cage(course={"../x": Path(__file__)}, folder=tmp_path)
    assert not list(tmp_path.glob("*/cage-*"))


def test_no_open_file_is_left_in_the_grader():
    def open_files():
        return len(os.listdir("/proc/self/fd"))

    with Cage() as cage:
        before = open_files()
        for _ in range(3):
            cage.run(["-c", ""]).wait()
        cage.end()
        assert open_files() == before


def test_a_long_path_is_refused_in_words(tmp_path):
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    with Cage(folder=deep) as cage, pytest.raises(Exception, match="set TMPDIR to a short path"):
        cage.listen("talk")
