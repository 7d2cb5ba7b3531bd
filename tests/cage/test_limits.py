"""What a caged program may use: each test takes more."""

import contextlib
import dataclasses

import psutil
import pytest

from encoder_grader.cage import Cage, Limits, mounts
from encoder_grader.cage.limits import MB

LITTLE = Limits(memory=400 * MB, processes=32, disk=20 * MB, files=500)
BUSY = "\nimport time\ntime.sleep(60)"


def threads_of(user):
    """All threads of a cage's user, on the host."""
    found = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.uids().real == user and process.status() != psutil.STATUS_ZOMBIE:
                found += process.num_threads()
    return found


# ---- memory


def test_one_process_gets_no_more_memory_than_allowed(program):
    answer = program("kept = []\nwhile True: kept.append(bytearray(10**7))", limits=LITTLE)
    assert "MemoryError" in answer.words or answer.why == "it used more than 400 MB of memory"
    assert answer.why is not None


@pytest.mark.parametrize(
    "source",
    [
        # memory that RLIMIT_DATA does not count: shared, and of several processes
        "import mmap\nkept = mmap.mmap(-1, 10**9)\nfor i in range(0, 10**9, 4096): kept[i] = 1",
        "import os\nfor i in range(9):\n    if os.fork() == 0: break\nkept = b'x' * (100 * 10**6)",
        # page tables: memory that is never written to
        "import mmap\nfor i in range(60):\n  kept = mmap.mmap(-1, 2**38, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ)\n"
        "  for j in range(0, 2**38, 2**21): kept[j]\n  globals()[f'kept{i}'] = kept",
    ],
)
def test_memory_of_every_kind_counts(program, source):
    assert program(source + BUSY, limits=LITTLE).why == "it used more than 400 MB of memory"


FIRST_THREAD_ENDS = """
import ctypes, mmap, platform, socket, threading, time
def take():
    time.sleep(0.3)
    TAKE
    time.sleep(60)
threading.Thread(target=take).start()
libc = ctypes.CDLL(None)
libc.prctl(15, b"\\xff) R 1")  # a name that is no text
libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


@pytest.mark.parametrize(
    "take, why",
    [
        ("kept = mmap.mmap(-1, 10**9)\n    while kept.write(bytes(10**6)): pass", "it used more than 400 MB of memory"),
        ("kept = [socket.socketpair() for i in range(200)]", "it opened more than 300 sockets"),
    ],
)
def test_a_process_without_its_first_thread_counts(program, take, why):
    limits = dataclasses.replace(LITTLE, memory=400 * MB, sockets=300)
    assert program(FIRST_THREAD_ENDS.replace("TAKE", take), limits=limits).why == why


def test_files_in_memory_count_as_memory(program):
    limits = Limits(memory=100 * MB, disk=90 * MB)
    source = "kept = b'x' * (40 * 10**6)\nfile = open('/tmp/file', 'wb')\nfor i in range(80): file.write(bytes(10**6))"
    assert program(source + BUSY, limits=limits).why == "it used more than 100 MB of memory"


def test_memory_that_forks_share_counts_once(program):
    source = """
import os, time
kept = b"x" * 200_000_000
for i in range(4):
    if os.fork() == 0:
        time.sleep(60)
