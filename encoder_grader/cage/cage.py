"""The cage: a Jupyter kernel inside bubblewrap, as a user without rights, with limits, under a watchdog.

What is trusted stays outside. The kernel reads the system, Python and the few files of the course that it is given;
it writes into memory that goes with it, and nowhere else; it reaches no network and no other process. Its sockets are
made outside and inherited, so that no folder of the host is open to it.
"""

import json
import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from encoder_grader.cage import mounts, seccomp
from encoder_grader.cage.errors import CannotCage
from encoder_grader.cage.folders import HostFolder
from encoder_grader.cage.host import KernelHost, environment, open_for_reading
from encoder_grader.cage.limits import Limits
from encoder_grader.cage.processes import InCage, InMemory
from encoder_grader.cage.watch import Run

PATIENCE = 20  # seconds for the cage to stand: far more than it takes
# Who sets the cage up: root; root as another user, where root may not mount; a user, in a user namespace.
ROOT, DROPPED, USER = "root", "dropped", "user"


class Cage(KernelHost):
    """A cage for one notebook at a time.

    Args:
        course: what the notebook may import: a path below /course in the cage → a file or folder, of which it gets a
            copy: `{"encoder_lib/attention.py": …}`.
        limits: what it may use.
        folder: where the cage keeps its own small files on the host; the system's folder for temporary files.
        hide: folders that must not be seen, the class's for one. The course's own repository never is.
        way: who sets it up; by default the best way that works here.

    Raises:
        CannotCage: this machine cannot.
    """

    exchange_inside = mounts.EXCHANGE
    own_inside = mounts.OWN
    period = 0.1  # seconds between two looks of the watchdog

    def __init__(
        self,
        course: dict[str, Path] | None = None,
        limits: Limits | None = None,
        folder: Path | None = None,
        hide: Iterable[Path] = (),
        way: str | None = None,
    ) -> None:
        if way is None:
            from encoder_grader.cage.strength import strength

            way = strength().way
        self.way, self.bwrap = way, mounts.bwrap()
        own = HostFolder(folder, with_user=way != USER)
        self.user = own.user
        super().__init__(course, limits, own)
        try:
            self.name_user(own.user or os.getuid(), own.user or os.getgid())
            open_for_reading(self.folder / "own", self.folder / "course", self.exchange)
            if way == DROPPED:
                self.folder.chmod(0o711)
            self.mounts = mounts.arguments(self.folder, self.limits.disk, [*hide, own.base])
        except BaseException:
            self.close()
            raise

    def name_user(self, user: int, group: int) -> None:
        """Write the two files that give the user in the cage a name."""
        (self.folder / "own" / "passwd").write_text(f"student:x:{user}:{group}::{mounts.HOME}:/bin/sh\n")
        (self.folder / "own" / "group").write_text(f"student:x:{group}:\n")

    def run(self, arguments: list[str], keep: Iterable[int] = (), stdout: int = subprocess.DEVNULL) -> subprocess.Popen:
        self.end()
        outside, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        outside.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listening, stderr = os.pipe()
        filter_file = seccomp.as_file()
        order = {
            "limits": self.rlimits(),
            "user": self.user if self.way == ROOT else None,
            "control": control.fileno(),
            "places": mounts.PLACES,
            "command": [sys.executable, *arguments],
        }
        launch = [sys.executable, "-I", "-S", f"{mounts.OWN}/launch.py", json.dumps(order)]
        seccomp_arguments = [] if filter_file is None else ["--seccomp", str(filter_file)]
        try:
            process = subprocess.Popen(
                [str(self.bwrap), *self.mounts, *self.user_arguments(), *seccomp_arguments, "--", *launch],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=self.environment(),
                cwd="/",
                pass_fds=[control.fileno(), *keep, *([] if filter_file is None else [filter_file])],
                **({"user": self.user, "group": self.user, "extra_groups": ()} if self.way == DROPPED else {}),
            )
            control.close()
            self._held.run = self.meet(process, outside, listening)
        except BaseException:
            os.close(listening)
            raise
        finally:
            control.close()
            outside.close()
            os.close(stderr)
            if filter_file is not None:
                os.close(filter_file)
        return process

    def meet(self, process: subprocess.Popen, outside: socket.socket, stderr: int) -> Run:
        """Wait for the launcher's report, begin to watch, and let it go on."""
        folders, left, sender = receive(outside)
        if left == [] and (self.user is None or sender[1:] == (self.user, self.user)):
            proc, *places = folders
            try:
                processes = InCage(sender.process, proc)
                outside.send(b"!")
                return Run(process, processes, list(map(InMemory, places)), self.limits, stderr, self.period)
            except OSError as error:  # before Linux 5.3
                left = [f"a process that cannot be watched ({error.strerror})"]
        process.kill()
        process.wait()
        for folder in folders:
            os.close(folder)
        raise CannotCage(cause(left, sender.user, stderr))

    def user_arguments(self) -> list[str]:
        """Root sets the cage up, and the launcher keeps what it needs to leave root; another user maps itself."""
        if self.way != ROOT:
            return ["--unshare-user"]
        kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
        return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]

    def rlimits(self) -> dict[str, tuple[int, int]]:
        """What the system itself enforces, for each process or for the user, as (soft, hard)."""
        return {**rlimits(self.limits), "RLIMIT_NPROC": (self.limits.processes + self.others(),) * 2}

    def others(self) -> int:
        """The threads beside the notebook's that the system counts with them.

        Where root sets the cage up, none. Else bubblewrap's own two, and, when the cage has its grader's user, all of
        that user's on a Linux older than 5.14: since then a user namespace is counted for itself.
        """
        if self.way == ROOT:
            return 0
        version = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
        return 2 + (threads_of_user() if self.way == USER and version < (5, 14) else 0)

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        return environment(mounts.HOME, mounts.COURSE, mounts.EXCHANGE, path)


