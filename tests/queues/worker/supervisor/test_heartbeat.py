"""The server's clock goes back while workers work: that is told, and what depends on the clock is stated."""

import os
import signal
from datetime import timedelta
from time import monotonic

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.engine import enqueue, ids
from redis_kit.queues.inspection import list_workers, queue_names
from redis_kit.queues.worker.shared.channel import pair
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor.child import Child, SupervisedQueue
from redis_kit.queues.worker.supervisor.heartbeat import TOLERANCE, ServerClock
from tests.fixtures.process import wait_for
from tests.queues.support.duties import heartbeat as heartbeat_of
from tests.queues.support.journal import LASTING
from tests.queues.support.tasks import note, wait_for_file

BACK = -7200  # seconds
AT = 1_700_000_000.0


def told(caplog, *heartbeats):
    """Note the server's times, each asked for at a monotonic time and answered a while later; return what is logged."""
    clock = ServerClock()
    for now, sent, received in heartbeats:
        clock.note({"a": now, "b": now}, sent, received)
    return [record.args[0] for record in caplog.records]


@pytest.mark.parametrize(
    ("heartbeats", "back"),
    [
        ([(AT, 10, 10.1)], []),
        ([(AT, 10, 10.1), (AT + 2, 12, 12.1)], []),
        ([(AT, 10, 10.1), (AT + 7200, 12, 12.1)], []),
        ([(AT, 10, 10.1), (AT + 2 - TOLERANCE, 12, 12.1)], []),
        ([(AT, 10, 10.1), (AT + 2 - 3, 12, 12.1)], [3]),
        ([(AT, 10, 10.1), (AT + 2 - 7200, 12, 12.1), (AT + 4 - 7200, 14, 14.1)], [7200]),
        ([(AT, 10, 15), (AT + 5 - 3, 15, 20)], []),  # the first may have been read late: nothing is sure
        ([(AT, 10, 10.1), (AT + 600, 610, 610.1), (AT + 540, 612, 612.1)], [62]),
    ],
)
def test_only_a_clock_that_surely_went_back_is_told_of(caplog, heartbeats, back):
    assert [round(seconds) for seconds in told(caplog, *heartbeats)] == back


@pytest.mark.alone
@pytest.mark.once
def test_clock_that_goes_back_is_in_the_log_and_ready_jobs_go_on(clock_kit, jump, journal, start_worker):
    clock_kit.options(QUEUES=LASTING)
    worker = start_worker("--threads", 1, "--processes", 2)
    wait_for(lambda: len(list_workers()) == 2)
    note.using(run_after=timedelta(seconds=1)).enqueue("late")
    jump(BACK)
    wait_for(lambda: worker.log.read_bytes().count(b"The clock of the Redis server went back by 7") == 1)
    note.enqueue("now")
    wait_for(lambda: journal.names() == ["now"])
    assert Queue("default").counts().scheduled == 1  # it is due by the clock
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(15) == 0


@pytest.fixture
def children(kit):
    ours, theirs = pair()
    theirs.close()
    one = Child(os.getpid(), "w", ours, StatusBoard(1), [SupervisedQueue("mail", worker="w", about=ids.information())])
    yield [one]
    one.close()


@pytest.mark.parametrize("claims_first", [False, True])
def test_heartbeat_registers_queues_only_if_the_server_lost_the_worker(kit, children, trips, claims_first):
    heartbeat = heartbeat_of(*children)
    heartbeat.run()
    assert queue_names() == ["default", "mail"]
    trips.clear()
    heartbeat.run()
    assert len(trips) == 1
    kit.client.delete(*kit.keys())
    if claims_first:
        children[0].sources[0].claim(worker="w")
    heartbeat.run()
    assert queue_names() == ["default", "mail"]
    assert [one.queues for one in list_workers()] == [("mail",)]


@pytest.fixture
def running(children):
    """A job that a child runs, and the supervisor's heartbeat that knows it."""
    source = children[0].sources[0]
    heartbeat = heartbeat_of(*children)
    Queue("mail").put(1)
    (job,) = source.claim(worker="w")
    children[0].board.begin(0, 0, job.token, job.id, None)
    heartbeat.run()
    return heartbeat


