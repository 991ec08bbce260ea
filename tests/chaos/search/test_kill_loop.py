"""No document is lost, doubled or stale; the loop finds a rebuild that does not get the changes of others."""

import subprocess
import sys

import pytest


def run(*arguments):
    command = [sys.executable, "-m", "tests.chaos.search.kill_loop", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_nothing_is_lost_doubled_or_stale():
    ended = run(200, 7, "--seconds", 3)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "missing, doubled or stale: 0" in ended.stdout


@pytest.mark.seeded
def test_loop_finds_rebuilds_without_the_changes_of_others():
    ended = run(200, 7, "--seconds", 3, "--broken")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "stale" in ended.stdout
