"""Workers as processes: killed, stopped, cut off, and in time."""

import os
import signal
import subprocess
import threading
import time
from datetime import timedelta

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Cancelled, LeaseLost, Queue, QueueCounts
from redis_kit.queues.engine.job import Job
from redis_kit.queues.inspection import list_workers
from tests.fixtures.kit import Kit
from tests.fixtures.process import is_alive, wait_for
from tests.queues.support.journal import LASTING, QUICK
from tests.queues.support.processes import children, stopped
from tests.queues.support.tasks import (
    die,
    end_with_a_file,
    fail,
    forge,
    fork,
    note,
    tell_progress,
    wait_for_file,
    wait_long,
)

pytestmark = pytest.mark.alone(45)

EMPTY = QueueCounts(0, 0, 0, 0)


@pytest.fixture
def queue(kit):
    kit.options(QUEUES=QUICK)
    return Queue("default")


def held(kit, queue):
    """The only running job, as its worker holds it."""
    (member,) = kit.client.zrange(queue.key("running"), 0, -1)
    token, _, id = member.rpartition("/")
    return Job(id, b"", token)


def test_killed_worker_loses_no_job_and_can_not_end_it_any_more(queue, kit, journal, start_worker, tmp_path):
    victim = start_worker("--threads", 1)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="long", step="begin"))
    for number in range(20):
        note.enqueue(f"short{number}")
    lost = held(kit, queue)
    other = start_worker("--threads", 2)
    wait_for(lambda: len(journal.names()) == 20)
    victim.kill()
    killed = time.time()
    wait_for(lambda: len(journal.lines(name="long", step="begin")) == 2)
    again = journal.lines(name="long", step="begin")[1]
    assert [again.pid] == children(other)
    print(f"back after {again.at - killed:.2f} s, with a lease of {QUICK['WORKER_TIMEOUT']} s")
    assert again.at - killed < 8  # the default lease is longer
    with pytest.raises(LeaseLost):
        queue.ack(lost)
    wait_for(lambda: not is_alive(journal.lines(name="long", step="begin")[0].pid))
    (tmp_path / "go").touch()
    wait_for(lambda: queue.counts() == EMPTY)
    with pytest.raises(LeaseLost):
        queue.ack(lost)
    assert sorted(journal.names()) == sorted(["long", *(f"short{number}" for number in range(20))])
    assert [journal.lines(name="long", step="end")[0].pid] == children(other)


def test_job_that_kills_workers_is_dead_after_the_limit(queue, kit, journal, start_worker):
    kit.options(QUEUES={**QUICK, "MAX_CRASHES": 2})
    die.using(priority=1).enqueue("bad")
    note.enqueue("good")
    worker = start_worker("--threads", 1, "--burst")
    assert worker.wait(30) == 0
    (dead,) = queue.peek(state="dead")
    assert (dead.reason, dead.crashes) == ("poison: 2 processes died in which it ran alone", 2)
    assert worker.log.read_bytes().count(b"ended by SIGKILL") == 2
    assert journal.names() == ["good"]
    assert len(journal.lines(name="bad")) == 2


@pytest.mark.parametrize("debug", ["", "1"], ids=["", "debug"])
def test_log_of_a_worker_without_logging_settings_can_not_be_forged(queue, start_worker, monkeypatch, debug):
    monkeypatch.setenv("DEBUG", debug)
    forge.enqueue()
    worker = start_worker("--burst", "--settings", "tests.queues.support.unlogged_settings", said=b"attempt 1 of 1")
    assert worker.wait(30) == 0
    said = worker.log.read_text()
    print(said)
    logged = 2 + bool(debug)  # by the kit, by the task's logger; by django.tasks
    assert said.count("    | Job 'X' of queue 'default' (shop.tasks.pay) succeeded.\\r\\x1b[31mred\n") == logged
    assert not any(line.startswith("Job 'X'") for line in said.splitlines())
    assert said.replace("\n", "").isprintable()


def test_after_an_outage_no_job_is_lost_or_done_twice(make_server, settings, journal, start_worker, tmp_path):
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data")
    kit = Kit(server, settings)
    kit.options(QUEUES=QUICK)
    queue = Queue("default")
    worker = start_worker("--threads", 2)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    for number in range(10):
        note.using(run_after=timedelta(seconds=1.5)).enqueue(f"later{number}")
    wait_for(lambda: journal.lines(name="long", step="begin"))
    synced(kit)
    server.stop()
    (tmp_path / "go").touch()  # the ack meets a dead server
    wait_for(lambda: journal.lines(name="long", step="end"))
    wait_for(lambda: b"Lost connection to Redis" in worker.log.read_bytes())
    server.start()
    began = time.monotonic()
    wait_for(lambda: queue.counts() == EMPTY, timeout=20)
    print(f"all done {time.monotonic() - began:.2f} s after the server came back")
    note.enqueue("after")
    wait_for(lambda: "after" in journal.names())
    assert sorted(journal.names()) == sorted(["after", "long", *(f"later{number}" for number in range(10))])
    assert worker.poll() is None
    stopped(worker, within=3)
    kit.close()


