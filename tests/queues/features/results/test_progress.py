"""Progress: reports of a task, and what others read."""

import asyncio
from typing import Any

import pytest

from redis_kit.core.activity import current
from redis_kit.core.errors import InvalidValue, KeyConflict, RedisUnavailable
from redis_kit.queues import LeaseLost, Progress, Queue, aprogress, progress, task
from redis_kit.queues.framework import Task, TaskResultStatus
from redis_kit.queues.tasks import current_job as running
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain, processor
from tests.fixtures.process import wait_for
from tests.queues.support import tasks

IMMEDIATE = f"{Task.__module__.partition('.base')[0]}.backends.immediate.ImmediateBackend"
steps: list[Any] = []


@pytest.fixture
def queue(kit):
    tasks.done.clear()
    return Queue("default")


def work() -> None:
    """A function that tests make a task of: it takes its steps, and remembers what they return."""
    for step in steps:
        tasks.done.append(step())


async def work_async() -> None:
    """The same, of coroutine functions."""
    for step in steps:
        tasks.done.append(await step())


@pytest.fixture(params=["sync", "async"])
def run(request, queue):
    """Run a task that tells of its progress by some calls, and return its result when it has ended."""
    called = request.param == "async"

    def call(*told, **options):
        tell = aprogress if called else progress
        steps[:] = [lambda args=args: tell(*args) for args in told]
        result = task(**options)(work_async if called else work).enqueue()
        drain()
        return result

    return call


@pytest.mark.parametrize("called", ["sync", "async"])
def test_progress_is_read_while_the_task_runs_and_afterwards(any_kit, called):
    tasks.done.clear()
    seen = []
    function = work_async if called == "async" else work
    steps[:] = [lambda: progress(17, 400, "row 17"), lambda: look(function, seen)]
    if called == "async":
        steps[:] = [lambda: aprogress(17, 400, "row 17"), lambda: alook(function, seen)]
    result = task(function).enqueue()
    assert result.progress is None
    drain()
    (there,) = seen
    assert (there.status, there.progress[:3]) == (TaskResultStatus.RUNNING, (17, 400, "row 17"))
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.progress == there.progress
    assert result.started_at <= result.progress.at <= result.finished_at


def look(function, seen):
    id = running.get().job.id
    seen.append(task(function).get_result(id))


async def alook(function, seen):
    id = running.get().job.id
    seen.append(await task(function).aget_result(id))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((1,), (1, None, "")),
        ((0.5, 1.5), (0.5, 1.5, "")),
        ((3, None, "größe \n\x00"), (3, None, "größe \n\x00")),
        ((3, 2, "x" * 600), (3, 2, "x" * 500)),
        ((3, 2, "\ud800"), (3, 2, "\\ud800")),
    ],
    ids=ascii,
)
def test_progress_arrives_as_reported(run, told, expected):
    result = run(told)
    result.refresh()
    assert isinstance(result.progress, Progress)
    assert result.progress[:3] == expected


def test_task_that_tells_nothing_has_no_progress(run):
    result = run()
    result.refresh()
    assert result.progress is None


@pytest.fixture
def clock(monkeypatch):
    """The time by which progress is sent: a list, of which a test changes the only number."""
    now = [1000.0]
    monkeypatch.setattr(running, "monotonic", lambda: now[0])
    return now


def test_telling_is_one_command_and_ten_a_second_are_sent(queue, kit, commands, run, clock, monkeypatch):
    run((1,))
    monkeypatch.setattr(running, "monotonic", lambda: clock.append(0) or 1000 + len(clock) / 1000)
    with commands(kit) as sent:
        run(*[(number, 1000) for number in range(1000)])
    assert sent == ["EVALSHA"] * (10 + 5)  # enqueue, claim, record, claim, leave


def test_one_that_says_that_all_is_done_is_sent_at_once(run, clock):
    result = run((1, 5), (2, 5), (5, 5), (6, 6), (7, 6))
    result.refresh()
    assert result.progress[:2] == (5, 5)


def test_first_one_is_sent_and_the_next_after_a_while(queue, clock):
    steps[:] = [lambda: progress(1), lambda: progress(2), lambda: clock.append(clock.pop() + 0.11), lambda: progress(3)]
    result = task(work).enqueue()
    drain()
    result.refresh()
    assert result.progress.done == 3


