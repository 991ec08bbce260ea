"""The worker inside this process: what becomes of each kind of job, and what it costs."""

import random
import time
from traceback import format_exception

import pytest
from django.conf import settings

from redis_kit.core.activity import current
from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts, signals, task
from redis_kit.queues.inspection import list_workers, queue_names
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from tests.fixtures.process import wait_for
from tests.queues.support import in_process, tasks


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 1})
    tasks.done.clear()
    return Queue("default")


def burst(*queues, threads=1):
    """Run a worker until nothing is ready."""
    assert WorkerProcess(Options(queues or ("default",), threads=threads, burst=True)).run() == 0


@pytest.mark.parametrize("activate", [tasks.activate, tasks.activate_async], ids=["thread", "loop"])
def test_language_and_time_zone_of_a_job_are_not_those_of_the_next_one(queue, activate):
    activate.using(priority=1).enqueue("fr", "Asia/Tokyo")
    tasks.tell_locale.enqueue()
    tasks.tell_locale_async.enqueue()
    burst()
    assert tasks.done == [("fr", "Asia/Tokyo"), *[(settings.LANGUAGE_CODE, settings.TIME_ZONE)] * 2]


@pytest.fixture
def last(queue):
    """A worker that stops with its first job, as its queue is left alone after a failure; and its board."""
    board = StatusBoard(1)
    worker = WorkerProcess(Options(("default",), threads=1), board=board)
    process = worker._run_job

    def stop_after(*job):
        done = process(*job)
        worker._fetcher._queues[0].retry_at = time.monotonic() + 60
        worker._fetcher._queues[0].failures = 1
        worker.stop()
        return done

    worker._run_job = stop_after
    tasks.remember.enqueue(1)
    return worker, board


def test_worker_that_stops_soon_after_a_failure_acknowledges_its_jobs(queue, last):
    worker, _ = last
    worker.run()
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_job_whose_end_can_not_be_sent_is_left_to_the_supervisor(queue, last, monkeypatch):
    worker, board = last
    exchange = WorkerQueue.exchange

    def refuse_acks(self, limit, done=()):
        if done:
            raise RedisUnavailable("refused")
        return exchange(self, limit, done)

    monkeypatch.setattr(WorkerQueue, "exchange", refuse_acks)
    worker.run()
    assert queue.counts() == QueueCounts(0, 0, 1, 0)
    assert len(board.noted()) == 1


@pytest.fixture
def working(queue):
    """A worker in threads of this process."""
    with in_process.working(WorkerProcess(Options(("default", "mail"), threads=2))) as launcher:
        wait_for(lambda: "mail" in queue_names())
        yield launcher


@pytest.fixture
def heard():
    """The signals that were sent, by name."""
    found = []
    receivers = []
    for name in ("job_enqueued", "job_started", "job_succeeded", "job_retried", "job_dead"):

        def receive(sender, name=name, **said):
            found.append((name, {key: value for key, value in said.items() if key != "signal"}))

        receivers.append(receive)
        getattr(signals, name).connect(receive)
    yield found
    for name, receive in zip(
        ("job_enqueued", "job_started", "job_succeeded", "job_retried", "job_dead"), receivers, strict=True
    ):
        getattr(signals, name).disconnect(receive)


def test_burst_runs_what_is_ready_and_leaves_no_trace_of_the_worker(queue, kit):
    for number in range(20):
        tasks.remember.enqueue(number)
    burst()
    assert tasks.done == list(range(20))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert list_workers() == []
    assert not [key for key in kit.keys() if key.rpartition(":")[0].endswith("answers")]
    assert not kit.client.exists(queue.key("info"), queue.key("workers"), queue.key("running"))


@task
def nap(number: int) -> None:
    """Take longer than a claimed job is to wait for a thread."""
    time.sleep(0.06)
    tasks.done.append(number)


def test_burst_does_not_end_while_jobs_are_on_their_way_back(queue, monkeypatch):
    release = WorkerQueue.release
    monkeypatch.setattr(WorkerQueue, "release", lambda self, jobs: (time.sleep(0.3), release(self, jobs))[1])
    for number in range(40):
        tasks.remember.enqueue(number)  # they let the worker claim several at once
    for number in range(40, 46):
        nap.enqueue(number)
    burst()
    assert sorted(tasks.done) == list(range(46))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_queues_are_served_in_strict_order(queue):
    for name in ("low", "high", "low", "high"):
        tasks.remember.using(queue_name=name).enqueue(name)
    burst("high", "low")
    assert tasks.done == ["high", "high", "low", "low"]


