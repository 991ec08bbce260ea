"""Results: their content from the call on, how long they are stored, and the cost of reading them."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django
import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from redis_kit.core.errors import ConfigurationError, KeyConflict
from redis_kit.queues import (
    Cancelled,
    EnqueuedJob,
    NoResult,
    NotSerializable,
    PayloadTooLarge,
    Queue,
    QueueCounts,
    UnknownTask,
    WorkerLost,
    framework,
    task,
)
from redis_kit.queues.engine.calls import End
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.framework import TaskResultDoesNotExist, TaskResultMismatch, TaskResultStatus, task_backends
from redis_kit.queues.tasks import discovery, registry
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import tasks
from tests.queues.support.claiming import settle
from tests.queues.support.plain import tasks as calls
from tests.queues.support.plain.tasks import task as plain_task

BACKEND = "redis_kit.queues.backend.RedisTaskBackend"
IMMEDIATE = f"{framework.Task.__module__.partition('.base')[0]}.backends.immediate.ImmediateBackend"
READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
SUCCESSFUL, FAILED = TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED


@pytest.fixture(autouse=True)
def backend(kit, settings):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    calls.seen.clear()


@pytest.fixture
def queue(kit):
    return Queue("default")


given = []


def give():
    return given[0]


def send_object():
    calls.echo.enqueue(b"\xff")


def due_now(kit, queue):
    """Make what waits for its next attempt due."""
    for id in kit.client.zrange(queue.key("scheduled"), 0, -1):
        kit.client.zadd(queue.key("scheduled"), {id: 1})


def test_backend_has_every_feature_of_the_framework():
    found = task_backends["default"]
    assert found.supports_defer
    assert found.supports_async_task
    assert found.supports_get_result
    assert found.supports_priority


def test_result_can_be_read_in_every_state(queue, twin):
    first = twin(calls.echo.enqueue, 1)
    assert first.status == READY
    assert twin(calls.echo.get_result, first.id) == first
    (job,) = queue.claim(worker="w1")
    running = twin(calls.echo.get_result, first.id)
    assert (running.status, running.worker_ids, running.finished_at) == (RUNNING, ["w1"], None)
    assert first.enqueued_at <= running.started_at == running.last_attempted_at
    queue.nack(job)
    assert calls.echo.get_result(first.id).status == READY
    drain()
    twin(first.refresh)
    assert (first.status, first.return_value, first.attempts) == (SUCCESSFUL, 1, 2)
    assert first.started_at == running.started_at <= first.last_attempted_at
    assert twin(calls.echo.get_result, first.id) == first


def test_result_of_a_scheduled_call_is_ready_and_keeps_its_options(queue, twin):
    later = datetime.now(UTC) + timedelta(hours=1, microseconds=7)
    given = calls.echo.using(run_after=later, priority=7)
    first = twin(given.enqueue, 1)
    found = twin(calls.echo.get_result, first.id)
    assert (found, found.task, found.status) == (first, given, READY)
    assert queue.counts().scheduled == 1


def test_asking_enqueueing_and_recording_cost_one_command_each(queue, kit, twin, commands):
    twin(calls.echo.enqueue, 1)
    drain()
    with commands(kit) as sent:
        result = twin(calls.echo.enqueue, 1)
        twin(calls.echo.get_result, result.id)
        twin(result.refresh)
    assert sent == ["EVALSHA"] * 3
    with commands(kit) as sent:
        drain()
    assert sent == ["EVALSHA"] * 4  # claim, record, claim, leave


@pytest.mark.parametrize("id", ["", "nosuchjob", "nosuch.mail", "a b", "x.", "..", "x" * 200, 123, None, b"x"], ids=str)
def test_unknown_results_do_not_exist(kit, twin, id):
    with pytest.raises(TaskResultDoesNotExist):
        twin(calls.echo.get_result, id)


def test_result_of_another_task_is_a_mismatch(kit, twin):
    result = twin(calls.echo_async.enqueue, 1)
    with pytest.raises(TaskResultMismatch):
        twin(calls.echo.get_result, result.id)


@pytest.mark.parametrize("name", ["mail", "größe & 1.2~x/%", "default2"])
def test_id_alone_tells_the_queue(kit, settings, twin, name):
    result = twin(calls.echo.using(queue_name=name).enqueue, 1)
    assert result.queue_name == name
    (job,) = Queue(name).claim(worker="w")
    assert job.id == result.id
    Queue(name).sign_off(worker="w")
    assert drain(name) == 1
    found = twin(task_backends["default"].get_result, result.id)
    assert (found.return_value, found.queue_name) == (1, name)


def test_every_attempt_is_counted_and_its_error_stored(queue, kit, twin):
    kit.options(QUEUES={"MAX_ATTEMPTS": 2})
    result = twin(calls.fail.enqueue, "oh no")
    drain()
    twin(result.refresh)
    assert (result.status, result.attempts, len(result.errors)) == (READY, 1, 1)
    due_now(kit, queue)
    drain()
    twin(result.refresh)
    assert (result.status, result.attempts) == (FAILED, 2)
    assert [error.exception_class for error in result.errors] == [ValueError] * 2
    assert "oh no" in result.errors[1].traceback


def test_error_whose_class_can_not_be_imported_is_read_by_its_path(queue, kit, twin):
    kit.options(QUEUES={"MAX_ATTEMPTS": 1})
    result = twin(calls.fail.enqueue, "oh no")
    drain()
    path = "redis_kit.queues.of_another_release.Expired"
    kit.client.hset(queue.key(f"result:{result.id}"), "error1", json.dumps([path, "its traceback"]))
    twin(result.refresh)
    assert result.status == FAILED
    assert (result.errors[0].exception_class_path, result.errors[0].traceback) == (path, "its traceback")
    with pytest.raises(ImportError, match="of_another_release"):
        _ = result.errors[0].exception_class


def test_later_attempt_sees_the_errors_before_it(queue, kit):
    result = calls.fail_at_first.enqueue()
    drain()
    due_now(kit, queue)
    drain()
    result.refresh()
    assert result.return_value == ["builtins.ValueError"]


def test_signal_of_the_end_is_sent_after_the_last_attempt_with_all_errors(queue, kit):
    kit.options(QUEUES={"MAX_ATTEMPTS": 2})
    heard = []

    def receive(sender, task_result, **_):
        heard.append((task_result.attempts, len(task_result.errors), str(task_result.status)))

    framework.task_finished.connect(receive)
    try:
        calls.fail.enqueue("x")
        drain()
        assert heard == []
        due_now(kit, queue)
        drain()
    finally:
        framework.task_finished.disconnect(receive)
    assert heard == [(2, 2, "FAILED")]


def test_returned_attempt_does_not_count(queue):
    result = calls.echo.enqueue(1)
    queue.claim(worker="w1")
    queue.sign_off(worker="w1")
    result.refresh()
    assert (result.status, result.attempts, result.started_at) == (READY, 0, None)


def test_attempt_of_a_worker_that_died_counts(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    result = calls.echo.enqueue(1)
    queue.claim(worker="w1")
    wait_for(lambda: queue.heartbeat(worker="w2"))
    result.refresh()
    assert (result.status, result.worker_ids) == (READY, ["w1"])
    drain()
    result.refresh()
    assert (result.status, result.attempts, result.worker_ids[0]) == (SUCCESSFUL, 2, "w1")
    assert result.started_at < result.last_attempted_at


def test_call_never_begins_before_it_was_enqueued_whatever_the_clocks_say(queue, monkeypatch):
    later = timezone.now() + timedelta(hours=1)
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: later)
        result = calls.echo.enqueue(1)
    drain()
    result.refresh()
    assert result.enqueued_at == result.started_at == result.finished_at == later


def test_task_is_looked_at_again_when_it_is_enqueued(queue, settings, twin):
    elsewhere = tasks.remember.using(queue_name="mail")
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["other"]}}
    with pytest.raises(framework.InvalidTask, match="mail"):
        twin(elsewhere.enqueue, 1)


def test_call_with_which_workers_died_has_failed(queue, kit):
    kit.options(QUEUES={"MAX_CRASHES": 1, "HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    result = calls.echo.enqueue(1)
    queue.claim(worker="w1")
    wait_for(lambda: queue.heartbeat(worker="w2") or queue.counts().dead)
    result.refresh()
    assert (result.status, result.attempts) == (FAILED, 1)
    assert result.errors[0].exception_class is WorkerLost
    assert "poison" in result.errors[0].traceback


def test_requeued_call_is_ready_again(queue, kit):
    kit.options(QUEUES={"MAX_ATTEMPTS": 1})
    result = calls.fail_at_first.enqueue()
    drain()
    result.refresh()
    assert result.status == FAILED
    queue.requeue()
    result.refresh()
    assert (result.status, result.finished_at) == (READY, None)
    drain()
    result.refresh()
    assert (result.status, result.attempts) == (SUCCESSFUL, 2)


@pytest.mark.parametrize("given", [{}, {"RESULT_TTL": 50, "FAILED_RESULT_TTL": 70}], ids=["settings", "options"])
def test_results_expire(kit, queue, settings, given):
    kit.options(QUEUES={"MAX_ATTEMPTS": 1, "RESULT_TTL": 100, "FAILED_RESULT_TTL": 200})
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": given}}
    good, bad = calls.echo.enqueue(1), calls.fail.enqueue("x")
    drain()
    for result, seconds in ((good, given.get("RESULT_TTL", 100)), (bad, given.get("FAILED_RESULT_TTL", 200))):
        assert seconds - 20 < kit.client.ttl(queue.key(f"result:{result.id}")) <= seconds
    kit.client.delete(queue.key(f"result:{good.id}"))
    with pytest.raises(TaskResultDoesNotExist):
        good.refresh()


def test_task_that_stores_no_result_leaves_nothing(queue, kit, twin):
    heard = []
    silent = task(store_result=False)(tasks.remember.func)
    framework.task_finished.connect(lambda **_: heard.append(1), weak=False, dispatch_uid="heard")
    try:
        handle = twin(silent.enqueue, 1)
        assert isinstance(handle, EnqueuedJob)
        assert drain() == 1
    finally:
        framework.task_finished.disconnect(dispatch_uid="heard")
        registry.register(tasks.remember)
    assert heard == []
    assert not [key for key in kit.keys() if ":result:" in key]
    with pytest.raises(TaskResultDoesNotExist):
        twin(silent.get_result, handle.id)
    for ask in (handle.refresh, handle.cancel):
        with pytest.raises(NoResult, match="store_result=False"):
            twin(ask)
    with pytest.raises(NoResult, match=r"no wait_until_finished\(\)"):
        handle.wait_until_finished(1)
    with pytest.raises(NoResult, match=r"no await_until_finished\(\)"):
        asyncio.run(handle.await_until_finished(1))


@pytest.mark.django_db(transaction=True)
def test_result_read_before_the_commit_says_so(queue):
    with transaction.atomic():
        result = calls.echo.enqueue([1])
        for ask in (result.refresh, lambda: result.wait_until_finished(1)):
            with pytest.raises(TaskResultDoesNotExist, match=f"{result.id}: its transaction is not committed yet"):
                ask()


def test_tasks_of_the_kit_take_more_types_than_json_has(queue, twin):
    day = {"day": datetime(2026, 11, 21, tzinfo=UTC)}
    result = twin(tasks.remember.enqueue, day)
    drain()
    assert tasks.remember.get_result(result.id).args == [day]
    assert tasks.done[-1] == day


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("waits", [True, False])
def test_call_is_enqueued_after_the_commit_unless_an_option_says_otherwise(queue, settings, waits):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"ENQUEUE_ON_COMMIT": waits}}}
    with transaction.atomic():
        result = calls.echo.enqueue([1])
        assert (result.enqueued_at is None) is waits
        assert queue.counts().ready == (not waits)
    assert queue.counts().ready == 1
    assert calls.echo.get_result(result.id) == result
    assert result.enqueued_at


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("waits", [True, False])
def test_option_about_the_commit_also_holds_for_tasks_without_results(queue, settings, waits):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"ENQUEUE_ON_COMMIT": waits}}}
    quiet = changed(tasks.remember, store_result=False)
    with transaction.atomic():
        job = quiet.enqueue([1])
        quiet.enqueue_many([([2],)])
        assert (job.created is None) is waits
        assert queue.counts().ready == (0 if waits else 2)
    assert queue.counts().ready == 2


@pytest.mark.django_db(transaction=True)
def test_call_keeps_the_arguments_that_it_was_given(queue):
    given = [1]
    with transaction.atomic():
        result = calls.echo.enqueue(given)
        given.append(2)
    drain()
    result.refresh()
    assert result.return_value == [1]


@pytest.fixture
def waiting():
    """Start waiting in threads; what each of them was told."""
    told, threads = [], []

    def start(result, number):
        for _ in range(number):
            copy = calls.sleep.get_backend().get_result(result.id)
            threads.append(
                threading.Thread(target=lambda copy=copy: told.append((copy.wait_until_finished(30), str(copy.status))))
            )
            threads[-1].start()

    yield start, told, threads
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize("end", ["success", "failure", "cancel"])
def test_all_waiting_callers_wake_when_the_call_ends(queue, kit, waiting, blocked, end):
    if end == "cancel":
        pytest.importorskip("redis_kit.queues.features.cancel")
    start, told, threads = waiting
    kit.options(QUEUES={"MAX_ATTEMPTS": 1})
    result = calls.fail.enqueue("x") if end == "failure" else calls.echo.enqueue(1)
    start(result, 3)
    wait_for(lambda: kit.client.hget(queue.key(f"result:{result.id}"), "waiting") == "3")
    wait_for(lambda: len(blocked()) >= 3)
    if end == "cancel":
        assert result.cancel()
    else:
        drain()
    for thread in threads:
        thread.join(3)  # less than the time after which they would look again
        assert not thread.is_alive()
    assert told == [(True, "SUCCESSFUL" if end == "success" else "FAILED")] * 3
    assert not kit.client.exists(queue.key(f"finished:{result.id}"))


def test_no_wake_up_is_sent_if_no_caller_waits(queue, kit):
    result = calls.echo.enqueue(1)
    drain()
    assert not kit.client.exists(queue.key(f"finished:{result.id}"))


def test_waiting_for_a_call_that_has_ended_is_one_command(queue, kit, commands):
    result = calls.echo.enqueue(1)
    drain()
    with commands(kit) as sent:
        assert result.wait_until_finished(5)
    assert sent == ["EVALSHA"]
    assert result.return_value == 1


def test_waiting_ends_when_the_time_is_up(kit):
    result = calls.echo.enqueue(1)
    assert result.wait_until_finished(0) is False
    assert result.wait_until_finished(0.05) is False
    assert asyncio.run(result.await_until_finished(0.05)) is False
    assert result.status == READY


def test_waiting_in_an_event_loop_ends_with_the_call(queue, kit):
    async def both():
        result = await calls.echo.aenqueue(1)
        waiter = asyncio.ensure_future(result.await_until_finished(30))
        await asyncio.to_thread(wait_for, lambda: kit.client.hexists(queue.key(f"result:{result.id}"), "waiting"))
        await asyncio.to_thread(drain)
        assert await asyncio.wait_for(waiter, 4)
        return result.return_value

    assert asyncio.run(both()) == 1


@pytest.mark.parametrize("run_after", [None, timedelta(hours=1)], ids=["ready", "scheduled"])
def test_call_that_has_not_begun_can_be_cancelled(queue, twin, run_after):
    pytest.importorskip("redis_kit.queues.features.cancel")
    result = twin(tasks.remember.using(run_after=run_after).enqueue, "cancelled")
    assert twin(result.cancel) is True
    assert result.status == FAILED
    assert result.errors[0].exception_class is Cancelled
    assert twin(result.cancel) is False
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert drain() == 0


def test_call_that_runs_is_marked_for_its_worker_to_cancel(any_kit, twin):
    pytest.importorskip("redis_kit.queues.features.cancel")
    queue = Queue("default")
    result = twin(calls.echo.enqueue, 1)
    queue.claim(worker="w")
    for _ in range(2):
        assert twin(result.cancel) is True
        assert result.status == RUNNING
    assert any_kit.client.hgetall(queue.key("cancels")) == {result.id: "1"}
    assert 80_000 < any_kit.client.ttl(queue.key("cancels")) <= 86_400
    assert queue.counts() == QueueCounts(0, 0, 1, 0)


def test_marks_of_calls_that_ended_before_their_worker_knew_do_not_gather(queue, kit):
    pytest.importorskip("redis_kit.queues.features.cancel")
    for number in range(30):
        result = calls.echo.enqueue(number)
        (job,) = queue.claim(worker="w")
        assert result.cancel()
        queue.ack(job)
    assert kit.client.hlen(queue.key("cancels")) <= 10


def test_cancelled_call_ends_when_its_attempt_fails(queue, kit):
    pytest.importorskip("redis_kit.queues.features.cancel")
    result = calls.echo.enqueue(1)
    (job,) = queue.claim(worker="w")
    result.cancel()
    queue.nack(job)
    result.refresh()
    assert result.errors[0].exception_class is Cancelled
    assert not kit.client.exists(queue.key("cancels"))


def test_call_that_has_ended_can_not_be_cancelled(queue, twin):
    pytest.importorskip("redis_kit.queues.features.cancel")
    good, bad = twin(calls.echo.enqueue, 1), twin(task(max_attempts=1)(fail_once).enqueue)
    drain()
    assert twin(good.cancel) is twin(bad.cancel) is False
    assert good.return_value == 1
    assert bad.errors[0].exception_class is ValueError


def test_requeued_call_is_not_cancelled_by_an_earlier_cancellation(queue, kit):
    pytest.importorskip("redis_kit.queues.features.cancel")
    calls.echo.enqueue(1).cancel()
    result = calls.echo.enqueue(2)
    (job,) = queue.claim(worker="w")
    result.cancel()
    queue.nack(job, max_attempts=1)
    queue.requeue()
    assert not kit.client.exists(queue.key("cancels"))


@pytest.mark.parametrize("part", ["cancels", "result", "finished", "dead", "unique"])
def test_key_of_another_type_lets_cancel_change_nothing(queue, kit, part):
    pytest.importorskip("redis_kit.queues.features.cancel")
    pytest.importorskip("redis_kit.queues.features.unique")
    calls.echo.enqueue(1)
    queue.claim(worker="w")
    waits = task(unique=True)(tasks.remember.func).enqueue(1)
    key = queue.key(f"{part}:{waits.id}" if part in ("result", "finished") else part)
    kit.client.delete(key)
    kit.client.set(key, "not ours")
    before = {name: kit.client.dump(name) for name in kit.keys()}
    with pytest.raises(KeyConflict):
        waits.cancel()
    assert {name: kit.client.dump(name) for name in kit.keys()} == before
    registry.register(tasks.remember)


def test_value_that_is_too_large_makes_the_job_dead_at_once(kit, queue):
    result = calls.return_much.enqueue()
    drain()
    result.refresh()
    assert result.errors[0].exception_class is PayloadTooLarge
    reason = queue.peek(state="dead")[0].reason
    assert result.attempts == 1
    assert reason.startswith("PayloadTooLarge: The task's return value can't be stored: it has 3")
    assert reason.endswith("Or set store_result=False.")


def nested(depth):
    return [nested(depth - 1)] if depth else []


def circle():
    found = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (object, "returned is <class 'object'>, which JSON can't hold. Return"),
        ({"rows": [1, (2, {3})]}, "returned['rows'][1][1] is {3}, which JSON can't hold. Return"),
        ({"x": [float("inf")]}, "returned['x'][0] is inf, which JSON can't hold. Return"),
        ([b"\xff"], "returned[0] is b'\\xff', which JSON can't hold. Return"),
        ({(1, 2): 3}, "returned has the key (1, 2); JSON has only text as keys. Return"),
        (nested(150), "returned is nested more than 100 deep"),
        (circle(), "returned is nested more than 100 deep"),
    ],
    ids=["class", "set", "infinity", "bytes", "key", "deep", "circle"],
)
def test_value_that_can_not_be_stored_is_named_and_the_job_dead_at_once(queue, caplog, returned, said):
    result = task(max_attempts=3)(give).enqueue()
    given[:] = [returned]
    drain()
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert result.errors[0].exception_class is NotSerializable
    assert said in queue.peek(state="dead")[0].reason
    assert queue.peek(state="dead")[0].reason.endswith("Return what it can, or set store_result=False.")
    (line,) = [record for record in caplog.records if record.name == "redis_kit.worker"]
    assert "is dead after attempt 1 of 3" in line.getMessage()


def test_tuple_becomes_a_list_and_bytes_become_text_as_with_each_backend(queue):
    result = task(give).enqueue()
    given[:] = [{"rows": (1, b"two")}]
    drain()
    result.refresh()
    assert result.return_value == {"rows": [1, "two"]}


def test_error_of_the_task_itself_that_looks_the_same_is_tried_again(queue):
    result = task(max_attempts=2, backoff=0)(send_object).enqueue()
    drain()
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)


def test_long_traceback_keeps_its_end(kit, queue):
    kit.options(QUEUES={"MAX_ATTEMPTS": 1})
    result = calls.fail.enqueue("x" * 100_000)
    drain()
    result.refresh()
    (error,) = result.errors
    assert len(error.traceback) == 20_000
    assert error.traceback.endswith("xxx\n")


def test_interrupt_stops_a_test_that_runs_jobs(queue):
    result = calls.interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain()
    result.refresh()
    assert [error.exception_class for error in result.errors] == [KeyboardInterrupt]


def test_recording_a_success_twice_gives_the_same_answer(queue, kit):
    result = calls.echo.enqueue(1)
    (job,) = queue.claim(worker="w")
    for _ in range(2):
        assert settle(queue, acks=[ack_of(job, b"1", 1000)]) is None
    late = ack_of(job._replace(token="w/x/0"), b"2", 1000)
    assert settle(queue, acks=[late]) == [-1]
    result.refresh()
    assert result.return_value == 1


def kit_call(queue, step):
    def flow():
        return (yield step)

    return queue.run_flow(flow())


@pytest.mark.parametrize("part", ["result", "finished"])
def test_result_of_another_type_keeps_no_job_from_its_end(queue, kit, part):
    results = [calls.echo.enqueue(number) for number in range(3)]
    good, bad, failing = queue.claim(3, worker="w")
    for job in (bad, failing):
        kit.client.set(queue.key(f"{part}:{job.id}"), "not ours")
    assert not settle(queue, acks=[ack_of(job, b"1", 60_000) for job in (bad, good)])
    settle(queue, ends=[End(member(failing), "retry", most=1, reason=b"x", error=b"[]", ttl_ms=60_000)])
    assert queue.counts() == QueueCounts(0, 0, 0, 1)
    results[0].refresh()
    assert results[0].return_value == 1
    if part == "result":
        with pytest.raises(KeyConflict, match="is a string in place of a hash"):
            results[1].refresh()
    else:
        results[1].refresh()
        assert results[1].return_value == 1
    assert kit.client.get(queue.key(f"{part}:{bad.id}")) == "not ours"


def test_job_reads_the_same_with_a_story_and_without(queue):
    calls.echo.enqueue(1)
    (job,) = queue.claim(worker="w")
    assert isinstance(job, Job)
    assert job.payload == {"task": "tests.queues.support.plain.tasks.echo", "args": [1]}


def test_job_with_a_damaged_history_runs_and_stores_no_result(queue, kit):
    call = '{"task":"tests.queues.support.plain.tasks.echo","args":[5]}'
    kit.client.hset(queue.key("jobs"), "odd", f"0 0 0 5\n~what?\n{call}")
    kit.client.zadd(queue.key("ready"), {"odd": 0})
    assert drain() == 1
    assert calls.seen == [5]
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    with pytest.raises(TaskResultDoesNotExist):
        calls.echo.get_result("odd")


def test_unknown_task_has_failed_and_its_result_is_not_shown(queue, kit, monkeypatch):
    kit.options(QUEUES={"UNKNOWN_TASK_TTL": 0, "MAX_ATTEMPTS": 1})
    gone = calls.echo.enqueue(1)
    monkeypatch.setattr("redis_kit.queues.tasks.registry._tasks", {})
    monkeypatch.delattr(calls, "echo")
    drain()
    (dead,) = queue.peek(state="dead")
    assert "unknown task" in dead.reason
    with pytest.raises(UnknownTask):
        task_backends["default"].get_result(gone.id)


def test_task_of_another_backend_runs_when_it_is_sent_to_ours(queue, settings, monkeypatch):
    monkeypatch.setattr("redis_kit.queues.tasks.registry._tasks", {})
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE}, "our redis/ü": {"BACKEND": BACKEND}}
    result = calls.echo.using(backend="our redis/ü").enqueue(1)
    monkeypatch.setattr("redis_kit.queues.tasks.registry._tasks", {})
    assert drain() == 1
    result.refresh()
    assert (result.return_value, result.backend, result.task.backend) == (1, "our redis/ü", "our redis/ü")


def test_tasks_of_the_kit_use_the_backend_in_the_setting(queue, settings):
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE}}
    tasks.done.clear()
    result = tasks.remember.enqueue(1)
    assert (result.return_value, tasks.done) == (1, [1])
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_delay_is_a_time_to_backends_that_know_no_delays(queue, settings):
    settings.TASKS = {"default": {"BACKEND": f"{__name__}.Deferring"}}
    before = timezone.now()
    after = tasks.remember.using(run_after=timedelta(hours=1)).enqueue(1)
    assert before <= after - timedelta(hours=1) <= timezone.now()
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


class Deferring(framework.BaseTaskBackend):
    """Somebody else's backend: says when a task is to run."""

    supports_defer = supports_priority = supports_async_task = True

    def enqueue(self, task, args, kwargs):
        return task.run_after


