"""The other ways to a cage: a grader without root, and root in a container that may not mount.

They run the tests of the walls, of the limits and of the end again. Each needs a Python that another user can reach:
where folders on the way to it are closed, a mount namespace of the test's own shows them open and empty but for it.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from encoder_grader.cage import strength

ROOT = Path(__file__).parents[2]
AS_USER = ["--reuid=54321", "--regid=54321", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
WITHOUT_MOUNT = ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
HERE = Path(__file__).parent
AGAIN = [HERE / "test_walls.py", HERE / "test_limits.py", HERE / "test_ends.py", HERE / "test_kernel.py"]
MOST = "walls or bomb or kind or system_itself or many_files or outlives or sees_the_course"  # names of tests
WHAT_DIFFERS = "privilege or written or can_be_read or two_cages or bomb or system_itself or outlives or interrupt"


def opened(needed):
    """Shell lines that make folders reachable for every user, in a mount namespace: closed ones above them go."""
    lines, closed = [], {}
    for path in needed:
        if top := next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None):
            closed.setdefault(top, []).append(path)
    for top, paths in closed.items():
        lines += ["mount -t tmpfs -o mode=755 aside /mnt"]
        for number, path in enumerate(paths):
            lines += [f"mkdir /mnt/{number}", f"mount --rbind {path} /mnt/{number}"]
        lines += [f"mount -t tmpfs -o mode=755 opened {top}"]
        for number, path in enumerate(paths):
            lines += [f"mkdir -p {path}", f"mount --rbind /mnt/{number} {path}"]
        lines += ["umount -l /mnt"]
    return lines


def run_as(privileges, *arguments):
    """Run Python with less privileges, where it is reachable."""
    needed = [ROOT, Path(sys.base_prefix), *([] if Path(sys.prefix).is_relative_to(ROOT) else [Path(sys.prefix)])]
    script = "\n".join(["set -e", *opened(needed), f'cd {ROOT}; exec setpriv "$@"'])
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *privileges, "--"]
            + [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"},
        )


@pytest.mark.parametrize(
    "way, privileges, tests",
    [("user", AS_USER, MOST), ("dropped", WITHOUT_MOUNT, WHAT_DIFFERS)],
    ids=["a_plain_user", "root_that_may_not_mount"],
)
def test_the_same_walls_stand(way, privileges, tests):
    if os.geteuid() != 0:
        assert strength().way == "user"  # then all other tests have run that way
        return
    found = run_as(privileges, "-c", "from encoder_grader.cage import strength; print(strength())")
    assert f"way='{way}'" in found.stdout, found.stderr
    again = run_as(privileges, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", tests, *AGAIN)
    assert again.returncode == 0 and re.search(r"^\d\d passed", again.stdout, re.MULTILINE), again.stdout[-5000:]
