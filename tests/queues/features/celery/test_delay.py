"""Delays of Celery tasks that Redis keeps: which ones, the message that comes of them, and keys."""

import json
import pickle
import time
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock

import pytest
from celery.signals import after_task_publish, before_task_publish
from kombu import Queue as Destination

from redis_kit.core.errors import InvalidValue
from redis_kit.queues import NotSerializable, Queue, QueueCounts
from redis_kit.queues.engine import ids, message
from redis_kit.queues.features.celery.sink import CelerySink
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


SAME = {
    "no options": {},
    "retry": {"retry": False},
    "policy": {"retry": True, "retry_policy": {"max_retries": 2}},
    "headers": {"headers": {"tenant": 0, "none": None}},
    "shown": {"shadow": "shown", "argsrepr": "...", "reply_to": "me", "correlation_id": "mine"},
    "limits": {"time_limit": 9, "soft_time_limit": 8, "ignore_result": True},
    "links": {"link": fleet.plain.si("then"), "link_error": [fleet.plain.s()]},
    "stamps": {"stamped_headers": ["order"], "order": 7},
    "group": {"group_id": "g", "group_index": 1, "root_id": "r", "parent_id": "p"},
    "chord": {"chord": fleet.plain.si("all"), "chain": [fleet.plain.si("next")]},
    "broker": {"compression": "gzip", "delivery_mode": 1, "priority": 0, "timeout": 3, "my_property": "x"},
    "list": {"args": ["a"]},
    "keywords": {"args": None, "kwargs": {"name": "a"}},
    "route": {"exchange": "", "routing_key": "celery"},
}


@pytest.mark.parametrize("options", SAME.values(), ids=SAME)
def test_message_is_the_one_that_celery_sends_without_a_delay(project, queue, options):
    ids = [delayed.apply_async(**{"args": ("a",), "countdown": wait, **options}).id for wait in (None, HOUR)]
    assert due_now(queue) == 1
    plain, ours = (json.loads(json.dumps(sent).replace(id, "ID")) for sent, id in zip(project.sent(), ids, strict=True))
    for _, properties, *_ in (plain, ours):
        del properties["delivery_tag"]
    assert ours == plain


@pytest.mark.parametrize(
    "option", ["name", "message", "body", "content_type", "callbacks", "create_sent_event", "result_cls", "task_type"]
)
def test_options_that_celery_refuses_are_refused_to_the_caller(project, queue, option):
    for wait in (None, HOUR):
        with pytest.raises(TypeError):
            delayed.apply_async(("a",), countdown=wait, **{option: "x"})
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_countdown_comes_before_eta_and_a_call_may_expire_at_once(project, queue):
    delayed.apply_async(("a",), countdown=HOUR, eta=datetime.now(UTC) + timedelta(days=2), expires=0)
    (job,) = queue.peek(state="scheduled")
    assert job.due - time.time() < 2 * HOUR
    assert due_now(queue) == 1
    (message,) = project.sent()
    assert datetime.fromisoformat(message.headers["expires"]) <= datetime.now(UTC)
    assert message.properties["expiration"] == "0"


def test_signals_of_a_message_are_sent_where_its_call_is_made(project, queue, request):
    heard = []

    def before(headers, **_):
        heard.append("before")
        headers["tenant"] = "t1"

    def after(headers, **_):
        heard.append(("after", headers["tenant"], queue.counts().scheduled))

    before_task_publish.connect(before)
    after_task_publish.connect(after)
    request.addfinalizer(lambda: before_task_publish.disconnect(before) and after_task_publish.disconnect(after))
    delayed.apply_async(("a",), countdown=HOUR)
    assert heard == ["before", ("after", "t1", 1)]
    assert due_now(queue) == 1
    assert len(heard) == 2
    (message,) = project.sent()
    assert message.headers["tenant"] == "t1"


def test_event_that_a_call_was_sent_goes_to_the_broker_at_once(project, queue, monkeypatch):
    monkeypatch.setitem(fleet.app.conf, "task_send_sent_event", True)
    with project.client() as broker, broker.pubsub() as events:
        events.psubscribe("*celeryev*")
        events.get_message(timeout=10)
        delayed.apply_async(("a",), countdown=HOUR, event_dispatcher=fleet.app.events.Dispatcher(enabled=False))
        event = events.get_message(timeout=10)
    assert event["channel"].endswith("celeryev/task.sent")
    assert queue.counts().scheduled == 1


def test_calls_with_one_task_id_all_run(project, queue):
    for name in "abb":
        assert delayed.apply_async((name,), countdown=HOUR, task_id="mine").id == "mine"
    assert due_now(queue) == 3
    assert sorted((*sent.args, sent.headers["id"]) for sent in project.sent()) == [(name, "mine") for name in "abb"]


def test_retry_that_can_not_be_stored_is_left_to_celery(project, queue, journal, caplog):
    calls = [{"args": [value]} for value in (clock(5, 6), 2**70, "x" * 300_000)]
    calls.append({"args": ["a"], "task_id": "order:42"})
    ids = [fleet.retried.apply_async(**call).id for call in calls]
    with fleet.in_thread():
        wait_for(lambda: len(journal.lines(step="try1")) == len(calls))
        wait_for(lambda: caplog.text.count("is left to Celery") == len(calls))  # a retry follows its try
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    lines = [record.message for record in caplog.records if "is left to Celery" in record.message]
    assert [id in line for id, line in zip(ids, lines, strict=True)] == [True] * len(calls)


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
        ({"key": "k" * 301}, InvalidValue, "key must be text of 1 to 300 bytes"),
        ({"countdown": float("nan")}, InvalidValue, "countdown must be a number of seconds, not nan"),
        ({"countdown": None, "eta": 5}, InvalidValue, "eta must be a datetime, not 5"),
        ({"countdown": None, "eta": date(2030, 1, 1)}, InvalidValue, "eta must be a datetime, not datetime.date"),
        ({"countdown": None, "eta": "soon"}, InvalidValue, "eta must be a datetime, not 'soon'"),
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