def fail_once():
    """A function that a test makes a task of."""
    raise ValueError


def test_decorator_of_the_framework_takes_the_options_of_the_kit(queue):
    if django.VERSION[:2] == (6, 0):
        pytest.skip("the decorator of Django 6.0 takes no further options")
    result = plain_task(max_attempts=1)(fail_once).enqueue()
    drain()
    assert result.wait_until_finished(0)
    assert (result.status, result.attempts) == (FAILED, 1)


def test_worker_knows_the_queues_of_the_setting(settings):
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": ["only in the setting"]},
        "other": {"BACKEND": IMMEDIATE, "QUEUES": ["not ours"]},
    }
    assert "only in the setting" in registry.queue_names()
    assert "not ours" not in registry.queue_names()


@pytest.mark.django_db(transaction=True)
def test_signal_of_the_enqueueing_is_sent_after_the_commit(queue):
    heard = []

    def receive(sender, task_result, **_):
        heard.append((task_result.id, task_result.enqueued_at is None))

    framework.task_enqueued.connect(receive)
    try:
        with transaction.atomic():
            result = calls.echo.enqueue(1)
            assert heard == []
    finally:
        framework.task_enqueued.disconnect(receive)
    assert heard == [(result.id, False)]


def test_times_are_naive_without_use_tz(queue, settings):
    settings.USE_TZ = False
    given = calls.echo.using(run_after=datetime(2026, 1, 2, 3, 4, 5, 6))
    result = given.enqueue(1)
    assert calls.echo.get_result(result.id) == result
    drain()
    result.refresh()
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.finished_at.tzinfo is None
    assert result.task == given


