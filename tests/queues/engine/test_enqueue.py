"""What a repeated put does after a lost answer, as the page about queues says."""

import contextlib
from datetime import timedelta

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts, task
from redis_kit.queues.engine.feature import script_parts
from tests.fixtures.process import wait_for

ran: list[object] = []


def work(number: object) -> None:
    """A function that tests make a task of."""
    ran.append(number)


@pytest.fixture
def lost(kit, proxy):
    """A queue, and a function that makes a call whose answer gets lost; it returns the error's notes."""
    kit.connect(proxy.connection, READ_TIMEOUT=0.5, CONNECT_TIMEOUT=2.0)
    queue = Queue("default")
    queue.put_many([0])  # the server knows the scripts from now on
    if 2 in script_parts():
        queue.put(0, unique="0")
    queue.purge("ready")

    def call(method, *args, **kwargs):
        wait_for(lambda: connected(queue))
        with proxy.fault("drop_replies"), pytest.raises(RedisUnavailable) as error:
            method(*args, **kwargs)
        assert error.value.indeterminate
        return " ".join(error.value.__notes__)

    return queue, call


def connected(queue):
    """Say whether there is a connection, after one that was lost."""
    with contextlib.suppress(RedisUnavailable):
        return queue.counts() is not None
    return False


def finish(queue):
    """Do all that is ready; return how many jobs it was."""
    jobs = queue.claim(10)
    queue.ack(*jobs)
    return len(jobs)


def test_error_says_what_a_repeat_does(lost):
    queue, call = lost
    for method, args, kwargs in (
        (queue.put, (1,), {"id": "a"}),
        *([(queue.put, (1,), {"unique": "a"})] if 2 in script_parts() else []),
        (queue.put_many, ([1, 2],), {}),
        (task(work).enqueue, (1,), {}),
    ):
        assert "unique_until=seconds" in call(method, *args, **kwargs)


def test_put_that_never_left_says_nothing_of_a_repeat(kit, proxy):
    kit.connect(proxy.connection)
    with proxy.fault("refuse"), pytest.raises(RedisUnavailable) as error:
        Queue("other").put(1, id="a")  # the first connection of this client
    assert not error.value.indeterminate
    assert not hasattr(error.value, "__notes__")


def test_repeat_with_an_id_adds_a_job_only_when_the_first_is_done(lost, twin):
    queue, call = lost
    call(queue.put, 1, id="a")
    assert twin(queue.put, 1, id="a") == "a"
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert finish(queue) == 1
    assert twin(queue.put, 1, id="a") == "a"
    assert finish(queue) == 1


@pytest.mark.parametrize("done", [False, True], ids=["waits", "done"])
def test_repeat_with_a_unique_key_for_a_time_gives_the_first_answer(lost, twin, done):
    pytest.importorskip("redis_kit.queues.features.unique")
    queue, call = lost
    wish = {"unique": "order 42", "unique_until": 600}
    call(queue.put, 1, **wish)
    (first,) = [job.id for job in queue.peek()]
    assert finish(queue) == 1 if done else True
    assert twin(queue.put, 1, **wish) == first
    assert queue.counts().ready == (not done)


def test_repeat_of_a_unique_task_for_a_time_adds_none_though_it_is_done(lost, twin):
    pytest.importorskip("redis_kit.queues.features.unique")
    queue, call = lost
    once = task(unique=timedelta(minutes=10))(work)
    call(once.enqueue, 1)
    (first,) = [job.id for job in queue.peek()]
    finish(queue)
    result = twin(once.enqueue, 1)
    assert (result.id, result.created, queue.counts()) == (first, False, QueueCounts(0, 0, 0, 0))
