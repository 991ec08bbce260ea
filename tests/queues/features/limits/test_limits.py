"""Limits at run time: listed with their use, changed at once, and reset to what the code says."""

import asyncio

import pytest

from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.queues import Limit, Queue, limits, task
from redis_kit.queues.engine import claim, liveness
from tests.fixtures.process import wait_for


def work(tenant_id: int) -> None:
    """A function that tests make a task of."""


TASK = f"task={__name__}.work"


@pytest.fixture
def queue(kit):
    return Queue("default")


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Call a function of the module, or its twin."""

    def called(name, *args, **kwargs):
        if request.param == "sync":
            return getattr(limits, name)(*args, **kwargs)
        return asyncio.run(getattr(limits, f"a{name}")(*args, **kwargs))

    return called


def test_limits_are_listed_with_their_use(queue, call):
    assert call("list_limits", "default") == []
    limited = task(concurrency=1, limits=[Limit(rate="1/h", by=("tenant_id",))])(work)
    for tenant in (7, 7, 8):
        limited.using(group="g").enqueue(tenant)
    queue.claim(5, worker="w")
    of_task, by_tenant = call("list_limits", "default")
    assert of_task == (TASK, 1, None, False, 1, 1, 0.0)
    assert by_tenant[:6] == (f"{TASK}&tenant_id=*", None, "1/h", False, 1, 1)


def test_change_applies_at_once(queue, call):
    for value in range(6):
        queue.put(value, group="a")
    assert call("set_limit", "default", "group=a", concurrency=1)
    assert not call("set_limit", "default", "group=a", concurrency=1)
    jobs = queue.claim(10, worker="w")
    assert [job.payload for job in jobs] == [0]
    queue.claim(10, worker="w")
    call("set_limit", "default", "group=*", concurrency=9)
    assert queue.claim(10, worker="w") == []  # that of one group comes first
    call("set_limit", "default", "group=a", concurrency=3)
    assert [job.payload for job in queue.claim(10, worker="w")] == [1, 2]
    assert call("reset_limit", "default", "group=a")
    assert not call("reset_limit", "default", "group=a")
    assert [job.payload for job in queue.claim(10, worker="w")] == [3, 4, 5]


def test_raised_rate_does_not_wait_for_the_next_start_of_the_old_one(queue):
    limited = task(rate="1/h")(work)
    for tenant in (1, 2, 3):
        limited.enqueue(tenant)
    assert len(queue.claim(5, worker="w")) == 1
    assert queue.claim(5, worker="w") == []
    assert 3500 < limits.list_limits("default")[0].next_start <= 3600
    limits.set_limit("default", TASK, rate="1000/s")
    begun = []
    wait_for(lambda: begun.extend(queue.claim(5, worker="w")) or len(begun) == 2)
    assert limits.list_limits("default")[0][:4] == (TASK, None, "1000/s", True)


def test_limit_of_zero_holds_a_group_until_it_is_reset(queue):
    limits.set_limit("default", "group=tenant:7", concurrency=0)
    queue.put(1, group="tenant:7")
    queue.put(2, group="tenant:8")
    assert [job.payload for job in queue.claim(5, worker="w")] == [2]
    limits.set_limit("default", "group=tenant:7")  # everything
    assert [job.payload for job in queue.claim(5, worker="w")] == [1]


@pytest.mark.parametrize("group", ["日 {x}", "50%", "%E6", "a=b&c"])
def test_group_is_listed_by_its_name(queue, group):
    name = f"group={group}"
    limits.set_limit("default", name, concurrency=0)
    assert [limit.name for limit in limits.list_limits("default")] == [name]
    queue.put(1, group=group)
    assert queue.claim(worker="w") == []
    assert limits.reset_limit("default", name)


def test_group_has_a_name_that_jobs_can_have(queue):
    with pytest.raises(InvalidValue, match="group must be text of 1 to 200 bytes"):
        limits.set_limit("default", f"group={'x' * 201}", concurrency=1)


@pytest.mark.parametrize("name", ["", "a", "group", "group=", "task=", "task=a b", "queue=1", 7])
def test_wrong_name_is_an_error_that_names_the_right_ones(queue, name):
    with pytest.raises(InvalidValue, match=r"The name of a limit is 'queue', 'group=\*'"):
        limits.set_limit("default", name, concurrency=1)


def test_wrong_values_are_errors(queue):
    with pytest.raises(InvalidValue, match="concurrency must be a whole number"):
        limits.set_limit("default", "queue", concurrency=1.5)
    with pytest.raises(InvalidRate):
        limits.set_limit("default", "queue", rate="fast")


def test_waiting_job_is_ready_and_names_the_limit_for_which_it_waits(queue):
    limited = task(rate="1/h", store_result=False)(work)
    for tenant in (1, 2, 3):
        limited.enqueue(tenant)
    first, second, third = [job.id for job in queue.peek()]
    assert {queue.get(id).reason for id in (first, second, third)} == {""}
    queue.claim(5, worker="w")
    assert [(queue.get(id).state, queue.get(id).reason) for id in (second, third)] == [("ready", TASK)] * 2
    assert {(job.id, job.reason) for job in queue.peek()} == {(second, TASK), (third, TASK)}
    assert not queue.run_now(second)  # it is ready: that does not lift the limit
    assert queue.claim(5, worker="w") == []
    assert queue.get(second).state == "ready"


def test_job_waits_for_no_limit_that_is_not_used_up(queue, kit, shell):
    limits.set_limit("default", "group=a", concurrency=1)
    queue.put_many([1, 2], group="a")
    (job,) = queue.claim(5, worker="w")
    (waiting,) = queue.peek()
    assert waiting.reason == queue.get(waiting.id).reason == "group=a"
    assert shell("rk_jobs", "--state", "ready")[1].count("waits for group=a") == 1
    queue.ack(job)  # no worker claims the other one now
    assert [info.reason for info in (*queue.peek(), queue.get(waiting.id))] == ["", ""]
    limits.set_limit("default", "group=a", rate="1/h")
    queue.put(3, group="a")
    queue.claim(5, worker="w")
    (waiting,) = queue.peek()
    assert waiting.reason == "group=a"
    kit.client.hset(queue.key("limits"), "next group=a", 1)  # as an hour later
    assert (queue.peek()[0].reason, queue.get(waiting.id).reason) == ("", "")


def test_paused_queue_wakes_a_worker_for_its_groups_when_it_is_resumed(queue, kit):
    pytest.importorskip("redis_kit.queues.features.pause")
    queue.pause()
    queue.put_many([1, 2], group="a")
    assert kit.client.llen(queue.key("signal")) == 0
    queue.resume()
    assert kit.client.llen(queue.key("signal")) == 1
    assert [job.payload for job in queue.claim(5, worker="w")] == [1, 2]


def test_jobs_of_a_dead_worker_make_room(queue, kit):
    limits.set_limit("default", "group=*", concurrency=1)
    queue.put_many([1, 2], group="a")
    (job,) = queue.claim(5, worker="gone")
    kit.client.zadd(queue.key("workers"), {"gone": 1.5})
    assert queue.heartbeat(worker="w") == 1
    (again,) = queue.claim(5, worker="w")
    assert again.id == job.id
    assert queue.claim(5, worker="w") == []


def test_heartbeat_tells_when_a_job_may_start_that_waits_for_its_rate(queue):
    limited = task(rate="6/m")(work)
    for tenant in (1, 2):
        limited.enqueue(tenant)
    assert len(queue.claim(5, worker="w")) == 1
    claimed = queue.run_flow(claim.claim(queue, 5, "w"))
    assert claimed.jobs == []
    assert 9 < claimed.next < 10
    assert 9 < queue.run_flow(liveness.heartbeat(queue, "v")).next_job < 10
