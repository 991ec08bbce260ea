"""Workflows with workers as processes, which die at each step of the way."""

import time

import pytest

from redis_kit.queues import Queue, chain, failures, group, previous
from redis_kit.queues.features.workflows import caretaker
from redis_kit.queues.features.workflows.store import list_key
from tests.fixtures import failpoints
from tests.fixtures.process import wait_for
from tests.queues.support.backup import Backup
from tests.queues.support.journal import LASTING
from tests.queues.support.tasks import die, end_with_a_file, never_end, note, note_failures, wait_for_file, wait_long

pytestmark = pytest.mark.alone(20)


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={**LASTING, "MAX_CRASHES": 2})
    return Queue("default")


@pytest.mark.parametrize("point", failpoints.OF_STEPS)
def test_chain_and_callback_go_on_when_a_process_dies_at(queue, start_worker, journal, monkeypatch, tmp_path, point):
    monkeypatch.setenv(failpoints.POINT, f"{point}:2")
    monkeypatch.setenv(failpoints.ONCE, str(tmp_path / "once"))
    parts = [note.step("a"), note.step("b"), group(note.step("c"), note.step("d")), note.step("e")]
    callback = note_failures.step("callback", previous, failures)
    workflow = group(chain(*parts)).on_done(callback).enqueue()
    # With "c" and "d" in the queue, a second thread could run one of them before the process dies.
    start_worker("--threads", 1 if point == "step_sent" else 2)
    assert workflow.wait_until_finished(30)
    assert (tmp_path / "once").exists(), "nobody came to that point"
    assert workflow.status().state == "successful"
    names = journal.names()
    assert sorted(set(names)) == ["a", "b", "c", "callback-0", "d", "e"]
    assert names.count("callback-0") == 1
    assert sorted(names) == sorted(set(names))  # none of these points is between a task and its record
    wait_for(lambda: queue.counts() == (0, 0, 0, 0))


def test_poison_and_timeout_fail_their_steps_and_the_callback_runs(queue, start_worker, journal):
    callback = note_failures.step("callback", previous, failures)
    workflow = group(die.step("poison"), never_end.step("late"), note.step("fine")).on_done(callback).enqueue()
    start_worker("--threads", 1, "--processes", 2)
    assert workflow.wait_until_finished(40)
    wait_for(lambda: journal.names() == ["fine", "callback-2"])
    poison, late, *_ = workflow.steps()
    assert (poison.error, late.error[:11]) == ("poison: 2 processes died in which it ran alone", "TaskTimeout")


def test_step_that_has_ended_outlives_an_outage(own_server, own_kit, start_worker, journal, tmp_path):
    workflow = chain(end_with_a_file.step("a", str(tmp_path / "go")), note.step("b")).enqueue()
    start_worker("--threads", 1)
    wait_for(lambda: journal.lines(step="begin"))
    own_server.freeze()
    (tmp_path / "go").touch()
    wait_for(lambda: journal.lines(step="end"))
    time.sleep(3)  # the process would be killed a second after the time limit of the task
    own_server.thaw()
    assert workflow.wait_until_finished(30)
    assert (workflow.status().state, journal.names()) == ("successful", ["a", "b"])


def test_running_steps_of_a_cancelled_workflow_are_stopped(queue, start_worker, journal, tmp_path):
    pytest.importorskip("redis_kit.queues.features.cancel")
    parts = [wait_for_file.step("sync", str(tmp_path / "never")), wait_long.step("async")]
    workflow = chain(group(parts), note.step("after")).enqueue()
    start_worker("--threads", 2)
    wait_for(lambda: len(journal.lines(step="begin")) == 2)
    began = time.monotonic()
    assert workflow.cancel()
    wait_for(lambda: queue.counts() == (0, 0, 0, 0))
    assert time.monotonic() - began < 20
    assert workflow.status()[:1] + workflow.status()[4:] == ("cancelled", 3, 0, 2, 0)
    assert journal.names() == []


def test_supervisor_looks_after_workflows(queue, start_worker, journal, kit):
    workflow = chain(note.using(queue_name="other").step("a"), note.step("b")).enqueue()
    Queue("other").delete(workflow.steps()[0].id)
    kit.client.zadd(workflow.key("active"), {1: 0})
    kit.client.zadd(list_key("checked"), {workflow.id: 0})
    worker = start_worker("--threads", 1)
    assert workflow.wait_until_finished(caretaker.INTERVAL + 20)
    assert workflow.status().state == "failed"
    wait_for(lambda: f"Workflow {workflow.id}: step 1 has failed" in worker.log.read_text())


def test_steps_that_the_server_lost_run_again_or_are_recorded_again(queue, start_worker, journal, kit, tmp_path):
    go = tmp_path / "go"
    parts = [note.step("a"), wait_for_file.step("b", str(go)), note.step("c"), note.step("d")]
    workflow = chain(*parts).enqueue()
    start_worker("--threads", 1)
    wait_for(lambda: journal.lines(name="b", step="begin"))
    backup = Backup(kit)
    go.touch()
    assert workflow.wait_until_finished(20)
    backup.restore()
    assert workflow.status().state == "running"
    assert workflow.wait_until_finished(30)
    assert workflow.status()[:1] + workflow.status()[4:] == ("successful", 4, 4, 0, 0)
    assert journal.names() == ["a", "b", "c", "d", "c", "d"]
    wait_for(lambda: queue.counts() == (0, 0, 0, 0))
