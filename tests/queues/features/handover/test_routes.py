"""Hand-overs of jobs to another system: what it took, what it did not take, and what it claims itself."""

import time

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import NotTaken, Queue, QueueCounts
from redis_kit.queues.engine import claim as claims
from redis_kit.queues.features.handover import routes
from redis_kit.queues.inspection import hand_overs
from redis_kit.queues.settings import options_of
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import sinks
from tests.queues.support.in_process import working

PATH = "tests.queues.support.sinks.Elsewhere"


@pytest.fixture
def queue(kit, monkeypatch):
    """A queue whose jobs go elsewhere."""
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": PATH}}, "RETRY_BACKOFF": 60})
    monkeypatch.setattr(routes, "FIRST", 0.02)
    sinks.taken.clear()
    sinks.errors.clear()
    sinks.batches.clear()
    return Queue("mail")


@pytest.fixture
def together(kit, queue):
    """A queue whose jobs are handed over several at once."""
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": f"{PATH[:-9]}Together"}}, "RETRY_BACKOFF": 60})
    return queue


def put(queue, *names, **options):
    for name in names:
        queue.put({"task": "far.away", "args": [name]}, **options)


def counted(queue):
    return hand_overs([queue.name])[queue.name]


def test_job_is_done_when_the_other_system_has_it(queue):
    put(queue, "a", "b")
    put(queue, "first", priority=5)
    assert drain("mail") == 3
    assert sinks.taken == [("mail", "first", 1), ("mail", "a", 1), ("mail", "b", 1)]
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    counts = counted(queue)
    assert (counts.sent, counts.failed, counts.error, counts.failed_at) == (3, 0, "", None)
    assert counts.to == options_of("mail").SINK


def test_unavailable_system_leaves_jobs_in_the_queue_in_their_order(queue, caplog):
    sinks.errors += [NotTaken("down")] * 3
    put(queue, *range(20))
    with working(WorkerProcess(Options(("mail",), threads=3))):
        wait_for(lambda: len(sinks.taken) == 20)
        wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 0))
    assert sorted(sinks.taken) == [("mail", number, 1) for number in range(20)]
    lines = [record.getMessage() for record in caplog.records if "Elsewhere" in record.getMessage()]
    assert lines == [
        "Queue 'mail': Elsewhere does not take jobs; they stay in the queue: NotTaken: down",
        "Queue 'mail': Elsewhere takes jobs again.",
    ]
    counts = counted(queue)
    assert (counts.sent, counts.failed, counts.error) == (20, 3, "NotTaken: down")
    assert counts.failed_at <= counts.sent_at


def test_queues_without_a_sink_go_on_while_the_other_system_is_unavailable(queue, monkeypatch):
    monkeypatch.setattr(routes, "FIRST", 60.0)
    sinks.errors += [NotTaken("down")] * 99
    put(queue, "a", "b")
    Queue("here").put({"task": "tests.queues.support.tasks.remember", "args": [1]})
    from tests.queues.support import tasks

    tasks.done.clear()
    with working(WorkerProcess(Options(("mail", "here"), threads=1))):
        wait_for(lambda: tasks.done == [1])
        wait_for(lambda: queue.counts() == QueueCounts(0, 2, 0, 0))
    assert [job.attempts for job in queue.peek()] == [0, 0]


def test_refused_job_waits_and_others_pass_by(queue):
    put(queue, "refused", "b")
    assert drain("mail") == 2
    assert sinks.taken == [("mail", "b", 1)]
    (job,) = queue.peek(state="scheduled")
    assert (job.attempts, job.crashes) == (0, 0)
    assert counted(queue).error == "NotTaken: not this one"


def test_any_other_error_is_a_failed_attempt(queue):
    put(queue, "broken")
    assert drain("mail") == 1
    (job,) = queue.peek(state="scheduled")
    assert job.attempts == 1


def test_job_that_expired_is_not_handed_over(queue):
    queue.put({"task": "far.away", "args": ["late"], "expires": 1})
    put_at = time.monotonic()
    wait_for(lambda: time.monotonic() - put_at > 0.005)
    drain("mail")
    (job,) = queue.peek(state="dead")
    assert job.reason.startswith("expired: ")
    assert not sinks.taken


def test_job_that_the_other_system_does_not_claim_comes_again(queue):
    put(queue, "claims it")
    assert drain("mail") == 1
    (job,) = queue.peek(state="scheduled")
    assert (job.attempts, sinks.taken) == (0, [("mail", "claims it", 1)])
    assert queue.run_now(job.id)
    assert drain("mail") == 1
    assert len(sinks.taken) == 2


def test_jobs_that_are_handed_over_at_once_have_their_own_answers(together, kit):
    put(together, *range(30), "refused", "broken", "claims it", *range(30, 60))
    together.put({"task": "far.away", "args": ["late"], "expires": 1})
    put(together, *range(60, 90))
    with working(WorkerProcess(Options(("mail",), threads=1))):
        wait_for(lambda: sinks.taken[-1:] == [("mail", 89, 1)])
        wait_for(lambda: together.counts() == QueueCounts(3, 0, 0, 1))
    numbers = [name for _, name, _ in sinks.taken if name != "claims it"]
    assert numbers == list(range(90))  # in their order, and each once
    assert max(sinks.batches) == 10
    attempts = {job.payload["args"][0]: job.attempts for job in together.peek(state="scheduled")}
    assert attempts == {"refused": 0, "broken": 1, "claims it": 0}
    assert together.peek(state="dead")[0].reason.startswith("expired: ")
    counts = counted(together)
    assert (counts.sent, counts.failed) == (91, 1)