def test_tasks_of_the_kit_go_to_redis_without_the_setting(queue, settings):
    del settings.TASKS
    result = tasks.remember.enqueue(1)
    assert queue.counts().ready == 1
    drain()
    assert result.wait_until_finished(0)
    assert result.return_value == 1


def test_wrong_options_fail_the_check_and_first_use_but_no_worker(queue, settings):
    result = calls.echo.enqueue(1)
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"RESULT_TLL": 5, "FAILED_RESULT_TTL": 0}}}
    messages = [message for message in checks.run_checks() if (message.id or "").startswith("redis_kit")]
    assert len(messages) == 2  # each told once
    assert {message.id for message in messages} == {"redis_kit.E002", "redis_kit.E006"}
    assert any("RESULT_TTL" in (message.hint or "") for message in messages)
    with pytest.raises(ConfigurationError, match="RESULT_TTL"):
        calls.echo.enqueue(1)
    drain()
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    assert result.wait_until_finished(0)


def test_check_of_the_kit_alone_names_wrong_options(settings):
    """Django lists the checks before a check imports the URLs, and with these the framework."""
    entry = {"BACKEND": BACKEND, "QUEUS": [], "OPTIONS": {"RESULT_TLL": 5}}
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE}, "one": entry, "two": {"BACKEND": BACKEND, "QUEUES": "mail"}}
    messages = checks.run_checks(tags=["redis_kit"])
    assert [(message.msg, message.hint) for message in messages] == [
        ("TASKS['one'] has no option 'QUEUS'.", "Did you mean 'QUEUES'?"),
        ("TASKS['one']['OPTIONS'] has no option 'RESULT_TLL'.", "Did you mean 'RESULT_TTL'?"),
        ("TASKS['two']['QUEUES'] is 'mail'; it must be a list or a tuple or a set.", "Write ['mail']."),
    ]


