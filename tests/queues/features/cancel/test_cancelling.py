"""What a cancellation reaches: the job that is meant, before and while it runs, and nothing that comes after it."""

import sys
import threading

import pytest

from redis_kit.core import connections, flow
from redis_kit.queues import Cancelled, Queue, QueueCounts, framework, task
from redis_kit.queues.dashboard.actions import JobSelection
from redis_kit.queues.engine import ids, liveness
from redis_kit.queues.engine.feature import provided
from redis_kit.queues.inspection import control_worker
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.shared.channel import pair
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.supervisor.child import Child, SupervisedQueue
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import in_process
from tests.queues.support.duties import heartbeat

begun: list[str] = []
ended: list[str] = []
open_gate = threading.Event()


@pytest.fixture
def queue(any_kit):
    return Queue("mail")


@pytest.fixture
def gate():
    """What holds the tasks up that have begun."""
    begun.clear()
    ended.clear()
    open_gate.clear()
    yield open_gate
    open_gate.set()


def hold(name: str) -> None:
    """Begin, and wait for the gate."""
    begun.append(name)
    while not open_gate.wait(0.005):
        pass
    ended.append(name)


@task(queue_name="mail", max_attempts=1)
def hold_mail(name: str) -> None:
    hold(name)


@task(queue_name="mail", max_attempts=1)
async def hold_async(name: str) -> None:
    import asyncio

    begun.append(name)
    await asyncio.to_thread(open_gate.wait)
    ended.append(name)


@task(queue_name="mail", store_result=False)
def forget() -> None:
    """Do nothing, and let nothing be stored of it."""


@task(queue_name="mail", max_attempts=1)
def fail(kind: str) -> None:
    raise {"Cancelled": Cancelled, "ValueError": ValueError}[kind]("stop")


def beaten(queue, worker):
    return flow.run(liveness.heartbeat(queue, worker), connections.client())


def mark(queue, id):
    """Cancel a job that runs."""
    assert queue.run_flow(flows_of_cancel(queue, id)) == 2


def flows_of_cancel(queue, id):
    return (yield provided("canceller")(queue.key(""), id, error="", ttl_ms=1))


def test_cancelled_job_without_a_result_leaves_none(queue, any_kit):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    handle = forget.enqueue()
    assert any_kit.client.exists(queue.key("jobs"))
    JobSelection("mail", (handle.id,)).change("cancel")
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert not any_kit.client.exists(queue.key(f"result:{handle.id}"))
    kept = hold_mail.enqueue("kept")
    JobSelection("mail", (kept.id,)).change("cancel")
    kept.refresh()
    assert kept.status == "FAILED"


@pytest.mark.parametrize("how", ["ack", "nack", "unique"])
def test_cancellation_does_not_reach_the_next_job_of_the_same_id(queue, any_kit, how):
    if how == "unique":
        pytest.importorskip("redis_kit.queues.features.unique")
    queue.put(1, id="own")
    (job,) = queue.claim(worker="w")
    mark(queue, "own")
    assert beaten(queue, "w").cancelled == ["own"]
    if how == "nack":
        assert queue.nack(job, max_attempts=1) == "dead"
    else:
        queue.ack(job)
    queue.put(2, id="own", unique="key" if how == "unique" else None)
    assert queue.claim(worker="w")[0].payload == 2
    assert beaten(queue, "w").cancelled == []
    assert any_kit.client.hlen(queue.key("cancels")) == 0


def test_cancelled_job_ends_when_its_attempt_fails(queue):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    queue.put(1, id="own")
    (job,) = queue.claim(worker="w")
    mark(queue, "own")
    queue.nack(job)
    assert queue.get("own") is None
    queue.put(2, id="own")
    queue.claim(worker="w")
    assert beaten(queue, "w").cancelled == []


@pytest.fixture
def child(any_kit):
    ours, theirs = pair()
    sources = [SupervisedQueue(name, worker="w", about=ids.information()) for name in ("mail", "news")]
    one = Child(0, "w", ours, StatusBoard(4), sources)
    one.theirs = theirs
    yield one
    one.close()
    theirs.close()


