"""For all tests: shapes in encoder_lib's signatures are checked at every call; in CI a skipped test is a failure."""

import os

import pytest
from jaxtyping import install_import_hook

# before anything imports encoder_lib; a learner's calls are not checked
install_import_hook("encoder_lib", "beartype.beartype")


def _skipped_in_ci(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")  # only the process that reports has one
    return len(reporter.stats.get("skipped", [])) if reporter and os.environ.get("CI") == "true" else 0


def pytest_terminal_summary(terminalreporter, config):
    if skipped := _skipped_in_ci(config):
        terminalreporter.write_line(f"CI=true, and {skipped} tests were skipped: install what they need.", red=True)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == pytest.ExitCode.OK and _skipped_in_ci(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
