"""Calls that are stored in the database until Redis has them: sent at once, or left and sent by a worker."""

import asyncio
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.db.models.signals import post_delete
from django.utils.timezone import now

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.queues import Queue, signals, task
from redis_kit.queues.features.outbox import relay as relays
from redis_kit.queues.features.outbox import transport as outbox
from redis_kit.queues.framework import TaskResultDoesNotExist, TaskResultStatus
from redis_kit.queues.models import OutboxMessage
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.enqueue import Enqueuer
from redis_kit.testing.jobs import drain
from tests.app.models import Place
from tests.queues.support import tasks

pytestmark = pytest.mark.django_db(transaction=True)


def work(value: object) -> None:
    """A function that tests make a task of."""
    tasks.done.append(value)


@pytest.fixture(params=[True, False], ids=["result", "no_result"])
def made(request):
    return task(outbox=True, store_result=request.param)(work)


@pytest.fixture
def queue(kit, monkeypatch):
    tasks.done.clear()
    monkeypatch.setattr(relays, "SETTLED", timedelta(seconds=-1))
    return Queue("default")


def left():
    """Return the jobs in the outbox that Redis does not have."""
    return list(OutboxMessage.objects.filter(sent=None).order_by("pk").values_list("job", flat=True))


@pytest.fixture
def dying(monkeypatch):
    """Let the process die after the commit, before it sends what it stored."""
    monkeypatch.setattr(outbox, "note_sent", lambda *_, **__: None)
    original = Enqueuer.add

    def add(self, new, calls, **more):
        return [RedisUnavailable("it died") for _ in calls] if dies else original(self, new, calls, **more)

    dies = [True]
    monkeypatch.setattr(Enqueuer, "add", add)
    return dies


def test_call_is_stored_with_the_data_and_sent_after_the_commit(queue, made):
    with transaction.atomic():
        Place.objects.create(city="a")
        result = made.enqueue(1)
        assert left() == [result.id]
        assert queue.counts() == (0, 0, 0, 0)
    assert left() == []
    assert result.created
    assert drain() == 1
    assert tasks.done == [1]


def test_rollback_leaves_nothing(queue, made):
    with transaction.atomic():
        made.enqueue(1)
        transaction.set_rollback(True)
    assert (left(), queue.counts()) == ([], (0, 0, 0, 0))


def test_call_outside_of_a_transaction_is_sent_at_once(queue, made):
    assert made.enqueue(1).created
    assert (left(), queue.counts().ready) == ([], 1)


def test_coroutine_enqueues_through_the_outbox(queue, made):
    result = asyncio.run(made.aenqueue(1))
    assert result.created
    assert (left(), queue.counts().ready) == ([], 1)


@pytest.mark.parametrize("call", ["enqueue", "aenqueue"])
def test_while_redis_is_away_the_call_stays_and_a_relay_sends_it(own_kit, monkeypatch, made, call, caplog):
    monkeypatch.setattr(relays, "SETTLED", timedelta(seconds=-1))
    tasks.done.clear()
    own_kit.server.stop()
    result = made.enqueue(1) if call == "enqueue" else asyncio.run(made.aenqueue(1))
    assert result.created is None
    assert left() == [result.id]
    with pytest.raises(RedisUnavailable):
        relays.relay("default")
    assert left() == [result.id]
    own_kit.server.restart()
    assert relays.relay("default") == (1, None)
    assert left() == []
    drain()
    assert tasks.done == [1]


def test_relay_sends_what_a_process_left_with_result_time_and_priority(queue, dying):
    later = now() + timedelta(hours=1)
    made = task(outbox=True)(work)
    first = made.using(priority=7).enqueue({"ü": "\x00", "when": later})
    second = made.using(run_after=later).enqueue(2)
    third = made.using(run_after=timedelta(hours=1)).enqueue(3)
    with pytest.raises(TaskResultDoesNotExist):
        first.refresh()
    assert relays.relay("default").sent == 3
    (ready,), scheduled = queue.peek(), queue.peek(state="scheduled")
    assert (ready.id, ready.priority) == (first.id, 7)
    assert {job.id for job in scheduled} == {second.id, third.id}
    assert all(abs(job.due - later.timestamp()) < 30 for job in scheduled)
    drain()
    first.refresh()
    assert (first.status, tasks.done) == (TaskResultStatus.SUCCESSFUL, [{"ü": "\x00", "when": later}])
    assert first.enqueued_at <= first.started_at


def test_row_that_was_sent_is_not_sent_again(queue, dying):
    """The process died between Redis and the deletion of the row."""
    dying.clear()
    result = task(outbox=True)(work).enqueue(1)
    assert left() == [result.id]
    assert relays.relay("default").sent == 1
    assert queue.counts() == (0, 1, 0, 0)
    again = task(outbox=True)(work).enqueue(2)
    drain()
    assert left() == [again.id]
    assert relays.relay("default").sent == 1  # Redis knows the call, though its job is done
    assert queue.counts() == (0, 0, 0, 0)
    assert tasks.done == [1, 2]


