"""The duty of a worker that sends what is left in an outbox."""

from datetime import timedelta
from time import monotonic

import pytest
from django.db import connection
from django.utils.timezone import now

from redis_kit.queues import Queue, task
from redis_kit.queues.engine.unique import key_of_call
from redis_kit.queues.features.outbox import transport as outbox
from redis_kit.queues.features.outbox.relay import INTERVAL, TURN, OutboxRelay
from redis_kit.queues.keys import relay_key
from redis_kit.queues.models import OutboxMessage
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.shared.failures import AGAIN, Duties
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from tests.fixtures.process import wait_for
from tests.queues.support import in_process, tasks

pytestmark = pytest.mark.django_db(transaction=True)


def work(value: object) -> None:
    """A function that tests make a task of."""
    tasks.done.append(value)


@pytest.fixture
def made():
    tasks.done.clear()
    yield task(outbox=True, store_result=False)(work)
    registry._tasks.pop(f"{__name__}.work", None)


def leave(made, *values, age=60.0, queue="default"):
    """Store calls in the outbox, as a process does that dies then; return the ids."""
    ids = []
    for value in values:
        body = b'{"task":"%s","args":[%d]}' % (made.module_path.encode(), value)
        ids.append(f"job{value}")
        key, until, _ = key_of_call(ids[-1])
        text = body.decode()
        row = outbox.new_row(queue=queue, job=ids[-1], body=text, unique_key=key, unique_until=until)
        outbox.store("default", [row])
    OutboxMessage.objects.update(created=now() - timedelta(seconds=age))
    return ids


@pytest.fixture
def make(kit, made):
    """A function that returns the relay of a worker, and a list of what it reports."""

    def made_relay(name="w", aliases=("default",)):
        told = []
        source = WorkerQueue("default", worker=name, about="{}")
        return OutboxRelay(aliases, source, name, told.append), told

    return made_relay


def test_one_worker_at_a_time_looks_and_sends_what_is_left(make, made, kit, django_assert_num_queries):
    (first, told), (second, told_second) = make("a"), make("b")
    ids = leave(made, 1, 2)
    first.run()
    assert INTERVAL - 1 < first.due - monotonic() <= INTERVAL
    assert {job.id for job in Queue("default").peek()} == set(ids)
    with django_assert_num_queries(0):
        second.run()
    assert (told, told_second) == ([0.0], [])
    assert 4000 < kit.client.pttl(relay_key("default")) <= TURN
    kit.client.delete(relay_key("default"))
    OutboxMessage.objects.all().delete()
    with django_assert_num_queries(1):  # all that an idle outbox costs in five seconds
        second.run()


def test_oldest_call_that_can_not_be_sent_is_reported(make, made, kit):
    one, told = make()
    kit.client.set(Queue("broken").key("ready"), "x")
    leave(made, 1, queue="broken", age=100)
    one.run()
    assert 100 <= told[0] < 160


def test_database_that_can_not_be_read_is_logged_once_and_stops_nothing(make, caplog):
    one, told = make(aliases=["nowhere", "default"])
    with connection.schema_editor() as editor:
        editor.alter_db_table(OutboxMessage, OutboxMessage._meta.db_table, "elsewhere")
    try:
        for _ in range(2):
            one.run()
            assert one.due > monotonic()
    finally:
        with connection.schema_editor() as editor:
            editor.alter_db_table(OutboxMessage, "elsewhere", OutboxMessage._meta.db_table)
    lines = [record.getMessage() for record in caplog.records if "can't be read" in record.getMessage()]
    assert len(lines) == 1
    assert told == []


def test_relay_runs_again_soon_after_an_outage(own_kit, made):
    source = WorkerQueue("default", worker="w", about="{}")
    one = OutboxRelay(["default"], source, "w", lambda seconds: None)
    duties = Duties(one)
    leave(made, 1)
    own_kit.server.stop()
    duties.run()
    assert 0 < duties.next - monotonic() <= AGAIN
    own_kit.server.restart()
    wait_for(lambda: duties.next <= monotonic())
    duties.run()
    assert not OutboxMessage.objects.filter(sent=None).exists()


@pytest.mark.parametrize("burst", [False, True])
def test_worker_sends_what_is_left_and_runs_it(kit, made, burst):
    leave(made, 7)
    with in_process.working(WorkerProcess(Options(("default",), threads=1, burst=burst))):
        wait_for(lambda: tasks.done == [7] and not OutboxMessage.objects.filter(sent=None).exists())


def test_worker_of_tasks_without_an_outbox_has_no_relay(kit):
    assert WorkerProcess(Options(("default",)))._duties == []
