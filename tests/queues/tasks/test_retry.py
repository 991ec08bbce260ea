"""Retries of failed tasks: when, and when not."""

import asyncio
from datetime import timedelta

import pytest

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.queues import Cancelled, GiveUp, Queue, Retry, task
from redis_kit.queues.engine.job import Job
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import retry
from redis_kit.testing.jobs import drain

errors: list[BaseException] = []


@pytest.fixture
def queue(kit):
    errors.clear()
    return Queue("default")


def fail() -> None:
    """A function that tests make a task of: it raises the next one of the errors."""
    raise errors.pop(0) if errors else ValueError("no")


async def fail_async() -> None:
    """Another one."""
    await asyncio.sleep(0)
    fail()


def made(**options):
    return task(**options)(fail)


def waits(queue, kit, count):
    """Run a job so many times and return the seconds after each, rounded."""
    found = []
    for _ in range(count):
        drain()
        (waiting,) = queue.peek(state="scheduled")
        seconds, micros = kit.client.time()
        found.append(round(waiting.due - seconds - micros / 1e6, -1))
        queue.run_now(waiting.id)
    return found


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (100, [100, 100, 100]),
        (timedelta(minutes=5), [300, 300, 300]),
        ([100, 200.5], [100, 200, 200]),
        ((timedelta(seconds=100), 200, 300), [100, 200, 300]),
        (lambda error, result: 100 * len(str(error)), [200, 200, 200]),
        (lambda error, result: timedelta(seconds=100 * result.attempts), [100, 200, 300]),
        (lambda error, result: 100 * len(result.errors), [100, 200, 300]),
    ],
    ids=["seconds", "timedelta", "list", "tuple", "function", "function of the result", "function of its errors"],
)
def test_task_waits_as_long_as_its_backoff_says(queue, kit, chosen, expected):
    made(backoff=chosen, max_attempts=5).enqueue()
    assert waits(queue, kit, 3) == expected


def test_zero_is_at_once(queue):
    made(backoff=0, max_attempts=3).enqueue()
    assert drain() == 3
    assert queue.peek(state="dead")[0].attempts == 3


def test_function_that_returns_none_gives_up(queue):
    errors[:] = [ValueError("again"), KeyError("enough")]
    made(backoff=lambda error, result: None if isinstance(error, KeyError) else 0, max_attempts=9).enqueue()
    assert drain() == 2
    (dead,) = queue.peek(state="dead")
    assert (dead.reason, dead.attempts) == ("KeyError: 'enough'", 2)


def test_backoff_function_is_called_between_attempts_not_after_the_last(queue):
    asked = []
    made(backoff=lambda error, result: asked.append(type(error)) or 0, max_attempts=3, store_result=False).enqueue()
    assert drain() == 3  # what it returns is 0
    assert asked == [ValueError] * 2


def test_function_gets_no_result_if_none_is_stored(queue):
    got = []
    made(backoff=lambda error, result: got.append(result) or 0, max_attempts=2, store_result=False).enqueue()
    drain()
    assert got == [None]


@pytest.mark.parametrize(
    "chosen",
    [lambda *_: 1 / 0, lambda *_: "5", lambda *_: -1, lambda *_: float("nan"), lambda *_: True, lambda *_: 1e12],
    ids=["raises", "text", "negative", "nan", "bool", "much"],
)
def test_function_that_fails_is_logged_and_the_default_used(queue, caplog, chosen):
    made(backoff=chosen, max_attempts=2).enqueue()
    drain()
    assert "test_retry.fail for job" in caplog.text
    (waiting,) = queue.peek(state="scheduled")
    queue.run_now(waiting.id)
    drain()
    assert queue.counts().dead == 1


@pytest.mark.parametrize("function", [fail, fail_async], ids=["function", "coroutine"])
def test_task_says_when_it_is_to_be_tried_again(queue, kit, function):
    errors[:] = [Retry(delay=500), Retry("later", delay=timedelta(seconds=200)), Retry()]
    task(backoff=100, max_attempts=4)(function).enqueue()
    assert waits(queue, kit, 3) == [500, 200, 100]
    drain()
    assert queue.counts().dead == 1


def test_asking_for_another_attempt_gives_none_beyond_the_last(queue):
    errors[:] = [Retry("no luck", delay=0), Retry("no luck", delay=0)]
    made(max_attempts=2).enqueue()
    assert drain() == 2
    assert queue.peek(state="dead")[0].reason == "Retry: no luck"