def synced(kit):
    """Wait until the append-only file holds everything."""
    kit.client.bgrewriteaof()
    wait_for(lambda: kit.client.info("persistence")["aof_rewrite_in_progress"] == 0)
    assert kit.client.waitaof(1, 0, 5000)[0] == 1


def test_time_limit_ends_with_the_task_and_not_with_an_outage(own_server, own_kit, journal, start_worker, tmp_path):
    queue = Queue("default")
    end_with_a_file.enqueue("x", str(tmp_path / "go"), fails=True)
    worker = start_worker("--threads", 1)
    wait_for(lambda: journal.lines(step="begin"))
    own_server.freeze()
    (tmp_path / "go").touch()
    wait_for(lambda: journal.lines(step="end"))
    time.sleep(3)  # the process would be killed a second after the time limit of the task
    own_server.thaw()
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    assert queue.peek(state="dead")[0].reason.startswith("ValueError")
    assert b"TaskTimeout" not in worker.log.read_bytes()


@pytest.mark.parametrize("how", ["return", "raise"])
def test_child_that_a_task_forked_does_not_go_on_as_a_worker(queue, journal, start_worker, tmp_path, how):
    result = fork.enqueue(str(tmp_path / "pid"), how)
    worker = start_worker("--threads", 1)
    assert result.wait_until_finished(20)
    assert (str(result.status), len(result.worker_ids), journal.names()) == ("SUCCESSFUL", 1, ["exit-70"])
    pid = (tmp_path / "pid").read_text()
    said = worker.log.read_text()
    assert f"tests.queues.support.tasks.fork forked process {pid}, which came back from the task." in said
    assert ("ValueError: in the child" in said) == (how == "raise")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_frozen_server_does_not_make_a_client_put_twice(own_server, own_kit):
    queue = Queue("default")
    queue.put("warm")
    stop, sure, unsure = threading.Event(), [], []

    def produce(name):
        number = 0
        while not stop.is_set():
            number += 1
            try:
                queue.put(f"{name}.{number}")
                sure.append(f"{name}.{number}")
            except RedisUnavailable as error:
                if error.indeterminate:
                    unsure.append(f"{name}.{number}")

    threads = [threading.Thread(target=produce, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(sure) > 50)
    own_server.freeze()
    threading.Event().wait(0.8)
    own_server.thaw()
    before = len(sure)
    wait_for(lambda: len(sure) > before + 50)
    stop.set()
    for thread in threads:
        thread.join()
    stored = []
    while jobs := queue.claim(1000):
        stored += [job.payload for job in jobs]
    print(f"{len(sure)} answered, {len(unsure)} not, {len(stored)} stored")
    assert unsure
    assert len(stored) == len(set(stored))
    assert set(sure) <= set(stored) <= {*sure, *unsure, "warm"}


def test_delayed_jobs_start_in_time_and_never_early(queue, kit, journal, start_worker):
    start_worker("--threads", 4)
    due = {}
    for number in range(25):
        delay = 0.2 + number * 0.03
        name = f"job{number}"
        before = time.time()
        note.using(run_after=timedelta(seconds=delay)).enqueue(name)
        due[name] = (before + delay, time.time() + delay)
    wait_for(lambda: len(journal.names()) == 25)
    begun = {line.name: line.at for line in journal.lines(step="begin")}
    late = sorted(begun[name] - latest for name, (_, latest) in due.items())
    print(f"late by {late[12] * 1000:.1f} ms (median), {late[-1] * 1000:.1f} ms (most)")
    assert all(begun[name] >= earliest for name, (earliest, _) in due.items())
    assert late[22] <= 0.5  # nobody polls; how late they are at most is for the benchmark to say


def test_idle_worker_ends_at_once_and_leaves_the_registry(queue, start_worker):
    worker = start_worker()
    wait_for(lambda: len(list_workers(["default"])) == 1)
    stopped(worker, within=10)
    assert list_workers(["default"]) == []


def test_finished_jobs_are_acknowledged_though_all_threads_are_busy(queue, kit, journal, start_worker, tmp_path):
    kit.options(QUEUES=LASTING)
    for number in range(300):  # so many that they are claimed in batches
        note.enqueue(f"short{number}")
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    start_worker("--threads", 1, "--processes", 1)
    wait_for(lambda: journal.lines(name="long", step="begin"), timeout=50)
    began = time.monotonic()
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 1, 0), timeout=50)  # the task would wait for 60 s
    print(f"acknowledged {time.monotonic() - began:.2f} s after the last thread was taken")
    (tmp_path / "go").touch()
    wait_for(lambda: queue.counts() == EMPTY)


