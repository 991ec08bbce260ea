"""Jobs that are handed over to Celery's broker while workers and the broker are killed."""

import pytest

from redis_kit.queues import QueueCounts
from tests.chaos.queues import handovers
from tests.chaos.queues.handovers import Outcome, Plan

pytestmark = [pytest.mark.alone(15), pytest.mark.once, pytest.mark.timeout(180)]
BUGGY = ("-m", "tests.chaos.queues.support.buggy_sink", *handovers.COMMAND[2:])


def test_no_job_is_lost_and_none_is_sent_twice_without_a_fault():
    outcome = handovers.run(Plan(400, rate=200, faults=("worker", "broker", "child")))
    print(outcome)
    assert not outcome.violations(), str(outcome)


def test_worker_that_takes_silence_for_an_answer_is_found():
    outcome = handovers.run(Plan(200, rate=100, faults=("broker",), command=BUGGY))
    print(outcome)
    assert "was lost" in outcome.violations()[0]


def test_checker_finds_what_was_lost_sent_twice_and_left():
    right = Outcome(Plan(2), {"a": 1, "b": 2}, {"a", "b"}, {"child": 1}, QueueCounts(0, 0, 0, 0), 1.0)
    assert not right.violations()
    wrong = Outcome(Plan(2), {"a": 99, "x": 1}, {"a", "b"}, {"child": 1}, QueueCounts(0, 0, 0, 1), 1.0)
    lost, unknown, twice, left = wrong.violations()
    assert (lost, unknown) == ("job b was lost", "message x belongs to no job")
    assert twice == "98 messages were sent again, and 8 may have been"
    assert left.startswith("jobs are left")
