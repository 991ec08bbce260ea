"""The look after workflows: how many it takes, and when the next one is."""

from redis_kit.queues.jobs.ids import this_process
from redis_kit.queues.keys import WorkflowLists
from redis_kit.queues.store.workflows.calls import CHECKED_WORKFLOWS
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue
from redis_kit.queues.worker.supervisor.workflows import Caretaker


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
