"""What a caged program cannot reach: each test tries it, after making sure that it works outside."""

import json
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from encoder_grader.cage import Cage, CannotCage, mounts

from .conftest import leading_to_python

ROOT = Path(__file__).parents[2]

CONNECT = """
import json, socket, sys
def connects(family, address):
    try:
        with socket.socket(family) as client:
            client.settimeout(5)
            client.connect(address)
    except OSError as error:
        return error.strerror
    return True
port, name = sys.argv[1:]
print(json.dumps({
    "loopback": connects(socket.AF_INET, ("127.0.0.1", int(port))),
    "abstract": connects(socket.AF_UNIX, "\\0" + name),
    "outside": connects(socket.AF_INET, ("192.0.2.1", 80)),
    "virtual machine's host": connects(socket.AF_VSOCK, (2, 1024)),
    "kernel's cryptography": connects(socket.AF_ALG, ("hash", "sha256")),
}))
"""


def test_no_server_can_be_reached(program):
    name = secrets.token_hex(8)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("\0" + name)
        answers = program(CONNECT, port, name).json
    refused, no_family = "Connection refused", "Address family not supported by protocol"
    assert answers == {
        "loopback": refused,
        "abstract": refused,
        "outside": "Network is unreachable",
        "virtual machine's host": no_family,
        "kernel's cryptography": no_family,
    }


FIND = """
import json, os, sys
readable = []
for path in sys.argv[1:]:
    try:
        open(path).read() if not os.path.isdir(path) else os.listdir(path)
        readable.append(path)
    except OSError:
        pass
found = [
    os.path.join(folder, name)
    for top in os.listdir("/") if top not in ("proc", "usr", "lib", "lib64", "bin", "sbin")
    for folder, folders, files in os.walk("/" + top) if "site-packages" not in folder
    for name in (*folders, *files) if "canary" in name
]
print(json.dumps({"readable": readable, "found": found}))
"""


def test_no_file_of_the_course_or_of_a_user_can_be_read(program, tmp_path):
    home = Path.home() / f"canary-{secrets.token_hex(8)}"
    class_folder = tmp_path / "canary-class"
    class_folder.mkdir()
    gradebook = class_folder / "gradebook.db"
    gradebook.write_text("canary")
    inside_home = os.access(home.parent, os.W_OK)
    if inside_home:
        home.write_text("canary")
    try:
        with Cage() as other:
            files = [
                *(ROOT / name for name in ("README.md", "solutions", "exercises", "nbgrader_config.py", ".git")),
                *(ROOT / name for name in ("encoder_grader/judge.py", "encoder_grader/cage/cage.py", "encoder_lib")),
                *(other.folder, other.folder / "own" / "passwd", other.exchange),
                *(gradebook, class_folder, Path.home(), "/etc/hosts", "/etc/hostname", "/var", "/sys", "/boot", "/opt"),
                *([home] if inside_home else []),
            ]
            files = [path for path in map(Path, files) if path.exists() and os.access(path, os.R_OK)]
            assert len(files) > 12
            answers = program(FIND, *files).json
    finally:
        home.unlink(missing_ok=True)
    leading = [str(path) for path in files if Path(sys.base_prefix).is_relative_to(path)]  # empty folders on the way
    assert set(answers["readable"]) <= set(leading)
    assert answers["found"] == []


def test_folders_that_lead_to_python_show_nothing_else(program):
    source = "import json, os, sys; print(json.dumps({path: os.listdir(path) for path in sys.argv[1:]}))"
    shown = {Path(sys.prefix), Path(sys.base_prefix)}
    parents = {parent for path in shown for parent in path.parents if not parent.is_relative_to("/usr")} - {Path("/")}
    assert ROOT in parents or ROOT not in Path(sys.prefix).parents
    answers = program(source, *parents).json
    for parent, names in answers.items():
        assert all(any(path.is_relative_to(Path(parent, name)) for path in shown) for name in names), parent


def test_submissions_in_nbgraders_exchange_are_hidden(program, monkeypatch):
    exchange = Path(sysconfig.get_path("purelib")) / "nbgrader"  # some folder with files below one that is shown
    monkeypatch.setattr(mounts, "NBGRADER", exchange)
    assert program("import json, os, sys; print(json.dumps(os.listdir(sys.argv[1])))", exchange).json == []


