"""Paused queues: they take jobs in, give none out, and let workers sleep."""

import random
import threading
import time
from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.inspection import queue_names, queue_stats
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.fixtures.process import wait_for
from tests.queues.support import in_process, tasks
from tests.queues.support.claiming import claim_again


@pytest.fixture
def queue(kit):
    return Queue("default")


def test_paused_queue_takes_jobs_in_and_gives_none_out(queue, twin):
    twin(queue.pause)
    queue.put("a")
    assert twin(queue.claim, 5) == []
    assert queue.counts().ready == 1
    assert twin(queue.resume)
    assert [job.payload for job in twin(queue.claim, 5)] == ["a"]
    assert not twin(queue.resume)


def test_jobs_that_got_due_meanwhile_are_given_out_after_it(queue, kit):
    queue.pause()
    queue.put("later", delay=0.001)
    (job,) = queue.peek(state="scheduled")
    wait_for(lambda: server_time(kit) > job.due)
    assert queue.claim(5) == []
    assert queue.counts() == QueueCounts(1, 0, 0, 0)
    queue.resume()
    assert [job.payload for job in queue.claim(5)] == ["later"]


def server_time(kit):
    seconds, micros = kit.client.time()
    return seconds + micros / 1e6


def test_running_job_ends_as_usual(queue, twin):
    queue.put_many(range(3))
    first, second, third = queue.claim(3)
    twin(queue.pause)
    twin(queue.ack, first)
    assert twin(queue.nack, second) == "ready"
    assert twin(queue.nack, third, max_attempts=1) == "dead"
    assert queue.requeue() == 1
    assert twin(queue.claim, 3) == []


def test_pause_ends_by_itself(queue, twin):
    twin(queue.pause, 0.1)
    queue.put(1)
    assert twin(queue.claim) == []
    wait_for(lambda: twin(queue.claim))
    assert twin(queue.paused) is None
    assert not twin(queue.resume)


def test_pause_tells_since_when_and_how_long(queue, twin):
    twin(queue.pause, timedelta(minutes=1))
    first = twin(queue.paused)
    assert first.since == pytest.approx(time.time(), abs=30)
    assert 50 < first.ends_in <= 60
    twin(queue.pause, 3600)
    assert twin(queue.paused).since == first.since
    assert twin(queue.paused).ends_in > 3000
    twin(queue.pause)
    assert twin(queue.paused) == first._replace(ends_in=None)


def test_each_is_one_command(queue, twin, kit, commands):
    for method in (queue.pause, queue.paused, queue.resume):
        twin(method)
    with commands(kit) as sent:
        for method in (queue.pause, queue.paused, queue.resume):
            twin(method)
    assert sent == ["EVALSHA"] * 3


def test_report_tells_of_the_pause(queue):
    Queue("mail").pause(60)
    found = queue_stats(["default", "mail"], minutes=3)
    assert found["default"].paused is None
    assert found["mail"].paused == Queue("mail").paused()._replace(ends_in=found["mail"].paused.ends_in)
    assert len(found["mail"].done) == len(found["mail"].failed) == 3


def test_other_queues_go_on(queue):
    queue.pause()
    Queue("mail").put(1)
    assert len(Queue("mail").claim()) == 1


def test_claim_whose_answer_got_lost_is_repeated_in_a_pause(queue):
    queue.put_many(range(3))
    first = claim_again(queue, "token", 2, again=False)
    queue.pause()
    again = claim_again(queue, "token", 2)
    assert again.partition(b"\n")[2] == first.partition(b"\n")[2] != b""
    assert again.startswith(b"-1.000 ")


def test_claim_and_beat_tell_when_the_pause_ends(queue):
    from redis_kit.core import connections, flow
    from redis_kit.queues.engine import claim, liveness

    queue.put(1)
    for seconds, low, high in ((60, 50, 60), (0.001, 0, 0.01)):
        queue.pause(seconds)
        claimed = flow.run(claim.claim(queue, 1, "me"), connections.client())
        if claimed.jobs:
            return  # the short one may be over
        beaten = flow.run(liveness.heartbeat(queue, "me"), connections.client())
        assert low <= claimed.next <= high
        assert low <= beaten.next_job <= high


