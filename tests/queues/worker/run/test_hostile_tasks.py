"""Errors that can't be printed, and user code that exits: each job comes to an outcome, and the worker goes on."""

import gc
import logging
import weakref

import pytest
from django.db import connection
from django.dispatch import Signal

from redis_kit.core import signals as core_signals
from redis_kit.core.logs import error_text
from redis_kit.queues import Queue, QueueCounts, framework, signals, task
from redis_kit.queues.engine import claim
from redis_kit.queues.features.results import recorder
from redis_kit.queues.worker import process
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.run import attempt, runner
from tests.fixtures.process import wait_for
from tests.queues.support import hostile_tasks as hostile
from tests.queues.support import in_process, tasks


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.1, "WORKER_TIMEOUT": 5})
    tasks.done.clear()
    return Queue("default")


def work_off(queue):
    """Let one thread do all that is ready, and a job after it."""
    tasks.remember.using(priority=-100).enqueue("next")
    assert WorkerProcess(Options(("default",), threads=1, burst=True)).run() == 0
    assert tasks.done[-1:] == ["next"]
    assert queue.counts().running == 0


MADE = {"its own cause": "Empty: circle", "a group": "BaseExceptionGroup: many"}


@pytest.mark.parametrize("fail", [hostile.fail_as, hostile.fail_as_async], ids=["thread", "loop"])
def test_job_whose_error_is_hostile_is_dead_with_a_reason_and_a_result(queue, caplog, fail):
    results = {name: fail.enqueue(name) for name in hostile.ERRORS}
    work_off(queue)
    assert queue.counts() == QueueCounts(0, 0, 0, len(hostile.ERRORS))
    reasons = {job.id: job.reason for job in queue.peek(state="dead")}
    for name, result in results.items():
        result.refresh()
        reason = reasons[result.id]
        assert result.status == "FAILED", name
        assert len(result.errors) == 2, name
        assert "fail_as" in result.errors[0].traceback, name
        assert len(reason) <= 1000
        made = "RuntimeError" if name == "StopIteration" and fail.is_async else name
        assert reason.startswith(MADE.get(name, made)), name
    assert "StrRaises: (its text can't be read)" in reasons.values()
    told = [record for record in caplog.records if "is dead after" in record.message]
    assert len(told) == len(hostile.ERRORS)
    for record in told:
        assert "fail_as" in logging.Formatter().format(record)


def test_text_of_an_error_is_that_of_the_error_where_it_has_one():
    assert error_text.described(ValueError("a", 1)) == "ValueError: ('a', 1)"
    assert error_text.described(ValueError()) == "ValueError"
    assert error_text.described(hostile.StrIsASubclass()) == "StrIsASubclass: a text"
    assert len(error_text.text_of(hostile.StrIsHuge())) == error_text.TEXT
    assert type(error_text.text_of(hostile.StrIsASubclass())) is str
    assert error_text.path_of(hostile.ModuleIsNoText) == "?.ModuleIsNoText"
    assert error_text.exc_info(error := ValueError("x"))[1] is error


def exits(*_args, **_kwargs):
    """Do what no function of a user's should do."""
    raise SystemExit(9)


@pytest.fixture
def heard():
    """Connect a receiver that exits to all signals that a worker sends."""
    found = [signals.job_started, signals.job_succeeded, signals.job_retried, signals.job_dead]
    found += [framework.task_started, framework.task_finished]
    for one in found:
        one.connect(exits)
    yield
    for one in found:
        one.disconnect(exits)


def test_receivers_that_exit_cost_neither_a_job_nor_a_thread(queue, heard, caplog):
    tasks.remember.enqueue(1)
    tasks.fail.enqueue("x")
    hostile.fail_as.enqueue("SystemExit")
    work_off(queue)
    assert tasks.done == [1, "x", "next"]
    assert queue.counts() == QueueCounts(1, 0, 0, 1)
    assert "was about to end its thread" in caplog.text


class Thing:
    """A value that a task has: a connection or a file."""


things = []


def _have_one():
    thing = Thing()
    things.append(weakref.ref(thing))
    raise ValueError("x")


