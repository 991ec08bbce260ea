"""Tasks: how they are defined, called and enqueued."""

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.queues import (
    CorruptMessage,
    InvalidArguments,
    InvalidTask,
    NotSerializable,
    PayloadTooLarge,
    Queue,
    QueueCounts,
    UnknownTask,
    chain,
    group,
    task,
)
from redis_kit.queues.engine import ids, message
from redis_kit.queues.tasks import registry
from redis_kit.testing.jobs import drain
from tests.queues.support import tasks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queue(kit):
    return Queue("default")


def test_enqueued_call_names_the_task_and_holds_its_arguments(queue, twin):
    handle = twin(tasks.remember.enqueue, {"day": date(2026, 11, 20), "sum": Decimal("1.5")}, twice=True)
    (job,) = queue.claim()
    assert job.id == handle.id
    assert message.loads(job.body)[:3] == (
        "tests.queues.support.tasks.remember",
        [{"day": date(2026, 11, 20), "sum": Decimal("1.5")}],
        {"twice": True},
    )


def test_option_of_using_that_is_given_to_enqueue_gets_a_hint():
    with pytest.raises(InvalidArguments, match=r"argument 'expires'\. Options of a call belong in using\(\.\.\.\)\."):
        tasks.remember.enqueue(1, expires=5)
    with pytest.raises(InvalidArguments, match=r"argument 'colour'\.$"):
        tasks.remember.enqueue(1, colour=5)


def test_enqueue_is_one_command(queue, twin, kit, commands):
    twin(tasks.remember.enqueue, 0)
    with commands(kit) as sent:
        twin(tasks.remember.enqueue, 1)
    assert sent == ["EVALSHA"]


def test_call_runs_it_here_and_now(kit):
    tasks.done.clear()
    assert [tasks.remember(1), tasks.remember.call(2), tasks.remember_async.call(3)] == [1, 2, 3]
    assert asyncio.run(tasks.remember_async.acall(4)) == 4
    assert asyncio.run(tasks.remember.acall(5)) == 5
    assert tasks.done == [1, 2, 3, 4, 5]
    assert kit.keys() == []


def test_job_is_added_after_the_commit(queue):
    with transaction.atomic():
        with transaction.atomic():
            tasks.remember.enqueue(1)
        assert queue.counts().ready == 0
    assert queue.counts().ready == 1


@pytest.mark.parametrize("part", ["call", "workflow"])
def test_error_after_the_commit_is_logged_and_other_callbacks_run(kit, caplog, part):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    others = []
    with transaction.atomic():
        if part == "call":
            result = tasks.remember.enqueue("confidential")
        else:
            chain(tasks.remember.step("confidential"), tasks.remember.step(2)).enqueue()
        transaction.on_commit(lambda: others.append("cache"))
    assert others == ["cache"]
    path = tasks.remember.module_path
    said = f"{path}(value, twice)" if part == "call" else f"the workflow {path} + 1"
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage().startswith(f"The transaction was committed, but {said} was not enqueued: ")
    assert "Enqueue it again." in record.getMessage()
    assert "confidential" not in caplog.text
    assert part == "workflow" or result.created is None


def test_job_is_not_added_after_a_rollback(queue):
    with transaction.atomic():
        assert tasks.remember.enqueue(1).id
        transaction.set_rollback(True)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_job_is_added_at_once_if_the_task_says_so(queue):
    now = task(enqueue_on_commit=False)(plain)
    with transaction.atomic():
        now.enqueue()
        assert queue.counts().ready == 1


def plain(a=1, /, *, b=2):
    """A function that tests make a task of."""


def test_wrong_arguments_are_refused_at_once_even_in_a_transaction(kit):
    with transaction.atomic():
        with pytest.raises(InvalidArguments, match=r"tests\.queues\.support\.tasks\.remember.*missing"):
            tasks.remember.enqueue()
        with pytest.raises(InvalidArguments, match="unexpected"):
            tasks.remember.enqueue(1, thrice=True)
        with pytest.raises(NotSerializable, match=r"args\[0\]\['x'\]"):
            tasks.remember.enqueue({"x": object()})
        with pytest.raises(NotSerializable, match=r"kwargs\['twice'\]"):
            tasks.remember.enqueue(1, twice={2})
        with pytest.raises(PayloadTooLarge):
            tasks.remember.enqueue("x" * 300_000)
    assert kit.keys() == []


