"""Say what the sandbox enforces on this machine; fails when there is none. Used by `make check-sandbox`."""

import sys

from encoder_grader.cage import CannotCage, describe, strength

print(describe())
try:
    strength()
except CannotCage:
    sys.exit(1)