def test_coroutine_functions_run_too(queue):
    tasks.remember_async.enqueue(1)
    tasks.remember_async.enqueue(2)
    burst()
    assert tasks.done == [1, 2]


def test_failed_task_is_tried_again_later_and_then_dead_with_its_reason(queue, kit, heard):
    tasks.fail.enqueue("no such user")
    burst()
    assert queue.counts() == QueueCounts(1, 0, 0, 0)
    (id,) = kit.client.zrange(queue.key("scheduled"), 0, -1)
    kit.client.zadd(queue.key("scheduled"), {id: 1})
    burst()
    (dead,) = queue.peek(state="dead")
    assert (dead.id, dead.reason, dead.attempts) == (id, "ValueError: no such user", 2)
    assert tasks.done == ["no such user"] * 2
    names = [name for name, _ in heard]
    assert names == ["job_enqueued", "job_started", "job_retried", "job_started", "job_dead"]
    assert heard[-1][1] == {"queue": "default", "id": id, "reason": "ValueError: no such user"}


def test_signals_tell_of_success(queue, heard):
    handle = tasks.remember.enqueue(1)
    burst()
    assert [name for name, _ in heard] == ["job_enqueued", "job_started", "job_succeeded"]
    assert heard[0][1] == {"queue": "default", "id": handle.id}
    assert (heard[2][1]["job"].id, heard[2][1]["task"]) == (handle.id, tasks.remember)


def test_receiver_that_fails_does_no_harm(queue):
    def fail(**_):
        raise ValueError

    signals.job_started.connect(fail)
    try:
        tasks.remember.enqueue(1)
        burst()
    finally:
        signals.job_started.disconnect(fail)
    assert tasks.done == [1]


@pytest.mark.parametrize("task", [tasks.hang, tasks.hang_async], ids=["thread", "loop"])
def test_task_that_takes_too_long_is_interrupted(queue, task):
    task.enqueue()
    began = time.monotonic()
    burst()
    assert time.monotonic() - began < 10  # the task would go on
    (dead,) = queue.peek(state="dead")
    assert "ran for more than 0.1 s" in dead.reason
    tasks.remember.enqueue("next")
    burst()
    assert tasks.done == ["next"]


@pytest.mark.parametrize("task", [tasks.hang, tasks.hang_async], ids=["thread", "loop"])
def test_timeout_is_logged_once_with_the_place_where_the_task_was(queue, task, caplog):
    task.enqueue()
    burst()
    records = [record for record in caplog.records if record.name == "redis_kit.worker"]
    (error,) = [record.exc_info[1] for record in records if record.exc_info]
    told = "".join(format_exception(error))
    assert told.count("redis_kit.queues.errors.TaskTimeout") == 1
    assert told.endswith(f"redis_kit.queues.errors.TaskTimeout: {task.module_path} ran for more than 0.1 s\n")
    assert f", in {task.name}\n" in told


def test_task_that_catches_its_timeout_and_returns_has_succeeded(queue, heard):
    handle = tasks.swallow.enqueue()
    burst()
    assert [name for name, _ in heard] == ["job_enqueued", "job_started", "job_succeeded"]
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    handle.refresh()
    assert (handle.status, handle.return_value) == ("SUCCESSFUL", "swallowed")


@pytest.mark.parametrize("task", [tasks.leave_python, tasks.recurse], ids=lambda task: task.name)
def test_task_that_tries_to_end_the_process_only_fails(queue, task):
    task.enqueue()
    tasks.remember.enqueue("next")
    burst()
    (dead,) = queue.peek(state="dead")
    assert dead.reason.startswith(("SystemExit: 3", "RecursionError"))
    assert tasks.done == ["next"]


def test_unknown_task_waits_and_corrupt_message_is_dead(queue, kit):
    queue.put({"task": "os.system", "args": ["echo"]}, id="unknown")
    queue.put({"id": 1}, id="strange")
    raw(kit, queue, "torn", b'0 0 0 5\n{"task":')
    raw(kit, queue, "headless", b"\x80\x04pickle")
    raw(kit, queue, "counts", b'x y z 5\n{"task":"tests.queues.support.tasks.remember","args":[0]}')
    kit.client.zadd(queue.key("ready"), {"lost": 0})
    tasks.remember.enqueue("fine")
    burst()
    reasons = {job.id: job.reason for job in queue.peek(state="dead")}
    assert set(reasons) == {"strange", "torn", "headless", "counts"}
    assert all(reasons[id].startswith("corrupt: ") for id in ("strange", "torn", "headless", "counts"))
    assert tasks.done == ["fine"]
    assert queue.counts() == QueueCounts(1, 0, 0, 4)
    assert [job.id for job in queue.peek(state="scheduled")] == ["unknown"]


