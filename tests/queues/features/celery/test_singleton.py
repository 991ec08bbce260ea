"""Celery tasks that run once at a time, and messages that the broker delivers twice."""

import contextlib

import pytest
from celery.exceptions import Ignore, Retry

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.locks import Lock
from redis_kit.locks.inspection import held_locks
from redis_kit.queues.celery import SingletonTask
from tests.queues.support import fleet

ran: list[object] = []


@fleet.app.task(base=SingletonTask, bind=True, lock_name="report:{user_id}", name="tests.report")
def report(self, user_id, fails=False):
    ran.append((user_id, self.request.lease.fence))
    if fails:
        raise ValueError(user_id)
    return user_id


@fleet.app.task(base=SingletonTask, bind=True, on_busy="retry", busy_delay=5.0, name="tests.waits")
def waits(self, *args, **kwargs):
    ran.append((args, kwargs))


@fleet.app.task(base=SingletonTask, name="tests.names_itself")
def names_itself():
    ran.extend(lock.doing for lock in held_locks().locks)


@pytest.fixture(autouse=True)
def _project(project):
    ran.clear()


@contextlib.contextmanager
def delivered(task, id="1", **more):
    """Let the task look as in a worker that got a message."""
    task.push_request(id=id, called_directly=False, is_eager=False, retries=0, delivery_info={}, **more)
    try:
        yield task
    finally:
        task.pop_request()


def deliver(task, *args, id="1", **kwargs):
    with delivered(task, id, args=args, kwargs=kwargs):
        return task(*args, **kwargs)


def test_run_has_the_lock_and_a_fence_that_grows():
    assert [deliver(report, 1, id="a"), deliver(report, 1, id="b")] == [1, 1]
    (_, first), (_, second) = ran
    assert second > first
    assert not held_locks().locks


def test_holder_of_the_lock_is_named_by_its_task():
    deliver(names_itself, id="a")
    assert ran == ["task tests.names_itself a"]


def test_second_run_is_skipped_and_other_arguments_run():
    with Lock("celery:report:1", timeout=30):
        assert deliver(report, 1) is None
        assert deliver(report, 2, id="2") == 2
    assert [user for user, _ in ran] == [2]


def test_second_run_is_tried_again_without_counting_a_retry(project):
    with delivered(waits, "1", args=[1], kwargs={"a": 2}):
        name = waits._lock_name([1], {"a": 2})
        with Lock(name, timeout=30), pytest.raises(Retry):
            waits(1, a=2)
    (message,) = project.sent()
    assert (message.headers["retries"], message.args, message.kwargs) == (0, [1], {"a": 2})
    assert message.headers["eta"]
    assert not ran


def test_message_that_comes_again_is_ignored_while_it_runs_and_after():
    with delivered(report, "1") as task:
        name = task._lock_name([1], {})
    assert deliver(report, 1) == 1
    with pytest.raises(Ignore):
        deliver(report, 1)
    assert len(ran) == 1
    with pytest.raises(ValueError, match="3"):
        deliver(report, 3, fails=True, id="3")
    with pytest.raises(Ignore):
        deliver(report, 3, fails=True, id="3")
    assert name == "celery:report:1"


def test_same_message_that_runs_elsewhere_stores_no_result_here():
    from redis_kit.queues.features.celery.singleton import Run

    Run("1", 0).begin(60)
    with Lock("celery:report:1", timeout=30), pytest.raises(Ignore):
        deliver(report, 1)


def test_retry_of_a_message_is_another_run():
    assert deliver(report, 1) == 1
    with delivered(report, "1", args=[1], kwargs={}) as task:
        task.request.retries = 1
        assert task(1) == 1


def test_direct_and_eager_calls_take_no_lock():
    with pytest.raises(AttributeError):  # there is no lease
        report(1)


def test_wrong_options_are_clear_errors():
    with pytest.raises(InvalidValue, match="'skip' or 'retry'"):
        type("Wrong", (SingletonTask,), {"on_busy": "wait"})

    @fleet.app.task(base=SingletonTask, lock_name="a:{nothing}", name="tests.wrong")
    def wrong(user_id): ...

    with pytest.raises(InvalidName, match="no argument nothing"):
        deliver(wrong, 1)
