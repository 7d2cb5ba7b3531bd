"""A running kernel with its watchdog, which counts what the kernel uses and ends it when that is too much."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

from encoder_grader.cage.limits import Limits, size
from encoder_grader.cage.processes import PATIENCE

KEPT = 8192  # bytes of what the kernel's process says on stderr


class Run:
    """A kernel's process, from its start to its end.

    Args:
        process: what was started on the host; it ends when the kernel does.
        processes: all processes of the kernel, an InCage or a Family.
        places: where it may write, each an InMemory or an OnDisk.
        limits: what it may use.
        stderr: the reading end of a pipe, or None.
        period: seconds between two looks.
    """

    def __init__(self, process: subprocess.Popen, processes, places: list, limits: Limits, stderr, period) -> None:
        self.process, self.processes, self.places = process, processes, places
        self.limits, self.stderr, self.period = limits, stderr, period
        self.reason: str | None = None
        self.ended_by_grader = False
        self.words = b""
        self.started, self.memory_of_grader = time.monotonic(), memory_of_grader()
        self.stop, self.looking = threading.Event(), threading.Lock()
        if stderr is not None:
            os.set_blocking(stderr, False)
        self.watchdog = threading.Thread(target=self.watch, name="watchdog", daemon=True)
        self.watchdog.start()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def watch(self) -> None:
        while not self.stop.wait(self.period) and not self.ended():
            self.look()

    def look(self) -> str | None:
        """End it if it uses too much, now; why it is dead, if it is."""
        with self.looking:
            self.listen()
            try:
                reason = next(self.excesses(), None) if not self.ended() else None
            except Exception as error:  # unwatched it may not go on
                reason = f"it could not be watched any longer ({error!r})"
            if reason is not None and not self.ended():
                self.reason = reason
                self.processes.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(PATIENCE)
        return self.why_dead()

    def listen(self) -> None:
        """Read what has come on stderr, at most what a pipe holds, and keep its end."""
        if self.stderr is not None:
            with contextlib.suppress(BlockingIOError):
                self.words = (self.words + os.read(self.stderr, 65536))[-KEPT:]

    def excesses(self) -> Iterator[str]:
        """Each limit that is passed, as the end of a sentence about the notebook."""
        limits = self.limits
        written = [(*place.used(), place.in_memory) for place in self.places]
        usage = self.processes.usage(limits.memory)
        if usage.threads >= limits.processes:
            yield f"it started more than {limits.processes} processes or threads"
        if usage.memory + sum(used for used, _, in_memory in written if in_memory) > limits.memory:
            yield f"it used more than {size(limits.memory)} of memory"
        if sum(used for used, _, _ in written) >= limits.disk:  # a file system that is full may have no more than that
            yield f"it wrote {size(limits.disk)} or more"
        if sum(files for _, files, _ in written) > limits.files:
            yield f"it made more than {limits.files} files"
        if usage.sockets > limits.sockets:
            yield f"it opened more than {limits.sockets} sockets"
        if usage.cpu > limits.cpu:
            yield f"it used more than {limits.cpu:g} seconds of processor time"
        if time.monotonic() - self.started > limits.wall:
            yield f"it ran for more than {limits.wall:g} seconds"
        if memory_of_grader() - self.memory_of_grader > limits.messages:
            yield f"it sent more than {size(limits.messages)} of messages"

    def kill(self) -> None:
        """End every process of the kernel, because the grader wants it."""
        self.ended_by_grader |= not self.ended()
        self.processes.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)

    def why_dead(self) -> str | None:
        if not self.ended() or (self.ended_by_grader and not self.reason):
            return None
        return self.reason or ending(self.process.returncode, self.limits)

    def last_words(self) -> str:
        self.listen()
        return self.words.decode(errors="replace")

    def close(self) -> None:
        """End it, if it has not ended, and let go of what it held."""
        self.kill()
        self.stop.set()
        self.watchdog.join()
        for held in (self.processes, *self.places):
            held.close()
        if self.stderr is not None:
            os.close(self.stderr)


def memory_of_grader() -> int:
    """The memory of the process that runs this, in bytes. What a kernel sends lies there until somebody reads it."""
    import psutil

    return psutil.Process().memory_info().rss


def ending(code: int, limits: Limits) -> str:
    """An exit code in words. A signal's number comes with 128 more, through bubblewrap, or with a minus."""
    number = code - 128 if code > 128 else -code
    if number <= 0:
        return f"its process ended itself, with exit code {code}"
    if number == getattr(signal, "SIGXCPU", None):
        return f"it used more than {limits.cpu:g} seconds of processor time"
    return f"its process was killed by signal {number} ({(signal.strsignal(number) or 'unknown').lower()})"
