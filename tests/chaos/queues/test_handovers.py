"""Jobs that are handed over to Celery's broker while workers and the broker are killed."""

import pytest

from tests.chaos.queues import celery_fleet, handovers
from tests.chaos.queues.handovers import Plan
from tests.chaos.queues.support import recorded_sink
from tests.queues.support.journal import Line

pytestmark = [pytest.mark.alone(15), pytest.mark.once, pytest.mark.timeout(180)]
BUGGY = ("-m", "tests.chaos.queues.support.buggy_sink", *handovers.OF_WORKER)


def test_no_job_is_lost_and_none_is_sent_twice_without_a_fault():
    handovers.run(Plan(400, rate=200, faults=("worker", "broker", "child"))).check()


@pytest.mark.seeded
def test_worker_that_takes_silence_for_an_answer_is_found():
    assert handovers.run(Plan(200, rate=100, faults=("broker",), command=BUGGY)).found["lost"]


def test_checker_of_runs_finds_overlaps_and_what_did_not_end():
    def found(*steps):
        lines = [Line("a", step, pid, 1.0) for step, pid in steps]
        texts, _ = celery_fleet.violations(["a"], lines, kills=1)
        return [text for kind in texts.values() for text in kind]

    assert not found(("begin", 1), ("end", 1))
    assert not found(("begin", 1), ("begin", 2), ("end", 2))
    assert found(("begin", 1)) == ["job a did not end"]
    assert found(("begin", 1), ("end", 1), ("begin", 2), ("end", 2)) == ["job a ran again after its end"]
    assert found(("begin", 1), ("begin", 2), ("end", 1), ("end", 2)) == ["runs of job a overlap"]


def test_checker_finds_what_was_lost_and_sent_twice():
    assert not any(handovers.violations({"a": 1, "b": 2}, {"b": 1}, {"a", "b"}).values())
    assert handovers.violations({"a": 3, "x": 1}, {"a": 1}, {"a", "b"}) == {
        "lost": ["job b was lost"],
        "unknown": ["message x belongs to no job"],
        "doubled": ["job a was sent again without a fault"],
    }


def test_jobs_are_in_flight_until_the_queue_knows_the_answer(tmp_path):
    second = 1_000_000_000
    lines = ["7 1 0 begin a,b", f"7 1 {second} taken a", f"7 1 {second} begin c", f"7 1 {9 * second} taken c"]
    (tmp_path / "batches").write_text("\n".join([*lines, "8 1 0 begin d", ""]))
    first, then, cut = recorded_sink.read(tmp_path / "batches")
    assert (first.in_flight({}), then.in_flight({}), cut.in_flight({})) == (["b"], [], ["d"])
    assert first.in_flight({7: second + 5_000}) == ["a", "b"]  # killed before it could tell the queue
    assert first.in_flight({7: 9 * second}) == ["b"]