def test_pause_without_an_end_tells_of_no_next_job(queue):
    from redis_kit.core import connections, flow
    from redis_kit.queues.engine import claim, liveness

    queue.put(1)
    queue.put(2, delay=0.001)
    queue.pause()
    assert flow.run(claim.claim(queue, 1, "me"), connections.client()).next is None
    assert flow.run(liveness.heartbeat(queue, "me"), connections.client()).next_job is None


def test_jobs_wake_nobody_in_a_pause_and_the_end_of_it_does(queue, kit):
    queue.pause()
    queue.put_many(range(5))
    queue.put(1, delay=0.001)
    assert not kit.client.exists(queue.key("signal"))
    queue.resume()
    assert kit.client.llen(queue.key("signal")) == 1


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "5", True, 1e12, timedelta(0)])
def test_wrong_times_are_refused(wrong):
    with pytest.raises(InvalidValue, match="seconds"):
        Queue("mail").pause(wrong)


def test_key_of_another_type_is_a_conflict(queue, kit):
    kit.client.hset(queue.key("paused"), "x", 1)
    for method in (queue.pause, queue.paused):
        with pytest.raises(KeyConflict):
            method()
    assert queue.resume()


def test_key_of_another_type_keeps_nobody_from_ending_a_pause(queue, kit):
    kit.client.set(queue.key("ready"), "x")
    queue.pause()
    assert queue.resume()
    assert not queue.resume()
    assert kit.client.get(queue.key("ready")) == "x"


@pytest.fixture
def working(kit):
    """A worker in threads of this process; only signs can wake it."""
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 30, "WORKER_TIMEOUT": 100})
    tasks.done.clear()
    with in_process.working(WorkerProcess(Options(("default",), threads=2))) as launcher:
        wait_for(lambda: "default" in queue_names() and Queue("default").key("workers") in kit.keys())
        yield launcher


def test_worker_goes_on_when_the_queue_is_resumed(working, queue):
    queue.pause()
    tasks.remember.enqueue(1)
    assert queue.counts().ready == 1
    assert tasks.done == []
    queue.resume()
    wait_for(lambda: tasks.done == [1])


def test_worker_goes_on_when_the_pause_ends(working, queue):
    queue.pause(0.3)
    began = time.monotonic()
    tasks.remember.enqueue(1)
    wait_for(lambda: tasks.done == [1], timeout=10)
    assert time.monotonic() - began > 0.2


def test_worker_learns_of_an_earlier_end(working, queue):
    queue.pause(600)
    tasks.remember.enqueue(1)
    queue.pause(0.2)
    wait_for(lambda: tasks.done == [1], timeout=10)


def test_worker_of_a_paused_queue_sleeps(working, queue, kit, commands):
    queue.pause(600)
    wait_for(lambda: not kit.client.exists(queue.key("signal")))
    with commands(kit) as sent:
        for number in range(20):
            tasks.remember.enqueue(number)
        time.sleep(0.5)
    assert tasks.done == []
    assert sent.count("EVALSHA") <= 23  # 20 of the enqueuing ones


def test_no_job_is_left_lying_however_often_the_queue_is_paused(working, queue):
    ends = threading.Event()

    def disturb():
        while not ends.is_set():
            queue.pause(random.choice([None, 0.001, 0.01, 60]))
            queue.resume() if random.random() < 0.5 else queue.pause(0.01)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(300):
            tasks.remember.using(run_after=timedelta(milliseconds=number % 3)).enqueue(number)
    finally:
        ends.set()
        thread.join(10)
    queue.resume()
    wait_for(lambda: len(tasks.done) == 300, timeout=20)
    assert sorted(tasks.done) == list(range(300))


def test_burst_ends_on_a_paused_queue(queue):
    queue.pause()
    tasks.done.clear()
    tasks.remember.enqueue(1)
    assert WorkerProcess(Options(("default",), threads=1, burst=True)).run() == 0
    assert tasks.done == []
