"""Groups: fair turns, order inside a group, and what becomes of their jobs."""

from datetime import timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import single
from redis_kit.queues import Queue, limits
from redis_kit.queues.engine import calls
from redis_kit.testing.jobs import drain
from tests.queues.support.tasks import remember


@pytest.fixture
def queue(kit):
    return Queue("default")


def drained(queue, limit=1, worker="w"):
    """Return the payloads of all jobs in the order of their claims."""
    order = []
    while jobs := queue.claim(limit, worker=worker):
        order += [job.payload for job in jobs]
        queue.ack(*jobs)
    return order


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_groups_take_turns(queue, twin, limit):
    twin(queue.put_many, [f"a{n}" for n in range(6)], group="a")
    twin(queue.put_many, [f"b{n}" for n in range(2)], group="b")
    twin(queue.put, "b2", group="b")
    assert drained(queue, limit) == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "a4", "a5"]
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_small_group_does_not_wait_for_a_large_one(queue, limit):
    queue.put_many(["large"] * 2000, group="tenant:1")
    queue.put_many(["small"] * 10, group="tenant:2")
    order = []
    while order.count("small") < 10:
        order += [job.payload for job in queue.claim(limit, worker="w")]
    last = max(place for place, payload in enumerate(order) if payload == "small")
    assert last < 20


@pytest.mark.parametrize("limit", [1, 100])
def test_jobs_without_a_group_keep_their_place_and_priority_holds_over_all(queue, limit):
    queue.put_many(["a0", "a1"], group="a")
    queue.put_many(["p0", "p1"])
    queue.put("b high", group="b", priority=5)
    queue.put("high", priority=5)
    queue.put("a high", group="a", priority=5)
    order = drained(queue, limit)
    assert set(order[:3]) == {"b high", "high", "a high"}
    assert order.index("p0") < order.index("p1")
    assert order.index("a0") < order.index("a1")


def test_urgent_job_overtakes_those_of_its_group(queue):
    queue.put_many(["a0", "a1"], group="a")
    queue.put("urgent", group="a", priority=1)
    assert drained(queue) == ["urgent", "a0", "a1"]
    queue.put_many(["a0", "a1"], group="a")
    (first,) = queue.claim(worker="w")
    queue.put("urgent", group="a", priority=1)
    queue.ack(first)
    assert drained(queue) == ["urgent", "a1"]


def test_delayed_jobs_join_their_group(queue):
    ids = [queue.put(place, group="a", delay=60 + place) for place in range(4)]
    queue.put("b", group="b", delay=99)
    assert drained(queue) == []
    for id in [*ids, queue.peek(state="scheduled")[-1].id]:
        assert queue.run_now(id)
    assert drained(queue) == [0, "b", 1, 2, 3]


@pytest.mark.parametrize("end", ["cancel", "delete", "purge"])
def test_job_that_waits_in_its_group_can_be_removed(queue, kit, end):
    pytest.importorskip("redis_kit.queues.features.cancel")
    first, second, third = queue.put_many([1, 2, 3], group="a")
    assert [queue.get(id).state for id in (first, second, third)] == ["ready"] * 3
    assert queue.counts().ready == len(queue.peek()) == 3
    if end == "purge":
        assert queue.purge("ready") == 3
    else:
        assert getattr(queue, end)(first)
        assert getattr(queue, end)(second)
        assert drained(queue) == [3]
    assert queue.counts() == (0, 0, 0, 0)
    assert {key.rpartition(":")[2] for key in kit.keys()} & {"lanes", "limits", "parked"} == set()


def test_jobs_of_a_worker_that_ends_come_back_in_front(queue):
    queue.put_many([0, 1, 2, 3], group="a")
    assert [job.payload for job in queue.claim(2, worker="gone")] == [0, 1]
    queue.sign_off(worker="gone")
    assert drained(queue) == [0, 1, 2, 3]


def test_failed_job_waits_behind_its_group_and_a_dead_one_returns_to_it(queue):
    queue.put_many([0, 1, 2], group="a")
    queue.put("b", group="b")
    (job,) = queue.claim(worker="w")
    assert queue.nack(job) == "ready"
    assert drained(queue) == ["b", 1, 2, 0]
    queue.put_many([3, 4], group="a")
    assert queue.nack(queue.claim(worker="w")[0], max_attempts=1) == "dead"
    assert queue.requeue() == 1
    assert drained(queue) == [4, 3]


def test_replacement_moves_a_waiting_job_to_another_group(queue):
    queue.put_many(["a0", "a1"], group="a")
    id = queue.put("old", group="a", unique="u")
    assert queue.put("new", group="b", unique="u", replace=True) == id
    assert drained(queue) == ["a0", "new", "a1"]
    queue.put("a0", group="a")
    queue.put("old", group="a", unique="u")
    queue.put("new", unique="u", replace=True)
    assert sorted(drained(queue)) == ["a0", "new"]


def test_jobs_of_groups_run_as_tasks_with_results(queue):
    result = remember.using(group="tenant:7").enqueue("x")
    remember.using(group="tenant:7", run_after=timedelta(0)).enqueue("y")
    assert drain() == 2
    result.refresh()
    assert result.status == "SUCCESSFUL"


@pytest.mark.parametrize("group", ["", 7, "x" * 201, b"a"])
def test_wrong_group_is_an_error_that_says_what_is_allowed(queue, group):
    with pytest.raises(InvalidValue, match="group must be text of 1 to 200 bytes"):
        queue.put(1, group=group)
    with pytest.raises(InvalidValue, match="group must be text"):
        remember.using(group=group)


