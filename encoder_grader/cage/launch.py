"""The first program in a cage: it limits itself, leaves root for good, proves it, and becomes the notebook's kernel.

It runs before anything of the student's, with the standard library alone, as `python -I -S launch.py ORDER`. ORDER is
JSON: `limits` and `command`; without a cage `grader` (its process); in a cage `control` (a socket to the grader),
`user` (None: nothing to leave) and `places` (where the kernel may write). The report on `control` carries the open
folders of /proc and of `places`, so that the grader can watch them; the system adds the sender's true process and user.
"""

import ctypes
import json
import os
import signal
import socket
import sys

PR_SET_PDEATHSIG, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 23, 24


def set_limits(limits: dict) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, (soft, hard) in limits.items():
        if (kind := getattr(resource, name, None)) is None:
            continue
        highest = resource.getrlimit(kind)[1]
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise


def volunteer_as_victim() -> None:
    """When the machine runs out of memory, the cage goes first."""
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def leave_root(user: int) -> None:
    """Become `user`, with no group and no capability, nor a way to get one."""
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        capability += 1
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    version_3, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capset(version_3, nothing)  # the inheritable set too


def what_is_left_of_root() -> list[str]:
    """What a process without any privilege does not have."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status if ":" in line)
    left = [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(lines[name], 16)]
    if 0 in (*os.getresuid(), *os.getresgid()):
        left.append("user 0")
    if lines["NoNewPrivs"].strip() != "1":
        left.append("setuid programs")
    return left


def die_with(grader: int) -> None:
    """End this process when the grader's ends; in a cage bubblewrap sees to that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != grader:
        sys.exit("the grader has ended")


def report(order: dict) -> None:
    """Give up everything that is not needed, and say what is left, with the open folders that can be watched."""
    folders = []
    try:
        volunteer_as_victim()
        if order["user"] is not None:
            leave_root(order["user"])
        left = what_is_left_of_root()
        folders = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in ("/proc", *order["places"])]
    except OSError as error:
        left = [str(error)]
    control = socket.socket(fileno=order["control"])
    socket.send_fds(control, [json.dumps({"left": left}).encode()], folders)
    if left or not control.recv(1):  # the grader watches now
        sys.exit(1)


def main(order: dict) -> None:
    set_limits(order["limits"])
    if "control" in order:
        report(order)
    else:
        die_with(order["grader"])
    os.execve(order["command"][0], order["command"], os.environ)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
