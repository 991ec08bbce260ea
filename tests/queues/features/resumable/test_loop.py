"""Loops that go on where they were: over attempts, workers and crashes, in both forms."""

import asyncio
import uuid
from collections.abc import Iterator

import pytest
from django.db import transaction

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.steps import repeated
from redis_kit.queues import Queue, resumable, task
from redis_kit.queues.engine.calls import claim_of
from redis_kit.queues.features.resumable import loop as loops
from redis_kit.queues.framework import TaskResultStatus
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain, processor
from tests.app.models import Device, Place

pytestmark = pytest.mark.django_db(transaction=True)

touched: list[str] = []
stop_after: list[int] = []  # rows after which something happens, one for each attempt


class Crash(BaseException):
    """What stands for the death of a worker."""


def touch(place: Place) -> None:
    """Note a row."""
    touched.append(place.city)


def looped() -> int:
    """A task's function with a loop."""
    for place in resumable(Place.objects.all(), every=10):
        touch(place)
    return len(touched)


async def looped_async() -> int:
    """The same as a coroutine."""
    async for place in resumable(Place.objects.all(), every=10):
        touch(place)
    return len(touched)


@resumable(Place.objects.all(), every=10)
def each(place: Place, *, word: str = "") -> None:
    """One row of a decorated function."""
    touched.append(f"{place.city}{word}")


@resumable(lambda first: Place.objects.filter(city__gte=first), every=10)
async def each_async(place: Place, first: str) -> None:
    """The same as a coroutine, over rows that depend on the argument."""
    touch(place)


@pytest.fixture
def queue(kit):
    touched.clear()
    stop_after.clear()
    return Queue("default")


@pytest.fixture
def places(queue):
    return [place.city for place in (Place.objects.create(city=f"c{number:03}") for number in range(35))]


class Worker:
    """Runs one job at a time; ``stops`` says how many rows it lets pass before it is asked to stop."""

    def __init__(self, name="w"):
        self.source = WorkerQueue("default", worker=name, about="{}")
        self.runner = processor([self.source])

    def run(self, *, rows=None):
        """Run the next job; with ``rows`` the worker is stopped while that many are done. Return what was done."""
        before = len(touched)
        self.runner.worker.stops = lambda: rows is not None and len(touched) - before >= rows
        (job,) = self.source.claim(1, worker=self.source.worker)
        for done in self.runner.run(0, 0, job):
            self.source.exchange(0, [done.ended])
        return touched[before:]


def rows_left(cities, count):
    return cities[count:]


@pytest.mark.parametrize("function", [looped, looped_async])
def test_loop_goes_on_after_its_worker_was_stopped(places, queue, function):
    result = task(max_attempts=1)(function).enqueue()
    assert Worker("a").run(rows=7) == places[:7]
    result.refresh()
    assert (result.status, result.attempts, result.progress[:2]) == (TaskResultStatus.READY, 0, (7, 35))
    assert queue.peek()[0].attempts == 0
    assert Worker("b").run(rows=21) == places[7:28]
    assert Worker("c").run() == places[28:]
    result.refresh()
    assert (result.status, result.return_value, result.progress[:2]) == (TaskResultStatus.SUCCESSFUL, 35, (35, 35))
    assert touched == places


def test_place_of_a_loop_goes_when_its_job_is_done(places, queue, kit):
    worker = Worker("a")
    task(looped).enqueue()
    (job,) = worker.source.claim(1, worker="a")
    (done,) = worker.runner.run(0, 0, job)
    assert [key for key in kit.keys() if ":cursor:" in key]
    worker.source.exchange(0, [done.ended])
    done.announce()
    assert not [key for key in kit.keys() if ":cursor:" in key]


def test_decorated_functions_get_each_row_and_the_arguments(places, queue):
    made = task(max_attempts=1)(each)
    made.enqueue(word="!")
    assert Worker().run(rows=5) == [f"{city}!" for city in places[:5]]
    assert Worker().run() == [f"{city}!" for city in places[5:]]
    task(max_attempts=1)(each_async).enqueue("c030")
    assert Worker().run(rows=2) == places[30:32]
    assert Worker().run() == places[32:]
    assert list(made.signature.parameters) == ["word"]