@pytest.mark.parametrize("function", [fail, fail_async], ids=["function", "coroutine"])
def test_task_that_gives_up_is_dead_at_once(queue, function):
    errors[:] = [GiveUp("no such user")]
    result = task(max_attempts=9)(function).enqueue()
    drain()
    (dead,) = queue.peek(state="dead")
    assert (dead.reason, dead.attempts) == ("GiveUp: no such user", 1)
    result.refresh()
    assert [error.exception_class for error in result.errors] == [GiveUp]


def said(caplog):
    """Return what was logged of attempts that ended."""
    return [record for record in caplog.records if "state=RUNNING" not in record.getMessage()]


def test_log_of_a_failure_has_attempt_next_attempt_and_one_traceback(queue, caplog):
    errors[:] = [ValueError("first"), ValueError("second")]
    made(max_attempts=2, backoff=0).enqueue()
    assert drain() == 2
    first, dead = found = said(caplog)
    assert first.getMessage().endswith("queues.tasks.test_retry.fail) failed, attempt 1 of 2, the next one in 0.0 s.")
    assert dead.getMessage().endswith("is dead after attempt 2 of 2: 'ValueError: second'")
    assert [str(record.exc_info[1]) for record in found] == ["first", "second"]
    assert [(record.name, record.levelname) for record in found] == [
        ("redis_kit.worker", "WARNING"),
        ("redis_kit.worker", "ERROR"),
    ]


@pytest.mark.parametrize("function", [fail, fail_async])
def test_traceback_begins_outside_of_the_worker(queue, caplog, function):
    result = task(max_attempts=1)(function).enqueue()
    drain()
    result.refresh()
    assert function.__name__ in result.errors[0].traceback
    for text in (result.errors[0].traceback, caplog.text):
        assert "redis_kit/queues/worker/run/runner.py" not in text


def test_log_of_an_end_that_the_task_chose_is_one_line_without_traceback(queue, caplog):
    caplog.set_level("INFO", "redis_kit.worker")
    errors[:] = [Retry("busy", delay=500), GiveUp("no such user"), Cancelled("stop")]
    for _ in range(3):
        made(max_attempts=3).enqueue()
        drain()
    retried, given_up, cancelled = found = said(caplog)
    assert retried.levelname == "INFO"
    assert retried.getMessage().endswith("will be retried in 8 min 20 s, after attempt 1 of 3: 'busy'")
    assert given_up.getMessage().endswith("is dead after attempt 1 of 3: 'GiveUp: no such user'")
    assert (cancelled.levelname, cancelled.getMessage().rpartition(" ")[2]) == ("INFO", "cancelled.")
    assert not any(record.exc_info for record in found)


def default(attempt):
    """Return waits that follow an attempt of a task without a backoff."""
    return [retry.delay("fail", None, Job("x", b"", "", attempt), ValueError(), None) for _ in range(200)]


def test_default_doubles_up_to_an_hour_and_is_random_above_half_of_that(settings):
    settings.REDIS_KIT = {}
    for attempt in range(1, 40):
        whole = min(3600, 10 * 2 ** (attempt - 1))
        found = default(attempt)
        assert whole / 2 <= min(found) < whole * 0.55 < whole * 0.95 < max(found) <= whole


def test_default_attempts_outlast_an_outage_of_an_hour(settings):
    settings.REDIS_KIT = {}
    options = conf.section(QueueSettings)
    least = sum(min(default(attempt)) for attempt in range(1, options.MAX_ATTEMPTS))
    assert 3600 < least < 3 * 3600


def test_options_change_the_default(settings):
    settings.REDIS_KIT = {"QUEUES": {"RETRY_BACKOFF": 2, "RETRY_BACKOFF_MAX": 5}}
    for attempt, whole in ((1, 2), (2, 4), (3, 5), (30, 5)):
        assert whole / 2 <= min(default(attempt)) <= max(default(attempt)) <= whole
    settings.REDIS_KIT = {"QUEUES": {"RETRY_BACKOFF": 0}}
    assert set(default(7)) == {0}


@pytest.mark.parametrize(
    "wrong",
    [-1, True, "5", float("nan"), 1e12, [], (), [5, -1], [5, "x"], {5}, lambda: 5, lambda error: 5, fail_async, b"5"],
    ids=lambda wrong: getattr(wrong, "__name__", repr(wrong)),
)
def test_wrong_backoffs_are_refused_by_the_definition_of_the_task(wrong):
    with pytest.raises(InvalidValue, match="backoff must be"):
        made(backoff=wrong)


@pytest.mark.parametrize("wrong", [-1, "5", float("nan"), True], ids=repr)
def test_wrong_delay_of_a_retry_is_refused(wrong):
    with pytest.raises(InvalidValue, match="delay must be"):
        Retry(delay=wrong)


def test_task_with_a_list_can_be_hashed():
    assert hash(made(backoff=[1, 2])) == hash(made(backoff=(1, 2)))
