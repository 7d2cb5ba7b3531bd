"""python -m encoder_grader.together [folder]"""

import os
import sys
from pathlib import Path

from encoder_grader.together import together


def main(folder: str = "work") -> None:
    """Print the report on the notebooks in `folder`; Ctrl-C ends a cell that does not end."""
    if not Path(folder).is_dir():
        sys.exit(f"There is no folder {folder}: make lab fills work/ with the notebooks, or copy exercises/ there.")
    os.environ.setdefault("MPLBACKEND", "Agg")  # a cell that draws opens no window
    print("Running notebook", end="", flush=True)
    try:
        said = together(Path(folder), lambda number: print(f" {number} …", end="", flush=True))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    print(f" together\n\n{said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
