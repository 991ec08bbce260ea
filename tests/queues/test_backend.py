"""The contract of ``django.tasks``: RedisTaskBackend and the immediate backend of the framework agree on it."""

import asyncio
import sys

import pytest

from redis_kit.queues import framework
from redis_kit.queues.framework import InvalidTask, TaskResultStatus, task_backends
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support.plain import tasks as calls

OURS = "redis_kit.queues.backend.RedisTaskBackend"
CELERY = "redis_kit.queues.celery.CeleryTaskBackend"
IMMEDIATE = f"{framework.Task.__module__.partition('.base')[0]}.backends.immediate.ImmediateBackend"


@pytest.fixture(params=[OURS, CELERY, IMMEDIATE], ids=["ours", "celery", "immediate"])
def path(request, kit, settings):
    """The backend under test. One attempt only: the immediate backend knows no second one."""
    kit.options(QUEUES={"MAX_ATTEMPTS": 1, "CELERY_APP": "tests.queues.support.fleet.app"})
    settings.TASKS = {"default": {"BACKEND": request.param}}
    if request.param == CELERY:
        request.getfixturevalue("celery_thread")
    return request.param


@pytest.fixture(scope="module")
def celery_thread(tcp_valkey):
    """A worker of Celery in a thread of this process, whose broker is Redis."""
    from tests.queues.support import fleet

    fleet.connect(f"redis://127.0.0.1:{tcp_valkey.port}/6")
    with fleet.in_thread():
        yield


@pytest.fixture
def ended(path, twin):
    """A function that enqueues a call and returns its result when it has ended."""

    def call(task, *args, **kwargs):
        result = twin(task.enqueue, *args, **kwargs)
        if path != IMMEDIATE:
            assert drain() == 1
            wait_for(lambda: twin(result.refresh) or result.is_finished)
        return result

    return call


@pytest.mark.parametrize("task", [calls.echo, calls.echo_async], ids=["function", "coroutine"])
def test_call_that_succeeds_has_a_value_and_times_in_their_order(ended, task):
    result = ended(task, {"a": (1, 2.5, None)})
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == {"a": [1, 2.5, None]}
    assert (result.args, result.kwargs) == ([{"a": [1, 2.5, None]}], {})
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert (result.attempts, len(result.worker_ids), result.errors) == (1, 1, [])
    assert (result.task, result.backend) == (task, "default")


def test_keyword_arguments_arrive(ended):
    result = ended(calls.echo, 1, twice=True)
    assert (result.return_value, result.kwargs) == ([1, 1], {"twice": True})


@pytest.mark.parametrize(
    ("task", "args", "kind", "last"),
    [
        (calls.fail, ["no such user"], ValueError, "ValueError: no such user\n"),
        (calls.leave_python, [], SystemExit, "SystemExit: 3\n"),
    ],
    ids=["error", "exit"],
)
def test_call_that_fails_tells_the_error(ended, task, args, kind, last):
    result = ended(task, *args)
    assert (result.status, result.is_finished) == (TaskResultStatus.FAILED, True)
    (error,) = result.errors
    assert error.exception_class is kind
    assert error.traceback.startswith("Traceback (most recent call last)")
    assert error.traceback.endswith(last)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    assert result.finished_at >= result.started_at


def test_value_that_json_can_not_hold_fails_the_call(ended):
    result = ended(calls.return_function)
    assert result.status == TaskResultStatus.FAILED
    assert issubclass(result.errors[0].exception_class, TypeError)


def test_value_arrives_in_types_of_json(ended):
    assert ended(calls.return_pair).return_value == [1, "two"]


def test_context_tells_the_call_about_itself(ended):
    result = ended(calls.tell, "hello")
    assert result.return_value == ["hello", result.id, 1, "RUNNING", 1]


@pytest.mark.parametrize("wrong", [object(), {1, 2}], ids=["object", "set"])
def test_arguments_that_are_no_json_are_refused(path, twin, wrong):
    with pytest.raises(TypeError, match="Unsupported type"):
        twin(calls.echo.enqueue, wrong)


def test_queue_that_the_setting_does_not_name_is_refused(path, settings, twin):
    with pytest.raises(InvalidTask, match="mail"):
        calls.echo.using(queue_name="mail")
    settings.TASKS = {"default": {"BACKEND": path, "QUEUES": []}}
    elsewhere = calls.echo.using(queue_name="mail")
    settings.TASKS = {"default": {"BACKEND": path, "QUEUES": ["other"]}}
    with pytest.raises(InvalidTask, match="mail"):
        twin(elsewhere.enqueue, 1)


@pytest.mark.parametrize("priority", [101, -101, 3.1])
def test_priority_out_of_range_is_refused(path, priority):
    with pytest.raises(InvalidTask, match="priority"):
        calls.echo.using(priority=priority)


@pytest.mark.parametrize("function", [len, lambda self: lambda: 1], ids=["builtin", "inner"])
def test_only_functions_of_modules_can_be_tasks(path, function):
    inner = function if function is len else function(None)
    with pytest.raises(InvalidTask, match="module level"):
        task_backends["default"].task_class(
            func=inner, priority=0, backend="default", queue_name="default", run_after=None
        )


def test_context_must_be_the_first_argument(path):
    with pytest.raises(InvalidTask, match="context"):
        task_backends["default"].task_class(
            func=calls.echo.func,
            priority=0,
            backend="default",
            queue_name="default",
            run_after=None,
            takes_context=True,
        )


@pytest.mark.parametrize(
    ("task", "args", "status"), [(calls.echo, [1], "SUCCESSFUL"), (calls.fail, ["x"], "FAILED")], ids=["well", "badly"]
)
def test_signals_tell_of_enqueueing_start_and_end(path, ended, task, args, status):
    heard = []

    def hear(name):
        def receive(sender, task_result, **_):
            handled = sys.exc_info()[0]
            heard.append((name, sender, task_result.id, str(task_result.status), handled))

        return receive

    receivers = {name: hear(name) for name in ("task_enqueued", "task_started", "task_finished")}
    for name, receive in receivers.items():
        getattr(framework, name).connect(receive)
    try:
        id = ended(task, *args).id
        # A worker sends the last one when the result is stored, and that of a test before may come now.
        wait_for(lambda: [one[2] for one in heard].count(id) >= 3)
    finally:
        for name, receive in receivers.items():
            getattr(framework, name).disconnect(receive)
    kind = type(task_backends["default"])
    assert [one for one in heard if one[2] == id] == [
        ("task_enqueued", kind, id, "READY", None),
        ("task_started", kind, id, "RUNNING", None),
        ("task_finished", kind, id, status, ValueError if status == "FAILED" else None),
    ]


def test_task_can_be_called_here_and_now(path):
    assert calls.echo.call(1) == 1
    assert calls.echo_async.call(2) == 2
    assert asyncio.run(calls.echo.acall(3)) == 3
    assert asyncio.run(calls.echo_async.acall(4)) == 4
