"""Jobs that are handed over to Celery's broker while workers and the broker are killed."""

import pytest

from redis_kit.queues import QueueCounts
from tests.chaos.queues import celery_fleet, handovers
from tests.chaos.queues.handovers import Outcome, Plan
from tests.queues.support.journal import Line

pytestmark = [pytest.mark.alone(15), pytest.mark.once, pytest.mark.timeout(180)]
BUGGY = ("-m", "tests.chaos.queues.support.buggy_sink", *handovers.COMMAND[2:])


def test_no_job_is_lost_and_none_is_sent_twice_without_a_fault():
    outcome = handovers.run(Plan(400, rate=200, faults=("worker", "broker", "child")))
    print(outcome)
    assert not outcome.violations(), str(outcome)


@pytest.mark.seeded
def test_worker_that_takes_silence_for_an_answer_is_found():
    outcome = handovers.run(Plan(200, rate=100, faults=("broker",), command=BUGGY))
    print(outcome)
    assert "was lost" in outcome.violations()[0]


def test_checker_of_runs_finds_overlaps_and_what_did_not_end():
    def found(*steps):
        lines = [Line("a", step, pid, 1.0) for step, pid in steps]
        return celery_fleet.Outcome(1, ["a"], lines, QueueCounts(0, 0, 0, 0), 1.0, kills=1).violations()

    assert not found(("begin", 1), ("end", 1))
    assert not found(("begin", 1), ("begin", 2), ("end", 2))
    assert found(("begin", 1)) == ["job a did not end"]
    assert found(("begin", 1), ("end", 1), ("begin", 2), ("end", 2)) == ["job a ran again after its end"]
    assert found(("begin", 1), ("begin", 2), ("end", 1), ("end", 2)) == ["runs of job a overlap"]


def test_checker_finds_what_was_lost_sent_twice_and_left():
    right = Outcome(Plan(2), {"a": 1, "b": 2}, {"a", "b"}, {"child": 1}, QueueCounts(0, 0, 0, 0), 1.0)
    assert not right.violations()
    wrong = Outcome(Plan(2), {"a": 999, "x": 1}, {"a", "b"}, {"child": 1}, QueueCounts(0, 0, 0, 1), 1.0)
    lost, unknown, twice, left = wrong.violations()
    assert (lost, unknown) == ("job b was lost", "message x belongs to no job")
    assert twice == "998 messages were sent again, and 200 may have been"
    assert left.startswith("jobs are left")
