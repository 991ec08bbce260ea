"""A look at cancelled() in a task that is not interrupted."""

import asyncio
import threading

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import Cancelled, Queue, cancelled, task
from redis_kit.queues.framework import TaskResultStatus
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.fixtures.process import wait_for
from tests.queues.support import in_process

begun = threading.Event()
seen: list[object] = []


@task(queue_name="mail", on_cancel="flag", max_attempts=1)
def look(raises: bool) -> str:
    """Wait until somebody cancels it."""
    seen.append(cancelled())
    begun.set()
    wait_for(cancelled)
    if raises:
        raise Cancelled("half done")
    return "stopped"


@task(queue_name="mail", on_cancel="flag", max_attempts=1)
async def look_async(raises: bool) -> str:
    """The same as a coroutine."""
    seen.append(cancelled())
    begun.set()
    while not cancelled():  # noqa: ASYNC110 -- as tasks do
        await asyncio.sleep(0.005)
    if raises:
        raise Cancelled("half done")
    return "stopped"


@pytest.fixture
def launcher(kit):
    begun.clear()
    seen.clear()
    with in_process.working(WorkerProcess(Options(("mail",), threads=1))) as worker:
        yield worker


@pytest.mark.parametrize("made", [look, look_async], ids=["sync", "async"])
@pytest.mark.parametrize("raises", [False, True])
def test_task_that_looks_is_not_interrupted_and_ends_as_it_likes(launcher, made, raises):
    result = made.enqueue(raises)
    assert begun.wait(10)
    assert result.cancel()
    launcher._runner.cancel((0, result.id))  # what the supervisor says after its heartbeat
    assert result.wait_until_finished(10)
    assert seen == [False]
    if raises:
        assert (result.status, result.errors[-1].exception_class) == (TaskResultStatus.FAILED, Cancelled)
        wait_for(lambda: Queue("mail").counts() == (0, 0, 0, 0))
    else:
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "stopped")


def test_outside_of_a_worker_nothing_is_cancelled():
    assert cancelled() is False


def test_option_has_two_values(kit):
    with pytest.raises(InvalidValue, match="on_cancel must be one of raise, flag"):
        task(on_cancel="ignore")(look.func)
