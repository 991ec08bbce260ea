"""A server that lost its last seconds holds jobs as running that ended: the worker that ran them settles that."""

import contextlib
import threading

import pytest

from redis_kit.core.flow import single
from redis_kit.core.steps import Call
from redis_kit.queues import Cancelled, Queue, QueueCounts
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.engine.job import member
from redis_kit.queues.worker.fetcher import Fetcher, Rotation
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.queues.worker.run.endings import FailedAttempt
from redis_kit.queues.worker.shared import worker_queue
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import PAGE, Done, RecentAcks, RecordedEnd, WorkerQueue
from redis_kit.queues.worker.supervisor.child import SupervisedQueue
from tests.fixtures.process import wait_for
from tests.queues.support.backup import Backup
from tests.queues.support.in_process import working
from tests.queues.support.journal import LASTING
from tests.queues.support.tasks import fail, wait_for_file

EMPTY = QueueCounts(0, 0, 0, 0)
BOTH = {"HEARTBEAT_INTERVAL": 0.2, "WORKER_TIMEOUT": 4}


@pytest.mark.alone
@pytest.mark.once
def test_job_whose_end_the_server_lost_is_ended_again_and_runs_once(kit, journal, start_worker, tmp_path):
    kit.options(QUEUES=BOTH)
    worker = start_worker("--processes", 2, "--threads", 2)
    results = [wait_for_file.enqueue(name, str(tmp_path / "go")) for name in ("one", "two", "three")]
    wait_for(lambda: len(journal.lines(step="begin")) == 3)
    backup = Backup(kit)
    (tmp_path / "go").touch()
    wait_for(lambda: Queue("default").counts() == EMPTY)
    backup.restore()
    assert Queue("default").counts().running == 3
    wait_for(lambda: Queue("default").counts() == EMPTY)
    assert all(result.wait_until_finished(1) for result in results)
    assert sorted(journal.names("begin")) == ["one", "three", "two"]
    assert b"the server had lost the outcomes of" in worker.log.read_bytes()


@pytest.fixture
def queue(kit):
    kit.options(QUEUES=LASTING)
    return Queue("mail")


@pytest.fixture
def fetcher(queue):
    return Fetcher(
        [WorkerQueue("mail", worker="w", about="")],
        threads=1,
        board=StatusBoard(1),
        rotation=Rotation([1]),
    )


def settle(fetcher, members):
    """Do what a child does when its supervisor asks."""
    fetcher.reconcile(0, told(members))
    fetcher.flush()


def told(members):
    """Return claims as they come over the line to a child."""
    return [member.decode("utf-8", "surrogateescape") for member in members]


def running(kit, queue):
    return [name.encode() for name in kit.client.zrange(queue.key("running"), 0, -1)]


def held_by(source):
    """Return claims as its server has them, which may not be that of the kit."""
    return source.run_flow(single(Call("ZRANGE", source.key("running"), 0, -1)))


def test_claim_that_nobody_knows_of_is_void_and_does_not_count(fetcher, queue, kit):
    queue.put("x")
    queue.claim(worker="w")
    settle(fetcher, running(kit, queue))
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert queue.claim(worker="other")[0].attempt == 1


def test_what_is_claimed_begun_or_done_here_is_left_alone(fetcher, queue, kit):
    queue.put_many(list("abc"))
    fetcher._ask([[]], 3)
    _, begun = fetcher.next()
    settle(fetcher, running(kit, queue))
    assert queue.counts() == QueueCounts(0, 0, 3, 0)
    kit.client.set(queue.key("answers:w"), "x")  # nothing can be told
    backup, _ = running(kit, queue), fetcher.add_done(Done(begun, ack_of(begun)))
    with contextlib.suppress(Exception):
        fetcher.flush()
    kit.client.delete(queue.key("answers:w"))
    fetcher._queues[0].retry_at = float("inf")
    settle(fetcher, backup)
    assert queue.counts() == QueueCounts(0, 0, 3, 0)


@pytest.fixture
def unanswered(kit, proxy):
    """A fetcher whose claim of one job got no answer, the job's queue, and that queue as the worker sees it."""
    kit.connect(proxy.connection, QUEUES=LASTING)
    queue, source = Queue("mail"), WorkerQueue("mail", worker="w", about="")
    queue.put("x")
    source.exchange(0)
    fetcher = Fetcher([source], threads=1, board=StatusBoard(1), rotation=Rotation([1]))
    with proxy.fault("drop_replies"):
        fetcher._ask([[]], 1)
    assert queue.counts() == QueueCounts(0, 0, 1, 0)
    return fetcher, queue, source


def test_claim_whose_answer_got_lost_is_repeated_and_not_given_back(unanswered):
    fetcher, queue, source = unanswered
    fetcher.reconcile(0, told(held_by(source)))
    fetcher._reconcile()
    assert queue.counts() == QueueCounts(0, 0, 1, 0)
    fetcher._queues[0].retry_at = 0.0
    fetcher._ask([[]], 1)
    assert fetcher.next()[1].payload == "x"