def test_at_most_every_rows_are_done_again_after_a_crash(places, queue, kit):
    task(looped).enqueue()
    source = WorkerQueue("default", worker="a", about="{}")
    runner = processor([source])
    (job,) = source.claim(1, worker="a")

    def die():
        if len(touched) == 19:
            raise Crash
        return False

    runner.worker.stops = die
    runner.record = lambda failure: None  # it died before anybody was told
    runner.run(0, 0, job)
    kit.client.zadd(queue.key("workers"), {"a": 1.5})
    assert queue.heartbeat(worker="b") == 1
    assert Worker("b").run() == places[10:]
    assert touched == places[:19] + places[10:]


def test_crashes_before_a_stored_row_do_not_count(places, queue, kit):
    task(looped).enqueue()
    for _ in range(2):
        queue.claim(worker="gone")
        kit.client.zadd(queue.key("workers"), {"gone": 1.5})
        assert queue.heartbeat(worker="b") == 1
    assert queue.peek()[0].crashes == 2
    assert Worker().run(rows=5) == places[:5]
    assert queue.peek()[0].crashes == 0
    assert Worker().run() == places[5:]


def test_failed_attempt_goes_on_from_the_last_stored_row(places, queue):
    def fail_once():
        for place in resumable(Place.objects.all(), every=10):
            touch(place)
            if len(touched) == 25:
                raise ValueError

    fail_once.__qualname__ = fail_once.__name__ = "fail_once"
    task(max_attempts=2, backoff=0)(fail_once).enqueue()
    drain()
    assert touched == places[:25] + places[20:]


def test_worker_that_lost_its_claim_can_not_move_the_loop_back(places, queue, kit):
    task(max_attempts=2, backoff=60)(looped).enqueue()
    stale = WorkerQueue("default", worker="a", about="{}")
    (job,) = stale.claim(1, worker="a")
    runner, taken = processor([stale]), []

    def lose():
        if len(touched) == 5 and not taken:
            kit.client.zadd(queue.key("workers"), {"a": 1.5})
            queue.heartbeat(worker="b")
            taken.append(Worker("b").run(rows=30))
        return False

    runner.worker.stops = lose
    assert not runner.run(0, 0, job)
    assert taken == [places[:30]]
    assert Worker("c").run() == places[30:]


def test_position_whose_reply_is_lost_is_stored_once_more(places, queue, kit):
    """A worker that stops stores it last, and the next one would do the rows after the one before again."""
    task(looped).enqueue()
    (job,) = Worker("a").source.claim(1, worker="a")
    flow = repeated(loops.STORE_CURSOR(queue.key(""), *claim_of(job), 0, b"[7]", 60_000, b"", 0, 0, job=job.id))
    flow.send(None)
    again = flow.throw(RedisUnavailable("the reply was lost", indeterminate=True))
    with pytest.raises(StopIteration) as end:
        flow.send(again.run(connections.client()))
    assert end.value.value == 1
    assert [key for key in kit.keys() if ":cursor:" in key]


def test_two_loops_of_a_task_go_on_each_where_it_was(places, queue):
    def two():
        for place in resumable(Place.objects.filter(city__lt="c020"), every=10):
            touch(place)
        for place in resumable(Place.objects.filter(city__lt="c010"), every=10):
            touch(place)

    two.__qualname__ = two.__name__ = "two"
    result = task(max_attempts=1)(two).enqueue()
    assert Worker().run(rows=23) == places[:20] + places[:3]
    assert Worker().run() == places[3:10]
    result.refresh()
    assert result.status == TaskResultStatus.SUCCESSFUL


def test_loop_within_a_loop_is_refused(places, queue):
    def nested():
        for _ in resumable(Place.objects.all(), every=10):
            for place in resumable(Place.objects.all(), every=10):
                touch(place)

    nested.__qualname__ = nested.__name__ = "nested"
    task(max_attempts=1)(nested).enqueue()
    drain()
    assert "can't be within another one" in queue.peek(state="dead")[0].reason


