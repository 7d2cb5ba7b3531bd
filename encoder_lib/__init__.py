"""The reference implementation: one module a chapter, in the order of the chapters.

A module is imported when it is first used, so that `import encoder_lib` alone costs nothing.
"""

from importlib import import_module

CHAPTERS = ("embedding", "positional_encoding", "attention", "add_norm", "feed_forward", "stacking")

__all__ = [*CHAPTERS, "running_example"]


def __getattr__(name: str):
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
