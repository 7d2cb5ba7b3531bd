"""When which bytes came in, and which were graded last: a small file of the class, written as a whole."""

import csv
import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from fcntl import LOCK_EX, flock
from pathlib import Path

FILE, LOCK = ".ledger.json", ".ledger.lock"
TIMES = "received.csv"  # student,assignment,time: what a learning platform knows, written by the instructor


class Ledger:
    """The ledger of a class.

    Args:
        folder: the class.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def received(self, student: str, assignment: str, sha256: str, changed: float) -> datetime:
        """When these bytes came in, in UTC: as received.csv says, else when the server first had them.

        Args:
            changed: when the system last put them there (st_ctime). Nothing that the student wrote counts, and once it
                is in the ledger a later copy of the same bytes changes nothing.
        """
        told = self._told(student, assignment)
        if told is not None:
            return told
        with self._open() as book:
            times = book.setdefault("received", {})
            key = f"{student}/{assignment}/{sha256}"
            if key not in times:
                times[key] = datetime.fromtimestamp(changed, UTC).isoformat()
            return datetime.fromisoformat(times[key]).replace(tzinfo=None)

    def graded(self, student: str, assignment: str, notebook: str) -> str:
        """What was graded last, as `was_graded` was told; empty if nothing was."""
        with self._open() as book:
            return book.setdefault("graded", {}).get(f"{student}/{assignment}/{notebook}", "")

    def was_graded(self, student: str, assignment: str, notebook: str, what: str) -> None:
        """Remember what was graded."""
        with self._open() as book:
            book.setdefault("graded", {})[f"{student}/{assignment}/{notebook}"] = what

    def _told(self, student: str, assignment: str) -> datetime | None:
        file = self.folder / TIMES
        if not file.exists():
            return None
        with open(file, newline="", encoding="utf-8-sig") as opened:
            for number, row in enumerate(csv.reader(opened), 1):
                if [entry.strip() for entry in row[:2]] == [student, assignment]:
                    try:
                        time = datetime.fromisoformat(row[2].strip())
                    except (IndexError, ValueError):
                        raise ValueError(
                            f"{TIMES}, line {number}: {','.join(row)!r} should be student,assignment,time with a time "
                            "such as 2026-01-10 23:59:59+00:00"
                        ) from None
                    return (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None)
        return None

    @contextmanager
    def _open(self):
        """The ledger's content, written back if it was changed; one process at a time."""
        file = self.folder / FILE
        with open(os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600), "w") as lock:
            flock(lock, LOCK_EX)
            before = file.read_text() if file.exists() else "{}"
            try:
                book = json.loads(before)
            except ValueError:
                raise ValueError(f"{file} is damaged: put it back from a copy, or remove it") from None
            yield book
            after = json.dumps(book, indent=1, sort_keys=True)
            if after != before:
                partial = self.folder / (FILE + ".new")
                with open(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as opened:
                    opened.write(after)
                    opened.flush()
                    os.fsync(opened.fileno())
                partial.rename(file)
