"""Workflows from their start to their end, with a worker in the thread of the test."""

import time
from datetime import timedelta
from threading import Event

import pytest
from django.db import transaction

from redis_kit.core import connections, flow
from redis_kit.queues import (
    InvalidArguments,
    InvalidWorkflow,
    Queue,
    UnknownWorkflow,
    Workflow,
    chain,
    failures,
    group,
    previous,
)
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.middleware import WorkflowStep
from redis_kit.queues.features.workflows.start import packed
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.framework import BUNDLED
from redis_kit.queues.tasks import registry
from redis_kit.testing.jobs import drain
from tests.queues.support import workflow_tasks
from tests.queues.support.workflow_tasks import add, ran, report, split, total, unstorable, work


@pytest.fixture(autouse=True)
def fresh():
    ran.clear()
    workflow_tasks.broken.clear()


def run(part):
    """Run a workflow to its end, or as far as it goes."""
    workflow = part.enqueue()
    drain("default", "elsewhere")
    return workflow


def states(workflow):
    return [step.state for step in workflow.steps()]


def test_chain_runs_in_order_and_passes_results_that_are_asked_for(any_kit, twin):
    workflow = twin(chain(work.step(3), add.step(previous, 4), work.step(9), add.step(previous, to=1)).enqueue)
    assert twin(workflow.status).state == "running"
    assert [step.state for step in twin(workflow.steps)] == ["due", "waiting", "waiting", "waiting"]
    drain("default", "elsewhere")
    assert ran == [3, 7, 9, 10]
    status = twin(workflow.status)
    assert status[:2] == ("successful", "tests.queues.support.workflow_tasks.work + 3")
    assert status.created <= status.ended
    assert status[4:] == (4, 4, 0, 0)
    assert twin(workflow.wait_until_finished, 0)
    first, second, *_ = twin(workflow.steps)
    assert (first.task, first.queue, first.error) == ("tests.queues.support.workflow_tasks.work", "default", "")
    assert (second.queue, first.seconds >= 0) == ("elsewhere", True)
    assert work.get_result(first.id).return_value == 3
    assert Queue("default").counts() == Queue("elsewhere").counts() == (0, 0, 0, 0)


def test_group_passes_its_results_in_order(kit):
    first = work.step(1)
    inner = chain(work.step(2), group(work.step(10), work.step(20)), total.step(previous))
    assert run(chain(group(first, inner, work.step(3)), total.step(previous), add.step(previous, first.result)))
    assert ran[-2:] == [[1, 30, 3], 35]


def test_members_of_a_nested_group_get_what_came_before_the_group(kit):
    run(chain(work.step(5), group(add.step(previous, 1), chain(add.step(previous, 2), work.step(0)))))
    assert sorted(ran) == [0, 5, 6, 7]


def test_group_of_groups_gives_a_list_of_lists(kit):
    run(chain(group(group(work.step(1), work.step(2)), group([work.step(3)])), work.step(previous)))
    assert ran[-1] == [[1, 2], [3]]


def test_callback_runs_once_and_gets_results_and_failures(any_kit):
    workflow_tasks.broken |= {2, 5}
    parts = work.step(1), work.step(2), chain(work.step(5), work.step(6)), chain(work.step(7), work.step(8))
    workflow = run(chain(group(parts).on_done(report.step(previous, failures)), work.step("after")))
    assert sorted(map(str, ran[:5])) == ["1", "2", "5", "7", "8"]
    assert ran[5:] == [([1, None, None, 8], [("work", "ValueError: 2"), ("work", "ValueError: 5")]), "after"]
    assert workflow.status()[4:] == (8, 5, 2, 0)
    assert workflow.status().state == "failed"
    assert states(workflow) == [*("successful", "failed", "failed", "waiting"), *["successful"] * 4]


def test_steps_after_a_failed_group_do_not_run_without_a_callback(kit):
    workflow_tasks.broken.add(2)
    workflow = run(chain(group(work.step(1), work.step(2)), work.step(3)))
    assert sorted(ran) == [1, 2]
    assert (workflow.status().state, states(workflow)) == ("failed", ["successful", "failed", "waiting"])


def test_callback_of_an_outer_group_runs_though_an_inner_callback_failed(kit):
    workflow_tasks.broken |= {1, 2}
    inner = group(work.step(1)).on_done(work.step(2))
    run(group(inner, work.step(3)).on_done(report.step(previous, failures)))
    assert ran[-1] == ([None, 3], [("work", "ValueError: 1"), ("work", "ValueError: 2")])


