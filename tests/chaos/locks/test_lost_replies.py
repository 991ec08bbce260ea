"""Calls without a reply: no lock is left stuck, or held twice."""

import pytest

from tests.chaos.locks.lost_replies import Plan, run
from tests.chaos.locks.support.lock_factories import MAKERS

pytestmark = pytest.mark.alone(7)


def test_lost_replies_leave_no_lock_stuck_or_held_twice():
    outcome = run(Plan(2, seed=7, soon=10, timeout=0.4))
    outcome.check()
    assert len(outcome.facts["failed"]) >= 4
    assert outcome.facts["calls"].total() == 2 * 2 * len(MAKERS)


@pytest.mark.parametrize(
    ("bug", "wrong"),
    # What the first one leaves depends on whether its owner or another caller comes next.
    [("release_that_waits_for_the_reply", ("handed out again", "stuck")), ("release_that_is_sent_once", ("stuck",))],
)
def test_release_that_is_not_caught_up_on_is_found(bug, wrong):
    outcome = run(Plan(4, "lock", seed=8, timeout=0.4, bug=bug))
    assert any(outcome.found[kind] for kind in wrong)