@pytest.mark.parametrize("queues", [None, True, 3])
def test_hint_about_wrong_queues_leads_to_no_further_error(settings, queues):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": queues}}
    (message,) = checks.run_checks(tags=["redis_kit"])
    assert message.hint == 'Write "QUEUES": [] to allow every queue, or list the names.'


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "Without QUEUES, TASKS['default'] has the queue 'default' only. Add \"QUEUES\": [] there"),
        ({"QUEUS": []}, "has the queue 'default' only. TASKS['default'] has no option 'QUEUS'. Did you mean 'QUEUES'?"),
        (
            {"QUEUES": ["mial"]},
            "backend. It is not in TASKS['default']['QUEUES']. Did you mean 'mial'? Add it there",
        ),
    ],
    ids=["missing", "misspelt", "listed"],
)
def test_queue_that_is_not_listed_says_what_to_write(settings, monkeypatch, entry, words):
    settings.TASKS = {"default": {"BACKEND": BACKEND, **entry}}
    with pytest.raises(framework.InvalidTask, match=re.escape(words)) as error:
        calls.echo.using(queue_name="mail")
    assert isinstance(error.value, ConfigurationError)
    assert str(error.value).startswith("Queue 'mail' is not valid for backend.")  # as the framework says it
    monkeypatch.setattr(discovery, "discover", lambda: calls.echo.using(queue_name="mail"))
    with pytest.raises(CommandError, match=re.escape(words)) as failure:
        call_command("rk_worker", queue_name="mail", burst=True)
    assert failure.value.returncode == 78


