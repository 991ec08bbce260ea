"""The scripts of workflows: repeats after lost replies, deaths between two calls, keys of a wrong type."""

import contextlib
import re
from pathlib import Path

import pytest

from redis_kit.core import connections, flow, scripts
from redis_kit.core.client.single import Client
from redis_kit.core.errors import KeyConflict, RedisUnavailable
from redis_kit.core.flow import single
from redis_kit.queues import Queue, UnknownWorkflow, Workflow, chain, failures, group, previous
from redis_kit.queues.features import workflows
from redis_kit.queues.features.workflows import caretaker, store
from redis_kit.queues.features.workflows.start import packed
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.features.workflows.store import list_key, workflow_key
from redis_kit.testing.jobs import drain
from tests.queues.support import workflow_tasks
from tests.queues.support.workflow_tasks import ran, report, split, work

PARTS = ("meta", "steps", "states", "groups", "due", "active", "values", "errors", "ended")
SCRIPTS = sorted((Path(workflows.__file__).parent / "scripts").glob("[!_]*.lua"))


@pytest.fixture(autouse=True)
def fresh():
    ran.clear()
    workflow_tasks.broken.clear()


def run(steps):
    return flow.run(steps, connections.client())


def create(*parts):
    """Start a workflow "w" whose first part is node 1."""
    run(store.create("w", "name", packed([chain(*parts)], "w")))
    return Workflow("w")


def step(number):
    return StepCall("w", number)


def test_scripts_name_no_other_keys():
    allowed = {*PARTS, "listed", "checked"}
    sources = [scripts.load("redis_kit.queues.features.workflows", path.stem).source for path in SCRIPTS]
    named = {name for source in sources for name in re.findall(r"^-- KEYS\[\d+\] +(\w+)", source, re.MULTILINE)}
    assert named == allowed


def test_keys_of_a_workflow_are_no_queues_and_in_one_slot(kit):
    workflow = create(work.step(1))
    assert [workflow_key("w", part) for part in PARTS] == [workflow.key(part) for part in PARTS]
    assert "{queues:workflow:w}" in workflow.key("meta")
    assert Queue("workflow:w").key("meta") != workflow.key("meta")


def twice(steps):
    """Carry out a flow, and do so again as if no answer had come."""
    run(steps())
    return run(steps())


def test_repeat_of_each_call_changes_nothing_more(any_kit):
    nodes = packed([chain(work.step(1), group(work.step(2), work.step(3)), work.step(4))], "w")
    twice(lambda: store.create("w", "name", nodes))
    assert Queue("default").counts().ready == 1
    assert twice(lambda: store.begin(step(1))).how == store.BEGUN
    how, page = twice(lambda: store.end(step(1), "successful", b"1"))
    assert (how, page[::2]) == (store.RECORDED, [b"3", b"4"])
    twice(lambda: store.finish(step(1), b"1"))
    assert Queue("default").counts().ready == 3
    assert twice(lambda: store.fail(step(3), "no")) == store.RECORDED
    assert twice(lambda: store.finish(step(4), b"4")) == store.RECORDED
    assert Workflow("w").status()[4:] == (4, 2, 1, 0)
    assert run(store.retry("w")) == 1
    assert run(store.retry("w")) == 0
    assert twice(lambda: store.cancel("w")) == store.RECORDED
    assert Workflow("w").status().failed == 1


def test_step_that_has_ended_can_not_end_again(kit):
    create(group(work.step(1), work.step(2)), work.step(3))
    run(store.fail(step(2), "no"))
    assert run(store.finish(step(2), b"1")) == store.IGNORED
    run(store.finish(step(3), b"2"))
    assert run(store.fail(step(3), "no")) == store.IGNORED
    assert Workflow("w").status()[4:] == (3, 1, 1, 0)


def test_death_before_the_due_jobs_were_added_is_mended_by_a_redelivery(kit):
    create(work.step(1), work.step(2))
    (job,) = Queue("default").claim()
    run(store.begin(step(1)))
    run(store.end(step(1), "successful", b"1"))
    assert Queue("default").counts() == (0, 0, 1, 0)
    Queue("default").sign_off()  # the worker died
    drain()
    assert ran == [2]
    assert work.get_result(job.id).return_value == 1


def test_death_of_the_caller_is_mended_by_a_look_after_the_workflow(any_kit):
    nodes = packed([work.step(1)], "w")
    caller = store.create("w", "name", nodes)
    next(caller)
    run(single(store.REGISTER(list_key(), "w", 10, 0)))  # in its place, for a look at once
    run(single(caller.send(None)))
    assert run(caretaker.taken()) == ["w"]
    assert run(caretaker.taken()) == []
    assert run(caretaker.repair("w"))[0] == 0  # not at once: the caller may be about to add it
    grow_old()
    assert run(caretaker.repair("w"))[0] == 1
    drain()
    assert ran == [1]


def grow_old(id="w"):
    """Let all steps be as if nobody had looked at them for some time."""
    client, active = connections.client(), workflow_key(id, "active")
    for number in client.call("ZRANGE", active, 0, -1):
        client.call("ZADD", active, 0, number)


def gone(queue, id):
    assert queue.delete(id)


def dead(queue, id):
    (job,) = queue.claim()
    queue.nack(job, max_attempts=1, error="poison: 3 workers died with it")


