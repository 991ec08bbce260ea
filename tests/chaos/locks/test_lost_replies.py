"""Calls without a reply: no lock is left stuck, or held twice."""

import pytest

from tests.chaos.locks import lost_replies
from tests.chaos.locks.support.lock_factories import MAKERS

pytestmark = pytest.mark.alone(7)


@pytest.fixture
def rounds(kit, proxy, tcp_valkey):
    """A function that runs rounds of lost replies."""
    connections = {"default": proxy.connection, "direct": {"URL": tcp_valkey.url}}
    kit.settings.REDIS_KIT = {"PREFIX": kit.prefix, "CONNECTIONS": connections, "READ_TIMEOUT": 0.4}
    return lambda **plan: lost_replies.Rounds(lost_replies.Plan(**plan), proxy).run()


def test_lost_replies_leave_no_lock_stuck_or_held_twice(rounds):
    outcome = rounds(rounds=2, seed=7, soon=10)
    assert not outcome.violations, outcome.violations
    assert len(outcome.failed) >= 4
    assert outcome.calls.total() == 2 * 2 * len(MAKERS)


@pytest.mark.parametrize(
    ("bug", "wrong"),
    # What the first one leaves depends on whether its owner or another caller comes next.
    [("release_that_waits_for_the_reply", ("handed out again", "stuck")), ("release_that_is_sent_once", "stuck")],
)
def test_release_that_is_not_caught_up_on_is_found(rounds, seeds, bug, wrong):
    seeds.sow(bug)
    outcome = rounds(rounds=4, seed=8, kinds=("lock",))
    assert any(text.startswith(wrong) for text in outcome.violations)
