"""The look after workflows: how many it takes, and when the next one is."""

from time import monotonic

from redis_kit.queues import Queue
from redis_kit.queues.features.workflows.caretaker import INTERVAL, SOON, Caretaker
from redis_kit.queues.features.workflows.store import CHECKED_WORKFLOWS, list_key, workflow_key


def test_many_workflows_are_looked_at_one_run_after_the_other(kit):
    checked, caretaker = list_key("checked"), Caretaker(Queue("default").run_flow)

    def due():
        return kit.client.zcount(checked, "-inf", 1)

    kit.client.zadd(checked, {f"workflow{number}": 1 for number in range(CHECKED_WORKFLOWS + 5)})
    for left, wait in ((5, SOON), (0, INTERVAL)):
        caretaker.run()
        assert due() == left
        assert wait - 1 < caretaker.due - monotonic() <= wait


def test_expired_workflows_leave_the_list_and_others_stay(kit):
    listed, caretaker = list_key("listed"), Caretaker(Queue("default").run_flow)
    new = kit.client.time()[0] * 1000
    kit.client.hset(workflow_key("runs", "meta"), "status", "running")
    kit.client.zadd(listed, {f"expired {number}": 1 for number in range(60)})
    kit.client.zadd(listed, {"runs": 1, "not stored yet": new})
    for _ in range(1000):
        caretaker.run()
        if (left := kit.client.zcard(listed)) == 2:
            break
    assert kit.client.zmscore(listed, ["runs", "not stored yet"]) == [1, new]
    assert left == 2


def test_list_with_many_expired_workflows_is_looked_at_again_soon(kit):
    listed, caretaker = list_key("listed"), Caretaker(Queue("default").run_flow)
    kit.client.zadd(listed, {f"expired {number}": 1 for number in range(25)})
    for left in (15, 5, 0):
        caretaker.run()
        assert kit.client.zcard(listed) == left
        assert caretaker.due - monotonic() <= SOON
    caretaker.run()
    assert caretaker.due - monotonic() > SOON