def raw(kit, queue, id, record):
    kit.client.hset(queue.key("jobs"), id, record)
    kit.client.zadd(queue.key("ready"), {id: 0})


def test_a_thousand_messages_of_random_bytes_do_not_stop_the_worker(queue, kit):
    randomness = random.Random(20)
    good = b'{"task":"tests.queues.support.tasks.remember","args":[0]}'
    for number in range(1000):
        kind, record = number % 4, bytearray(b"0 0 0 5\n" + good)
        if kind == 0:
            record = bytearray(randomness.randbytes(randomness.randrange(80)))
        elif kind == 1:
            record = bytearray(b"0 0 0 5\n" + randomness.randbytes(randomness.randrange(80)))
        else:
            for _ in range(kind):
                record[randomness.randrange(len(record))] = randomness.randrange(256)
        raw(kit, queue, randomness.randbytes(6) if number % 5 == 0 else f"job{number}", bytes(record))
    tasks.remember.using(priority=-100).enqueue("last")
    burst(threads=4)
    assert tasks.done[-1] == "last"
    counts = queue.counts()
    assert (counts.ready, counts.running) == (0, 0)
    assert counts.dead + counts.scheduled + len(tasks.done) == 1001
    assert counts.dead > 900


def test_queue_that_can_not_be_read_does_not_stop_the_others(queue, kit, working, caplog):
    kit.client.set(queue.key("ready"), "not ours")
    tasks.remember.using(queue_name="mail").enqueue("fine")
    wait_for(lambda: tasks.done == ["fine"])
    wait_for(lambda: "can't be read" in caplog.text)
    kit.client.delete(queue.key("ready"))
    tasks.remember.enqueue("again")
    wait_for(lambda: tasks.done == ["fine", "again"])


def test_idle_worker_starts_a_job_at_once(working):
    waits = []
    for number in range(20):
        began = time.monotonic()
        tasks.remember.enqueue(number)
        wait_for(lambda number=number: number in tasks.done)
        waits.append(time.monotonic() - began)
    print(f"from enqueue to run: median {sorted(waits)[10] * 1000:.1f} ms, most {max(waits) * 1000:.1f} ms")
    assert sorted(waits)[10] < 0.05


def test_all_threads_are_used_and_the_next_job_waits_for_none(working, queue):
    tasks.done.clear()
    for number in range(100):
        tasks.remember.enqueue(number)
    wait_for(lambda: len(tasks.done) == 100)
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 0))


def test_flushed_server_does_not_disturb_the_worker(working, kit):
    tasks.remember.enqueue(1)
    wait_for(lambda: tasks.done == [1])
    for key in kit.keys():
        kit.client.delete(key)
    wait_for(lambda: [worker.id for worker in list_workers(["default"])] == [working.worker])
    tasks.remember.enqueue(2)
    wait_for(lambda: tasks.done == [1, 2])


PARTS = ["jobs", "ready", "scheduled", "running", "workers", "info", "sequence", "signal", "minutes"]


def test_keys_that_somebody_deletes_do_not_disturb_the_worker(working, kit, queue):
    for number, part in enumerate(PARTS):
        kit.client.delete(queue.key(part))
        beats = kit.client.zscore(queue.key("workers"), working.worker) or 0
        wait_for(lambda beats=beats: (kit.client.zscore(queue.key("workers"), working.worker) or 0) > beats)
        wait_for(lambda: kit.client.hexists(queue.key("info"), working.worker))  # claims renew the lease, too
        tasks.remember.enqueue(number)
        wait_for(lambda number=number: number in tasks.done)


def test_lost_scripts_are_sent_again(working, kit):
    kit.client.script_flush()
    tasks.remember.enqueue(1)
    wait_for(lambda: tasks.done == [1])


def test_workers_are_listed_with_their_jobs(working, queue):
    (worker,) = list_workers()
    assert worker.id == working.worker
    assert worker.queues == ("default", "mail")
    assert worker.pid > 0
    assert worker.silent < 1


def test_job_is_named_to_others_while_it_runs_and_no_longer(queue):
    first, _, last = (
        task.enqueue(*args)
        for task, *args in ((tasks.remember_doing,), (tasks.fail, "x"), (tasks.remember_doing_async,))
    )
    after = []
    signals.job_succeeded.connect(succeeded := lambda sender, **said: after.append(current.get().work))
    burst()
    signals.job_succeeded.disconnect(succeeded)
    where = tasks.__name__
    assert sorted(tasks.done) == sorted(
        [f"job {where}.remember_doing {first.id}", "x", *[f"job {where}.remember_doing_async {last.id}"] * 2]
    )
    assert after == ["", ""]