def test_progress_of_a_failed_attempt_stays_until_the_next_one_reports(queue, kit):
    steps[:] = [lambda: progress(1, 2), lambda: 1 / 0]
    result = task(max_attempts=2, backoff=0)(work).enqueue()
    drain()
    result.refresh()
    assert (result.status, result.attempts, result.progress.done) == (TaskResultStatus.FAILED, 2, 1)
    assert [error.exception_class for error in result.errors] == [ZeroDivisionError] * 2


class Told:
    """Tells of its progress where no worker runs it."""

    def told(self, done):
        return progress(done, 2)

    async def atold(self, done):
        return await aprogress(done, 2)


def test_outside_of_a_worker_only_wrong_values_have_an_effect(kit, commands, twin):
    with commands(kit) as sent:
        assert twin(Told().told, 1) is None
        with pytest.raises(InvalidValue, match="done must be"):
            twin(Told().told, -1)
    assert sent == []


@pytest.mark.parametrize("function", [work, work_async])
def test_task_with_progress_runs_in_the_immediate_backend_and_when_called(kit, settings, function):
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE}}
    tasks.done.clear()
    steps[:] = [lambda: (aprogress if function is work_async else progress)(1, 2)]
    made = task(function)
    assert made.enqueue().status == TaskResultStatus.SUCCESSFUL
    asyncio.run(made.acall()) if made.is_async else made.call()
    assert tasks.done == [None, None]


def test_job_that_stores_no_result_tells_nothing(run, queue, kit, commands):
    run(store_result=False)  # the first job tells of its queue, too
    with commands(kit) as silent:
        run(store_result=False)
    with commands(kit) as telling:
        run((1, 2), (2, 2), store_result=False)
    assert (queue.peek(state="dead"), tasks.done) == ([], [None, None])
    assert telling == silent


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("5",), "done"),
        ((-1,), "done"),
        ((True,), "done"),
        ((None,), "done"),
        ((float("nan"),), "done"),
        ((float("inf"),), "done"),
        ((2**63,), "done"),
        ((1, "2"), "total"),
        ((1, -2), "total"),
        ((1, 2, 3), "note"),
    ],
    ids=repr,
)
def test_wrong_progress_is_refused(run, queue, wrong, said):
    run(wrong, max_attempts=1)
    assert queue.peek(state="dead")[0].reason.startswith(f"InvalidValue: {said} must be")


def test_report_on_a_job_that_another_worker_has_raises_lease_lost(queue, kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})

    def lose():
        wait_for(lambda: queue.heartbeat(worker="other"))
        try:
            progress(1)
        except LeaseLost as error:
            return str(error)

    steps[:] = [lose]
    result = task(work).enqueue()
    source = WorkerQueue("default", worker="w1", about="{}")
    (job,) = source.claim(1, worker="w1")
    processor([source]).run(0, 0, job)
    assert "is over" in tasks.done[0]
    result.refresh()
    assert result.progress is None


def test_outage_does_not_fail_the_task(own_kit, twin):
    tasks.done.clear()
    queue = Queue("default")
    job = queue.put(1)
    (job,) = queue.claim()
    token = current.set(running.CurrentJob(queue, job, lambda **_: 1000))
    try:
        own_kit.server.stop()
        with pytest.raises(RedisUnavailable):
            queue.counts()
        progress(1)
    finally:
        current.reset(token)
        own_kit.server.restart()


def test_progress_expires_and_a_key_of_another_type_is_a_conflict(queue, kit):
    id = queue.put(1)
    (job,) = queue.claim()
    token = current.set(running.CurrentJob(queue, job, lambda **_: 50_000))
    try:
        progress(1)
        assert 40_000 < kit.client.pttl(queue.key(f"result:{id}")) <= 50_000
        kit.client.delete(queue.key(f"result:{id}"))
        kit.client.set(queue.key(f"result:{id}"), "x")
        with pytest.raises(KeyConflict):
            progress(1, 1)
    finally:
        current.reset(token)


@pytest.mark.parametrize(
    "kept", [None, b"", b"x", b"5 ", b"5 [1]", b"5 [1,2,3,4]", b"x [1,2,3]", b"5 5", b"9" * 30 + b" [1,2,3]"]
)
def test_stored_progress_that_can_not_be_read_is_none(kept):
    assert stored_progress.loads(kept) is None