@pytest.mark.parametrize(
    ("end", "error"),
    [(gone, caretaker.MISSING), (Queue.cancel, caretaker.MISSING), (dead, "poison: 3 workers died with it")],
)
def test_job_that_ended_unreported_fails_its_step(kit, end, error):
    if end is Queue.cancel:
        pytest.importorskip("redis_kit.queues.features.cancel")
    workflow = create(group(work.step(1)).on_done(report.step(previous, failures)))
    end(Queue("default"), workflow.steps()[0].id)
    assert run(caretaker.repair("w"))[1] == []
    grow_old()
    assert run(caretaker.repair("w"))[1] == [(2, error)]
    drain()
    assert ran == [([None], [("work", error)])]
    assert workflow.status().state == "failed"
    workflow.retry()
    drain()
    assert (workflow.status().state, ran[1:]) == ("successful", [1])


def test_look_leaves_waiting_and_running_jobs_alone(kit):
    create(group(*(work.step(number) for number in range(150))))
    Queue("default").claim(10)
    for _ in range(2):
        grow_old()
        assert run(caretaker.repair("w")) == (0, [])
    assert Queue("default").counts() == (0, 140, 10, 0)


def test_workflow_that_ended_is_looked_at_no_more(kit):
    workflow = create(work.step(1))
    listed, checked = list_key("listed"), list_key("checked")
    drain()
    run(caretaker.repair("w"))
    assert not kit.client.zcard(checked)
    assert kit.client.zcard(listed) == 1
    kit.client.delete(workflow.key("meta"))
    run(caretaker.repair("w"))
    assert kit.client.zcard(listed) == 1  # it may be about to start
    kit.client.zadd(listed, {"w": 5})
    run(caretaker.repair("w"))
    assert not kit.client.exists(listed, checked)


def test_step_whose_workflow_was_rolled_back_waits_for_its_turn(kit):
    """In a Cluster, the node of a workflow may lose what the node of a queue remembers."""
    workflow = create(work.step(1), work.step(2))
    drain()
    Queue("default").put({"task": "x"}, id=workflow.steps()[1].id)
    kit.client.hset(workflow.key("meta"), "status", "running")
    kit.client.hset(workflow.key("states"), 2, 1)
    assert run(store.begin(step(2))).how == store.NOT_DUE


def test_results_over_16_mib_are_too_much_for_one_step(kit):
    workflow = create(group(*(work.step(number) for number in range(70))), work.step(previous))
    value = b'"' + b"x" * 250_000 + b'"'
    for number in range(2, 72):
        run(store.finish(step(number), value))
    drain()
    assert "more than 16,777,216 bytes" in workflow.steps()[-1].error


@pytest.mark.parametrize("part", PARTS[:-1])
def test_key_of_a_wrong_type_is_named_and_nothing_is_changed(kit, part):
    create(group(work.step(1), work.step(2)))
    run(store.fail(step(2), "no"))
    key, keys = workflow_key("w", part), [workflow_key("w", each) for each in PARTS]
    kit.client.delete(key)
    kit.client.rpush(key, "x")
    before = {name: kit.client.dump(name) for name in keys}
    for steps in (
        store.begin(step(3)),
        store.finish(step(3), b"1"),
        store.fail(step(3), "no"),
        store.cancel("w"),
        store.retry("w"),
    ):
        with pytest.raises(KeyConflict, match=re.escape(key)):
            run(steps)
    assert {name: kit.client.dump(name) for name in keys} == before


class LostReply:
    """Loses one reply: the server has carried out the command, and the caller does not know."""

    def __init__(self, monkeypatch):
        self.left = 0
        for name in ("call", "batch"):
            original = getattr(Client, name)
            monkeypatch.setattr(Client, name, lambda *args, original=original: self._sent(original, args))

    def _sent(self, original, args):
        reply = original(*args)
        self.left -= 1
        if self.left == 0:
            raise RedisUnavailable("lost", indeterminate=True)
        return reply


def run_again_and_again(workflow):
    """Do what workers do until the workflow has ended, or 10 times."""
    for _ in range(10):
        with contextlib.suppress(RedisUnavailable):
            drain()
            if workflow.status().state != "running":
                return
            grow_old(workflow.id)
            run(caretaker.repair(workflow.id))


def test_no_lost_reply_stops_a_workflow_or_runs_its_callback_twice(kit, monkeypatch):
    lost, rounds, was_lost = LostReply(monkeypatch), 0, True
    while was_lost:
        ran.clear()
        rounds += 1
        lost.left = rounds
        parts = chain(work.step("a"), group(work.step("b"), split.step(1)).on_done(report.step(previous, failures)))
        workflow = Workflow(f"w{rounds}")
        nodes = packed([parts], workflow.id)
        try:
            run(store.create(workflow.id, "name", nodes))
        except RedisUnavailable:
            try:
                workflow.status()
            except UnknownWorkflow:
                continue  # only the list has it
            grow_old(workflow.id)
            run(caretaker.repair(workflow.id))
        run_again_and_again(workflow)
        was_lost, lost.left = lost.left <= 0, 0
        assert workflow.status()[:1] + workflow.status()[4:] == ("successful", 5, 5, 0, 0), rounds
        assert sorted(map(str, ran)) == ["(['b', 1], [])", "0", "a", "b", "split 1"], rounds
        assert Queue("default").counts() == (0, 0, 0, 0)
    assert rounds > 25