def test_what_has_to_be_hidden_is_hidden_below_what_is_shown(program):
    hidden = Path(sysconfig.get_path("purelib")) / "nbgrader"
    source = "import json, os, sys, numpy; print(json.dumps(os.listdir(sys.argv[1])))"
    assert "__init__.py" in program(source, hidden).json
    assert program(source, hidden, hide=[hidden]).json == []


def test_a_course_below_a_system_folder_is_hidden_and_its_python_is_not(program, monkeypatch):
    """As in a container with the course in /usr/src."""
    monkeypatch.setattr(mounts, "SYSTEM", (*mounts.SYSTEM, str(ROOT.parent)))
    source = "import json, os, sys, numpy; print(json.dumps(os.listdir(sys.argv[1])))"
    prefix = Path(sys.prefix)
    assert program(source, ROOT).json == ([prefix.relative_to(ROOT).parts[0]] if prefix.is_relative_to(ROOT) else [])
    if str(ROOT.parent) not in mounts.PLACES:
        assert program(source, ROOT.parent).json == os.listdir(ROOT.parent)
        return
    with tempfile.NamedTemporaryFile(dir=ROOT.parent) as of_the_host:  # which the cage's own folder covers
        assert Path(of_the_host.name).name not in program(source, ROOT.parent).json


