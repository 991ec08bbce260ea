"""Errors that the worker raises inside tasks: when, where, and for which job."""

import contextlib
import logging
import sys
import threading
import time

import pytest

from redis_kit.core.errors import RedisKitError
from redis_kit.queues import Cancelled, TaskTimeout
from redis_kit.queues.worker.run import timeouts
from redis_kit.queues.worker.run.timeouts import Timeouts
from tests.fixtures.process import wait_for

JOB = (0, "a")


@pytest.fixture
def limits():
    """Deadlines whose thread runs."""
    found = Timeouts()
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    found.stop()
    thread.join(10)


def for_ever():
    """Do nothing, in Python."""
    while True:
        time.sleep(0.001)


@pytest.mark.parametrize("kind", [TaskTimeout, Cancelled])
def test_no_net_for_failures_catches_what_ends_a_task(kind):
    assert not issubclass(kind, Exception)
    assert not issubclass(kind, OSError)
    assert not issubclass(kind, RedisKitError)


def test_task_that_catches_all_exceptions_is_ended_in_time(limits):
    def work():
        while True:
            try:
                for_ever()
            except OSError:
                continue
            except Exception:  # noqa: S112 -- as bad tasks do
                continue

    with pytest.raises(TaskTimeout):
        limits.run_within(JOB, 0.05, work)


def test_job_is_cancelled_once_and_the_next_one_is_not(limits):
    errors = []

    def work():
        try:
            for_ever()
        except Cancelled as error:
            errors.append(error)
            assert not limits.cancel(JOB)
            time.sleep(0.05)

    thread = threading.Thread(target=lambda: [limits.run_within(JOB, None, work), limits.run_within(JOB, None, int)])
    thread.start()
    wait_for(lambda: limits.cancel(JOB))
    thread.join(10)
    assert not thread.is_alive()
    assert len(errors) == 1


def test_work_that_ends_as_its_time_is_up_leaves_nothing_behind(limits):
    ended = {"in time": 0, "late": 0}
    for number in range(300):
        seconds = 0.0001 * (number % 30)
        try:
            limits.run_within(JOB, 0.001, lambda seconds=seconds: time.sleep(seconds))
            ended["in time"] += 1
        except TaskTimeout:
            ended["late"] += 1
        for _ in range(50):
            len(str(_))
    assert limits._limits == {}
    assert all(ended.values()), ended


def test_thread_of_an_ended_task_can_be_profiled(limits):
    """As by a tool that looks at a worker; Python stood still there as long as it looked for an error taken back."""

    def profiled():
        with contextlib.suppress(TaskTimeout):
            limits.run_within(JOB, 0.01, for_ever)
        sys.setprofile(lambda *_: None)
        done.append(str(len("abc")))
        sys.setprofile(None)

    done = []
    threads = [threading.Thread(target=profiled, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(done) == 3)


def test_locks_of_the_library_and_the_kits_own_code_are_left_first():
    frames = []

    class Spy(logging.Handler):
        def emit(self, record):
            frames.append(sys._getframe(1))

    Spy().handle(logging.LogRecord("x", 1, "x", 1, "x", (), None))
    assert [timeouts.is_guarded(frame) for frame in frames] == [True]
    assert not timeouts.is_guarded(sys._getframe())


def test_thread_within_the_kits_code_is_waited_for_but_not_for_ever(limits, monkeypatch):
    monkeypatch.setattr(timeouts, "KIT", __file__)
    began = time.monotonic()
    with pytest.raises(TaskTimeout):
        limits.run_within(JOB, 0.01, lambda: time.sleep(0) or [time.sleep(0.001) for _ in range(10_000)])
    assert time.monotonic() - began >= 0.01 + timeouts.PATIENCE