def test_steps_of_a_group_wait_for_results_and_for_steps_they_name(kit):
    one, two = work.step(1), work.step(2)
    both = add.step(one.result, two.result)
    last = work.step("last").after(both, two)
    run(group(last, both, work.step([one.result, both.result]), two, one))
    assert sorted(ran[:2]) == [1, 2]
    assert ran[2] == 3
    assert sorted(map(str, ran[3:])) == ["[1, 3]", "last"]


def test_steps_that_a_step_adds_run_before_what_waits_for_it(any_kit):
    workflow = run(chain(split.step(2), work.step(previous)))
    assert ran == ["split 2", 0, 1, 2]
    assert (workflow.status().steps, workflow.status().state) == (4, "successful")


def test_callback_waits_for_steps_that_were_added(kit):
    workflow_tasks.broken.add(1)
    run(group(split.step(2), work.step(7)).on_done(report.step(previous, failures)))
    assert ran[-1] == ([2, 7], [("work", "ValueError: 1")])


def test_failed_step_adds_nothing_and_its_retry_adds_once(kit):
    workflow_tasks.broken.add("split")
    workflow = run(chain(split.step(2), work.step(previous)))
    assert ran == ["split 2"]
    workflow_tasks.broken.clear()
    assert workflow.retry() == 1
    drain("default", "elsewhere")
    assert ran[1:] == ["split 2", 0, 1, 2]


def test_retry_runs_failed_steps_and_what_waits_for_them(kit, twin):
    workflow_tasks.broken |= {2, 5}
    inner = group(work.step(5), work.step(6)).on_done(report.step(previous, failures))
    workflow = run(chain(group(work.step(1), work.step(2), inner), work.step(3)))
    assert workflow.status()[5:] == (3, 2, 0)
    workflow_tasks.broken.clear()
    ran.clear()
    assert twin(workflow.retry) == 2
    assert workflow.status().state == "running"
    assert not any(ttl >= 0 for ttl in ttls(kit, workflow))
    drain("default", "elsewhere")
    assert sorted(ran) == [2, 3, 5]
    assert (workflow.status().state, workflow.status()[5:]) == ("successful", (6, 0, 0))
    assert twin(workflow.retry) == 0


def ttls(kit, workflow):
    keys = [workflow.key(part) for part in ("meta", "steps", "states", "groups", "values")]
    return [kit.client.pttl(key) for key in keys]


def test_workflow_expires_after_its_end_only(kit):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    workflow = chain(work.step(1), work.step(2)).enqueue()
    assert set(ttls(kit, workflow)) <= {-1, -2}
    drain()
    assert all(86_000_000 < ttl <= 86_400_000 for ttl in ttls(kit, workflow))
    workflow_tasks.broken.add(1)
    assert all(ttl > 86_400_000 for ttl in ttls(kit, run(chain(work.step(1)))) if ttl != -2)


def test_cancelled_workflow_runs_no_further_step_until_it_is_retried(kit, twin):
    pytest.importorskip("redis_kit.queues.features.cancel")
    workflow = chain(work.step(1), group(work.step(2), work.step(3)), work.step(4)).enqueue()
    drain_one()
    assert twin(workflow.cancel) is True
    assert twin(workflow.cancel) is True
    assert Queue("default").counts() == (0, 0, 0, 0)
    assert workflow.status()[:1] + workflow.status()[5:] == ("cancelled", 1, 2, 0)
    assert states(workflow) == ["successful", "cancelled", "cancelled", "waiting"]
    assert ran == [1]
    assert workflow.retry() == 2
    drain()
    assert sorted(ran) == [1, 2, 3, 4]
    assert twin(workflow.cancel) is False


def test_options_of_a_call_are_those_of_its_job(kit):
    pytest.importorskip("redis_kit.queues.features.limits")
    first = work.using(priority=7, queue_name="a b-c", group="tenant:7")
    workflow = chain(first.step(1), work.using(run_after=timedelta(hours=1)).step(2)).enqueue()
    (job,) = Queue("a b-c").peek()
    assert (job.priority, workflow.steps()[0].queue) == (7, "a b-c")
    drain("a b-c")
    assert Queue("default").counts().scheduled == 1
    Queue("default").run_now(workflow.steps()[1].id)
    drain()
    assert (ran, workflow.status().state) == ([1, 2], "successful")


