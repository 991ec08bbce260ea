"""Many calls of a task at once: as enqueue() has them, in a round trip for each thousand, and none twice."""

import gc
from datetime import timedelta

import pytest
from django.db import transaction

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import InvalidArguments, NotSerializable, Queue, task
from redis_kit.queues.engine.message import loads
from redis_kit.queues.features.outbox import relay
from redis_kit.queues.features.outbox import transport as outbox
from redis_kit.queues.framework import task_enqueued
from redis_kit.queues.signals import job_enqueued
from tests.queues.support.tasks import note


@pytest.fixture
def queue(kit):
    return Queue("default")


def work(number, label=""):
    return number


def index(document, version):
    return version


def per_tenant(tenant, number):
    return number


def numbers(queue, limit=1000, state="ready"):
    return [loads(job.body).args[0] for job in queue.peek(limit, state=state)]


@pytest.mark.parametrize("stores", [True, False])
def test_calls_are_added_in_their_order_by_one_round_trip(queue, trips, stores):
    made = task(store_result=stores)(work)
    made.enqueue(0)  # registers the queue, and the server knows the script after the next line
    made.enqueue_many([(0,)])
    queue.purge("ready")
    trips.clear()
    calls = [(1,), [2], {"number": 3, "label": "c"}, *((number,) for number in range(4, 1001))]
    results = made.enqueue_many(calls)
    assert len(trips) == 1
    assert queue.counts().ready == 1000
    assert [loads(job.body).args or loads(job.body).kwargs for job in queue.peek(3)] == [
        [1],
        [2],
        {"number": 3, "label": "c"},
    ]
    assert [job.id for job in queue.peek(1000)] == [result.id for result in results]
    assert all(result.created for result in results)


def test_no_calls_cost_nothing(queue, twin, trips):
    assert twin(note.enqueue_many, []) == []
    assert trips == []


def test_delay_and_priority_hold_for_all(queue, twin):
    from datetime import timedelta

    made = task(work)
    twin(made.using(run_after=timedelta(hours=1)).enqueue_many, [(1,), (2,)])
    twin(made.using(priority=5).enqueue_many, [(3,), (4,)])
    twin(made.enqueue_many, [(5,)])
    assert numbers(queue) == [3, 4, 5]
    assert sorted(numbers(queue, state="scheduled")) == [1, 2]


def test_results_are_those_of_single_calls(queue, twin):
    made = task(work)
    first, second = twin(made.enqueue_many, [(1,), (2,)])
    assert (first.args, first.status, first.backend) == ([1], "READY", "default")
    second.refresh()
    assert (second.args, second.enqueued_at is not None) == ([2], True)
    assert second.cancel()
    assert numbers(queue) == [1]


def test_unique_calls_have_one_job(queue, trips):
    made = task(unique=True, unique_by=("document",))(index)
    single = made.enqueue(7, 1)
    made.enqueue_many([(7, 0)])
    trips.clear()
    same, new, again = made.enqueue_many([(7, 2), (8, 1), (8, 2)])
    assert len(trips) == 2  # the second one reads the results that were there before
    assert (same.id, same.created, same.args) == (single.id, False, [7, 1])
    assert (new.created, again.created, again.id, again.args) == (True, False, new.id, [8, 1])
    replacing = task(unique=True, unique_by=("document",), replace=True)(index)
    replacing.enqueue_many([(7, 9), (7, 10)])
    assert [loads(job.body).args for job in queue.peek(10)] == [[7, 10], [8, 1]]


def test_groups_and_limits_are_kept(queue, twin):
    made = task(concurrency=1)(per_tenant)
    twin(made.enqueue_many, [("a", 1), ("a", 2), ("b", 1)])
    assert len(queue.claim(10)) == 1
    queue.purge("ready")
    grouped = task(work).using(group="tenant:7")
    twin(grouped.enqueue_many, [(1,), (2,)])
    assert numbers(queue) == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (5, InvalidArguments, r"A call is a tuple of arguments, such as \(42,\), or a dict of named ones, not 5\."),
        ("ab", InvalidArguments, "not 'ab'"),
        ((1, 2, 3), InvalidArguments, "too many positional arguments"),
        ({"nubmer": 1}, InvalidArguments, "missing a required argument: 'number'"),
        (({1, 2},), NotSerializable, r"args\[0\]"),
    ],
)
def test_wrong_call_is_named_and_nothing_is_sent(kit, twin, call, error, message):
    with pytest.raises(error, match=message) as raised:
        twin(task(work).enqueue_many, [(1,), call])
    assert raised.value.__notes__ == ["This is about calls[1]. Nothing was sent."]
    assert kit.keys() == []


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collector_is_as_before(queue, is_enabled):
    if not is_enabled:
        gc.disable()
    try:
        note.enqueue_many([(1,)])
        with pytest.raises(InvalidArguments):
            note.enqueue_many([(1,), (1, 2, 3, 4, 5, 6)])
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()


