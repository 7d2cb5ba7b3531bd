"""No cage, for those who ask for it: a plain process, which can read all that its user can."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from encoder_grader.cage.cage import rlimits, threads_of_user
from encoder_grader.cage.folders import HostFolder
from encoder_grader.cage.host import KernelHost, environment
from encoder_grader.cage.limits import Limits
from encoder_grader.cage.processes import Family, OnDisk
from encoder_grader.cage.watch import Run


class NoCage(KernelHost):
    """The interface of Cage without its walls: a temporary folder, the limits, and everything ended afterwards."""

    way = "no cage"
    period = 0.5  # seconds between two looks: each reads the whole table of processes

    def __init__(
        self, course: dict[str, Path] | None = None, limits: Limits | None = None, folder: Path | None = None
    ) -> None:
        super().__init__(course, limits, HostFolder(folder, with_user=False))
        self.exchange_inside, self.own_inside = str(self.exchange), str(self.folder / "own")

    def run(self, arguments: list[str], keep: list[int] = (), stdout: int = subprocess.DEVNULL) -> subprocess.Popen:
        self.end()
        home = self.folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        command = [sys.executable, *arguments]
        settings = {"stdin": subprocess.DEVNULL, "stdout": stdout, "cwd": home, "env": self.environment(home)}
        if os.name != "posix":
            process, listening = subprocess.Popen(command, stderr=subprocess.DEVNULL, **settings), None
        else:
            limits = {**rlimits(self.limits), "RLIMIT_NPROC": (self.limits.processes + threads_of_user(),) * 2}
            order = {"limits": limits, "command": command, "grader": os.getpid()}
            launch = [sys.executable, "-I", "-S", str(self.folder / "own" / "launch.py"), json.dumps(order)]
            listening, stderr = os.pipe()
            try:
                process = subprocess.Popen(launch, stderr=stderr, pass_fds=keep, start_new_session=True, **settings)
            finally:
                os.close(stderr)
        family = Family(process.pid, ("EXCHANGE", str(self.exchange)))
        self._held.run = Run(process, family, [OnDisk(home)], self.limits, listening, self.period)
        return process

    def environment(self, home: Path) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}  # Windows
        return kept | environment(str(home), str(self.folder / "course"), str(self.exchange), path)