class Sender(NamedTuple):
    """Who sent a message, as the system says: numbers of the host."""

    process: int
    user: int
    group: int


def receive(outside: socket.socket) -> tuple[list[int], list[str] | None, Sender]:
    """The launcher's report: open folders, what is left of root (None: it said nothing), and who it is."""
    outside.settimeout(PATIENCE)
    try:
        report, ancillary, _, _ = outside.recvmsg(4096, socket.CMSG_SPACE(12) + socket.CMSG_SPACE(64))
    except TimeoutError:
        report, ancillary = b"", []
    parts = {kind: data for _, kind, data in ancillary}
    folders = [number for (number,) in struct.iter_unpack("i", parts.get(socket.SCM_RIGHTS, b""))]
    sender = Sender(*struct.unpack("3i", parts.get(socket.SCM_CREDENTIALS, bytes(12))))
    return folders, json.loads(report)["left"] if report else None, sender


def rlimits(limits: Limits) -> dict[str, tuple[int, int]]:
    """The limits that count for each process."""
    return {
        "RLIMIT_DATA": (limits.memory, limits.memory),
        "RLIMIT_FSIZE": (limits.disk, limits.disk),
        "RLIMIT_NOFILE": (limits.open_files, limits.open_files),
        "RLIMIT_CPU": (int(limits.cpu) + 1, int(limits.cpu) + 6),  # SIGXCPU, then SIGKILL
        "RLIMIT_CORE": (1, 1),  # none, and unlike 0 also none through a program of the host
        "RLIMIT_MSGQUEUE": (0, 0),
        "RLIMIT_MEMLOCK": (2**20, 2**20),
    }


def threads_of_user() -> int:
    """The threads of all processes of the user that runs this."""
    import psutil

    mine = (process for process in psutil.process_iter(["uids", "num_threads"]) if process.info["uids"])
    return sum(process.info["num_threads"] or 0 for process in mine if process.info["uids"].real == os.getuid())


def cause(left: list[str] | None, user: int, stderr: int) -> str:
    """Why the first program of a cage did not get as far as the kernel."""
    from encoder_grader.cage.strength import explain

    if left:
        return f"the first program in the cage cannot give up its rights: {', '.join(left)} is left."
    if left is not None:
        return f"the first program in the cage runs as user {user}."
    os.set_blocking(stderr, False)
    try:
        return explain(os.read(stderr, 65536).decode(errors="replace"))
    except BlockingIOError:
        return explain("")
