"""Connections that are killed all the time make no strategy admit too many."""

import pytest

from tests.chaos.throttling.killed_connections import LIMIT, PERIOD, Plan, run
from tests.throttling.support.bounds import CHECKS, excess

pytestmark = pytest.mark.once
DECISIONS = 9_000


@pytest.mark.parametrize("tasks", [0, 2], ids=["sync", "async"])
def test_decisions_on_connections_that_are_killed_admit_none_too_many(tasks):
    outcome = run(Plan(DECISIONS // (tasks or 1), tasks))
    outcome.check()
    counts, kills, missed = outcome.facts.values()
    assert counts.keys() == CHECKS.keys()
    assert kills > 10
    assert missed <= kills  # a killed connection takes the reply of one decision with it, and of no other
    assert min(counts.values()) > LIMIT


@pytest.mark.parametrize("strategy", CHECKS)
def test_check_finds_one_too_many(strategy):
    start = 1_760_000_000_000_000
    fair = [start + place * PERIOD // LIMIT for place in range(LIMIT)]
    assert excess(strategy, fair, LIMIT, PERIOD) == 0
    full = [start + 10 * PERIOD] * LIMIT
    assert excess(strategy, fair + full, LIMIT, PERIOD) == 0
    assert excess(strategy, [*fair, *full, full[0]], LIMIT, PERIOD) == 1