def test_a_python_behind_links_is_found(program, tmp_path, monkeypatch):
    """As that of a tool which keeps one link for each minor version."""
    (tmp_path / "python-3").symlink_to(sys.base_prefix)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.symlink_to(f"../../python-3/bin/{Path(sys.executable).resolve().name}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "executable", str(python))
    assert program("import json; print(json.dumps('found'))").json == "found"


def test_a_folder_that_cannot_be_hidden_is_refused():
    with pytest.raises(CannotCage, match="holds both"):
        Cage(hide=[Path(sys.prefix)])


ENVIRONMENTS = """
import json, os
texts = [json.dumps(dict(os.environ))]
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            texts.append(open(f"/proc/{name}/environ").read())
        except OSError:
            pass
print(json.dumps({"names": sorted(os.environ), "all": texts}))
"""


def test_no_variable_of_the_graders_environment_is_seen(program, monkeypatch):
    monkeypatch.setenv("SECRET", "canary")
    answers = program(ENVIRONMENTS).json
    assert "canary" not in "".join(answers["all"])
    assert set(answers["names"]) == {
        *("EXCHANGE", "HOME", "LANG", "MPLBACKEND", "PATH", "PWD", "PYTHONPATH", "TERM", "USER"),
        *("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    }


def test_only_its_own_processes_exist(program):
    source = "import json, os; print(json.dumps([[n for n in os.listdir('/proc') if n.isdigit()], os.getpid()]))"
    processes, own = program(source).json
    assert sorted(map(int, processes)) == [1, own] == [1, 2]


def test_no_process_of_the_host_can_be_signalled(program):
    victim = subprocess.Popen(["sleep", "60"])
    try:
        source = (
            "import os, sys\n"
            "for number in (int(sys.argv[1]), *range(3, 40000), -1):\n"
            "    try:\n"
            "        os.kill(number, 9)\n"
            "        print('signalled', number)\n"
            "    except ProcessLookupError: pass"
        )
        assert program(source, victim.pid).text == ""
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


WRITE = """
import json, os, sys
written = []
def tries(folder):
    name = os.path.join(folder, "written-by-test")
    try:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.remove(name)
        written.append(folder)
    except OSError:
        pass
tops = ["/" + top for top in os.listdir("/")]
for top in ["/", *tops, *sys.argv[1:]]:
    for folder, folders, files in os.walk(top):
        tries(folder)
        if folder.count("/") > 3 or folder.startswith("/proc/"):
            folders.clear()
changed = []
own = ["/etc/passwd", "/run/cage/kernel.py", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", sys.executable]
for name in own:
    try:
        os.close(os.open(name, os.O_WRONLY))
        changed.append(name)
    except OSError:
        pass
print(json.dumps({"written": sorted(set(written)), "changed": changed}))
"""


def test_nothing_but_memory_can_be_written(program):
    answers = program(WRITE, sysconfig.get_path("purelib"), sys.prefix, sys.base_prefix).json
    on_the_way = {
        str(parent) for path in mounts.readable() for parent in path.parents
    }  # to a Python below such a place
    in_memory = {path for path in on_the_way if mounts.below(Path(path), mounts.PLACES)}
    assert set(answers["written"]) - in_memory | set(mounts.PLACES) == set(mounts.PLACES) <= set(answers["written"])
    assert answers["changed"] == []


STATUS = """
import json, os, resource
lines = dict(line.strip().split(":", 1) for line in open("/proc/self/status") if ":" in line)
numbers = [name for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)]
print(json.dumps({
    "ids": [*os.getresuid(), *os.getresgid()], "groups": os.getgroups(),
    "files": sorted(map(int, numbers)),
    **{name: lines[name].strip() for name in lines if name.startswith(("Cap", "NoNew", "Seccomp"))},
    "core": resource.getrlimit(resource.RLIMIT_CORE), "victim": open("/proc/self/oom_score_adj").read().strip(),
    "terminal": os.path.exists("/dev/tty") and os.isatty(0), "session": os.getsid(0),
}))
"""


def test_it_has_no_privilege_and_no_open_file(program, request):
    if os.geteuid() == 0:  # a group of the grader's that must not stay
        groups = os.getgroups()
        request.addfinalizer(lambda: os.setgroups(groups))
        os.setgroups([4])
    with Cage() as cage:
        user = cage.user or os.getuid()
        found = program(STATUS, cage=cage).json
    assert user != 0 and found["ids"] == [user] * 6 and set(found["groups"]) <= {user}
    assert {name: int(found[name], 16) for name in found if name.startswith("Cap")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0
    )
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    assert found["files"] == [0, 1, 2]
    assert found["core"] == [1, 1] and found["victim"] == "1000" and not found["terminal"] and found["session"] == 1


CALLS = """
import ctypes, errno, fcntl, json, os, platform, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def in_child(call, *arguments):
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        result = call(*arguments)
        os.write(writing, str(0 if result >= 0 else ctypes.get_errno()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return errno.errorcode.get(int(os.read(reading, 9)), "worked")
numbers = {"x86_64": {"io_uring_setup": 425, "keyctl": 250, "clone": 56, "clone3": 435, "x32": 0x40000000 + 39},
    "aarch64": {"io_uring_setup": 425, "keyctl": 219, "clone": 220, "clone3": 435, "x32": -1}}[platform.machine()]
here = (ctypes.c_char * 8)()
vector = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
found = {
    "memfd_create": in_child(libc.memfd_create, b"name", 0),
    "shmget": in_child(libc.shmget, 0, 4096, 0o1600),
    "msgget": in_child(libc.msgget, 0, 0o1600),
    "semget": in_child(libc.semget, 0, 1, 0o1600),
    "ptrace": in_child(libc.ptrace, 0, 0, 0, 0),
    "process_vm_readv": in_child(libc.process_vm_readv, os.getpid(), vector, 1, vector, 1, 0),
    "unshare": in_child(libc.unshare, 0x10000000),
    "clone": in_child(libc.syscall, numbers["clone"], 0x10000000 | 17, 0, 0, 0, 0),
    "keyctl": in_child(libc.syscall, numbers["keyctl"], 0, -3, 1, 0, 0),
    "io_uring_setup": in_child(libc.syscall, numbers["io_uring_setup"], 8, ctypes.byref((ctypes.c_char * 120)())),
    "clone3": in_child(libc.syscall, numbers["clone3"], 0, 0),
    "x32": in_child(libc.syscall, numbers["x32"]),
}
main, terminal = os.openpty()
if (child := os.fork()) == 0:
    os.setsid()
    fcntl.ioctl(terminal, 0x540E, 0)  # becomes its controlling terminal
    try:
        fcntl.ioctl(terminal, 0x5412, b"x")
        os._exit(0)
    except OSError as error:
        os._exit(error.errno)
found["typing"] = errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "worked")
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
print(json.dumps(found))
"""


def test_system_calls_that_no_notebook_needs_are_refused(program):
    outside = json.loads(subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True).stdout)
    inside = program(CALLS).json
    refused = (
        *("memfd_create", "shmget", "msgget", "semget", "ptrace", "process_vm_readv", "unshare", "clone", "keyctl"),
    )
    assert inside == {
        **dict.fromkeys((*refused, "io_uring_setup", "typing"), "EPERM"),
        "clone3": "ENOSYS",
        "x32": "ENOSYS",
    }
    worked = {name for name in refused if outside[name] == "worked"}
    assert worked >= {"memfd_create", "shmget", "msgget", "semget", "ptrace", "process_vm_readv"}, outside


SEES_OTHER = """
import json, os, socket, sys
open("/tmp/mine-" + sys.argv[1], "w").close()
open("/dev/shm/mine-" + sys.argv[1], "w").close()
server = socket.socket(socket.AF_UNIX)
server.bind("\\0" + sys.argv[1])
server.listen()
link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["EXCHANGE"] + "/talk")
link.send(b"ready")
other = link.recv(100).decode()
found = {"user": os.getuid(), "processes": len([n for n in os.listdir("/proc") if n.isdigit()]),
    "files": sorted(os.listdir("/tmp") + os.listdir("/dev/shm") + os.listdir("/student"))}
try:
    client = socket.socket(socket.AF_UNIX)
    client.connect("\\0" + other)
    found["socket"] = "reached"
except OSError as error:
    found["socket"] = error.strerror
link.send(json.dumps(found).encode())
link.recv(1)
"""


def test_two_cages_at_once_do_not_see_each_other():
    with Cage() as first, Cage() as second:
        links = []
        for cage, name in ((first, "a"), (second, "b")):
            with cage.listen("talk") as listener:
                cage.run(["-c", SEES_OTHER, name])
                listener.settimeout(60)
                links.append(listener.accept()[0])
        with closing(links[0]), closing(links[1]):
            assert [link.recv(100) for link in links] == [b"ready", b"ready"]
            for link, other in zip(links, "ba", strict=True):
                link.send(other.encode())
            found = [json.loads(link.recv(10_000)) for link in links]
        for answers, name in zip(found, "ab", strict=True):
            assert answers["files"] == sorted([f"mine-{name}"] * 2 + leading_to_python("/tmp"))
            assert answers["processes"] == 2
            assert answers["socket"] == "Connection refused"
        assert first.user is None or found[0]["user"] != found[1]["user"]


EXCHANGE = """
import json, os, socket
folder = os.environ["EXCHANGE"]
tried = {}
for name, act in {
    "write": lambda: open(folder + "/file", "w"),
    "remove": lambda: os.remove(folder + "/talk"),
    "link": lambda: os.symlink("/etc/passwd", folder + "/link"),
    "rename": lambda: os.rename(folder + "/talk", folder + "/other"),
    "chmod": lambda: os.chmod(folder + "/talk", 0),
    "socket": lambda: socket.socket(socket.AF_UNIX).bind(folder + "/own"),
}.items():
    try:
        act()
        tried[name] = True
    except OSError:
        pass
link = socket.socket(socket.AF_UNIX)
link.connect(folder + "/talk")
link.send(json.dumps(tried).encode())
print(link.recv(100).decode())
"""


def test_the_exchange_carries_words_and_no_files(program):
    with Cage() as cage, cage.listen("talk") as listener:
        heard = []

        def answer():
            link, _ = listener.accept()
            with link:
                heard.append(link.recv(1000))
                link.send(b"understood")

        thread = threading.Thread(target=answer)
        thread.start()
        said = program(EXCHANGE, cage=cage).text
        thread.join()
        assert heard == [b"{}"] and said == "understood\n"
        assert os.listdir(cage.exchange) == ["talk"]


def test_the_course_is_a_copy_that_cannot_be_changed(program, tmp_path):
    module = tmp_path / "given.py"
    module.write_text("number = 17")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from . import part")
    (tmp_path / "package" / "part.py").write_text("number = 19")
    module.chmod(0o600)
    source = (
        "import json, os, encoder_lib.given, package\n"
        "writable = os.access(encoder_lib.given.__file__, os.W_OK)\n"
        "print(json.dumps([encoder_lib.given.number, package.part.number, writable]))"
    )
    course = {"encoder_lib/given.py": module, "package": tmp_path / "package"}
    assert program(source, course=course).json == [17, 19, False]
    with pytest.raises(ValueError, match="outside"):
        Cage(course={"../own/kernel.py": module})
    assert mounts.COURSE == "/course"
