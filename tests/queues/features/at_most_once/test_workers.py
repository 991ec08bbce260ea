"""Workers as processes that die while jobs run which must not run again."""

import os
import signal
from contextlib import suppress

import pytest

from redis_kit.queues import Queue, QueueCounts
from tests.fixtures import failpoints
from tests.fixtures.process import wait_for
from tests.queues.features.at_most_once.tasks import die, die_alone, fail, never_end, note, wait_for_file
from tests.queues.support.journal import LASTING
from tests.queues.support.processes import children, end
from tests.queues.support.tasks import note_slowly

pytestmark = [pytest.mark.alone(60), pytest.mark.once]

GONE = QueueCounts(0, 0, 0, 0)
LOST = "WorkerLost: it had begun before, and its task runs at most once"


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={**LASTING, "IMPORTS": ["tests.queues.features.at_most_once.tasks"]})
    return Queue("default")


def refreshed(result):
    result.refresh()
    return result


def reasons(queue):
    return {job.id: job.reason for job in queue.peek(50, state="dead")}


def idle(queue):
    return queue.counts()[:3] == (0, 0, 0)


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
def test_job_whose_process_dies_is_lost_and_does_not_run_again(queue, journal, start_worker, beside):
    others = [note_slowly.enqueue(f"innocent{number}", 1) for number in range(2)] if beside else []
    worker = start_worker("--threads", 4)
    wait_for(lambda: len(journal.names("begin")) == len(others))
    result = die.enqueue("bad")
    wait_for(lambda: refreshed(result).status == "FAILED")
    wait_for(lambda: idle(queue))
    assert journal.names("begin").count("bad") == 1
    assert len(journal.names()) == len(others)
    assert result.errors[-1].exception_class_path.endswith("WorkerLost")
    assert list(reasons(queue)) == [result.id]
    wait_for(lambda: b" is dead" in worker.log.read_bytes())


@pytest.mark.parametrize("point", ["claimed", "begun", "called", "noted", "before_exchange", "exchanged"])
def test_job_begins_at_most_once_when_its_process_dies_at(queue, journal, start_worker, monkeypatch, tmp_path, point):
    monkeypatch.setenv(failpoints.POINT, point)
    monkeypatch.setenv(failpoints.ONCE, str(tmp_path / "once"))
    result = note.enqueue("a")
    start_worker("--threads", 1)
    wait_for(lambda: (tmp_path / "once").exists())
    wait_for(lambda: refreshed(result).status in ("SUCCESSFUL", "FAILED"))
    wait_for(lambda: idle(queue))
    # Its claim is not lost with the process, and an end on the board of the process is reported by its supervisor.
    assert result.status == ("FAILED" if point in ("begun", "called") else "SUCCESSFUL")
    assert journal.names("begin") == ([] if point == "begun" else ["a"])


@pytest.mark.parametrize("point", ["before_nack", "nacked"])
def test_failed_job_does_not_run_again_when_its_process_dies_at(
    queue, journal, start_worker, monkeypatch, tmp_path, point
):
    monkeypatch.setenv(failpoints.POINT, point)
    monkeypatch.setenv(failpoints.ONCE, str(tmp_path / "once"))
    result = fail.enqueue("a")
    start_worker("--threads", 1)
    wait_for(lambda: (tmp_path / "once").exists())
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    assert journal.names("begin") == ["a"]
    assert refreshed(result).status == "FAILED"


def test_jobs_that_had_not_begun_run_when_the_whole_worker_dies(queue, kit, journal, start_worker, tmp_path):
    begun = wait_for_file.enqueue("begun", str(tmp_path / "never"))
    worker = start_worker("--threads", 1)
    wait_for(lambda: journal.names("begin") == ["begun"])
    (running,) = queue.peek(5, state="running")
    name = running.worker
    waiting = [note.enqueue(f"waiting{number}") for number in range(3)]
    held = queue.claim(3, worker=name)  # as the dead one might have claimed them ahead
    assert len(held) == 3
    below = children(worker)
    os.kill(worker.pid, signal.SIGSTOP)  # it can't tell the server about its child
    for pid in below:
        os.kill(pid, signal.SIGKILL)
    worker.kill()
    start_worker("--threads", 2)
    wait_for(lambda: idle(queue), timeout=40)
    assert sorted(journal.names("begin")) == ["begun", "waiting0", "waiting1", "waiting2"]
    assert [refreshed(result).status for result in waiting] == ["SUCCESSFUL"] * 3
    assert reasons(queue) == {begun.id: LOST}


