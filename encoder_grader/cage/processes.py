"""The processes of a kernel, counted and ended as a whole: those of a cage, or those of a plain process."""

import contextlib
import functools
import os
import select
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 20  # seconds for killed processes to be gone: far more than it takes
# the memory of a process in its status, without the files that it has mapped
OWN_MEMORY = ("RssAnon", "RssShmem", "VmSwap", "VmPTE", "HugetlbPages")


@dataclass(frozen=True)
class Usage:
    """What all processes of a kernel use together: threads, bytes, seconds of processor time, sockets."""

    threads: int = 0
    memory: int = 0
    cpu: float = 0.0
    sockets: int = 0


class InCage:
    """The processes of a cage, read from the cage's own /proc, which shows no others.

    Args:
        kernel: the kernel's process; its parent is the cage's first process, and the cage ends with that.
        proc: the open folder /proc of the cage.
    """

    def __init__(self, kernel: int, proc: int) -> None:
        self.proc = proc
        self.tick = os.sysconf("SC_CLK_TCK")
        # open processes: unlike their numbers, they are never those of others
        self.kernel, self.first = os.pidfd_open(kernel), os.pidfd_open(parent_of(kernel))

    def signal(self, number: int) -> None:
        """Send a signal to the kernel."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.kernel, number)

    def kill(self) -> None:
        """End them all, and wait until the last is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
        gone = select.poll()  # unlike select() it takes any number of open files
        gone.register(self.first, select.POLLIN)
        gone.poll(1000 * PATIENCE)

    def close(self) -> None:
        for number in (self.proc, self.kernel, self.first):
            os.close(number)

    def usage(self, allowed: int) -> Usage:
        """The sum over all processes. When it passes the memory allowed, a page that several share counts once."""
        processes = [name for name in os.listdir(self.proc) if name.isdigit() and name != "1"]  # 1 is bubblewrap's
        statuses = list(map(self.status, processes))
        memory = sum(status.get(name, 0) for status in statuses for name in OWN_MEMORY)
        if memory > allowed:
            memory = sum(map(self.share, processes))
        # a process's own time and that of its ended children
        times = [self.read(f"{process}/stat").rpartition(")")[2].split()[11:15] for process in ("1", *processes)]
        cpu = sum(int(time) for each in times for time in each) / self.tick
        sockets = sum(map(self.sockets, processes[:1]))
        return Usage(sum(status.get("Threads", 0) for status in statuses), memory, cpu, sockets)

    def status(self, process: str) -> dict[str, int]:
        """What a process says of itself; once its first thread has ended, only its other threads do."""
        found = self.numbers(f"{process}/status")
        if "RssAnon" not in found and found.get("Threads", 0) > 1:
            others = (self.numbers(f"{process}/task/{thread}/status") for thread in self.threads(process))
            found = next((other for other in others if "RssAnon" in other), found)
        return found

    def threads(self, process: str) -> list[str]:
        try:
            folder = os.open(f"{process}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        except OSError:
            return []
        try:
            return os.listdir(folder)
        finally:
            os.close(folder)

    def sockets(self, process: str) -> int:
        """The sockets of the cage's network, which each thread shows: those of the internet, which hold more, count
        twenty times."""
        weights = {"unix": 1, "tcp": 20, "tcp6": 20, "udp": 20, "udp6": 20}
        shown = next((thread for thread in self.threads(process) if self.read(f"{process}/task/{thread}/net/unix")), "")
        lines = {name: self.read(f"{process}/task/{shown}/net/{name}").count("\n") for name in weights}
        return sum(weight * max(0, lines[name] - 1) for name, weight in weights.items())  # the first line is a title

    def share(self, process: str) -> int:
        """A process's memory, each page divided by the number of processes that have it, where the system tells."""
        status, pages = self.status(process), self.numbers(f"{process}/smaps_rollup")
        if "Pss_Anon" not in pages:
            return sum(status.get(name, 0) for name in OWN_MEMORY)
        shared = sum(pages.get(name, 0) for name in ("Pss_Anon", "Pss_Shmem", "SwapPss"))
        return shared + status.get("VmPTE", 0) + status.get("HugetlbPages", 0)

    def numbers(self, name: str) -> dict[str, int]:
        """The lines "Name: 17 kB" of a file, in bytes, and "Name: 17"."""
        found = {}
        for line in self.read(name).splitlines():
            key, _, value = line.partition(":")
            number, _, unit = value.strip().partition(" ")
            if number.isdigit():
                found[key] = int(number) * (1024 if unit == "kB" else 1)
        return found

    def read(self, name: str) -> str:
        """A file of /proc; nothing when the process has ended, or may not be looked into."""
        try:
            opener = functools.partial(os.open, dir_fd=self.proc)
            with open(name, errors="replace", opener=opener) as file:  # processes choose their names themselves
                return file.read()
        except OSError:
            return ""


class Family:
    """A plain process and all that descends from it, also what has left it.

    Args:
        kernel: the process.
        mark: a variable of its environment that no other process has.
    """

    def __init__(self, kernel: int, mark: tuple[str, str]) -> None:
        import psutil

        self.process, self.mark = psutil.Process(kernel), mark

    def members(self) -> list:
        """The process and its children, and every process with the mark, which goes from parent to child."""
        import psutil

        found = set()
        with contextlib.suppress(psutil.Error):
            found = {self.process, *self.process.children(recursive=True)}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(self.mark[0]) == self.mark[1]:
                    found.add(process)
        return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]

    def signal(self, number: int) -> None:
        import psutil

        with contextlib.suppress(psutil.Error):
            self.process.send_signal(number)

    def kill(self) -> None:
        import psutil

        end = time.monotonic() + PATIENCE
        while (members := self.members()) and time.monotonic() < end:
            for process in members:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(members, timeout=1)

    def close(self) -> None:
        pass

    def usage(self, allowed: int) -> Usage:
        import psutil

        threads, memory, cpu = 0, 0, 0.0
        for process in self.members():
            with contextlib.suppress(psutil.Error), process.oneshot():
                threads += process.num_threads()
                memory += process.memory_info().rss - getattr(process.memory_info(), "shared", 0)
                cpu += sum(process.cpu_times()[:4])
        return Usage(threads, memory, cpu)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class InMemory:
    """A place where a cage may write: a file system in memory, mounted at the open folder."""

    folder: int
    in_memory = True

    def used(self) -> tuple[int, int]:
        """Bytes and files."""
        found = os.fstatvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree

    def close(self) -> None:
        os.close(self.folder)


@dataclass(frozen=True)
class OnDisk:
    """A place where a plain process may write: a folder of the host."""

    folder: Path
    in_memory = False

    def used(self) -> tuple[int, int]:
        files = 0, 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                files = files[0] + path.lstat().st_size, files[1] + 1
        return files

    def close(self) -> None:
        pass
