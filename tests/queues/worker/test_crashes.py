"""Jobs that end the process in which they run, those beside them, and those beside a job that had to be killed."""

import os
import signal

import pytest

from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.reports.lookup import look_up
from tests.fixtures.process import wait_for
from tests.queues.support.journal import LASTING
from tests.queues.support.processes import children
from tests.queues.support.tasks import die, die_of, die_once, never_end, note_in_twos, note_slowly, wait_for_file

pytestmark = [pytest.mark.alone(40), pytest.mark.once]

POISON = "poison: 2 processes died in which it ran alone"


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={**LASTING, "MAX_CRASHES": 2})
    return Queue("default")


def test_job_that_kills_its_process_dies_and_those_beside_it_are_done(queue, journal, start_worker):
    worker = start_worker("--threads", 4)
    innocent = [note_slowly.enqueue(f"innocent{number}", 0.5) for number in range(3)]
    wait_for(lambda: len(journal.names("begin")) == 3)
    bad = die.enqueue("bad")
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    (dead,) = queue.peek(state="dead")
    assert (dead.id, dead.reason, dead.crashes, dead.attempts) == (bad.id, POISON, 3, 2)
    _, details = look_up(["default"], bad.id)
    assert sorted(details.beside) == sorted(("default", job.id) for job in innocent)
    assert sorted(journal.names()) == [f"innocent{number}" for number in range(3)]
    assert sorted(journal.names("begin")) == sorted([*["bad"] * 3, *[f"innocent{number}" for number in range(3)] * 2])
    begun = journal.lines(step="begin")
    together = {line.pid for line in begun[:4]}
    assert len(together) == 1
    assert len({line.pid for line in begun[4:]}) == 5  # each in a process of its own
    assert worker.poll() is None


def test_job_that_ends_its_process_with_0_is_dead_after_the_limit(queue, journal, start_worker):
    die_of.enqueue("bad", "zero")
    worker = start_worker("--threads", 2, "--burst")
    assert worker.wait(30) == 0
    (dead,) = queue.peek(state="dead")
    assert (dead.reason, dead.crashes) == (POISON, 2)
    assert b"ended by exit code 0" in worker.log.read_bytes()


def test_only_attempt_of_a_job_that_kills_its_process_is_its_last(queue, journal, start_worker):
    result = die_once.enqueue("bad")
    worker = start_worker("--threads", 2, "--burst")
    assert worker.wait(30) == 0
    (dead,) = queue.peek(state="dead")
    assert dead.reason == "WorkerLost: its process died in the last of its attempts"
    assert journal.names("begin") == ["bad"]
    assert b"is dead after attempt 1 of 1" in worker.log.read_bytes()
    result.refresh()
    assert result.status == "FAILED"


def test_job_beside_one_that_had_to_be_killed_starts_anew_once(queue, kit, journal, start_worker):
    start_worker("--threads", 2)
    note_slowly.enqueue("long", 2.5)
    wait_for(lambda: journal.names("begin") == ["long"])
    for number in range(3):
        never_end.enqueue(f"stuck{number}")
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 3))
    assert journal.names("begin").count("long") == 2
    assert journal.names() == ["long"]


def test_jobs_that_run_alone_have_their_places_in_limits(queue, kit, journal, start_worker):
    start_worker("--threads", 4)
    for number in range(2):
        note_in_twos.enqueue(f"first{number}", 0.5)
    wait_for(lambda: len(journal.names("begin")) == 2)
    die_once.enqueue("bad")
    for number in range(2):
        note_in_twos.enqueue(f"second{number}", 0)
    wait_for(lambda: queue.counts() == QueueCounts(0, 0, 0, 1))
    assert sorted(journal.names()) == ["first0", "first1", "second0", "second1"]
    assert not kit.client.zrangebylex(queue.key("parked"), "[run\n", "(run\x0b")


def test_worker_that_stops_lets_a_job_that_runs_alone_end(queue, journal, start_worker, tmp_path):
    worker = start_worker("--threads", 2)
    wait_for_file.enqueue("long", str(tmp_path / "go"))
    wait_for(lambda: journal.names("begin") == ["long"])
    os.kill(children(worker)[0], signal.SIGKILL)
    wait_for(lambda: journal.names("begin") == ["long", "long"])
    worker.send_signal(signal.SIGTERM)
    wait_for(lambda: b"Stopping: 1 job is running" in worker.log.read_bytes())
    (tmp_path / "go").touch()
    assert worker.wait(20) == 0
    assert journal.names() == ["long"]
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