time.sleep(1)
"""
    answer = program(source, limits=LITTLE)
    assert (answer.code, answer.why) == (0, "its process ended itself, with exit code 0")


BOUND = """
def bound():
    made = socket.socket(type=socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made
"""


@pytest.mark.parametrize("kind", ["socket.socketpair()", "bound()"])
def test_sockets_end_at_the_limit(program, kind):
    source = f"import os, socket\n{BOUND}for i in range(4): os.fork()\nkept = [{kind} for i in range(40)]"
    assert program(source + BUSY, limits=Limits(sockets=1000)).why == "it opened more than 1000 sockets"


# ---- processes and threads

COUNT = """
import os, signal
children = 0
try:
    while children < 200:
        if os.fork() == 0:
            signal.pause()
        children += 1
except BlockingIOError:
    pass
print(children)
"""


def test_the_system_itself_holds_the_number_of_processes(program, monkeypatch):
    monkeypatch.setattr(Cage, "period", 60)  # the watchdog sleeps
    assert int(program(COUNT, limits=LITTLE).text) < 40  # of 200


def test_the_watchdog_holds_the_number_of_processes(program, monkeypatch):
    monkeypatch.setattr(Cage, "rlimits", lambda self: {})
    assert program(COUNT + BUSY, limits=LITTLE).why == "it started more than 32 processes or threads"


@pytest.mark.parametrize(
    "source",
    [
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import os\nwhile True:\n    if os.fork() == 0: os.setsid()",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=[60]).start()",
    ],
)
def test_a_bomb_ends_and_leaves_nothing(program, source):
    with Cage(limits=LITTLE) as cage:
        answer = program(source, cage=cage)
        # a bomb that dies of the system's limit is as good
        assert (
            answer.why == "it started more than 32 processes or threads"
            or "BlockingIOError" in answer.words
            or ("can't start new thread" in answer.words)
        )
        cage.kill()
        assert cage.user is None or threads_of(cage.user) == 0


# ---- files


@pytest.mark.parametrize("place", mounts.PLACES)
def test_a_big_file_ends_at_the_limit(program, place):
    source = """
import os, sys
with open(sys.argv[1] + "/file", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(10**6))
    except OSError as error:
        print(error.strerror, os.path.getsize(file.name))
"""
    answer = program(source, place, limits=LITTLE)
    if answer.text:
        error, written = answer.text.rsplit(maxsplit=1)
        assert error in ("File too large", "No space left on device") and int(written) <= 20 * MB
    else:
        assert answer.why == "it wrote 20 MB or more"


def test_big_files_in_all_places_end_at_the_limit_together(program):
    source = "for place in ('/tmp', '/student', '/dev/shm'): open(place + '/file', 'wb').write(bytes(9 * 10**6))"
    assert program(source + BUSY, limits=LITTLE).why == "it wrote 20 MB or more"


def test_the_watchdog_holds_what_is_written(program, monkeypatch):
    """As it has to with a bubblewrap before 0.7."""
    monkeypatch.setattr(mounts, "known_options", lambda program: "--perms")
    source = "for i in range(9): open(f'/tmp/{i}', 'wb').write(bytes(9 * 10**6))"
    assert program(source + BUSY, limits=LITTLE).why == "it wrote 20 MB or more"


@pytest.mark.parametrize("place", mounts.PLACES)
def test_many_files_end_at_the_limit(program, place):
    source = "import itertools, sys\nfor i in itertools.count(): open(f'{sys.argv[1]}/{i}', 'w').close()"
    assert program(source, place, limits=LITTLE).why == "it made more than 500 files"


def test_files_that_are_open_end_at_the_limit(program):
    source = """
kept = []
try:
    while True:
        kept.append(open("/dev/null"))
except OSError as error:
    print(error.strerror, len(kept), sep=":")
"""
    error, files = program(source, limits=Limits(open_files=64)).text.split(":")
    assert error == "Too many open files" and int(files) < 64


# ---- time


@pytest.mark.parametrize("processes", [1, 4])
def test_processor_time_ends_at_the_limit(program, processes):
    source = f"import os\nfor i in range({processes - 1}):\n    if os.fork() == 0: break\nwhile True: pass"
    assert program(source, limits=Limits(cpu=0.5)).why == "it used more than 0.5 seconds of processor time"


ENDED = "import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', 'sum(range(10**6))'])"
ORPHANS = """
import os, time
for i in range(60):
    reading, writing = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
        os._exit(0)
    os.close(writing)
    os.wait()
    os.read(reading, 1)  # until the orphan has ended
"""


@pytest.mark.parametrize("source", [ENDED, ORPHANS + BUSY])
def test_the_time_of_ended_processes_counts(program, source):
    assert program(source, limits=Limits(cpu=0.5)).why == "it used more than 0.5 seconds of processor time"


def test_the_system_itself_holds_the_processor_time_of_a_process(program, monkeypatch):
    monkeypatch.setattr(Cage, "period", 60)  # the watchdog sleeps
    assert program("while True: pass", limits=Limits(cpu=0.5)).why == "it used more than 0.5 seconds of processor time"


def test_time_on_the_clock_ends_at_the_limit(program):
    assert program(BUSY, limits=Limits(wall=0.5)).why == "it ran for more than 0.5 seconds"


# ---- how it ended


@pytest.mark.parametrize(
    "source, why",
    [
        ("import ctypes; ctypes.string_at(0)", "its process was killed by signal 11 (segmentation fault)"),
        ("import os; os.kill(os.getpid(), 9)", "its process was killed by signal 9 (killed)"),
        ("import os; os.abort()", "its process was killed by signal 6 (aborted)"),
        ("import os; os._exit(3)", "its process ended itself, with exit code 3"),
    ],
)
def test_the_end_of_a_process_is_told(program, source, why):
    assert program(source).why == why


def test_an_end_that_the_grader_wanted_needs_no_reason():
    with Cage() as cage:
        cage.run(["-c", BUSY])
        assert cage.why_dead() is None
        cage.kill()
        assert cage.why_dead() is None


def test_what_cannot_be_watched_ends(program, monkeypatch):
    monkeypatch.setattr("encoder_grader.cage.processes.InCage.usage", lambda self, allowed: 1 / 0)
    assert "it could not be watched any longer" in program(BUSY).why


def test_output_beside_the_cells_is_read_and_not_kept(program):
    source = "import os\nfor i in range(9): os.write(2, b'x' * 65536)\nos.write(2, b'last words')"
    answer = program(source)
    assert answer.code == 0 and answer.words.endswith("last words") and len(answer.words) <= 8192


def test_limits_are_positive():
    with pytest.raises(ValueError, match="memory=0"):
        Limits(memory=0)
