"""What a notebook may use while it runs."""

from dataclasses import dataclass

MB, GB = 10**6, 10**9


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds, each for the whole cage. The defaults are far above what an exercise needs."""

    memory: int = 3 * GB
    processes: int = 256  # and threads, together: torch starts one thread per core when asked to
    cpu: float = 600
    wall: float = 1200
    disk: int = 200 * MB  # in all places that can be written, which lie in memory
    files: int = 5000
    open_files: int = 512  # of one process
    sockets: int = 2000  # what waits in one is memory that belongs to no process: some 400 kB at most
    messages: int = GB  # by which the grader's own memory may grow while the kernel talks to it

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"{name}={value} is not a positive limit")


def size(amount: float) -> str:
    """Bytes as a person says them: "3 GB", "1.5 GB", "200 MB"."""
    return f"{amount / GB:g} GB" if amount >= GB else f"{amount / MB:g} MB"
