"""The queue on every kind of server, by both twins."""

from datetime import timedelta

import pytest

from redis_kit.queues import LeaseLost, Queue, QueueCounts
from redis_kit.queues.inspection import (
    alist_workers,
    aqueue_counts,
    aqueue_names,
    aqueue_stats,
    list_workers,
    queue_counts,
    queue_names,
    queue_stats,
)
from redis_kit.queues.management import manage
from redis_kit.queues.reports.job_pages import dead_by_cause
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.fixtures.process import wait_for
from tests.queues.support import tasks
from tests.queues.support.in_process import working


class Overview:
    """The functions over many queues, as methods for ``twin``."""

    def names(self):
        return queue_names()

    async def anames(self):
        return await aqueue_names()

    def counts(self, names):
        return queue_counts(names)

    async def acounts(self, names):
        return await aqueue_counts(names)

    def reports(self, names):
        return queue_stats(names)

    async def areports(self, names):
        return await aqueue_stats(names)

    def workers(self):
        return list_workers()

    async def aworkers(self):
        return await alist_workers()


def test_life_of_jobs(any_kit, twin):
    queue = Queue("mail")
    twin(queue.put, "low", priority=-5)
    twin(queue.put, "later", delay=0.6)
    assert len(twin(queue.put_many, ["a", "b"])) == 2
    assert twin(queue.counts) == QueueCounts(1, 3, 0, 0)
    a, b, low = twin(queue.claim, 3)
    assert [job.payload for job in (a, b, low)] == ["a", "b", "low"]
    twin(queue.ack, a)
    twin(queue.ack, a)
    assert twin(queue.nack, b, delay=60, error="x") == "scheduled"
    assert twin(queue.nack, low, error="y", max_attempts=1) == "dead"
    (later,) = wait_for(lambda: twin(queue.claim))
    assert later.payload == "later"
    assert twin(queue.counts) == QueueCounts(1, 0, 1, 1)
    assert [(job.payload, job.reason) for job in twin(queue.peek, state="dead")] == [("low", "y")]
    assert twin(queue.requeue) == 1
    assert twin(queue.sign_off) == 1
    assert [job.payload for job in twin(queue.claim, 5)] == ["later", "low"]


def test_jobs_of_a_dead_worker(any_kit, twin):
    any_kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    queue = Queue("mail")
    twin(queue.put, 1)
    (lost,) = twin(queue.claim, worker="dead")
    (job,) = wait_for(lambda: twin(queue.claim, worker="alive"))
    assert (job.attempt, job.crashes) == (2, 1)
    with pytest.raises(LeaseLost):
        twin(queue.ack, lost)
    twin(queue.ack, job)
    assert twin(queue.heartbeat, worker="alive") == 0


def test_jobs_are_looked_at_and_changed(any_kit, twin):
    queue = Queue("mail")
    for id in ("dead", "running"):
        queue.put(id, id=id, priority=1)
    queue.nack(*queue.claim(worker="w1"), max_attempts=1, error="ValueError: no")
    queue.claim(worker="w1")
    queue.put("ready", id="ready")
    queue.put("later", id="later", delay=60)
    for state in ("ready", "running", "dead"):
        assert [(job.id, job.state) for job in twin(queue.peek, state=state)] == [(state, state)]
        assert twin(queue.get, state).payload == state
    assert twin(queue.get, "later").state == "scheduled"
    assert twin(queue.run_now, "later")
    assert twin(queue.requeue, ["dead", "ready"]) == 1
    assert twin(queue.counts) == QueueCounts(0, 3, 1, 0)
    assert twin(queue.delete, "ready")
    assert twin(queue.purge, "ready") == 2
    assert twin(queue.counts) == QueueCounts(0, 0, 1, 0)


def test_paused_queues(any_kit, twin):
    queue = Queue("mail")
    twin(queue.pause, 60)
    assert 0 < twin(queue.paused).ends_in <= 60
    twin(queue.pause)
    queue.put(1)
    assert twin(queue.claim) == []
    assert twin(queue.paused).ends_in is None
    assert queue_stats(["mail"])["mail"].paused
    assert twin(queue.resume)
    assert len(twin(queue.claim)) == 1


def test_dead_jobs_of_many_queues(any_kit):
    for name in ("mail", "news"):
        queue = Queue(name)
        queue.put(1, id="a")
        queue.nack(*queue.claim(), max_attempts=1, error=f"{name}: no")
    queue, known = look_up(["none", "news", "mail"], "a")
    assert (queue, known.job.reason) == ("news", "news: no")
    assert look_up(["none", "news"], "b") == ("none", None)
    found = dead_by_cause(["mail", "news"], {})
    assert {(name, group.cause.error) for name, group in found} == {("mail", "mail"), ("news", "news")}


def test_large_dead_jobs_of_many_queues_are_read_in_part(kit, monkeypatch):
    monkeypatch.setattr(manage, "MOST_BYTES", 4000)
    for name in ("mail", "news"):
        queue = Queue(name)
        queue.put_many(["x" * 900] * 5)
        for job in queue.claim(5):
            queue.nack(job, max_attempts=1)
    assert sum(group.jobs for _, group in dead_by_cause(["mail", "news"], {})) == 6


def test_many_queues_at_a_look(any_kit, twin):
    any_kit.options(QUEUES={"NAMES": ["main"]})
    over = Overview()
    for number, name in enumerate(("mail", "news", "a:b{c}")):
        Queue(name).put_many(range(number + 1))
    Queue("mail").ack(*Queue("mail").claim(worker="me"))
    Queue("news").nack(*Queue("news").claim(worker="me"), max_attempts=1)
    Queue("news").claim(worker="me")
    assert twin(over.names) == ["main", "a:b{c}", "mail", "news"]
    found = twin(over.counts, ["main", "mail", "news", "a:b{c}"])
    assert found["news"] == QueueCounts(0, 0, 1, 1)
    assert [count.ready for count in found.values()] == [0, 0, 0, 3]
    reports = twin(over.reports, ["mail", "news", "a:b{c}"])
    assert sum(reports["mail"].done) == 1
    assert sum(reports["news"].failed) == 1
    assert len(reports["mail"].done) == 30
    assert reports["a:b{c}"].wait >= 0
    assert reports["mail"].wait is None
    (worker,) = twin(over.workers)
    assert (worker.id, worker.queues, len(worker.jobs)) == ("me", ("mail", "news"), 1)
    assert worker.silent < 5


def test_worker_serves_two_queues(any_kit):
    tasks.done.clear()
    with working(WorkerProcess(Options(("mail", "news"), threads=2))):
        wait_for(lambda: "news" in queue_names())
        for name in ("news", "mail", "news"):
            tasks.remember.using(queue_name=name).enqueue(name)
        tasks.remember.using(queue_name="mail", run_after=timedelta(seconds=0.2)).enqueue("later")
        wait_for(lambda: len(tasks.done) == 4)
        assert sorted(tasks.done) == ["later", "mail", "news", "news"]
        assert [worker.queues for worker in list_workers()] == [("mail", "news")]
    assert list_workers() == []
    assert set(queue_counts(["mail", "news"]).values()) == {QueueCounts(0, 0, 0, 0)}