def drain_one():
    """Run the job that is ready, and none that becomes ready by that."""
    from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
    from redis_kit.testing.jobs import processor

    source = WorkerQueue("default", worker="one", about="{}")
    (job,) = source.claim(1, worker="one")
    (done,) = processor([source]).run(0, 0, job)
    source.exchange(0, [done.ended])
    source.sign_off(worker="one")


def test_step_whose_dead_job_is_retried_lets_its_workflow_go_on(kit):
    workflow_tasks.broken.add(1)
    workflow = run(chain(work.step(1), work.step(2)))
    assert workflow.status().state == "failed"
    workflow_tasks.broken.clear()
    Queue("default").requeue(limit=1)
    drain()
    assert (workflow.status().state, ran) == ("successful", [1, 1, 2])


def test_result_that_can_not_be_stored_matters_if_another_step_needs_it(kit):
    assert run(chain(unstorable.step(), work.step(1))).status().state == "successful"
    workflow = run(chain(unstorable.step(), work.step(previous)))
    assert "JSON" in workflow.steps()[0].error


def test_unknown_workflow_is_an_error_that_says_so(kit, twin):
    for method in ("status", "steps", "cancel", "retry"):
        with pytest.raises(UnknownWorkflow, match=r"no workflow nobody: its transaction is not committed yet"):
            twin(getattr(Workflow("nobody"), method))


def test_job_of_a_workflow_that_is_gone_is_dead_and_says_why(kit):
    workflow = chain(work.step(1)).enqueue()
    kit.client.delete(workflow.key("meta"))
    drain()
    (dead,) = Queue("default").peek(state="dead")
    assert f"workflow {workflow.id} does not exist" in dead.reason


@pytest.mark.parametrize(
    ("lost", "words"),
    [(True, "the workflow has expired or was lost"), (False, "was cancelled or had failed before")],
)
def test_step_that_succeeds_in_vain_says_why(kit, caplog, lost, words):
    workflow = chain(work.step(1)).enqueue()
    if lost:
        kit.client.delete(*kit.client.keys(f"*{workflow.id}*"))
    else:
        workflow.cancel()
    with caplog.at_level("INFO", "redis_kit.worker"):
        WorkflowStep(Queue("default"), StepCall(workflow.id, 2), Event()).finish()
    assert caplog.messages == [f"Workflow {workflow.id}: step 2 has succeeded, but {words}."]


def test_step_that_waited_for_too_long_fails_and_later_ones_do_not_run(kit):
    workflow = chain(work.using(expires=0.001).step(1), work.step(2)).enqueue()
    time.sleep(0.01)
    drain()
    assert (workflow.steps()[0].error[:8], states(workflow), ran) == ("expired:", ["failed", "waiting"], [])


def test_step_that_no_worker_knows_waits_and_then_fails(kit, monkeypatch):
    pytest.importorskip("redis_kit.queues.features.unknown")
    workflow = chain(work.step(1), add.step(previous)).enqueue()
    monkeypatch.delitem(registry._tasks, add.module_path)
    monkeypatch.setattr(workflow_tasks, "add", None)
    drain("default", "elsewhere")
    assert (Queue("elsewhere").counts().scheduled, states(workflow)) == (1, ["successful", "due"])
    kit.options(QUEUES={"UNKNOWN_TASK_TTL": 0})
    Queue("elsewhere").run_now(workflow.steps()[1].id)
    drain("elsewhere")
    assert "unknown task" in workflow.steps()[1].error


def test_worker_of_a_release_without_workflows_leaves_steps_to_others(kit, monkeypatch):
    workflow = chain(work.step(1), work.step(2)).enqueue()
    with monkeypatch.context() as old:
        old.setattr("redis_kit.queues.engine.message.message_fields", dict)
        drain()
    assert (Queue("default").counts().scheduled, ran) == (1, [])
    Queue("default").run_now(workflow.steps()[0].id)
    drain()
    assert (workflow.status().state, ran) == ("successful", [1, 2])


