"""What a worker holds and gives back, where answers get lost."""

import pytest

from redis_kit.queues import Counts, Queue
from redis_kit.queues.worker.board import Board
from redis_kit.queues.worker.fetcher import Fetcher
from redis_kit.queues.worker.order import Order
from redis_kit.queues.worker.source import Source


@pytest.fixture
def holding(kit, proxy):
    """A fetcher that holds one more job than its thread has begun, and its queue."""
    kit.connect(proxy.connection, QUEUES={"DEAD_AFTER": 60})
    queue = Queue("mail")
    queue.put_many(range(2))
    source = Source("mail", worker="w", about="")
    source.release([])  # the server learns the script
    fetcher = Fetcher([source], board=Board(1), order=Order(1), on_empty=lambda: None)
    fetcher._exchange([[]], 2)
    fetcher.next()
    return fetcher, queue


def test_job_whose_return_was_answered_by_nobody_is_not_run_here(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("drop_replies"):
        fetcher.give_back()
    assert len(queue.claim(2, worker="other")) == 1
    fetcher.flush()
    assert queue.counts() == Counts(0, 0, 2, 0)  # the repeat took nothing from the other worker
    fetcher.stop()
    assert fetcher.next() is None


def test_job_whose_return_never_came_in_is_returned_when_the_server_answers(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("blackhole"):
        fetcher.give_back()
    proxy.kill_all()
    for _ in range(2):
        fetcher.flush()
    assert queue.counts() == Counts(0, 1, 1, 0)


def test_job_that_certainly_was_not_returned_is_run(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("refuse"):
        proxy.kill_all()
        fetcher.give_back()
    _, job = fetcher.next()
    assert (job.payload, queue.counts()) == (1, Counts(0, 0, 2, 0))
