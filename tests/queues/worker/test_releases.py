"""Workers of different releases as processes: who gets the jobs of new, renamed and changed tasks, and how soon."""

import signal
import time

import pytest

from redis_kit.queues import Queue
from redis_kit.queues.inspection import queue_stats
from tests.chaos.queues.support import history
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.processes import children, stopped
from tests.queues.support.tasks import note

HOME = "tests.queues.support.releases.tasks"


@pytest.fixture
def queue(kit):
    kit.options(QUEUES=LASTING)
    return Queue("default")


@pytest.fixture
def start(start_worker, monkeypatch, tmp_path):
    """A function that starts a worker of a release."""
    monkeypatch.setenv("MORE_APPS", "tests.queues.support.releases")
    monkeypatch.setenv(history.VARIABLE, str(tmp_path / "numbers"))

    def started(release, *arguments):
        monkeypatch.setenv("RELEASE", release)
        return start_worker("--threads", 2, *arguments)

    return started


@pytest.fixture
def ran(tmp_path):
    return lambda: sorted(entry.number for entry in history.read(tmp_path / "numbers") if entry.phase == "end")


def put(queue, number, name, **more):
    queue.put({"task": f"{HOME}.{name}", "args": [number], **more}, id=f"job{number}")


def put_far_off(kit, queue):
    """Let the jobs that were given back come back in ten minutes."""
    seconds, _ = kit.client.time()
    for id in kit.client.zrange(queue.key("scheduled"), 0, -1):
        kit.client.zadd(queue.key("scheduled"), {id: (seconds + 600) * 1000})


def test_worker_that_knows_the_tasks_gets_the_jobs_when_it_starts(kit, queue, start, ran):
    old = start("old")
    put(queue, 1, "added")
    put(queue, 2, "renamed")
    put(queue, 3, "changed", kwargs={"colour": "red"})
    put(queue, 4, "changed")
    wait_for(lambda: queue.counts() == (3, 0, 0, 0))
    assert ran() == [4]
    wait_for(lambda: old.log.read_text().count("no living worker can run") == 3)
    put_far_off(kit, queue)
    began = time.monotonic()
    start("new")
    wait_for(lambda: ran() == [1, 2, 3, 4])
    print(f"{time.monotonic() - began:.1f} s after its start")
    put(queue, 5, "before")
    wait_for(lambda: ran() == [1, 2, 3, 4, 5])
    wait_for(lambda: queue.counts() == (0, 0, 0, 0))
    assert stopped(old, within=30) < 20


def test_job_that_was_made_ready_again_goes_to_the_worker_that_can_run_it(queue, start, ran):
    start("old")
    new = start("new")
    for number in range(1, 5):  # while both workers are idle
        put(queue, number, "added")
        wait_for(lambda number=number: number in ran(), timeout=60)
    assert new.log.read_text().count("can run here") < 8


def test_burst_ends_though_nobody_knows_the_task(queue, start, ran):
    for number in range(50):
        put(queue, number, "added")
    put(queue, 50, "before")
    worker = start("old", "--burst")
    assert worker.wait(60) == 0
    assert ran() == [50]
    assert queue.counts() == (50, 0, 0, 0)


def test_jobs_that_were_given_back_do_not_count_for_max_tasks(queue, start, journal):
    worker = start("old", "--max-tasks", 5)
    wait_for(lambda: len(children(worker)) == 1)
    child = children(worker)
    for number in range(40):
        put(queue, number, "added")
    wait_for(lambda: queue.counts().ready == queue.counts().running == 0)
    note.enqueue("a")
    wait_for(lambda: "a" in journal.names())
    assert children(worker) == child


def test_quiet_worker_does_not_count_as_one_that_knows_a_task(queue, start):
    new = start("new")
    wait_for(lambda: children(new))
    new.send_signal(signal.SIGTSTP)
    wait_for(lambda: queue_stats(["default"])["default"].quiet == 1)
    start("old")
    put(queue, 1, "added")
    wait_for(lambda: queue.counts().scheduled == 1)
    time.sleep(2 * LASTING["HEARTBEAT_INTERVAL"])
    (found,) = queue_stats(["default"])["default"].unknown
    assert (found.task, found.known) == (f"{HOME}.added", False)
