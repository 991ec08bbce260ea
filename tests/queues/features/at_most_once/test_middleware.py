"""Attempts of jobs that run at most once, in one process."""

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.job import claimed
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.testing.jobs import drain, processor
from tests.queues.features.at_most_once.tasks import fail, forget, note, snooze
from tests.queues.support.claiming import claim_again

DEAD, GONE = QueueCounts(0, 0, 0, 1), QueueCounts(0, 0, 0, 0)


@pytest.fixture
def queue(kit, journal):
    return Queue("default")


def run(job, worker="w"):
    """Run a claimed job, and acknowledge it if it is done. Return whether it is."""
    source = WorkerQueue("default", worker=worker, about="{}")
    done = processor([source]).run(0, 0, job)
    for each in done:
        source.exchange(0, [each.ended])
    return bool(done)


def refreshed(result):
    result.refresh()
    return result


def test_job_runs_and_is_gone(queue, journal):
    result = note.enqueue("a")
    forget.enqueue("b")
    assert drain() == 2
    assert journal.names("begin") == ["a", "b"]
    assert refreshed(result).status == "SUCCESSFUL"
    assert queue.counts() == GONE


@pytest.mark.parametrize("task", [fail, snooze])
def test_failed_one_is_dead_and_a_retry_by_hand_does_not_run_it(queue, journal, task):
    result = task.enqueue("a")
    drain()
    assert queue.counts() == DEAD
    assert refreshed(result).status == "FAILED"
    (dead,) = queue.peek(state="dead")
    texts = {fail: "ValueError: a", snooze: "GiveUp: Snooze would run it again, and its task runs at most once"}
    assert dead.reason == texts[task]
    assert queue.requeue() == 1
    drain()
    (dead,) = queue.peek(state="dead")
    assert dead.reason == "WorkerLost: it had begun before, and its task runs at most once"
    assert journal.names("begin") == ["a"]


def test_worker_whose_claim_was_over_first_leaves_the_job_to_others(queue, journal, caplog):
    result = note.enqueue("a")
    (job,) = queue.claim(worker="w")
    queue.sign_off(worker="w")
    assert not run(job)
    assert "does not run here: its claim was over before it began" in caplog.text
    assert journal.names("begin") == []
    drain()
    assert journal.names() == ["a"]
    assert refreshed(result).status == "SUCCESSFUL"


def test_job_whose_claim_was_lost_while_it_ran_ends_as_lost(queue, journal):
    """Another worker that has the job then ends it as lost, so the late end of the first one is refused."""
    result = note.enqueue("a")
    (job,) = queue.claim(worker="w")
    source = WorkerQueue("default", worker="w", about="{}")
    (done,) = processor([source]).run(0, 0, job)
    queue.sign_off(worker="w")
    drain()
    assert source.exchange(0, [done.ended]).lost == [0]
    assert refreshed(result).status == "FAILED"
    assert result.errors[-1].exception_class_path.endswith("WorkerLost")
    assert journal.names() == ["a"]


def test_job_whose_claim_was_repeated_as_its_answer_was_lost_runs(queue, journal):
    note.enqueue("a")
    worker = ids.new_worker()
    claim_again(queue, "claim", 1, worker, again=False)
    reply = claim_again(queue, "claim", 1, worker)
    (job,) = claimed(reply, reply.index(b"\n") + 1, f"{worker}/claim", 0.0)
    assert run(job, worker)
    assert journal.names() == ["a"]
    assert queue.counts() == GONE


def test_failed_step_fails_its_workflow_and_the_callback_runs(queue, journal):
    pytest.importorskip("redis_kit.queues.features.workflows.feature")
    from redis_kit.queues import chain, group

    workflow = group(chain(fail.step("a"), note.step("b"))).on_done(note.step("c")).enqueue()
    drain()
    assert workflow.status().state == "failed"
    assert journal.names("begin") == ["a", "c"]
    workflow.retry()
    drain()
    assert workflow.status().state == "failed"
    assert journal.names("begin").count("a") == 1


def test_note_whose_answer_was_lost_is_repeated_and_the_job_runs(queue, journal, monkeypatch):
    note.enqueue("a")
    (job,) = queue.claim(worker="w")
    run_flow, lost = WorkerQueue.run_flow, [RedisUnavailable("the answer was lost", indeterminate=True)]

    def lose_one(self, steps, **answers):
        answer = run_flow(self, steps, **answers)
        if lost:
            raise lost.pop()
        return answer

    monkeypatch.setattr(WorkerQueue, "run_flow", lose_one)
    assert run(job)
    assert not lost
    assert journal.names() == ["a"]
