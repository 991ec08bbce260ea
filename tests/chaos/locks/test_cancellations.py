"""Calls that are cancelled twice, at each await: no lease is left."""

import asyncio

import pytest

from tests.chaos.locks import cancellations

pytestmark = pytest.mark.alone(6)


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