def test_unique_task_keeps_its_key_in_the_outbox(queue, dying):
    pytest.importorskip("redis_kit.queues.features.unique")
    made = task(outbox=True, unique=True)(work)
    ids = [made.enqueue(1).id for _ in range(3)]
    assert left() == ids
    relays.relay("default")
    assert [job.id for job in queue.peek()] == ids[:1]
    dying.clear()
    result = made.enqueue(1)
    assert (result.id, result.created) == (ids[0], False)


def index(document: int, version: int) -> None:
    """A function that tests make a debounced task of."""


@pytest.mark.parametrize("call", ["enqueue", "aenqueue"])
def test_last_call_wins_though_an_earlier_one_is_still_in_the_outbox(queue, dying, call, django_assert_num_queries):
    pytest.importorskip("redis_kit.queues.features.unique")
    debounced = task(outbox=True, unique="queued", unique_by=("document",), replace=True)(index)
    debounced.enqueue(7, 1)
    dying.clear()
    other, last = (
        debounced.enqueue(document, 2) if call == "enqueue" else asyncio.run(debounced.aenqueue(document, 2))
        for document in (8, 7)
    )
    assert (other.created, last.created) == (True, None)
    assert relays.relay("default") == (3, None)  # the row of 8 too: in this test nobody deletes it
    assert sorted(job.payload["args"] for job in queue.peek()) == [[7, 2], [8, 2]]
    assert left() == []
    with django_assert_num_queries(2):  # and the deletion, which this test leaves out
        debounced.enqueue(9, 1)


def test_relay_leaves_a_call_whose_older_one_another_worker_has_in_hand(queue, dying, monkeypatch):
    pytest.importorskip("redis_kit.queues.features.unique")
    debounced = task(outbox=True, unique="queued", unique_by=("document",), replace=True)(index)
    ids = [debounced.enqueue(document, version).id for version in (1, 2) for document in (7, 8)]
    original = relays._locked

    def locked(alias, chosen):
        return original(alias, chosen.exclude(job=ids[0]))

    with monkeypatch.context() as patch:
        patch.setattr(relays, "_locked", locked)
        assert relays.relay("default").sent == 2
    assert left() == [ids[0], ids[2]]
    assert relays.relay("default").sent == 2
    assert sorted(job.payload["args"] for job in queue.peek()) == [[7, 2], [8, 2]]


def test_rows_that_are_fresh_are_left_to_the_process_that_stored_them(queue, dying, monkeypatch):
    monkeypatch.setattr(relays, "SETTLED", timedelta(seconds=3))
    task(outbox=True)(work).enqueue(1)
    assert relays.relay("default") == (0, None)
    OutboxMessage.objects.update(created=now() - timedelta(seconds=4))
    assert relays.relay("default") == (1, None)


def test_queue_that_refuses_keeps_its_rows_and_no_others(queue, kit, dying, monkeypatch):
    monkeypatch.setattr(relays, "BATCH", 2)
    made = task(outbox=True)(work)
    broken = [made.using(queue_name="broken").enqueue(number).id for number in range(5)]
    OutboxMessage.objects.filter(job=broken[0]).update(created=now() - timedelta(hours=1))
    good = [made.enqueue(number).id for number in range(5)]
    kit.client.set(Queue("broken").key("ready"), "x")
    found = relays.relay("default")
    assert found.sent == 5
    assert now() - found.oldest > timedelta(minutes=59)
    assert left() == broken
    assert [job.id for job in queue.peek()] == good
    assert outbox.waiting("default") == (5, found.oldest)
    kit.client.delete(Queue("broken").key("ready"))
    assert relays.relay("default") == (5, None)
    assert outbox.waiting("default") == (0, None)


def test_outage_in_the_middle_keeps_what_was_not_sent(queue, dying, monkeypatch):
    ids = [task(outbox=True)(work).enqueue(number).id for number in range(4)]
    original = relays._put

    def put(queue, row):
        if row.job == ids[2]:
            raise RedisUnavailable("away")
        return original(queue, row)

    monkeypatch.setattr(relays, "_put", put)
    with pytest.raises(RedisUnavailable):
        relays.relay("default")
    assert left() == ids[2:]
    assert queue.counts().ready == 2


def test_row_that_can_not_be_changed_is_logged_and_the_call_goes_on(queue, monkeypatch, caplog):
    def fail(alias):
        raise DatabaseError("gone away")

    numbers = outbox.store("default", [outbox.new_row(queue="default", job="j", body="{}")])
    monkeypatch.setattr(outbox, "rows", fail)
    for stay, end in ((numbers, []), ([], [*numbers, 0])):
        monkeypatch.setattr(outbox, "_log_limit", outbox.LogRateLimit())
        outbox.note_sent("default", stay, end)
    assert caplog.text.count("could not be changed: gone away") == 2