@task(max_attempts=1)
def have_one():
    """Fail with a thing in a local variable."""
    _have_one()


@task(max_attempts=1)
async def have_one_async():
    """See have_one()."""
    _have_one()


@pytest.mark.parametrize("work", [have_one, have_one_async], ids=["thread", "loop"])
def test_things_of_a_failed_task_end_with_its_attempt(queue, work):
    things.clear()
    logging.disable()  # pytest keeps all records, with their tracebacks
    gc.disable()
    try:
        work.enqueue()
        work_off(queue)
        wait_for(lambda: [thing() for thing in things] == [None])  # the loop's thread may come last
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)


class OnlyCalled:
    """A receiver without a name, of which Django's own log of a failed receiver makes an error."""

    def __call__(self, **_):
        raise ValueError


def test_receiver_without_a_name_that_fails_does_no_harm():
    signal = Signal()
    signal.connect(receiver := OnlyCalled())
    core_signals.send_safely(signal, None)
    del receiver


@task(takes_context=True, max_attempts=1)
def take(context):
    """Take a context."""


class Returned(dict):
    """A value that can't be read."""

    def items(self):
        exits()

    __iter__ = keys = values = __len__ = items


@task(max_attempts=1)
def give():
    """Return such a value."""
    return Returned(a=1)


@task(backoff=exits, max_attempts=3)
def wait():
    """Fail, with a backoff that exits."""
    raise ValueError("x")


PLACES = {
    "recorder": (recorder.history, "backend"),
    "start": (attempt.message, "loads"),
    "result": (recorder.ResultRecorder, "result"),
    "error": (recorder.ResultRecorder, "error"),
    "keeps": (recorder.ResultRecorder, "keeps"),
    "begin": (recorder.ResultRecorder, "begin"),
    "context": (recorder.ResultRecorder, "context"),
    "connections": (runner.connections, "all"),
    "limits": (process.WorkerProcess, "_reached_limit"),
    "ack": (runner, "done_of"),
    "log": (logging.Logger, "handle"),
}


@pytest.mark.parametrize("place", PLACES)
def test_whatever_exits_between_claim_and_outcome_leaves_no_job_running(queue, monkeypatch, place):
    calls = [tasks.remember.enqueue(1), tasks.fail.enqueue("x"), take.enqueue(), give.enqueue(), wait.enqueue()]
    owner, name = PLACES[place]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, exits)
        with in_process.working(WorkerProcess(Options(("default",), threads=1))):
            wait_for(lambda: not queue.counts().ready, timeout=30)
            wait_for(lambda: not queue.counts().running, timeout=30)
    work_off(queue)
    assert len(calls) >= sum(queue.counts())


def test_record_that_fails_is_tried_again_in_a_plain_form(queue, monkeypatch, caplog):
    reasons, fail = [], claim.fail

    def refuse(queue, job, delay, error, most, result):
        reasons.append((error, result))
        if len(reasons) < 3:
            raise TypeError("can't be sent")
        return fail(queue, job, delay, error, most, result)

    monkeypatch.setattr(claim, "fail", refuse)
    hostile.fail_as.enqueue("Empty")
    with in_process.working(WorkerProcess(Options(("default",), threads=1))):
        wait_for(lambda: queue.counts().dead == 1, timeout=30)
    assert reasons[0][1] != reasons[1][1]
    assert reasons[1] == ("Empty", (b"", 0))
    assert "its outcome could not be recorded: TypeError: can't be sent" in caplog.text


seen = []


@task
def leave_open():
    """Leave a transaction open, as a task does that is interrupted where it ends one."""
    seen.append(connection.in_atomic_block)
    connection.ensure_connection()
    connection.in_atomic_block = True


@pytest.mark.django_db(transaction=True)
def test_transaction_that_a_task_left_open_is_not_the_next_jobs(queue):
    seen.clear()
    leave_open.enqueue()
    leave_open.enqueue()
    assert WorkerProcess(Options(("default",), threads=1, burst=True)).run() == 0
    assert seen == [False, False]
