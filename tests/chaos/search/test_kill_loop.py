"""No document is lost, doubled or stale; the loop finds a rebuild that does not get the changes of others."""

import pytest

from tests.fixtures.fork_server import run_python

LOOP = ["-m", "tests.chaos", "search.kill_loop", "--seed", "7", "--seconds", "3"]


def test_nothing_is_lost_doubled_or_stale():
    ended = run_python([*LOOP, "200"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "0 lost, 0 doubled, 0 stale, 0 different" in ended.stdout


@pytest.mark.seeded
def test_loop_finds_rebuilds_without_the_changes_of_others():
    ended = run_python([*LOOP, "2000", "--broken"])  # few of these change again after the last rebuild
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "0 lost, 0 doubled, 0 stale, 0 different" not in ended.stdout