def test_cancelled_task_ends_after_the_row_at_hand(places, queue):
    result = task(max_attempts=1, on_cancel="flag")(looped).enqueue()
    worker = Worker()
    worker.runner.worker.stops = lambda: worker.runner.cancel((0, result.id)) if len(touched) == 3 else False
    (job,) = worker.source.claim(1, worker="w")
    worker.runner.run(0, 0, job)
    assert touched in (places[:3], places[:4])
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[-1].exception_class_path.endswith("Cancelled")


def test_transaction_around_the_loop_stores_nothing_until_its_commit(places, queue):
    def in_transaction():
        with transaction.atomic():
            for place in resumable(Place.objects.all(), every=10):
                touch(place)

    in_transaction.__qualname__ = in_transaction.__name__ = "in_transaction"
    task(max_attempts=1)(in_transaction).enqueue()
    assert Worker().run(rows=25) == places[:25]
    assert Worker().run() == places  # the first 25 were rolled back
    assert queue.counts() == (0, 0, 0, 0)


def test_rows_are_read_in_chunks_in_the_order_of_any_primary_key(queue, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(loops, "CHUNK", (4, 4))
    Device.objects.bulk_create(Device() for _ in range(10))
    ids = [device.pk for device in Device.objects.order_by("pk")]  # MariaDB has an order of its own
    with django_assert_num_queries(4):
        assert [device.pk for device in resumable(Device.objects.order_by("-pk"))] == ids
    seen = []

    def walk():
        seen.extend(device.pk for device in resumable(Device.objects.all(), every=1))

    walk.__qualname__ = walk.__name__ = "walk"
    task(max_attempts=1)(walk).enqueue()
    worker = Worker()
    worker.runner.worker.stops = lambda: calls.pop()
    calls = [True, *[False] * 5]
    (job,) = worker.source.claim(1, worker="w")
    worker.runner.run(0, 0, job)
    calls[:] = [False] * 20
    (job,) = worker.source.claim(1, worker="w")
    worker.runner.run(0, 0, job)
    assert all(isinstance(pk, uuid.UUID) for pk in seen)
    assert seen in (ids, ids[6:])  # what the interrupted comprehension had is gone with it


def test_round_trips_are_one_for_each_stored_position(places, queue, kit, commands):
    made = task(store_result=False, max_attempts=1)(looped)
    made.enqueue()
    worker = Worker()
    with commands(kit) as sent:
        worker.run()
    # A claim, where the loop was, four positions (10, 20, 30, the end), and the acknowledgement.
    assert sent == ["EVALSHA", "HGET", *["EVALSHA"] * 4, "EVALSHA"]


def test_position_is_stored_for_30_days_and_text_in_its_place_begins_again(places, queue, kit):
    result = task(max_attempts=1)(looped).enqueue()
    Worker().run(rows=7)
    key = queue.key(f"cursor:{result.id}")
    assert 29 * 86_400 < kit.client.ttl(key) <= 30 * 86_400
    for damaged in ("x", "[1]", '[1,"2",3,false]', '["a",-1,null,false]'):
        kit.client.hset(key, 0, damaged)
        touched.clear()
        assert Worker().run(rows=7) == places[:7]


def test_sync_function_that_returns_a_coroutine_is_an_error(places):
    each_row = resumable(Place.objects.all())(lambda place: asyncio.sleep(0))
    with pytest.raises(TypeError, match="must be a coroutine function"):
        each_row()


def test_outside_of_a_worker_it_is_a_plain_loop(places, kit, commands):
    with commands(kit) as sent:
        assert [place.city for place in resumable(Place.objects)] == places
        each(word="?")
    assert touched == [f"{city}?" for city in places]
    assert sent == []


def no_row() -> None:
    """It takes nothing."""


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: resumable(Place), "needs a queryset"),
        (lambda: resumable(None), "needs a queryset"),
        (lambda: resumable(Place.objects.all(), every=0), "every must be"),
        (lambda: resumable(Place.objects.all(), every=True), "every must be"),
        (lambda: resumable(Place.objects.all())(no_row), "argument for the row"),
        (lambda: list(resumable(Place.objects.all()[:3])), "sliced"),
        (lambda: list(resumable(lambda: [1])), "needs a queryset"),
        (lambda: list(resumable(Place.objects.values())), "values"),
    ],
)
def test_what_has_no_rows_is_refused(places, make, said):
    with pytest.raises(InvalidValue, match=said):
        make()


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    touched.clear()
