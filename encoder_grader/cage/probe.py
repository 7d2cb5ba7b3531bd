"""Tries, from inside a cage, what a notebook must not be able to do, and prints as JSON what worked.

Runs as `python -I -S probe.py QUESTIONS`. QUESTIONS is JSON: `port` and `name`, of servers of the host; `hidden`,
paths that must not be seen; `folders`, where to try to write; `forks`, how many processes to try; `memory`, how many
bytes.
"""

import contextlib
import ctypes
import json
import mmap
import os
import signal
import socket
import sys


def connects(family: int, address) -> bool:
    with contextlib.suppress(OSError), socket.socket(family) as client:
        client.settimeout(1)
        client.connect(address)
        return True
    return False


def writes(folder: str) -> bool:
    with contextlib.suppress(OSError):
        file = os.path.join(folder, "written-by-probe")
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY))
        os.remove(file)
        return True
    return False


def forks(most: int) -> int:
    """How many processes can be there at once, up to `most`."""
    children = []
    with contextlib.suppress(OSError):
        while len(children) < most:
            if (child := os.fork()) == 0:
                signal.pause()
            children.append(child)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(children)


def allocates(size: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        return True
    return False


def main(questions: dict) -> None:
    libc = ctypes.CDLL(None)
    answers = {
        "user": os.getuid(),
        "processes": sum(name.isdigit() for name in os.listdir("/proc")),
        "network": connects(socket.AF_INET, ("127.0.0.1", questions["port"]))
        or connects(socket.AF_UNIX, "\0" + questions["name"]),
        "seen": [path for path in questions["hidden"] if os.path.exists(path)],
        "written": [folder for folder in questions["folders"] if writes(folder)],
        "forks": forks(questions["forks"]),
        "memory": allocates(questions["memory"]),
        "filter": libc.unshare(0x10000000) == -1 and hasattr(os, "memfd_create") and not makes_memfd(),
    }
    print(json.dumps(answers))


def makes_memfd() -> bool:
    with contextlib.suppress(OSError):
        os.close(os.memfd_create("probe"))
        return True
    return False


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
