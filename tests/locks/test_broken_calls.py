"""Single calls that are broken off: cancelled at each await, or without a reply. See tests/locks/histories."""

import asyncio

import pytest

from tests.locks.histories import cancellations, lost_replies
from tests.locks.histories.bugs import Seeds
from tests.locks.histories.makers import MAKERS

pytestmark = pytest.mark.alone


@pytest.fixture
def seeds():
    """What puts a bug into this process, and takes it out again."""
    found = Seeds()
    yield found
    found.sow("")


@pytest.fixture
def rounds(kit, proxy, tcp_valkey):
    """A function that runs rounds of lost replies."""
    connections = {"default": proxy.connection, "direct": {"URL": tcp_valkey.url}}
    kit.settings.REDIS_KIT = {"PREFIX": kit.prefix, "CONNECTIONS": connections, "READ_TIMEOUT": 0.4}
    return lambda **plan: lost_replies.Rounds(lost_replies.Plan(**plan), proxy).run()


def test_two_cancellations_in_a_row_at_every_await_leave_no_lease(kit):
    plan = cancellations.Plan(share=0.15, seed=11, patience=10)
    outcome = asyncio.run(cancellations.run(plan, kit.client))
    assert not outcome.violations, outcome.violations
    assert outcome.cancelled > 20


def test_clean_up_that_a_second_cancellation_ends_is_found(kit, seeds):
    seeds.sow("clean_up_in_the_cancelled_task")
    plan = cancellations.Plan(kinds=("lock",), calls=("acquire", "block"), patience=0.5)
    outcome = asyncio.run(cancellations.run(plan, kit.client))
    assert outcome.violations


def test_lost_replies_leave_no_lock_stuck_or_held_twice(rounds):
    outcome = rounds(rounds=2, seed=7, soon=10)
    assert not outcome.violations, outcome.violations
    assert len(outcome.failed) >= 4
    assert outcome.calls.total() == 2 * 2 * len(MAKERS)


@pytest.mark.parametrize(
    ("bug", "wrong"), [("release_that_waits_for_the_reply", "handed out again"), ("release_that_is_sent_once", "stuck")]
)
def test_release_that_is_not_caught_up_on_is_found(rounds, seeds, bug, wrong):
    seeds.sow(bug)
    outcome = rounds(rounds=2, seed=5, kinds=("lock",))
    assert any(text.startswith(wrong) for text in outcome.violations)