@pytest.mark.django_db(transaction=True)
def test_calls_wait_for_the_commit(queue, trips):
    made = task(work)
    made.enqueue_many([(0,)])
    queue.purge("ready")
    with transaction.atomic():
        results = made.enqueue_many([(1,), (2,)])
        assert (queue.counts().ready, results[0].created) == (0, None)
        trips.clear()
    assert len(trips) == 1
    assert numbers(queue) == [1, 2]
    assert [result.created for result in results] == [True, True]
    with transaction.atomic():
        made.enqueue_many([(3,)])
        transaction.set_rollback(True)
    assert numbers(queue) == [1, 2]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("options", [{}, {"unique": True}, {"concurrency": 5}])
def test_outbox_takes_calls_until_redis_has_them(queue, kit, options, django_assert_max_num_queries):
    made = task(outbox=True, **options)(work)
    made.enqueue_many([(0,)])
    queue.purge("ready")
    outbox.rows("default").all().delete()
    with django_assert_max_num_queries(8), transaction.atomic():
        made.enqueue_many([(number,) for number in range(1, 6)])
    assert sorted(numbers(queue)) == [1, 2, 3, 4, 5]
    assert outbox.waiting("default") == (0, None)
    with transaction.atomic():
        made.enqueue_many([(6,)])
        transaction.set_rollback(True)
    assert outbox.rows("default").filter(sent=None).count() == 0


@pytest.mark.django_db(transaction=True)
def test_outbox_keeps_calls_while_redis_is_unavailable(kit, proxy):
    kit.connect(proxy.connection)
    made = task(outbox=True)(work)
    with proxy.fault("refuse"):
        made.enqueue_many([(1,), (2,)])
    assert outbox.waiting("default")[0] == 2


@pytest.mark.parametrize("options", [{}, {"concurrency": 5}, {"outbox": True}])
@pytest.mark.django_db(transaction=True)
def test_no_call_is_lost_or_doubled_whichever_reply_is_lost(kit, proxy, monkeypatch, options):
    monkeypatch.setattr(relay, "SETTLED", timedelta(seconds=-1))
    kit.connect(proxy.connection)
    made, queue = task(**options)(work), Queue("default")
    made.enqueue_many([(0,)])
    made.enqueue_many([(0,), (1,)])
    for reply in range(1, 4):
        queue.purge("ready")
        proxy.drop_reply(reply)
        results = made.enqueue_many([(number,) for number in range(1200)])
        proxy.drop_reply(10**9)
        if "outbox" in options:  # of which some calls stay in the database, and come behind those that were sent later
            relay.relay("default")
        stored = numbers(queue)
        assert queue.counts().ready == 1200
        assert len(set(stored)) == 1000
        assert "outbox" in options or stored == list(range(1000))
        assert "outbox" in options or all(result.created for result in results)


@pytest.mark.parametrize("options", [{}, {"concurrency": 5}])
def test_unclear_outcome_is_told_once(kit, proxy, options):
    kit.connect(proxy.connection, READ_TIMEOUT=0.3)
    made = task(**options)(work)
    made.enqueue(0)
    with proxy.fault("drop_replies"), pytest.raises(RedisUnavailable) as error:
        made.enqueue_many([(1,), (2,)])
    assert error.value.indeterminate
    assert len(error.value.__notes__) == 1


def test_server_that_does_not_answer_is_told(kit, proxy):
    kit.connect(proxy.connection)
    with proxy.fault("refuse"), pytest.raises(RedisUnavailable) as error:
        task(work).enqueue_many([(1,)])
    assert not error.value.indeterminate


def test_signals_are_sent_for_each_call(queue, twin):
    ids, framework = [], []

    def hear(id, **kwargs):
        ids.append(id)

    def hear_framework(task_result, **kwargs):
        framework.append(task_result.id)

    job_enqueued.connect(hear)
    task_enqueued.connect(hear_framework)
    try:
        results = twin(task(work).enqueue_many, [(1,), (2,)])
    finally:
        job_enqueued.disconnect(hear)
        task_enqueued.disconnect(hear_framework)
    assert ids == [result.id for result in results]
    assert framework == ids