def test_other_backends_know_no_workflows(kit, settings):
    settings.TASKS = {
        "default": {"BACKEND": "redis_kit.queues.backend.RedisTaskBackend", "QUEUES": []},
        "dummy": {"BACKEND": f"{BUNDLED}.dummy.DummyBackend", "QUEUES": []},
    }
    for part in (chain(work.using(backend="dummy").step(1)), chain(work.step(1), work.using(backend="dummy").step(2))):
        with pytest.raises(InvalidWorkflow, match=r"DummyBackend, knows no workflows; use redis_kit"):
            part.enqueue()


@pytest.mark.django_db(transaction=True)
def test_workflow_of_a_transaction_that_is_rolled_back_never_starts(kit):
    with transaction.atomic():
        workflow = chain(work.step(1)).enqueue()
        transaction.set_rollback(True)
    with pytest.raises(UnknownWorkflow):
        workflow.status()


@pytest.mark.django_db(transaction=True)
def test_workflow_starts_after_the_commit(kit):
    with transaction.atomic():
        workflow = chain(work.step(1)).enqueue()
        with pytest.raises(UnknownWorkflow):
            workflow.status()
    assert workflow.status().state == "running"


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (lambda: group(), "A group needs at least one step"),
        (lambda: chain([]), "A chain needs at least one step"),
        (lambda: chain(work), r"The task .*\.work can't be a part of a workflow.* Write work\.step"),
        (lambda: chain(Workflow("a")), r"<Workflow 'a'> can't be a part of a workflow.* has started already"),
        (lambda: chain(7), r"7 can't be a part of a workflow.* Write task\.step\(\.\.\.\) in place of task"),
        (lambda: chain(work.step(previous)), "nothing comes before it"),
        (lambda: chain(work.step(1), work.step(failures)), "not the callback of a group"),
        (lambda: chain(*[work.step(1)] * 2), "in the workflow twice"),
        (lambda: group(work.step(1).after(work.step(2))), "which is not in this workflow"),
        (lambda: circle(), "Steps wait for each other: <Step .*work>, <Step .*work>"),
        (lambda: across(), "in another group"),
        (lambda: nested(30), "at most 20 deep"),
        (lambda: group(work.step(number) for number in range(10_000)), "at most 10,000 steps"),
        (lambda: group(work.step(1)).on_done(work.step(2)).on_done(work.step(3)), "has a callback already"),
    ],
)
def test_parts_that_are_no_workflow_are_refused(kit, part, error):
    with pytest.raises(InvalidWorkflow, match=error):
        part().enqueue()
    assert not Queue("default").counts().ready


def test_steps_joined_by_a_bar_are_refused():
    with pytest.raises(TypeError, match=r"Write chain\(first, second\)"):
        _ = work.step(1) | work.step(2)


def circle():
    one, two = work.step(1), work.step(2)
    return group(one.after(two), two.after(one))


def across():
    one = work.step(1)
    return group(group(one), group(work.step(one.result)))


def nested(depth):
    part = work.step(1)
    for _ in range(depth):
        part = group(part)
    return part


def test_step_inside_a_group_that_waits_for_the_group_is_refused(kit):
    inner = work.step(1)
    outer = group(inner)
    inner.after(outer)
    with pytest.raises(InvalidWorkflow):
        outer.enqueue()


def test_wrong_arguments_are_refused_before_anything_is_sent(kit):
    with pytest.raises(InvalidArguments, match="work"):
        chain(work.step(1), work.step()).enqueue()
    assert Queue("default").counts().ready == 0


class CountingClient:
    """Counts round trips."""

    def __init__(self):
        self.client, self.count = connections.client(), 0

    def call(self, *command):
        self.count += 1
        return self.client.call(*command)

    def batch(self, commands):
        self.count += 1
        return self.client.batch(commands)


def test_big_group_is_made_in_few_round_trips(kit):
    client = CountingClient()
    part = group(work.step(number) for number in range(1000)).on_done(report.step(previous, failures))
    nodes = packed([part], "w")
    flow.run(store.create("w", "big", nodes), client)
    assert Queue("default").counts().ready == 1000
    assert client.count <= 25
    assert Workflow("w").status()[4:] == (1001, 0, 0, 1000)


def test_chain_costs_the_same_however_long_it_is(kit):
    client = CountingClient()
    nodes = packed([chain(work.step(number) for number in range(100))], "w")
    flow.run(store.create("w", "long", nodes), client)
    assert client.count <= 6  # with the source of two scripts and the name of the queue