ALONE = """
import json, os, sys
sys.modules["django.tasks"] = sys.modules["django_tasks"] = None
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.queues.support.worker_settings"
django.setup()
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from redis_kit import queues
from redis_kit.queues import framework
assert not framework.FOUND
queue = queues.Queue("mail")
queue.put({"task": "shop.tasks.send", "args": ["secret"]})
call_command("rk_queues", "mail")
call_command("check", databases=["default"])
try:
    queues.task
except ImproperlyConfigured as error:
    print(error)
try:
    call_command("rk_worker", "--burst")
except CommandError as error:
    assert error.returncode == 78 and "django-tasks" in str(error)
from redis_kit.queues.dashboard import job_page

assert job_page.redacted_arguments(queue.peek()[0].body) == repr("***")
(job,) = queue.claim(10)
queue.ack(job)
"""


def test_tasks_without_a_framework_are_one_clear_error_and_queues_work(kit, settings):
    environment = {**os.environ, "REDIS_KIT": json.dumps(settings.REDIS_KIT)}
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    message = "Tasks need Django 6.0 or newer, or the package django-tasks: pip install 'django-redis-kit[tasks]'."
    assert message in done.stdout


def test_plain_tasks_run_in_a_worker_that_finds_them_by_itself(kit, start_worker):
    result = calls.sleep.using(queue_name="default").enqueue(0.01)
    start_worker("--burst")
    assert result.wait_until_finished(30)
    assert result.return_value == "rested"
    assert result.worker_ids
