"""What a worker holds and gives back, where answers get lost, and what it leaves to others while it is busy."""

import contextlib
import threading
from math import inf
from time import monotonic

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.worker.fetcher import Fetcher, Rotation
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Done, WorkerQueue
from tests.fixtures.process import wait_for


@pytest.fixture
def holding(kit, proxy):
    """A fetcher that holds one more job than its thread has begun, and its queue."""
    kit.connect(proxy.connection, QUEUES={"WORKER_TIMEOUT": 60})
    queue = Queue("mail")
    queue.put_many(range(2))
    source = WorkerQueue("mail", worker="w", about="")
    source.put_back([b"w/x/0/none"])  # the server learns the script
    fetcher = Fetcher([source], threads=1, board=StatusBoard(1), rotation=Rotation([1]))
    fetcher._ask([[]], 2)
    fetcher.next()
    return fetcher, queue


def test_job_whose_return_was_answered_by_nobody_is_not_run_here(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("drop_replies"):
        fetcher.give_back()
    assert len(queue.claim(2, worker="other")) == 1
    fetcher.flush()
    assert queue.counts() == QueueCounts(0, 0, 2, 0)  # the repeat took nothing from the other worker
    fetcher.stop()
    assert fetcher.next() is None


def test_job_whose_return_got_lost_is_returned_when_the_server_answers(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("blackhole"):
        fetcher.give_back()
    proxy.kill_all()
    for _ in range(2):
        fetcher.flush()
    assert queue.counts() == QueueCounts(0, 1, 1, 0)


def test_job_that_certainly_was_not_returned_is_run(holding, proxy):
    fetcher, queue = holding
    with proxy.fault("refuse"):
        proxy.kill_all()
        fetcher.give_back()
    _, job = fetcher.next()
    assert (job.payload, queue.counts()) == (1, QueueCounts(0, 0, 2, 0))


def test_return_that_fails_is_not_tried_again_at_once(holding, proxy, monkeypatch):
    fetcher, queue = holding
    tries, release = [], WorkerQueue.release
    monkeypatch.setattr(WorkerQueue, "release", lambda self, jobs: tries.append(1) or release(self, jobs))
    with proxy.fault("refuse"):
        proxy.kill_all()
        with watching(fetcher):
            wait_for(lambda: tries)
            assert not threading.Event().wait(0.5)
            assert len(tries) == 1
            wait_for(lambda: len(tries) > 1)
    assert queue.counts() == QueueCounts(0, 0, 2, 0)


def test_quiet_worker_acknowledges_when_its_queue_may_be_asked_again(holding):
    fetcher, queue = holding
    fetcher.give_back()
    ((_, job),) = fetcher._claimed.in_hand[0]
    fetcher._queues[0].retry_at = monotonic() + 0.3  # a claim failed
    fetcher.wake()  # as after an attempt that failed
    fetcher.quiet()
    with watching(fetcher):
        fetcher.add_done(Done(job, ack_of(job, source=0)))
        thread = threading.Thread(target=fetcher.next)
        thread.start()
        wait_for(lambda: queue.counts() == QueueCounts(0, 1, 0, 0))
    thread.join(10)


def test_quiet_worker_repeats_a_return_whose_answer_got_lost(holding, proxy):
    fetcher, queue = holding
    with watching(fetcher):
        with proxy.fault("blackhole"):
            fetcher.quiet()
        proxy.kill_all()
        wait_for(lambda: queue.counts() == QueueCounts(0, 1, 1, 0))


def test_refused_return_of_a_quiet_worker_is_repeated(holding, monkeypatch):
    fetcher, queue = holding
    tries, release = [], WorkerQueue.release

    def refuse_first(self, jobs):
        tries.append(1)
        if len(tries) == 1:
            assert not threading.Event().wait(0.3)  # the watch has nothing left to see to
            raise RedisUnavailable("refused")
        return release(self, jobs)

    monkeypatch.setattr(WorkerQueue, "release", refuse_first)
    with watching(fetcher):
        fetcher.quiet()
        wait_for(lambda: queue.counts() == QueueCounts(0, 1, 1, 0))


@pytest.fixture
def two(kit):
    """A fetcher that asks mail before news, with one thread and its watch, and what another worker hears of news."""
    sources = [WorkerQueue(name, worker="w", about="") for name in ("mail", "news")]
    fetcher = Fetcher(sources, threads=1, board=StatusBoard(1), rotation=Rotation([1, 1]))
    with watching(fetcher):
        yield fetcher, sources[1], WorkerQueue("news", worker="other", about="")


@contextlib.contextmanager
def watching(fetcher):
    watch = threading.Thread(target=fetcher.watch)
    watch.start()
    try:
        yield
    finally:
        fetcher.stop()
        watch.join(10)


def test_job_that_gets_due_is_left_to_others_while_no_thread_is_free(two):
    fetcher, here, other = two
    Queue("news").put(1, delay=0.2)
    assert here.listen()
    fetcher._ask([[], []], 1)
    Queue("mail").put(1)
    assert fetcher.next()[0] == 0
    assert other.listen()


def test_job_that_gets_due_is_left_to_others_by_who_claims_no_more(two):
    fetcher, here, other = two
    Queue("news").put(1, delay=0.2)
    assert here.listen()
    fetcher._ask([[], []], 1)
    fetcher.quiet()
    assert other.listen()


def test_sign_is_passed_on_where_the_free_thread_got_a_job_elsewhere(two):
    fetcher, here, other = two
    found = []
    thread = threading.Thread(target=lambda: found.append(fetcher.next()))
    thread.start()
    wait_for(lambda: fetcher._claimed.free)
    Queue("mail").put(1)
    Queue("news").put(1)
    assert here.listen()
    assert fetcher.take_wake_up(1)
    thread.join(10)
    assert found[0][0] == 0
    assert other.listen()


def test_sign_is_passed_on_where_jobs_came_for_all_free_threads(two):
    fetcher, here, other = two
    threads = [threading.Thread(target=fetcher.next) for _ in range(2)]
    Queue("news").put_many(range(3))
    assert here.listen()
    fetcher._ask([[], []], 2)  # gives what two threads can do, and leaves a sign
    assert here.listen()
    fetcher._claimed.idle += 1  # one of them has not woken up yet
    assert fetcher.take_wake_up(1)
    fetcher._claimed.idle -= 1
    for thread in threads:
        thread.start()
        thread.join(10)
    assert other.listen()


def test_burst_ends_if_the_last_outcome_was_sent_without_a_claim(kit):
    queue, ended = Queue("mail"), threading.Event()
    queue.put(1)
    source = WorkerQueue("mail", worker="w", about="")
    alone = {"threads": 1, "board": StatusBoard(1), "rotation": Rotation([1])}
    fetcher = Fetcher([source], **alone, on_empty=ended.set)
    thread = threading.Thread(target=fetcher.next)
    fetcher._ask([[]], 5)
    _, job = fetcher.next()
    fetcher._claim_at = inf  # as the exchange of the claim did
    fetcher.add_done(Done(job, ack_of(job)))
    fetcher.flush()  # as the watch does if an outcome has waited too long
    thread.start()
    assert ended.wait(10)
    fetcher.stop()
    thread.join(10)
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def test_claim_that_gets_due_while_a_wake_up_is_passed_on_is_made(two, monkeypatch):
    fetcher, _, other = two
    pass_on, passing, found = WorkerQueue.pass_on, threading.Event(), []
    thread = threading.Thread(target=lambda: found.append(fetcher.next()))
    thread.start()
    wait_for(lambda: fetcher._claimed.free)

    def pass_on_slowly(self):
        passing.set()
        threading.Event().wait(0.2)
        pass_on(self)

    monkeypatch.setattr(WorkerQueue, "pass_on", pass_on_slowly)
    fetcher._queues[1].wanted_at = monotonic()
    fetcher.wake(0.01)
    fetcher._claim_at = inf
    assert passing.wait(10)
    Queue("mail").put(1)
    fetcher.wake(0.1)
    thread.join(10)
    assert found[0][0] == 0
    assert other.listen()