def test_each_heartbeat_tells_what_is_to_be_cancelled_until_it_has_ended(child, queue):
    queue.put(1, id="a")
    (job,) = child.sources[0].exchange(1).jobs
    mark(queue, "a")
    beat = heartbeat(child)
    for _ in range(2):
        beat.run()
        assert [words for words in child.theirs.heard() if words[0] == "cancel"] == [("cancel", "0", "a")]
    queue.ack(job)
    beat.run()
    assert [words for words in child.theirs.heard() if words[0] == "cancel"] == []


@pytest.mark.parametrize("held", [hold_mail, hold_async], ids=["thread", "loop"])
def test_only_the_job_of_the_queue_that_is_meant_is_stopped(kit, gate, held):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 5})
    upper, lower = pair()
    launcher = WorkerProcess(Options(("mail", "news"), threads=2), channel=lower)
    with in_process.working(launcher):
        first, second = held.enqueue("mail"), held.using(queue_name="news").enqueue("news")
        wait_for(lambda: sorted(begun) == ["mail", "news"])
        upper.say("cancel", 1, first.id)  # the other queue has no such job
        upper.say("cancel", 0, "nobody")
        upper.say("cancel", 1, second.id)
        upper.say("cancel", 1, second.id)
        wait_for(lambda: (second.refresh(), second.is_finished)[1])
        first.refresh()
        assert first.status == "RUNNING"
        gate.set()
        wait_for(lambda: (first.refresh(), first.is_finished)[1])
    assert [error.exception_class_path for error in second.errors] == ["redis_kit.queues.errors.Cancelled"]
    assert (first.status, second.status, ended) == ("SUCCESSFUL", "FAILED", ["mail"])
    for end in (upper, lower):
        end.close()


def test_cancelled_job_is_one_line_in_the_log_without_a_traceback(kit, caplog):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    caplog.set_level("INFO")
    sent: list[tuple[str, type]] = []

    def note(task_result, **kwargs):
        sent.append((task_result.status, sys.exc_info()[0]))

    framework.task_finished.connect(note)
    try:
        lines = {kind: ended_with(kind, caplog) for kind in ("Cancelled", "ValueError", "Cancelled")}
    finally:
        framework.task_finished.disconnect(note)
    assert [(record.levelname, record.exc_info) for record in lines["Cancelled"]] == [("INFO", None)]
    assert lines["Cancelled"][0].getMessage().endswith("was cancelled.")
    assert [bool(record.exc_info) for record in lines["ValueError"]] == [True]
    assert sent == [("FAILED", Cancelled), ("FAILED", ValueError), ("FAILED", Cancelled)]


def ended_with(kind, caplog):
    """Return what is logged of a job's end."""
    caplog.clear()
    fail.enqueue(kind)
    assert drain("mail") == 1
    return [record for record in caplog.records if "state=RUNNING" not in record.getMessage()]


def test_command_that_a_stuck_worker_did_not_take_expires(queue, any_kit):
    for worker, command in (("stuck", "stop"), ("other", "quiet")):
        queue.put("x")
        queue.heartbeat(worker=worker)
        control_worker(worker, command)
    orders, now = queue.key("orders"), any_kit.client.time()[0]
    assert now + 30 < float(any_kit.client.hget(orders, "stuck/until")) / 1000 < now + 61
    any_kit.client.hset(orders, "stuck/until", now * 1000 - 1)  # as if this time had passed
    assert beaten(queue, "stuck").command == ""
    assert beaten(queue, "other").command == "quiet"
    assert any_kit.client.hlen(queue.key("orders")) == 0


def test_orders_of_releases_before_and_after_are_taken_by_each_other(queue, any_kit):
    queue.put("x")
    queue.heartbeat(worker="w")
    control_worker("w", "quiet")
    assert any_kit.client.hget(queue.key("orders"), "w") == "quiet"
    any_kit.client.delete(queue.key("orders"))
    any_kit.client.hset(queue.key("orders"), "w", "stop")
    assert beaten(queue, "w").command == "stop"