def test_worker_that_stops_returns_what_has_not_begun(queue, journal, start_worker, tmp_path):
    long = wait_for_file.enqueue("long", str(tmp_path / "never"))
    worker = start_worker("--threads", 1, "--grace", 0.5)
    wait_for(lambda: journal.names("begin") == ["long"])
    for number in range(5):
        note.enqueue(f"waiting{number}")
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
    assert journal.names() == []
    start_worker("--threads", 1)
    wait_for(lambda: idle(queue))
    assert sorted(journal.names()) == [f"waiting{number}" for number in range(5)]
    assert journal.names("begin").count("long") == 1
    assert refreshed(long).status == "FAILED"
    assert reasons(queue) == {long.id: LOST}


def test_unique_key_and_place_of_a_lost_job_are_free_again(queue, journal, start_worker):
    pytest.importorskip("redis_kit.queues.features.limits")
    pytest.importorskip("redis_kit.queues.features.unique")
    start_worker("--threads", 2)
    first = die_alone.enqueue("bad")
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    second = die_alone.enqueue("bad")
    assert second.id != first.id
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 2))
    assert journal.names("begin") == ["bad", "bad"]


def test_timeout_that_needs_a_kill_ends_it(queue, journal, start_worker):
    result = never_end.enqueue("late")
    start_worker("--threads", 1)
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    assert set(reasons(queue).values()) == {f"TaskTimeout: {never_end.module_path} ran for more than 0.3 s"}
    assert journal.names("begin") == ["late"]
    assert refreshed(result).status == "FAILED"


def test_cancelled_one_ends_and_is_gone(queue, journal, start_worker, tmp_path):
    pytest.importorskip("redis_kit.queues.features.cancel")
    result = wait_for_file.enqueue("long", str(tmp_path / "never"))
    start_worker("--threads", 1)
    wait_for(lambda: journal.names("begin") == ["long"])
    result.cancel()
    wait_for(lambda: queue.counts() == GONE)
    assert refreshed(result).status == "FAILED"
    assert journal.names("begin") == ["long"]


def test_step_whose_process_dies_fails_its_workflow(queue, journal, start_worker):
    pytest.importorskip("redis_kit.queues.features.workflows.feature")
    from redis_kit.queues import chain

    workflow = chain(note.step("a"), die.step("bad"), note.step("after")).enqueue()
    start_worker("--threads", 2)
    assert workflow.wait_until_finished(30)
    assert workflow.status().state == "failed"
    assert journal.names("begin") == ["a", "bad"]


def test_killed_workers_never_run_one_twice(queue, journal, start_worker):
    results = [note.enqueue(str(number)) for number in range(300)]
    worker = start_worker("--threads", 4, "--processes", 2)
    for _ in range(4):
        before = len(journal.names())
        wait_for(lambda before=before: len(journal.names()) > before + 10 or idle(queue))
        for pid in children(worker)[:1]:
            with suppress(ProcessLookupError):  # one that was killed before may still be listed
                os.kill(pid, signal.SIGKILL)
    wait_for(lambda: idle(queue), timeout=60)
    names = journal.names("begin")
    assert len(names) == len(set(names))
    succeeded = [result for result in results if refreshed(result).status == "SUCCESSFUL"]
    assert len(succeeded) + len(reasons(queue)) == len(results)
    assert {result.status for result in results} <= {"SUCCESSFUL", "FAILED"}
    end(worker)
