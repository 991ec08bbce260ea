"""What the ends of a job leave behind, and that all readers say the same of its state."""

import pytest

from redis_kit.queues import Queue, limits, task
from redis_kit.queues.engine import claim, enqueue
from redis_kit.queues.inspection import queue_stats


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
        assert twin(queue.nack, job, delay=delay) == "dead"  # as after a lost reply
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
    from redis_kit.queues.engine import calls

    return (yield calls.SWEEP(queue.key(""), 200, 5000, 3_601_000))


def test_process_remembers_no_worker_whose_claims_were_answered(queue):
    before = len(claim._unanswered)  # of tests whose replies were lost
    for number in range(50):
        queue.claim(worker=f"w{number}")
    assert not any(claim.unanswered(queue, f"w{number}") for number in range(50))
    assert len(claim._unanswered) == before


def test_queue_without_room_for_its_name_is_logged_and_registered_later(kit, commands, monkeypatch, caplog):
    monkeypatch.setattr(enqueue, "MOST_NAMES", 1)
    clock = [1000.0]
    monkeypatch.setattr(enqueue, "monotonic", lambda: clock[0])
    names = enqueue.names_key()
    kit.client.sadd(names, "first")
    Queue("second").put({})
    (line,) = caplog.messages
    assert "Queue 'second' works" in line
    assert "there are 1 names" in line
    with commands(kit) as sent:
        Queue("second").put({})
        Queue("third").put({})
    assert "SADD" not in sent
    assert "SCARD" not in sent
    clock[0] += 61
    Queue("third").put({})
    assert len(caplog.messages) == 1
    assert kit.client.smembers(names) == {"first"}
    kit.client.srem(names, "first")
    clock[0] += 61
    Queue("second").put({})
    assert kit.client.smembers(names) == {"second"}


def test_head_of_a_lane_that_waits_for_its_rate_is_ready_to_all_readers(queue, kit):
    made = task(rate="6/m")(work)
    results = [made.enqueue(number) for number in range(4)]
    queue.put("later", delay=60, id="later")
    assert [job.id for job in queue.claim(1)] == [results[0].id]
    queue.claim(1)
    states = [queue.get(result.id).state for result in results]
    assert states == ["running", "ready", "ready", "ready"]
    assert queue.counts() == (1, 3, 1, 0)
    assert {info.id for info in queue.peek(10, state="ready")} == {result.id for result in results[1:]}
    assert [info.id for info in queue.peek(10, state="scheduled")] == ["later"]
    assert queue.purge("scheduled") == 1
    assert queue.counts() == (0, 3, 1, 0)
    assert queue.purge("ready") == 3
    assert queue.counts() == (0, 0, 1, 0)
    assert not kit.client.exists(queue.key("scheduled"))


@pytest.mark.parametrize("through", ["reap", "heartbeat"])
def test_result_of_a_job_that_died_as_poison_outlives_the_dead_job(queue, kit, through, settings):
    made = task(max_attempts=9)(work)
    result = made.enqueue()
    for _ in range(3):
        (job,) = queue.claim(worker="w")
        if through == "reap":
            queue.run_flow(_reaped(queue, job))
        else:
            kit.client.zadd(queue.key("workers"), {"w": 1.5})
            queue.heartbeat(worker="v")
    (dead,) = queue.peek(state="dead")
    assert dead.reason.startswith("poison")
    queue.delete(job.id)
    result.refresh()
    assert result.status == "FAILED"
    assert [error.traceback for error in result.errors] == [dead.reason]
    assert kit.client.pttl(queue.key(f"result:{job.id}")) > 86_400_000
    assert not kit.client.exists(queue.key("endings"))


def _reaped(queue, job):
    from redis_kit.queues.engine import calls, liveness

    _, endings, *_ = yield calls.reap(queue.key(""), "w", [job.id])
    yield from liveness.after_endings(queue, endings)


@pytest.mark.parametrize("through", ["sign_off", "heartbeat", "reap", "release", "postpone"])
def test_cancelled_job_whose_worker_ends_is_gone_as_cancelled(queue, kit, through):
    from redis_kit.queues.engine import claim
    from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

    result = task(unique=True, concurrency=1)(work).enqueue()
    (job,) = queue.claim(worker="w")
    queue.cancel(job.id)
    if through == "sign_off":
        queue.sign_off(worker="w")
    elif through == "heartbeat":
        kit.client.zadd(queue.key("workers"), {"w": 1.5})
    elif through == "reap":
        queue.run_flow(_reaped(queue, job))
    elif through == "release":
        WorkerQueue("default", worker="w", about="").release([job])
    else:
        assert queue.run_flow(claim.postpone(queue, [(job, 60.0)], holds=True)) == [True]
    queue.heartbeat(worker="v")
    result.refresh()
    assert result.status == "FAILED"
    assert [error.exception_class_path.rpartition(".")[2] for error in result.errors] == ["Cancelled"]
    assert queue.counts() == (0, 0, 0, 0)
    parts = ("jobs", "cancels", "owners", "unique", "lanes", "endings", "running")
    assert not [part for part in parts if kit.client.exists(queue.key(part))]


@pytest.mark.parametrize("end", ["done", "dead"])
def test_mark_of_a_job_that_ends_before_its_worker_saw_it_goes_with_it(queue, kit, end):
    queue.put(1)
    (job,) = queue.claim()
    queue.cancel(job.id)
    if end == "done":
        queue.ack(job)
    else:
        queue.nack(job, max_attempts=1)
    assert not kit.client.exists(queue.key("cancels"))


@pytest.mark.parametrize("options", [{"unique": "u"}, {"group": "a"}], ids=str)
def test_process_that_knows_nothing_of_a_queue_ends_its_jobs(kit, twin, monkeypatch, options):
    queue = Queue("default")
    queue.put_many(range(2), group="a")
    queue.put(2, **options)
    jobs = queue.claim(3, worker="w")
    monkeypatch.setattr(claim, "_features", {})
    assert twin(queue.ack, *jobs) is None
    assert queue.put(3, **options)
    assert queue.counts() == (0, 1, 0, 0)
