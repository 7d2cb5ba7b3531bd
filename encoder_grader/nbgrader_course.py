"""A folder seen as an nbgrader course, with the settings of nbgrader_config.py."""

import logging
from pathlib import Path

from nbgrader.apps.api import NbGraderAPI
from traitlets.config.loader import Config, PyFileConfigLoader


class NbgraderFailure(Exception):
    """nbgrader could not do what it was asked: one sentence, then its log."""


def open_course(root: Path, folder: Path, **settings: dict) -> NbGraderAPI:
    """Open a class as nbgrader itself would when started in its folder.

    Args:
        root: the repository, whose nbgrader_config.py holds for every class.
        folder: the class: its submitted/, autograded/, feedback/ and gradebook.db lie there, and perhaps an
            nbgrader_config.py of its own.
        settings: more settings, one dictionary for each nbgrader class, which win.
    """
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    if folder != root and (folder / "nbgrader_config.py").exists():
        config.merge(PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config())
    config.merge(Config({"CourseDirectory": {"root": str(folder)}}))
    config.merge(Config(settings))
    # Each call hands back its log; nothing is printed on the way.
    logger = logging.getLogger("traitlets")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return NbGraderAPI(config=config)


def log_of(result: dict) -> str:
    """The log of an API call, with the traceback of one that failed."""
    return (result.get("log") or "") + (result.get("error") or "")
