"""Delays of Celery tasks that Redis keeps: which ones, the message that comes of them, and keys."""

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from kombu import Queue as Destination

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import NotSerializable, Queue, QueueCounts
from redis_kit.queues.celery.sink import CelerySink
from redis_kit.queues.jobs import ids, message
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import fleet
from tests.queues.support.fleet import delayed

HOUR = 3600.0


@pytest.fixture
def queue(project):
    """The queue in which delays wait."""
    return Queue("celery")


def due_now(queue):
    """Make what waits due, and hand it over."""
    for job in queue.peek(state="scheduled"):
        queue.run_now(job.id)
    return drain("celery")


@pytest.mark.parametrize("times", [{}, {"countdown": 0.5}, {"eta": datetime(2020, 1, 1, tzinfo=UTC)}], ids=str)
def test_short_delays_are_left_to_celery(project, queue, times):
    result = delayed.apply_async(("a",), **times)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert [message.headers["id"] for message in project.sent()] == [result.id]


def test_long_delay_waits_and_is_sent_with_its_id(project, queue):
    first = delayed.apply_async(("a",), countdown=HOUR)
    naive = (datetime.now(UTC) + timedelta(hours=1)).replace(tzinfo=None)
    second = delayed.apply_async(args=["b"], kwargs={}, eta=naive)
    third = delayed.s("c").apply_async(countdown=HOUR, task_id="my-own.id_3")
    jobs = queue.peek(state="scheduled")
    assert {job.id for job in jobs} == {first.id, second.id, third.id}
    assert max(job.due for job in jobs) - min(job.due for job in jobs) < 60
    assert not project.sent()
    assert due_now(queue) == 3
    sent = project.sent()
    assert {(message.headers["id"], *message.args) for message in sent} == {
        (first.id, "a"),
        (second.id, "b"),
        ("my-own.id_3", "c"),
    }
    assert {message.headers["task"] for message in sent} == {"tests.queues.support.fleet.delayed"}
    assert {message.headers["eta"] for message in sent} == {None}
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_message_has_the_options_of_its_call(project, queue):
    callback, errback = fleet.plain.si("then"), fleet.plain.s()
    headers = {"tenant": 7}
    options = {"priority": 6, "headers": headers, "link": callback, "link_error": [errback], "time_limit": 9}
    before = datetime.now(UTC)
    delayed.apply_async(("a",), countdown=HOUR, queue=Destination("other"), expires=2 * HOUR, shadow="shown", **options)
    assert due_now(queue) == 1
    (message,) = project.sent("other\x06\x166")
    assert message.headers["tenant"] == 7
    assert message.headers["shadow"] == "shown"
    assert message.headers["timelimit"] == [9, None]
    left = datetime.fromisoformat(message.headers["expires"]) - before
    assert timedelta(hours=1, minutes=59) < left < timedelta(hours=2, minutes=1)
    assert 0 < int(message.properties["expiration"]) <= 2 * HOUR * 1000
    assert message.properties["priority"] == 6
    assert [each["task"] for each in message.callbacks["callbacks"]] == [callback.task]
    assert [each["task"] for each in message.callbacks["errbacks"]] == [errback.task]


def test_chain_goes_on_after_its_delayed_step(project, queue):
    chain = delayed.s("a").set(countdown=HOUR) | fleet.plain.si("b")
    chain.apply_async()
    assert due_now(queue) == 1
    (message,) = project.sent()
    assert [step["task"] for step in message.callbacks["chain"]] == [fleet.plain.name]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"serializer": "pickle"}, InvalidValue, "only 'json' is possible"),
        ({"args": [pickle]}, NotSerializable, "args"),
        ({"countdown": "soon"}, InvalidValue, "countdown must be a number of seconds, not 'soon'"),
        ({"headers": {"x": {1, 2}}}, NotSerializable, r"headers\['x'\]"),
        ({"link": fleet.plain.s(pickle)}, NotSerializable, "link"),
        ({"task_id": "a b"}, InvalidValue, "task_id"),
        ({"task_id": "a" * 101}, InvalidValue, "1 to 100 of the characters"),
        ({"key": 5}, InvalidValue, "key must be text"),
        ({"key": "k" * 600}, InvalidValue, "1 to 512 bytes"),
        ({"countdown": 1e12}, InvalidValue, "delay"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_can_not_be_stored_is_a_clear_error(project, queue, options, error, words):
    with pytest.raises(error, match=words):
        delayed.apply_async(**{"args": ("a",), "countdown": HOUR, **options})
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_arguments_that_do_not_fit_raise_what_celery_raises(project, queue):
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        delayed.apply_async(countdown=HOUR)


def test_retry_waits_though_the_first_job_is_not_acknowledged_yet(project, queue, journal):
    first = fleet.retried.apply_async(("a",), countdown=HOUR)
    queue.run_now(first.id)
    (job,) = queue.claim()
    source = WorkerQueue("celery", worker=ids.this_process(), about=ids.information())
    assert CelerySink().hand_over_many(source, [(job, message.loads(job.body))]) == [None]
    with fleet.in_thread():
        wait_for(lambda: queue.counts().scheduled)
    assert [line.step for line in journal.lines()] == ["try0"]
    queue.ack(job)
    assert due_now(queue) == 1
    assert [(sent.headers["id"], sent.headers["retries"]) for sent in project.sent()] == [(first.id, 1)]


def test_call_of_a_task_in_place_of_itself_has_its_id_and_a_job_of_its_own(project, queue):
    first = delayed.apply_async(("a",), countdown=HOUR, task_id="mine")
    second = delayed.apply_async(("b",), countdown=HOUR, task_id="mine", replaced_task_nesting=1)
    assert first.id == second.id == "mine"
    assert due_now(queue) == 2
    assert {(*sent.args, sent.headers["id"]) for sent in project.sent()} == {("a", "mine"), ("b", "mine")}


def test_call_with_a_key_replaces_the_one_that_waits(project, queue):
    first = delayed.apply_async(("a",), countdown=HOUR, key="order:1")
    again = delayed.apply_async(("b",), countdown=2 * HOUR, key="order:1")
    delayed.apply_async(("c",), countdown=HOUR, key="order:2")
    assert again.id == first.id
    assert queue.counts().scheduled == 2
    delayed.apply_async(("now",), key="order:1")
    assert drain("celery") == 1
    assert [(message.headers["id"], message.args) for message in project.sent()] == [(first.id, ["now"])]


def test_key_is_free_when_its_call_is_sent(project, queue):
    first = delayed.apply_async(("a",), countdown=HOUR, key="order:1")
    assert due_now(queue) == 1
    assert not delayed.cancel("order:1")
    assert delayed.apply_async(("b",), countdown=HOUR, key="order:1").id != first.id


def test_cancelled_call_is_not_sent(project, queue):
    delayed.apply_async(("a",), countdown=HOUR, key="order:1")
    assert not delayed.cancel("order:2")
    assert not fleet.retried.cancel("order:1")  # another task's keys are others
    assert delayed.cancel("order:1")
    assert not delayed.cancel("order:1")
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_eager_mode_runs_it_here(project, queue, request):
    fleet.app.conf.task_always_eager = True
    request.addfinalizer(lambda: fleet.app.conf.update(task_always_eager=False))
    assert delayed.apply_async(("a",), countdown=HOUR).get() == "a"
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_call_after_the_commit(project, queue, django_capture_on_commit_callbacks, db):
    with django_capture_on_commit_callbacks(execute=True):
        delayed.apply_async_on_commit(("a",), countdown=HOUR)
        assert not queue.counts().scheduled
    assert queue.counts().scheduled == 1
