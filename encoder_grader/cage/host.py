"""What a cage and its absence have in common: a folder on the host, and a Jupyter kernel started from it."""

import json
import os
import shutil
import socket
import subprocess
import weakref
from pathlib import Path

from encoder_grader.cage import kernels
from encoder_grader.cage.errors import CannotCage
from encoder_grader.cage.folders import HostFolder
from encoder_grader.cage.limits import Limits
from encoder_grader.cage.watch import Run

CHANNELS = ("shell", "iopub", "stdin", "hb", "control")
HERE = Path(__file__).parent


class Held:
    """What is ended and removed when a host closes, however that happens."""

    def __init__(self, own: HostFolder) -> None:
        self.own, self.owner = own, os.getpid()
        self.run: Run | None = None

    def end_run(self) -> None:
        if self.run is not None:
            self.run.close()
            self.run = None

    def close(self) -> None:
        if os.getpid() == self.owner:  # and not a fork of it
            self.end_run()
            self.own.remove()


class KernelHost:
    """Base of Cage and NoCage; a context manager. Start and close it in a thread that outlives it.

    Attributes:
        folder: its folder on the host, which holds own/, course/ and exchange/.
        exchange: a folder of the host that the kernel sees as `exchange_inside`, the value of its variable EXCHANGE.
    """

    exchange_inside: str
    own_inside: str

    def __init__(self, course: dict[str, Path] | None, limits: Limits | None, own: HostFolder) -> None:
        self.limits = limits or Limits()
        self.folder, self.exchange = own.path, own.path / "exchange"
        self._held = Held(own)
        self._finish = weakref.finalize(self, self._held.close)
        try:
            for name in ("own", "course", "exchange"):
                (self.folder / name).mkdir()
            for program in ("launch.py", "kernel.py", "probe.py"):
                shutil.copyfile(HERE / program, self.folder / "own" / program)
            copy_course(course or {}, self.folder / "course")
            copy_font_list(self.folder / "own")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def kernel_manager(self) -> kernels.CageKernelManager:
        """A Jupyter kernel manager; `await manager.start_kernel()` starts the kernel here."""
        return kernels.kernel_manager(self)

    def start(self, connection: dict) -> subprocess.Popen:
        """Start ipykernel on the sockets of a connection; an earlier one is ended first. The manager calls this."""
        inside = {**connection, "key": connection["key"].decode()}
        listeners = {}
        if connection["transport"] == "ipc":
            inside["ip"] = f"{self.own_inside}/k"
            ports = [connection[f"{channel}_port"] for channel in CHANNELS]
            listeners = {f"ipc://{inside['ip']}-{port}": listen(f"{connection['ip']}-{port}") for port in ports}
        file = self.folder / "own" / "connection.json"
        file.write_text(json.dumps(inside))
        open_for_reading(file)
        numbers = {address: listener.fileno() for address, listener in listeners.items()}
        program, argument = f"{self.own_inside}/kernel.py", f"{self.own_inside}/connection.json"
        try:
            return self.run(["-s", "-P", program, argument, json.dumps(numbers)], keep=list(numbers.values()))
        finally:
            for listener in listeners.values():
                listener.close()

    def run(self, arguments: list[str], keep: list[int], stdout: int = subprocess.DEVNULL) -> subprocess.Popen:
        """Run Python with these arguments, in place of what ran before.

        Args:
            arguments: with paths as they are inside.
            keep: open files that the process inherits, under the same numbers.
            stdout: where its output goes; nowhere by default.
        """
        raise NotImplementedError

    def signal(self, number: int) -> None:
        """Send a signal to the kernel."""
        if self._held.run is not None:
            self._held.run.processes.signal(number)

    def kill(self) -> None:
        """End every process at once; the next `start` finds nothing of them."""
        if self._held.run is not None:
            self._held.run.kill()

    def end(self) -> None:
        self._held.end_run()

    def why_dead(self) -> str | None:
        """Why the kernel has ended, to be said of the notebook: "it used more than 3 GB of memory".

        None while it runs, and when the grader ended it.
        """
        return None if self._held.run is None else self._held.run.why_dead()

    def look(self) -> str | None:
        """Compare what the kernel uses with its limits now, not at the watchdog's next look; else as `why_dead`."""
        return None if self._held.run is None else self._held.run.look()

    def last_words(self) -> str:
        """The end of what the kernel's process has said on stderr, outside of any cell."""
        return "" if self._held.run is None else self._held.run.last_words()

    def listen(self, name: str) -> socket.socket:
        """A unix socket in the exchange, listening, which the kernel may connect to as `exchange_inside/name`."""
        return listen(str(self.exchange / name), 0o666)

    def close(self) -> None:
        """End every process and remove every file."""
        self._finish()


def copy_course(course: dict[str, Path], target: Path) -> None:
    """Copy files and folders to their places below `target`."""
    for name, source in course.items():
        place = target / name
        if not place.resolve().is_relative_to(target.resolve()):
            raise ValueError(f"course names {name!r}, which lies outside of its folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, place)


def copy_font_list(target: Path) -> None:
    """Copy matplotlib's list of this machine's fonts, if there is one: to make it takes a second."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for file in Path(os.environ.get("MPLCONFIGDIR") or Path(caches, "matplotlib")).glob("fontlist-*.json"):
        shutil.copy(file, target)


def open_for_reading(*paths: Path) -> None:
    """Let every user read these files and folders, and what is in them, and only the owner write."""
    for path in paths:
        for each in (path, *path.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)


def listen(path: str, mode: int = 0o600) -> socket.socket:
    """A unix socket that listens at `path`; `mode` says who may connect."""
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise CannotCage(f"no socket can be made at {path} ({error}): set TMPDIR to a short path.") from None
    os.chmod(path, mode)
    listener.listen(64)
    return listener


def environment(home: str, course: str, exchange: str, path: str) -> dict[str, str]:
    """All that the kernel's environment holds. One thread: small tensors are slower with more."""
    return {
        "PATH": path,
        "HOME": home,
        "USER": "student",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONPATH": course,
        "EXCHANGE": exchange,
    }
