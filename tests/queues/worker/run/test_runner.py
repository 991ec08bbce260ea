"""A job from its message to its ending: which links its chain has, and what each ending leaves behind."""

import pytest

from redis_kit.queues import GiveUp, Queue, QueueCounts, Retry, Snooze, signals, task
from redis_kit.queues.engine import ids
from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.runner import Chains
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import processor

raised: list[BaseException] = []


@task(store_result=False, max_attempts=2, backoff=60)
def plain(value=None):
    """Raise what the test wants, once."""
    if raised:
        raise raised.pop()


@task(expires=60)
def stored(value=None):
    return value


class Worker:
    """Claims jobs of the queue, and runs one at a time."""

    def __init__(self):
        self.source = WorkerQueue("default", worker=ids.new_worker(), about="{}")
        self.runner = processor([self.source])

    def claim(self):
        (job,) = self.source.claim(1, worker=self.source.worker)
        return job

    def run(self):
        done = self.runner.run(0, 0, self.claim())
        for each in done:
            self.source.exchange(0, [each.ended])
        return done


@pytest.fixture
def worker(kit):
    raised.clear()
    return Worker()


def links(worker, job):
    """Return the names of the links that an attempt of this job passes."""
    attempt = Attempt(0, 0, worker.source, job)
    attempt.load(worker.runner.recorder_of)
    link, names = Chains(worker.runner.worker).of(attempt), []
    while hasattr(link, "call_next"):
        names.append(type(link).__name__)
        link = link.call_next
    return [*names, type(link).__name__]


def test_plain_job_passes_one_link_before_its_task(worker):
    plain.enqueue()
    assert links(worker, worker.claim()) == ["Presence", "Call"]


def test_job_passes_the_links_of_what_it_uses(worker):
    stored.enqueue()
    assert links(worker, worker.claim()) == ["Expiry", "Presence", "Results", "Call"]


def test_job_of_an_unknown_task_passes_no_task(worker):
    Queue("default").put({"task": "shop.tasks.gone", "expires": 5})
    assert links(worker, worker.claim())[:2] == ["Expiry", "UnknownCalls"]


def test_each_link_is_listed_once(worker):
    links = Chains(worker.runner.worker).links
    assert len(set(links)) == len(links)


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (None, QueueCounts(0, 0, 0, 0)),
        (ValueError("x"), QueueCounts(1, 0, 0, 0)),
        (Retry(delay=0), QueueCounts(0, 1, 0, 0)),
        (Snooze(60), QueueCounts(1, 0, 0, 0)),
        (GiveUp("x"), QueueCounts(0, 0, 0, 1)),
        (SystemExit(1), QueueCounts(1, 0, 0, 0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_ending_leaves_the_job_in_its_state(worker, error, counts):
    raised[:] = [error] if error else []
    plain.enqueue()
    assert len(worker.run()) == (error is None)
    assert Queue("default").counts() == counts


@pytest.mark.parametrize("payload", ["no call", {"task": 1}, {"task": "a", "args": 1}])
def test_message_that_is_no_call_is_dead(worker, payload):
    Queue("default").put(payload)
    assert worker.run() == []
    assert Queue("default").peek(state="dead")[0].reason.startswith("corrupt: not a task's message")


def test_error_of_the_worker_itself_is_no_error_of_the_task(worker, monkeypatch):
    plain.enqueue()
    failures = []
    monkeypatch.setattr(Chains, "of", lambda self, attempt: 1 / 0)
    monkeypatch.setattr(worker.runner, "record", lambda failure: failures.append(failure))
    assert worker.run() == []
    (failure,) = failures
    assert (failure.task, type(failure.error)) == (None, ZeroDivisionError)


def test_success_is_announced_after_it_is_recorded(worker):
    heard = []

    def receive(**said):
        heard.append(said["task"].name)

    signals.job_succeeded.connect(receive)
    try:
        plain.enqueue()
        (done,) = worker.run()
        assert heard == []
        done.announce()
    finally:
        signals.job_succeeded.disconnect(receive)
    assert heard == ["plain"]


def test_success_that_nobody_hears_of_needs_no_announcement(worker):
    plain.enqueue()
    (done,) = worker.run()
    assert done.announce is None