def test_system_that_is_unavailable_is_asked_for_one_job_at_a_time(together):
    put(together, *range(60))
    with working(WorkerProcess(Options(("mail",), threads=1))):
        wait_for(lambda: 10 in sinks.batches)
        sinks.errors += [NotTaken("down")] * 3
        put(together, *range(60, 90))
        wait_for(lambda: not sinks.errors)
        wait_for(lambda: len(sinks.taken) == 90)
        wait_for(lambda: together.counts() == QueueCounts(0, 0, 0, 0))
    first, second, third = [size for size in sinks.batches if size < 0]
    assert (second, third) == (-1, -1)
    assert sorted(name for _, name, _ in sinks.taken) == list(range(90))
    assert counted(together).failed == 2 - first


def test_sink_that_does_not_answer_for_each_job_costs_an_attempt(together, caplog):
    put(together, "wrong")
    assert drain("mail") == 1
    (job,) = together.peek(state="scheduled")
    assert job.attempts == 1
    assert "Together.hand_over_many() must return an answer for each job, not 0 for 1 jobs." in caplog.text


def test_wrong_setting_costs_no_job_an_attempt(queue, kit, caplog):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": "tests.nothing.Here"}}})
    put(queue, "a", "b")
    with working(WorkerProcess(Options(("mail",), threads=2))):
        wait_for(lambda: "ConfigurationError: The sink 'tests.nothing.Here'" in caplog.text)
        wait_for(lambda: queue.counts() == QueueCounts(0, 2, 0, 0))
    assert [job.attempts for job in queue.peek()] == [0, 0]


@pytest.mark.parametrize(
    ("name", "words"),
    [("tests.nothing.Here", "can't be imported"), ("tests.queues.support.sinks.NotTaken", "is not a subclass of")],
)
def test_path_that_leads_to_no_sink_is_a_clear_error(name, words):
    with pytest.raises(ConfigurationError, match=words):
        routes.load(name)


class Source:
    """A queue with one claimed job."""

    def __init__(self, **options):
        self.queue = WorkerQueue("mail", worker="here", about="{}")
        self.queue.put(1, id="a", **options)
        (self.job,) = self.queue.claim(worker="here")

    def postpone(self, seconds=60.0):
        return all(self.queue.run_flow(claims.postpone(self.queue, [(self.job, seconds)], holds=True)))

    def claim(self, claim="c", *, worker="there", attempts=0):
        version = claims.version(self.job._replace(attempt=attempts + 1))
        options = {"version": version, "token": self.job.token, "about": "{}"}
        return self.queue.run_flow(claims.claim_by_id(self.queue, worker, claim, "a", **options))


@pytest.fixture
def source(any_kit):
    return Source()


def test_postponed_job_counts_no_attempt_and_a_repeat_is_safe(source):
    assert source.postpone()
    assert source.postpone()
    job = source.queue.get("a")
    assert (job.state, job.attempts) == ("scheduled", 0)
    assert job.due == pytest.approx(source.job.due)


@pytest.mark.parametrize("postponed", [True, False])
def test_job_is_claimed_by_its_id_once(source, postponed):
    if postponed:
        assert source.postpone()
    job = source.claim()
    assert (job.id, job.payload, job.attempt) == ("a", 1, 1)
    assert source.claim()._replace(claimed=job.claimed) == job  # the same call again, later
    assert source.claim("d", worker="third") is None
    assert not source.postpone() or postponed
    assert source.queue.get("a").state == "running"
    source.queue.ack(job)
    assert source.queue.get("a") is None
    assert source.claim("e") is None


def test_job_that_was_tried_since_is_not_claimed(source):
    job = source.claim()
    assert source.queue.nack(job, delay=60) == "scheduled"
    assert source.claim("late") is None
    assert source.claim("later", attempts=1) is None  # it is due at another time
    source.job = source.job._replace(due=source.queue.get("a").due)
    assert source.claim("now", attempts=1).attempt == 2


@pytest.mark.parametrize("expires", [0, 600_000])
def test_message_about_a_run_that_snoozed_does_not_begin_the_next_one(source, expires):
    job = source.claim()
    assert source.queue.run_flow(claims.snooze(source.queue, job, 60, expires=expires, why="", ttl_ms=0))
    assert source.claim("again") is None
    assert source.queue.get("a").state == "scheduled"


def test_job_that_was_replaced_since_is_not_claimed(any_kit):
    pytest.importorskip("redis_kit.queues.features.unique")
    source = Source(unique="u", unique_until="queued")
    source.postpone()
    source.queue.put(2, unique="u", unique_until="queued", replace=True, delay=60)
    assert source.claim() is None
    assert source.queue.get("a").payload == 2


def test_worker_that_claimed_by_id_and_died_loses_the_job(source, any_kit):
    any_kit.options(QUEUES={"HEARTBEAT_INTERVAL": 0.05, "WORKER_TIMEOUT": 0.2})
    job = source.claim()
    wait_for(lambda: source.queue.heartbeat(worker="here"))
    assert source.queue.get("a").state == "ready"
    assert source.claim("f") is None  # one attempt more was begun
    assert job.attempt == 1
