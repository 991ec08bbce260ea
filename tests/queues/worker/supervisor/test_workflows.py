"""The look after workflows: how many it takes, and when the next one is."""

from redis_kit.queues.jobs.ids import this_process
from redis_kit.queues.keys import WorkflowKeys, WorkflowLists
from redis_kit.queues.store.workflows.calls import CHECKED_WORKFLOWS
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor.heartbeat import Caretaker


def test_many_workflows_are_looked_at_with_each_heartbeat(kit):
    checked, caretaker = WorkflowLists.of().checked, Caretaker()
    source = WorkerQueue("default", worker=this_process(), about="{}")

    def due():
        return kit.client.zcount(checked, "-inf", 1)

    kit.client.zadd(checked, {f"workflow{number}": 1 for number in range(CHECKED_WORKFLOWS + 5)})
    caretaker.look(source)
    assert due() == 5
    caretaker.look(source)
    assert due() == 0
    kit.client.zadd(checked, {"another": 1})
    caretaker.look(source)
    assert due() == 1


def test_expired_workflows_leave_the_list_and_others_stay(kit):
    listed, caretaker = WorkflowLists.of().listed, Caretaker()
    source = WorkerQueue("default", worker=this_process(), about="{}")
    new = kit.client.time()[0] * 1000
    kit.client.hset(WorkflowKeys.of("runs").meta, "status", "running")
    kit.client.zadd(listed, {f"expired {number}": 1 for number in range(60)})
    kit.client.zadd(listed, {"runs": 1, "not stored yet": new})
    for _ in range(1000):
        caretaker.look(source)
        caretaker._at = 0.0
        if (left := kit.client.zcard(listed)) == 2:
            break
    assert kit.client.zmscore(listed, ["runs", "not stored yet"]) == [1, new]
    assert left == 2


def test_list_with_many_expired_workflows_is_looked_at_with_each_heartbeat(kit):
    listed, caretaker = WorkflowLists.of().listed, Caretaker()
    source = WorkerQueue("default", worker=this_process(), about="{}")
    kit.client.zadd(listed, {f"expired {number}": 1 for number in range(25)})
    for left in (15, 5, 0):
        caretaker.look(source)
        assert kit.client.zcard(listed) == left
    caretaker.look(source)  # the last five were many
    kit.client.zadd(listed, {"expired": 1})
    caretaker.look(source)
    assert kit.client.zcard(listed) == 1
