"""What the ends of a job leave behind, and that all readers say the same of its state."""

import pytest

from redis_kit.queues import Queue, limits, task
from redis_kit.queues.monitoring import queue_stats
from redis_kit.queues.store import claim, enqueue


@pytest.fixture
def queue(kit):
    return Queue("default")


def work(number=0):
    return number


def test_cancelled_job_whose_attempt_fails_is_not_tried_again(queue, twin, kit):
    for delay in (0, 60):
        queue.put({"a": 1}, id="n1")
        (job,) = queue.claim()
        assert queue.cancel("n1")
        assert twin(queue.nack, job, delay=delay) == "dead"
        assert queue.get("n1") is None
        assert queue.counts() == (0, 0, 0, 0)
    assert not [key for key in kit.keys() if key.endswith((":cancels", ":jobs", ":reasons"))]


def test_result_of_a_job_that_waits_for_a_limit_is_not_running(queue):
    made = task(concurrency=1)(work)
    results = [made.enqueue(number) for number in range(2)]
    queue.claim(10)
    for result in results:
        result.refresh()
    assert [result.status for result in results] == ["RUNNING", "READY"]


def test_wait_counts_jobs_that_wait_for_a_limit(queue, kit):
    limits.set_limit("default", "group=t1", concurrency=0)
    queue.put({}, group="t1")
    queue.claim()
    stats = queue_stats(["default"])["default"]
    assert stats.counts.ready == 1
    assert 0 <= stats.wait < 60


def test_dead_job_goes_after_a_month_though_no_other_one_dies(queue, kit):
    queue.put({}, id="old")
    (job,) = queue.claim()
    queue.nack(job, max_attempts=1)
    kit.client.zincrby(queue.key("dead"), -31 * 86_400_000, "old")
    queue.run_flow(_swept(queue))
    assert queue.get("old") is None
    assert queue.counts().dead == 0


def _swept(queue):
    from redis_kit.queues.store import calls

    return (yield calls.SWEEP(queue.key(""), 200, 5000, 3_601_000))


def test_process_remembers_no_worker_whose_claims_were_answered(queue):
    before = len(claim._unanswered)
    for number in range(50):
        queue.claim(worker=f"w{number}")
    assert not any(claim.unanswered(queue, f"w{number}") for number in range(50))
    assert len(claim._unanswered) == before


def test_queue_is_registered_once_there_is_room_for_its_name(kit, monkeypatch):
    monkeypatch.setattr(enqueue, "MOST_NAMES", 1)
    names = enqueue.names_key()
    kit.client.sadd(names, "first")
    Queue("second").put({})
    assert kit.client.smembers(names) == {"first"}
    kit.client.srem(names, "first")
    Queue("second").put({})
    assert kit.client.smembers(names) == {"second"}
