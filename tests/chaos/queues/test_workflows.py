"""Each callback runs once and each chain goes on while workers and the server are killed."""

import pytest

from tests.chaos.queues import workflows
from tests.chaos.queues.support.history import Entry
from tests.chaos.queues.workflows import CALLBACK, CHAIN, Plan

pytestmark = [pytest.mark.alone(30), pytest.mark.once]


@pytest.mark.timeout(180)
def test_group_and_chain_come_to_their_ends_under_kills():
    outcome = workflows.run(Plan(100, 15, lasting=0.2, calm=(0.2, 0.4), seed=11))
    outcome.check()
    assert len(outcome.facts["kills"]) >= 3


GOOD = [Entry(0, 1, 1, "begin"), Entry(0, 1, 2, "end"), Entry(CHAIN, 2, 1, "begin"), Entry(CHAIN, 2, 2, "end")]
GOOD += [Entry(CHAIN + 1, 2, 3, "begin"), Entry(CHAIN + 1, 2, 4, "end")]
GOOD += [Entry(CALLBACK, 1, 5, "begin"), Entry(CALLBACK, 1, 6, "end")]


@pytest.mark.parametrize(
    ("entries", "dead", "violation"),
    [
        (GOOD, set(), None),
        ([*GOOD, Entry(CALLBACK, 3, 7, "begin"), Entry(CALLBACK, 3, 8, "end")], {1}, None),
        ([*GOOD, Entry(CALLBACK, 3, 7, "begin"), Entry(CALLBACK, 3, 8, "end")], {2}, "ran 2 times"),
        (GOOD[:-2], set(), "step 1000000 never ended"),
        ([Entry(CALLBACK, 1, 0, "begin"), *GOOD[:-2], GOOD[-1]], set(), "the callback began before"),
        ([*GOOD[:4], Entry(CHAIN + 1, 2, 0, "begin"), *GOOD[5:]], set(), "began before the end of the one before"),
    ],
)
def test_checker_finds_what_must_not_happen(entries, dead, violation):
    violations = list(workflows.check(entries, dead, 1, 2))
    assert bool(violations) == (violation is not None)
    assert violation is None or any(violation in text for text in violations)
