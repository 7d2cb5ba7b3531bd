"""What files say, as one hash: a piece of work is done again only when the digest of its inputs has changed."""

import hashlib
import os
from pathlib import Path

PASSING = {"__pycache__", ".ipynb_checkpoints"}  # come and go by themselves


def digest(root: Path, *paths: Path | str) -> str:
    """Hash the files named, folders whole, by their name under `root` and their content; absent ones are left out."""
    files = set()
    for path in (root / path for path in paths):
        files |= set(path.rglob("*")) if path.is_dir() else {path}
    hashed = hashlib.sha256()
    for file in sorted(files):
        if file.is_file() and not PASSING & set(file.parts):
            content = file.read_bytes()
            hashed.update(f"{os.path.relpath(file, root)}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()
