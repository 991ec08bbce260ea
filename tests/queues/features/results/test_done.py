"""The stream of done jobs: which jobs are in it, what it costs, and what it holds."""

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import Queue, QueueCounts, task
from redis_kit.queues.engine import calls, done
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.engine.job import Job
from redis_kit.queues.management.manage import JobFilter
from redis_kit.queues.reports.job_pages import first_jobs
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from tests.queues.support.claiming import settle


@task(queue_name="mail", enqueue_on_commit=False, max_attempts=1)
def work(fail=False):
    if fail:
        raise ValueError("no")


@pytest.fixture
def mail(kit):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 200}}})
    return Queue("mail")


def kept(queue, limit=1000, task=None):
    return queue.run_flow(first_jobs(queue, "done", limit, JobFilter(task)))


def burst():
    assert WorkerProcess(Options(("mail",), threads=1, burst=True)).run() == 0


def test_worker_notes_done_jobs(mail):
    ids = [work.enqueue().id for _ in range(3)]
    work.enqueue(fail=True)
    burst()
    jobs = kept(mail)
    assert [info.id for info in jobs] == ids[::-1]
    assert {info.task for info in jobs} == {f"{__name__}.work"}
    assert all(0 <= info.run_time < 5 and 0 <= info.wait < 60 and info.attempts == 1 for info in jobs)


def test_consumer_notes_done_jobs_without_a_run_time(mail):
    mail.put({"n": 1}, id="one")
    mail.ack(*mail.claim())
    (info,) = kept(mail)
    assert (info.id, info.task, info.run_time) == ("one", "", None)


def test_ring_is_bounded_and_the_latest_come_first(mail):
    for _ in range(4):
        for number in range(250):
            mail.put(number)
        mail.ack(*mail.claim(250))
    length = connections.client().call("XLEN", mail.key("done"))
    assert 200 <= length < 310
    assert len(kept(mail, 50)) == 50
    ended = [info.ended for info in kept(mail)]
    assert ended == sorted(ended, reverse=True)


def test_job_whose_claim_was_lost_is_not_noted(mail):
    mail.put(1, id="lost")
    mail.put(2, id="held")
    jobs = mail.claim(2, worker="w1")
    connections.client().call("ZREM", mail.key("running"), f"{jobs[0].token}/lost")
    assert [job.id for job in mail.run_flow(_acknowledged(mail, jobs))] == ["lost"]
    assert [info.id for info in kept(mail)] == ["held"]


def _acknowledged(queue, jobs):
    from redis_kit.queues.engine import claim

    return claim.ack(queue, jobs)


def test_a_repeated_acknowledgement_is_noted_once(mail):
    mail.put(1)
    (job,) = mail.claim(worker="w1")
    ack = ack_of(job, about=done.line(job))
    for _ in range(2):
        settle(mail, "w1", acks=[ack], done_limit=200)
    assert len(kept(mail)) == 1


def test_jobs_end_with_results_and_the_ring_together(mail):
    results = [work.enqueue() for _ in range(2)]
    jobs = mail.claim(2, worker="w1")
    acks = [ack_of(job, b"1", 60_000, about=done.line(job, 0.5)) for job in jobs]
    for ack in acks:
        assert settle(mail, "w1", acks=[ack], done_limit=200) is None
    assert [info.run_time for info in kept(mail)] == [0.5, 0.5]
    assert [result.status for result in map(work.get_result, [result.id for result in results])] == ["SUCCESSFUL"] * 2


def test_ring_of_another_type_keeps_no_job_from_its_end(mail, kit):
    kit.client.set(mail.key("done"), "x")
    mail.put(1)
    mail.ack(*mail.claim())
    assert mail.counts() == QueueCounts(0, 0, 0, 0)


def test_without_the_option_an_acknowledgement_sends_what_it_did_before():
    job = Job("a", b"1", "w/c/1")
    plain = calls.settle("rk:{q}:", "w", acks=[ack_of(job)]).command
    assert plain[2] == 7
    assert plain[10:] == (b"0", "w", calls.lease(), 10_000, 0, 1, b"w/c/1/a", b"a")


def test_ring_stays_empty_by_default(kit):
    queue = Queue("mail")
    queue.put(1)
    queue.ack(*queue.claim())
    assert not kit.client.exists(queue.key("done"))


@pytest.mark.parametrize("limit", [-1, 100_001, "1000", None, True, 1.5])
def test_a_wrong_limit_is_a_wrong_setting(limit, kit):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": limit}}})
    with pytest.raises(ConfigurationError, match="DONE_LIMIT"):
        Queue("mail").claim()


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [b"job"],
        [b"job", b"[]"],
        [b"job", b"{"],
        [b"job", b'["a","t",1,"x",0]'],
        [b"job", b'["a","t",1,0,"x"]'],
        [b"job", b'[1,"t",1,0,0]'],
        [b"job", b"\xff"],
        [b"job", b"[" * 100_000],
    ],
)
def test_damaged_entries_are_left_out(fields):
    assert done.read(b"1-0", fields) is None


def test_entry_of_any_id_can_be_read(mail):
    line = done.line(Job("\udcff/\x00", b'{"task":"\xe2\x80\xae"}', "w/c/1", claimed=7.5, due=5.0), 0.25)
    info = done.read(b"5000-1", [b"worker", b"w", b"job", line])
    assert (info.id, info.task, info.ended, info.wait, info.run_time) == ("\udcff/\x00", "\u202e", 5.0, 2.5, 0.25)