def test_names_of_groups_do_not_mix(queue):
    names = ["a", "a b", "a\nb", "a%20b", "ä", "\ud800", "a&b=c", "*"]
    for name in names:
        queue.put_many([ascii(name), ascii(name)], group=name)
    assert drained(queue, 3) == [ascii(name) for name in names] * 2


def test_limited_group_whose_head_an_older_worker_took_goes_on(queue, kit):
    limits.set_limit("default", "group=*", concurrency=1)
    queue.put_many([0, 1, 2, 3], group="a")
    (job,) = queue.claim(2, worker="w")
    queue.claim(3, worker="w")
    waiting = [member for member in kit.client.zrange(queue.key("parked"), 0, -1) if member.startswith("job")]
    assert len(waiting) == 3
    kit.client.zrem(queue.key("parked"), waiting[0])  # as something does that knows no groups
    kit.client.hdel(queue.key("jobs"), waiting[0].rpartition("\n")[2])
    assert queue.run_flow(single(calls.sweep(queue.key("")))) == []
    queue.ack(job)
    assert drained(queue) == [2, 3]


@pytest.mark.parametrize("damage", ["limits", "turn"])
def test_group_that_waits_goes_on_after_its_state_was_damaged(queue, kit, damage):
    limits.set_limit("default", "queue", concurrency=1)
    limits.set_limit("default", "group=*", concurrency=1)
    queue.put_many([0, 1, 2], group="a")
    (job,) = queue.claim(3, worker="w")
    if damage == "limits":
        kit.client.hdel(queue.key("limits"), "lane group=a")
    else:
        (turn,) = kit.client.zrangebylex(queue.key("parked"), "[turn", "(turo")
        kit.client.zrem(queue.key("parked"), turn)
    queue.ack(job)
    queue.run_flow(single(calls.sweep(queue.key(""))))
    assert drained(queue) == [1, 2]


def test_group_that_was_held_does_not_starve_others_when_it_may_go_on(queue):
    limits.set_limit("default", "group=held", concurrency=0)
    queue.put_many(["held"] * 50, group="held")
    queue.put_many(["other"] * 60, group="other")
    assert [job.payload for job in queue.claim(40, worker="w")] == ["other"] * 40
    limits.reset_limit("default", "group=held")
    for limit in (8, 1, 1):
        queue.claim(limit, worker="w")
    order = [job.payload for job in queue.claim(20, worker="w")]
    assert order.count("other") == 10


def test_jobs_that_become_due_at_once_take_turns_with_other_groups(queue, kit):
    queue.put_many(["large"] * 50, group="tenant:1", delay=3600)
    queue.put_many(["small"] * 5, group="tenant:2", delay=3600)
    scheduled = queue.key("scheduled")
    kit.client.zadd(scheduled, dict.fromkeys(kit.client.zrange(scheduled, 0, -1), 1))
    order = drained(queue)
    assert order.count("large") == 50
    assert "".join(order[:10]).count("small") == 5


def test_dead_and_failed_jobs_of_a_large_group_do_not_overtake_a_small_one(queue):
    queue.put_many(["large"] * 30, group="tenant:1")
    jobs = queue.claim(30, worker="w")
    for job in jobs[:15]:
        queue.nack(job, max_attempts=1)
    for job in jobs[15:]:
        assert queue.nack(job) == "ready"
    assert queue.requeue() == 15
    queue.put_many(["small"] * 5, group="tenant:2")
    assert "".join(drained(queue)[:10]).count("small") == 5


def test_jobs_of_a_group_are_every_second_job_beside_those_without_one(queue):
    queue.put_many([f"a{n}" for n in range(5)], group="a")
    queue.put_many(["plain"] * 3000)
    queue.put_many([f"b{n}" for n in range(3)], group="b")
    order = [job.payload for _ in range(20) for job in queue.claim(1, worker="w")]
    assert [payload for payload in order if payload[0] == "a"] == ["a0", "a1", "a2", "a3", "a4"]
    assert max(place for place, payload in enumerate(order) if payload[0] == "a") <= 13
    assert max(place for place, payload in enumerate(order) if payload[0] == "b") <= 10


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_jobs_without_a_group_take_turns_with_a_large_one(queue, limit):
    queue.put_many(["large"] * 500, group="a")
    queue.ack(*queue.claim(100, worker="w"))
    queue.put_many(["plain"] * 3)
    queue.put_many(["urgent"] * 2, priority=5)
    queue.put("urgent", group="a", priority=5)
    order = [job.payload for _ in range(12) for job in queue.claim(limit, worker="w")]
    assert order[:3] == ["urgent"] * 3
    assert order[3:9].count("plain") == 3


def test_order_holds_while_the_first_limit_is_set_and_the_last_one_reset(queue, kit):
    queue.put_many([f"a{n}" for n in range(6)], group="a")
    queue.put_many([f"b{n}" for n in range(3)], group="b")
    assert drained_some(queue, 2) == ["a0", "b0"]
    limits.set_limit("default", "group=a", concurrency=1)
    queue.put("a6", group="a")
    assert drained_some(queue, 4) == ["a1", "b1", "a2", "b2"]
    limits.reset_limit("default", "group=a")
    queue.put("a7", group="a")
    assert drained(queue) == ["a3", "a4", "a5", "a6", "a7"]
    queue.put("x")
    queue.run_flow(single(calls.sweep(queue.key(""))))
    assert not kit.client.exists(queue.key("limits"))


def drained_some(queue, count):
    """Return the payloads of the next jobs, claimed and acknowledged one by one."""
    order = []
    for _ in range(count):
        (job,) = queue.claim(worker="w")
        order.append(job.payload)
        queue.ack(job)
    return order
