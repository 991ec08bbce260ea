"""Jobs that expire: which ones do not run, and how they are reported."""

import time
from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import Expired, Queue, signals, task
from redis_kit.queues.framework import TaskResultStatus, task_finished
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import tasks


@pytest.fixture
def queue(kit):
    tasks.done.clear()
    return Queue("default")


def remember(value: int, *, fails: bool = False) -> None:
    """A function that tests make a task of."""
    tasks.done.append(value)
    if fails:
        raise ValueError(value)


def made(**options):
    return task(**options)(remember)


def shift(kit, queue, id, seconds):
    """Let a job have been due so many seconds earlier."""
    head, _, rest = kit.client.hget(queue.key("jobs"), id).partition("\n")
    *numbers, due = head.split(" ")
    kit.client.hset(queue.key("jobs"), id, " ".join([*numbers, str(int(due) - int(seconds * 1000))]) + "\n" + rest)
    if kit.client.zscore(queue.key("scheduled"), id):
        kit.client.zincrby(queue.key("scheduled"), -int(seconds * 1000), id)


def test_job_that_could_not_begin_in_time_is_dead_and_did_not_run(any_kit, twin):
    tasks.done.clear()
    queue, heard = Queue("default"), []
    signals.job_dead.connect(receive := lambda **said: heard.append(said["reason"]))
    task_finished.connect(finished := lambda **_: heard.append("finished"))
    signals.job_started.connect(started := lambda **_: heard.append("started"))
    try:
        late = twin(made(expires=0.05).enqueue, 1)
        began = time.monotonic()
        wait_for(lambda: time.monotonic() - began > 0.1)
        assert drain() == 1
    finally:
        signals.job_dead.disconnect(receive)
        task_finished.disconnect(finished)
        signals.job_started.disconnect(started)
    twin(late.refresh)
    assert late.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in late.errors] == [Expired]
    (dead,) = queue.peek(state="dead")
    assert dead.reason.startswith("expired: it was to begin within 0.05 s, and its turn came after 0.")
    assert heard == [dead.reason]
    assert tasks.done == []


@pytest.mark.parametrize(("late", "runs"), [(59, True), (61, False)])
@pytest.mark.parametrize("delay", [0, 3600], ids=["ready", "scheduled"])
def test_time_counts_from_the_moment_at_which_a_job_was_due(queue, kit, late, runs, delay):
    result = made().using(expires=timedelta(minutes=1), run_after=timedelta(seconds=delay)).enqueue(1)
    shift(kit, queue, result.id, delay + late)
    assert drain() == 1
    assert bool(tasks.done) is runs
    assert queue.counts().dead == (not runs)


def test_call_may_have_another_time_than_its_task(queue, kit):
    expiring = made(expires=10)
    for one in (expiring, expiring.using(expires=1000), made()):
        shift(kit, queue, one.enqueue(1).id, 100)
    drain()
    assert tasks.done == [1, 1]


def test_retry_counts_from_its_own_time(queue, kit):
    result = made(expires=60, max_attempts=3).enqueue(1, fails=True)
    drain()
    shift(kit, queue, result.id, 50)
    drain()
    shift(kit, queue, result.id, 3600)
    drain()
    assert tasks.done == [1, 1]
    assert queue.peek(state="dead")[0].reason.startswith("expired: ")


def test_job_with_which_a_worker_died_runs_however_late(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    result = made(expires=60).enqueue(1)
    queue.claim(worker="w1")
    wait_for(lambda: queue.heartbeat(worker="w2"))
    shift(kit, queue, result.id, 3600)
    drain()
    assert tasks.done == [1]


def test_expired_job_that_is_requeued_runs(queue, kit):
    shift(kit, queue, made(expires=60).enqueue(1).id, 3600)
    drain()
    assert queue.requeue() == 1
    drain()
    assert tasks.done == [1]


def test_claim_tells_its_time_on_the_clock_of_the_server(queue, kit, twin, monkeypatch):
    queue.put(1)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    (job,) = twin(queue.claim)
    seconds, micros = kit.client.time()
    assert job.due < job.claimed + 0.002  # it is rounded up, and the other down
    assert job.claimed == pytest.approx(seconds + micros / 1e6, abs=10)


@pytest.mark.parametrize("wrong", [0, -1, True, "60", float("nan"), 1e12, timedelta(0)], ids=repr)
def test_wrong_times_are_refused_by_the_definition_of_the_task(wrong):
    with pytest.raises(InvalidValue, match="expires must be more than 0 and at most 315,360,000 seconds"):
        made(expires=wrong)
    with pytest.raises(InvalidValue, match="expires must be more than 0 and at most 315,360,000 seconds"):
        made().using(expires=wrong)


def test_job_that_began_in_time_and_was_returned_does_not_expire(queue, twin):
    queue.put(1)
    (first,) = twin(queue.claim, worker="w")
    time.sleep(0.05)
    twin(queue.sign_off, worker="w")
    (again,) = twin(queue.claim, worker="x")
    assert again.due >= first.due + 0.045
    assert again.attempt == 1