def losses(caplog):
    return [record.getMessage() for record in caplog.records if "were running here" in record.getMessage()]


@pytest.mark.parametrize("other_first", [False, True])
def test_server_that_lost_its_data_is_told_of_once(kit, children, running, caplog, other_first):
    kit.client.delete(*kit.keys())
    if other_first:  # another worker has registered the queue again
        WorkerQueue("mail", worker="other", about="").note()
    for _ in range(2):
        running.run()
    (text,) = losses(caplog)
    assert text.startswith("The server has lost its data, as by a restart without persistence: waiting jobs are gone.")
    assert text.endswith("Queues: 'mail'. Jobs that were running here: 1; their outcomes can't be recorded.")


def test_idle_worker_tells_of_the_loss_too(kit, children, caplog):
    heartbeat = heartbeat_of(*children)
    heartbeat.run()
    kit.client.delete(*kit.keys())
    heartbeat.run()
    (text,) = losses(caplog)
    assert text.endswith("waiting jobs are gone. Queues: 'mail'. Jobs that were running here: 0.")


def test_worker_that_was_silent_too_long_does_not_blame_the_server(kit, children, running, caplog, monkeypatch):
    after(60, monkeypatch)
    queue = Queue("mail")
    queue.sign_off(worker="w")  # as another worker does when the lease is over
    queue.claim(worker="other")
    kit.client.hset(queue.key("info"), "other", f"{now_ms(kit) - 20_000} {ids.information()}")
    running.run()
    (text,) = losses(caplog)
    assert "This worker was silent for 60" in text
    assert text.endswith("Jobs that were running here: 1; their outcomes can't be recorded.")


def test_loss_in_a_long_outage_is_told_though_another_worker_was_faster(kit, children, running, caplog, monkeypatch):
    after(60, monkeypatch)
    kit.client.delete(*kit.keys())
    other = WorkerQueue("mail", worker="other", about=ids.information())
    other.note()
    other.heartbeat(worker="other")
    running.run()
    (text,) = losses(caplog)
    assert text.startswith("The server has lost its data")


def after(seconds, monkeypatch):
    now = monotonic()
    monkeypatch.setattr("redis_kit.queues.worker.supervisor.heartbeat.monotonic", lambda: now + seconds)


def now_ms(kit):
    seconds, microseconds = kit.client.time()
    return seconds * 1000 + microseconds // 1000


def test_child_that_signed_off_is_no_loss(kit, children, running, caplog):
    children[0].board.end(0)
    Queue("mail").sign_off(worker="w")
    running.run()
    assert losses(caplog) == []


def test_name_that_was_never_used_ends_with_its_worker(kit, start_worker):
    kit.options(QUEUES=LASTING)
    Queue("used").put(1, delay=3600)
    assert start_worker("--queue-name", "mial,used,default", "--burst").wait(30) == 0
    assert queue_names() == ["default", "used"]
    queues = [WorkerQueue(name, worker="w", about="") for name in ("mial", "served")]
    for queue in queues:
        queue.note()
    queues[1].heartbeat(worker="other")
    queues[0].run_flow(enqueue.forget_unused(queues))
    assert queue_names() == ["default", "served", "used"]


@pytest.mark.alone
@pytest.mark.once
def test_job_of_a_worker_that_dies_after_the_clock_went_back_runs_again(
    clock_kit, jump, journal, start_worker, tmp_path
):
    clock_kit.options(QUEUES=LASTING)
    victim = start_worker("--threads", 1)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="long", step="begin"))
    jump(BACK)
    wait_for(lambda: b"went back by" in victim.log.read_bytes())
    other = start_worker("--threads", 1)
    (child,) = {line.pid for line in journal.lines(name="long", step="begin")}
    victim.send_signal(signal.SIGSTOP)
    os.kill(child, signal.SIGKILL)
    victim.kill()
    wait_for(lambda: len(journal.lines(name="long", step="begin")) == 2, timeout=4 * LASTING["WORKER_TIMEOUT"])
    assert other.poll() is None
