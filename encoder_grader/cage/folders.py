"""A folder on the host for each cage, gone with it, and a host user that no other cage has at the same time."""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encoder_grader.cage.errors import CannotCage

try:
    import fcntl
    import pwd
except ImportError:  # Windows, where there is no cage; a folder without one is not locked
    fcntl = None

# Numbers that neither Linux distributions nor container managers hand out (systemd's table of users names both as
# unused). The second range is for a root that has only the first 65,536 users.
USERS = (range(1_900_000_000, 1_900_060_000), range(60_706, 61_184))


class HostFolder:
    """A new folder `path`, and `user`, the host user whose it is while the folder exists (None: nobody's).

    The file `lock` in it is locked as long as its grader lives: the next cage removes a folder whose grader died.
    """

    def __init__(self, parent: Path | None, with_user: bool) -> None:
        self.base = own_folder(parent or Path(tempfile.gettempdir()))
        with locked(self.base / "lock"):
            sweep(self.base)
            self.user = free_user(self.base) if with_user else None
            self.path = Path(tempfile.mkdtemp(prefix=f"cage-{self.user or 0}-", dir=self.base))
            self._lock = open(self.path / "lock", "w")  # noqa: SIM115
            if fcntl:
                fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def own_folder(parent: Path) -> Path:
    """The folder of all of this user's cages; others cannot have put it there."""
    if not fcntl:
        return parent
    base = parent / f"encoder-cages-{os.getuid()}"
    base.mkdir(mode=0o711, exist_ok=True)  # no one else can list it
    found = base.lstat()
    if found.st_uid != os.getuid() or not base.is_dir() or base.is_symlink() or found.st_mode & 0o022:
        raise CannotCage(f"{base} belongs to somebody else: remove it, or set TMPDIR to a folder of your own.")
    return base


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One grader at a time."""
    if not fcntl:
        yield
        return
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sweep(base: Path) -> None:
    """Remove the folders that graders left behind when they were killed."""
    if not fcntl:
        return
    for folder in base.glob("cage-*"):
        try:
            with open(folder / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass  # killed before it had a lock
        except BlockingIOError:
            continue  # its grader lives
        shutil.rmtree(folder, ignore_errors=True)


def free_user(base: Path) -> int:
    """A host user without an account and without another cage, so that a limit on its processes counts one cage."""
    users = next((users for users in USERS if is_mapped("uid", users) and is_mapped("gid", users)), None)
    if users is None:
        raise CannotCage(f"root has no user from {USERS[1][0]} to {USERS[1][-1]} here: map at least 65,536 users.")
    taken = {int(folder.name.split("-")[1]) for folder in base.glob("cage-*")}
    start = random.randrange(len(users))  # graders that do not see this folder, in other containers, choose others
    for number in (users[(start + step) % len(users)] for step in range(len(users))):
        if number not in taken and not has_account(number):
            return number
    raise CannotCage("every user for a cage is taken: are hundreds of graders at work?")


def has_account(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def is_mapped(kind: str, users: range) -> bool:
    """Whether this user namespace has these numbers."""
    maps = [list(map(int, line.split())) for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]
    return any(first <= users[0] and users[-1] < first + count for first, _, count in maps)