def test_quiet_worker_gives_back_a_claim_whose_answer_got_lost(unanswered):
    fetcher, queue, source = unanswered
    fetcher.quiet()
    fetcher.reconcile(0, told(held_by(source)))
    fetcher._reconcile()
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    fetcher._queues[0].retry_at = 0.0
    fetcher.resume()
    fetcher._ask([[]], 1)
    assert fetcher.next()[1].payload == "x"


def test_end_is_recorded_again_with_its_result(fetcher, queue, kit):
    queue.put("x")
    fetcher._ask([[]], 1)
    _, job = fetcher.next()
    backup = Backup(kit)
    for _ in range(2):
        fetcher.add_done(Done(job, ack_of(job, b'"value"', 60_000)))
        fetcher.flush()
    assert queue.counts() == EMPTY
    backup.restore()
    fetcher._claimed.in_hand.clear()  # the thread has asked for the next job
    settle(fetcher, running(kit, queue))
    assert queue.counts() == EMPTY
    assert kit.client.hget(queue.key(f"result:{job.id}"), "value") == '"value"'


def test_failed_attempt_is_recorded_again_with_its_delay_and_error(kit):
    kit.options(QUEUES={**LASTING, "MAX_ATTEMPTS": 3})
    queue, launcher = Queue("default"), WorkerProcess(Options(("default",), threads=1), worker="w")
    backups, record = [], launcher._runner.record
    launcher._runner.record = lambda *args, **more: [backups.append(Backup(kit)), record(*args, **more)]
    result = fail.enqueue("x")

    def settled():
        launcher._fetcher.reconcile(0, told(running(kit, queue)))  # as with each heartbeat
        return queue.counts() == QueueCounts(1, 0, 0, 0)

    with working(launcher):
        wait_for(lambda: queue.counts() == QueueCounts(1, 0, 0, 0))
        backups[0].restore()
        assert queue.counts() == QueueCounts(0, 0, 1, 0)
        wait_for(settled)
    result.refresh()
    assert (result.attempts, len(result.errors)) == (1, 1)


def test_cancelled_job_is_gone_when_its_end_is_recorded_again(fetcher, queue, kit):
    queue.put("x")
    fetcher._ask([[]], 1)
    _, job = fetcher.next()
    backup = Backup(kit)
    attempt = FailedAttempt(fetcher._queues[0].queue, job, Cancelled("somebody"), fail)
    fetcher.recent.add([attempt.repeatable()])
    assert attempt.record() == (attempt, "dead")
    assert queue.counts() == EMPTY
    backup.restore()
    fetcher._claimed.in_hand.clear()
    settle(fetcher, running(kit, queue))
    assert queue.counts() == EMPTY


@pytest.mark.parametrize("quiet", [False, True])
def test_worker_that_is_busy_or_quiet_reconciles_in_its_watch(fetcher, queue, kit, quiet):
    queue.put("x")
    queue.claim(worker="w")
    if quiet:
        fetcher.quiet()
    watch = threading.Thread(target=fetcher.watch)
    watch.start()
    try:
        fetcher.reconcile(0, told(running(kit, queue)))
        wait_for(lambda: queue.counts() == QueueCounts(0, 1, 0, 0))
    finally:
        fetcher.stop()
        watch.join(10)


def test_heartbeat_lists_running_jobs_page_by_page(any_kit):
    queue = Queue("mail")
    queue.put_many(range(PAGE + 5))
    jobs = {member(job) for job in queue.claim(PAGE + 5, worker="w")}
    queue.put("another's")
    queue.claim(worker="v")
    source = SupervisedQueue("mail", worker="w", about="")
    asked = [source.suspects(beaten(source).held, set()) for _ in range(4)]
    assert asked[:2] == [[], []]
    assert {*asked[2], *asked[3]} == jobs
    assert len(asked[2]) == PAGE


def beaten(source):
    from redis_kit.queues.worker.shared.worker_queue import send_heartbeats

    return send_heartbeats([source])[0]


def test_heartbeat_of_a_queue_without_a_worker_lists_nothing(queue):
    queue.put("x")
    queue.claim(worker="w")
    assert queue.heartbeat(worker="w") == 0


def test_job_is_suspect_only_where_two_passes_in_a_row_miss_it():
    queue = SupervisedQueue("mail", worker="w", about="")
    assert queue.suspects([b"a", b"b"], {b"b"}) == []
    assert queue.suspects([], set()) == []
    assert queue.suspects([b"a", b"b"], {b"b"}) == []
    assert queue.suspects([b"a", b"b"], {b"b"}) == [b"a"]
    assert queue.suspects([b"a"], set()) == [b"a"]


def test_memory_of_ends_is_bounded(monkeypatch):
    monkeypatch.setattr(worker_queue, "RECENT", 3)
    monkeypatch.setattr(worker_queue, "RECENT_BYTES", 10)
    ends = RecentAcks()
    batch = [RecordedEnd(b"t", b"%d" % number, b"x", list) for number in range(5)]
    for one in batch:
        ends.add([one])
    assert ends.find([b"t/1", b"t/2", b"t/4"]) == {b"t/2": batch[2], b"t/4": batch[4]}
    ends.add([RecordedEnd(b"t", b"large", b"x" * 10, list)])
    assert ends.find([b"t/4", b"t/large"]).keys() == {b"t/large"}