def test_worker_finishes_its_jobs_within_the_grace_and_claims_no_more(queue, journal, start_worker, tmp_path):
    worker = start_worker("--threads", 1, "--grace", 20)
    wait_for_file.enqueue("first", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="first"))
    note.enqueue("second")
    worker.send_signal(signal.SIGTERM)
    threading.Timer(0.3, (tmp_path / "go").touch).start()
    assert worker.wait(15) == 0
    assert journal.names() == ["first"]
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert queue.claim()[0].attempt == 1


def test_worker_gives_back_what_the_grace_does_not_suffice_for(queue, journal, start_worker, tmp_path):
    worker = start_worker("--threads", 2, "--grace", 0.3)
    wait_for_file.enqueue("long", str(tmp_path / "never"))
    note.using(priority=-1).enqueue("short")
    wait_for(lambda: journal.names() == ["short"])
    stopped(worker, within=10)  # the usual grace is 25 s
    assert queue.counts() == QueueCounts(0, 1, 0, 0)
    assert list_workers(["default"]) == []
    assert queue.claim()[0].attempt == 1  # the interrupted attempt does not count


def test_second_signal_gives_back_at_once(queue, journal, start_worker, tmp_path):
    worker = start_worker("--threads", 1)
    wait_for_file.enqueue("long", str(tmp_path / "never"))
    wait_for(lambda: journal.lines(name="long"))
    worker.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(0.3)
    worker.send_signal(signal.SIGTERM)
    wait_for(lambda: queue.counts() == QueueCounts(0, 1, 0, 0), timeout=10)
    assert worker.wait(10) == 0
    said = worker.log.read_text()
    assert (
        said.index("Stopping: 1 job is running")
        < said.index("Returning jobs to their queues: 1 job is")
        < said.index("Stopped.")
    )


def test_frozen_worker_is_robbed_and_its_late_end_changes_nothing(queue, journal, start_worker, tmp_path):
    victim = start_worker("--threads", 1)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.lines(name="long"))
    other = start_worker("--threads", 1)
    os.kill(victim.pid, signal.SIGSTOP)
    wait_for(lambda: len(journal.lines(name="long", step="begin")) == 2)
    (tmp_path / "go").touch()
    wait_for(lambda: queue.counts() == EMPTY)
    os.kill(victim.pid, signal.SIGCONT)
    wait_for(lambda: len(journal.names()) == 2)
    wait_for(lambda: b"could not be recorded" in victim.log.read_bytes())
    note.enqueue("next")
    wait_for(lambda: "next" in journal.names())
    wait_for(lambda: queue.counts() == EMPTY)
    for worker in (victim, other):
        stopped(worker, within=10)


def test_connection_that_went_dead_unseen_is_noticed(kit, proxy, journal, start_worker):
    kit.connect(proxy.connection, QUEUES=QUICK)
    worker = start_worker("--threads", 1)
    kit.connect({"URL": f"redis://127.0.0.1:{proxy.target}/0"}, QUEUES=QUICK)
    wait_for(lambda: len(list_workers(["default"])) == 1)
    proxy.set("blackhole")
    note.enqueue("one")
    began = time.monotonic()
    wait_for(lambda: b"Lost connection to Redis" in worker.log.read_bytes())
    proxy.set("ok")
    wait_for(lambda: journal.names() == ["one"])
    print(f"picked up after {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began <= 12  # a silent read, a connection that fails, and the pause between


def test_progress_of_a_worker_is_read_by_others_while_it_runs(queue, start_worker, tmp_path):
    start_worker("--threads", 1)
    result = tell_progress.enqueue(str(tmp_path / "go"))
    wait_for(lambda: (result.refresh(), result.progress)[1], timeout=30)
    assert (str(result.status), result.progress[:3]) == ("RUNNING", (1, 2, "waits"))
    (tmp_path / "go").touch()
    assert result.wait_until_finished(30)
    assert (str(result.status), result.progress.done) == ("SUCCESSFUL", 2)


def test_failed_attempt_is_recorded_when_the_conflicting_key_is_gone(queue, kit, journal, start_worker):
    worker = start_worker("--threads", 1)
    kit.client.set(queue.key("reasons"), "not ours")
    fail.enqueue("x")
    wait_for(lambda: b"could not be recorded" in worker.log.read_bytes())
    assert queue.counts() == QueueCounts(0, 0, 1, 0)
    kit.client.delete(queue.key("reasons"))
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    note.enqueue("next")
    wait_for(lambda: journal.names() == ["next"])


def test_calls_that_run_are_cancelled_and_leave_nothing_dead(queue, journal, start_worker, tmp_path):
    start_worker("--threads", 2)
    results = [wait_for_file.enqueue("sync", str(tmp_path / "never")), wait_long.enqueue("async")]
    wait_for(lambda: len(journal.names("begin")) == 2)
    for result in results:
        assert result.cancel()
        assert result.wait_until_finished(20)
        assert [error.exception_class for error in result.errors] == [Cancelled]
    wait_for(lambda: queue.counts() == EMPTY)
    assert journal.names() == []