def test_row_of_one_call_is_deleted_by_one_statement_whatever_listens(queue, django_assert_num_queries):
    def listen(**_):
        raise AssertionError("no instance was loaded")

    numbers = outbox.store("default", [outbox.new_row(queue="default", job="j", body="{}")])
    post_delete.connect(listen)
    try:
        with django_assert_num_queries(1):
            outbox.note_sent("default", [], numbers)
    finally:
        post_delete.disconnect(listen)
    assert not OutboxMessage.objects.exists()


def grow_old(seconds):
    """Let the calls in the outbox have been sent so long ago."""
    OutboxMessage.objects.exclude(sent=None).update(sent=now() - timedelta(seconds=seconds))


def test_row_stays_until_redis_has_known_the_call_for_some_seconds(queue, made):
    made.enqueue(1)
    drain()
    assert relays.relay("default") == (0, None)
    assert OutboxMessage.objects.count() == 1
    assert outbox.waiting("default") == (0, None)
    grow_old(11)
    assert relays.relay("default") == (0, None)
    assert OutboxMessage.objects.count() == 0
    assert tasks.done == [1]


def test_call_that_the_server_lost_with_its_last_seconds_is_sent_again(queue, kit, made, caplog):
    ids = [made.enqueue(number).id for number in range(3)]
    grow_old(11)
    kit.client.delete(*kit.keys())
    made.enqueue(3)
    assert queue.counts().ready == 1
    assert relays.relay("default").sent == 3
    assert "had lost 3 calls" in caplog.text
    assert {job.id for job in queue.peek()} >= set(ids)
    assert OutboxMessage.objects.count() == 4
    drain()
    assert sorted(tasks.done) == [0, 1, 2, 3]


def test_call_that_was_sent_long_ago_is_taken_for_done(queue, kit, made):
    """As if no worker of this release had looked: Redis may have forgotten it by now."""
    made.enqueue(1)
    drain()
    grow_old(580)
    kit.client.delete(*kit.keys())
    assert relays.relay("default") == (0, None)
    assert OutboxMessage.objects.count() == 0
    assert queue.counts() == (0, 0, 0, 0)


def test_relay_sends_the_signal_of_a_job(queue, dying):
    told = []

    def receive(**said):
        told.append((said["queue"], said["id"]))

    signals.job_enqueued.connect(receive)
    try:
        result = task(outbox=True)(work).enqueue(1)
        relays.relay("default")
        relays.relay("default")
    finally:
        signals.job_enqueued.disconnect(receive)
    assert told == [("default", result.id)]


def test_setting_covers_all_tasks_that_wait_for_the_commit(queue, kit, settings, monkeypatch):
    kit.options(QUEUES={"OUTBOX": "default"})
    kinds = {"plain": {}, "now": {"enqueue_on_commit": False}, "off": {"outbox": False}, "on": {"outbox": True}}
    stored = {}
    for name, options in kinds.items():
        with transaction.atomic():
            task(**options)(work).enqueue(name)
            stored[name] = len(left())
    assert stored == {"plain": 1, "now": 0, "off": 0, "on": 1}
    assert outbox.aliases() == ["default"]
    kit.options(QUEUES={})
    monkeypatch.setitem(settings.DATABASES, "other", {})
    assert task(outbox="other")(work)
    assert outbox.aliases() == ["other"]


@pytest.mark.parametrize("options", [{"outbox": 1}, {"outbox": ""}, {"outbox": True, "enqueue_on_commit": False}])
def test_wrong_option_is_refused(kit, options):
    with pytest.raises(InvalidValue, match="outbox"):
        task(**options)(work)


def test_statements_are_two_and_round_trips_one(queue, kit, commands, django_assert_num_queries):
    made = task(outbox=True)(work)
    made.enqueue(0)
    with commands(kit) as sent, django_assert_num_queries(2):
        made.enqueue(1)
    assert sent == ["EVALSHA"]
    OutboxMessage.objects.all().delete()
    with django_assert_num_queries(1):
        relays.relay("default")


@pytest.fixture(autouse=True)
def _no_leftovers():
    yield
    for function in (work, index):
        registry._tasks.pop(f"{__name__}.{function.__name__}", None)


def test_call_that_a_worker_sends_has_its_group(made, queue, dying):
    pytest.importorskip("redis_kit.queues.features.limits")
    for value in ("a0", "a1"):
        with transaction.atomic():
            made.using(group="a").enqueue(value)
    dying.clear()
    with transaction.atomic():
        made.using(group="b").enqueue("b0")
    made.using(group="b").enqueue("b1")
    relays.relay("default")
    assert drain() == 4
    assert tasks.done == ["b0", "a0", "b1", "a1"]