def test_using_changes_time_priority_and_queue_and_leaves_the_task_alone(kit, twin):
    soon = datetime.now(UTC) + timedelta(hours=1)
    twin(tasks.remember.using(run_after=soon).enqueue, 1)
    twin(tasks.remember.using(run_after=timedelta(hours=2)).enqueue, 2)
    twin(
        tasks.remember.using(run_after=datetime.now(UTC) - timedelta(days=1), priority=7, queue_name="mail").enqueue, 3
    )
    assert Queue("default").counts() == QueueCounts(2, 0, 0, 0)
    due = kit.client.zrange(Queue("default").key("scheduled"), 0, -1, withscores=True)
    assert due[0][1] / 1000 == pytest.approx(soon.timestamp(), abs=0.002)
    (job,) = Queue("mail").claim()
    assert job.priority == 7
    assert tasks.remember.priority == 0


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"run_after": datetime(2026, 1, 1)}, InvalidValue),
        ({"run_after": datetime(2226, 1, 1, tzinfo=UTC)}, InvalidValue),
        ({"run_after": timedelta(seconds=-1)}, InvalidValue),
        ({"run_after": 5}, InvalidValue),
        ({"priority": 101}, InvalidValue),
        ({"priority": 1.0}, InvalidValue),
        ({"queue_name": ""}, InvalidName),
        ({"tags": "billing"}, InvalidValue),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_wrong_options_of_a_call_are_refused(wrong, error):
    with pytest.raises(error):
        tasks.remember.using(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"timeout": 0},
        {"timeout": "5"},
        {"timeout": float("inf")},
        {"priority": "high"},
        {"store_result": "no"},
        {"enqueue_on_commit": 0},
        {"queue_name": "x" * 513},
        {"outbox": "nodb"},
        {"tags": "billing"},
        {"tags": [""]},
        {"tags": ["é" * 21]},
        {"tags": ["a\nb"]},
        {"tags": list("abcdef")},
        {"tags": [5]},
    ],
    ids=repr,
)
def test_wrong_options_of_a_task_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if "queue_name" not in wrong else "name"):
        task(**wrong)(plain)


@pytest.mark.parametrize(
    "function",
    [lambda: 1, len, Queue.put, Queue("x").put, Queue, 5],
    ids=lambda one: getattr(one, "__qualname__", str(one)),
)
def test_only_functions_of_modules_can_be_tasks(function):
    with pytest.raises(InvalidTask, match="top of a module"):
        task(function)


def test_queue_in_the_place_of_the_function_says_what_to_write():
    with pytest.raises(InvalidTask, match=re.escape("'mail' can't be a task. Write @task(queue_name='mail').")):
        task("mail")


def test_function_whose_body_a_call_does_not_run_can_not_be_a_task():
    def generator():
        yield 1

    async def asynchronous():
        yield 1

    for function in (generator, asynchronous):
        function.__qualname__ = function.__name__
        with pytest.raises(InvalidTask, match="it has a yield"):
            task(function)


@pytest.mark.parametrize("name", ["q" * 99, "q" * 100, "\u8bf7" * 8, "\u8bf7" * 9])
def test_ids_of_jobs_have_room_for_the_name_of_their_queue(kit, name):
    if len(ids.of_queue("", name)) > 100:
        with pytest.raises(InvalidName, match="for the ids of its jobs it may have 99 of the characters"):
            tasks.remember.using(queue_name=name)
        return
    result = tasks.remember.using(queue_name=name).enqueue(1)
    workflow = group(tasks.remember.using(queue_name=name).step(number) for number in range(2)).enqueue()
    assert result.cancel()
    assert workflow.cancel()
    assert drain(name) == 0


def test_options_of_a_call_belong_in_using():
    with pytest.raises(InvalidTask, match=re.escape("task() has no option 'run_after'. Options of a call belong in")):
        task(run_after=5)
    with pytest.raises(InvalidValue, match="run_after must be 0 to"):
        tasks.remember.using(run_after=timedelta(days=-1))


def test_function_of_the_main_program_can_not_be_a_task(monkeypatch):
    monkeypatch.setattr(plain, "__module__", "__main__")
    with pytest.raises(InvalidTask, match="no worker can import"):
        task(plain)


def test_only_what_is_registered_can_be_named(monkeypatch):
    assert registry.find("tests.queues.support.tasks.remember") is tasks.remember
    imported: list[str] = []
    monkeypatch.setattr("builtins.__import__", lambda name, *args: imported.append(name))
    for name in ("os.system", "posix.system", "tests.queues.support.tasks.journal", "", "x" * 1000):
        with pytest.raises(UnknownTask, match="unknown task"):
            registry.find(name)
    assert imported == []


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"task":5}',
        b'{"task":"x","args":{}}',
        b'{"task":"x","kwargs":[]}',
        b'{"task":"x","v":99}',
        b'{"task":"x","args":null}',
        b'{"task":"x","expires":"5"}',
    ],
)
def test_messages_that_are_none_of_a_task_are_corrupt(body):
    with pytest.raises(CorruptMessage):
        message.loads(body)


def test_unknown_fields_of_a_message_are_ignored():
    assert message.loads(b'{"task":"x","more":1}')[:4] == ("x", [], {}, 0)
