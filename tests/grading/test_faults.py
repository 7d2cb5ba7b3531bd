"""Whatever is handed in: honest points stay, none are stolen, nothing is read that should not be."""

import os
import sys
from pathlib import Path

import pytest

from encoder_grader.faults.run import current_digest, ours, read
from encoder_grader.faults.submissions import FAULTS

# Those that need the cage and the staging most, and one at least for each place where a secret lies. `make faults`
# grades all.
PART = {
    *("honest_full", "colab", "kill_itself", "fork_bomb", "daemon", "links_beside"),
    *("reads_gradebook", "writes_gradebook", "reads_solutions", "reads_others", "reads_environment", "reads_home"),
    *("network", "abstract_socket"),
}


def test_a_part_of_the_class_is_graded_rightly_and_nothing_leaks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)  # nbgrader changes folders, so come back after
    part = [fault for fault in FAULTS if fault.name in PART]
    found = ours(tmp_path / "part", part)
    assert found["points"] == {fault.name: fault.points for fault in part}, found["log"]
    assert found["finished"], found["log"]
    assert found["secrets"] == {name: [] for name in PART}
    assert found["servers_asked"] == []
    assert found["regraded"] == {"honest_full": True, "kill_itself": True}
    assert found["processes_left"] == 0
    assert found["files_left"] == []


def names(figures, wrong):
    return [name for name, row in figures["faults"].items() if wrong(row)]


# What would be wrong with the published figures, and where it is.
WRONG = {
    "they lack a submission": lambda f: {fault.name for fault in FAULTS} ^ f["faults"].keys(),
    "honest points were lost": lambda f: names(f, lambda row: row["ours"] is None or row["ours"] < row["right"]),
    "points were gained by cheating": lambda f: names(f, lambda row: (row["ours"] or 0) > row["right"]),
    "secrets were read": lambda f: names(f, lambda row: row["ours_secrets"]),
    "servers were asked": lambda f: f["ours"]["servers_asked"],
    "the class was not finished": lambda f: [] if f["ours"]["finished"] else ["the class"],
    "a second run gave other points": lambda f: [name for name, same in f["ours"]["regraded"].items() if not same],
    "there was no second run": lambda f: [] if f["ours"]["regraded"] else ["the class"],
    "processes were left": lambda f: ["one"] * f["ours"]["processes_left"],
    "files were left": lambda f: f["ours"]["files_left"],
    "nbgrader did not get what is tame": lambda f: names(f, lambda row: (row["stock"] is None) != row["harms"]),
    "another grader made them": lambda f: [] if f["digest"] == current_digest() else ["run make faults"],
}


@pytest.mark.parametrize("what", WRONG)
def test_it_is_not_so_that_in_the_published_figures(what):
    assert not WRONG[what](read())


def test_the_class_is_large_and_of_every_kind():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 80
    kinds = [fault.kind for fault in FAULTS]
    assert kinds.count("honest") >= 6
    assert min(kinds.count(kind) for kind in ("damage", "runtime", "cheat")) >= 20
    assert [fault.name for fault in FAULTS if fault.undetectable] == ["copied_reference"]
    assert {fault.name for fault in FAULTS} >= PART
