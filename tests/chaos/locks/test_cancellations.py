"""Calls that are cancelled twice, at each await: no lease is left."""

import pytest

from tests.chaos.locks import cancellations

pytestmark = pytest.mark.alone(6)


def test_two_cancellations_in_a_row_at_every_await_leave_no_lease():
    outcome = cancellations.run(cancellations.Plan(share=0.15, seed=11, patience=10))
    outcome.check()
    assert outcome.facts["cancelled"] > 20


def test_clean_up_that_a_second_cancellation_ends_is_found():
    plan = cancellations.Plan("lock", calls=("acquire", "block"), patience=0.5, bug="clean_up_in_the_cancelled_task")
    assert cancellations.run(plan).violations
