"""Each member reads each message once; the loop that says so finds a message that is left out."""

import pytest

from tests.chaos.mailbox import kill_loop

pytestmark = pytest.mark.alone(15)


def test_each_member_reads_each_message_once():
    outcome = kill_loop.run(kill_loop.Plan(12, 3, 300, pause=0.3, faults=8, seed=7))
    outcome.check()
    assert outcome.facts["guests"]


def test_checker_finds_what_is_wrong(tmp_path):
    history = kill_loop.History(tmp_path / "all.history")
    for number in range(1, 3):
        history.write("sent", number - 1, "c0", number, 0.0, 1.0)
    history.write("read", "c0", "m0", 0, 1, 2, 0)
    history.write("read", "c0", "m1", 0, 2, 2, 0)  # a gap
    history.write("read", "c0", "m2", 0, 1, 1, 0)
    history.write("read", "c0", "m2", 0, 1, 2, 0)  # after a kill before the ack: no error
    history.write("read", "c0", "m3", 0, 1, 1, 0)  # an end that is missing
    history.file.close()
    wrong, _ = kill_loop.check(tmp_path, 4, 1, 2)
    assert [text.partition(":")[0] for text in wrong["lost or doubled"]] == ["c0 m1", "c0 m3"]
