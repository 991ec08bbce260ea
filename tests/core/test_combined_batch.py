"""Calls of one script that become one command."""

import pytest
from redis.exceptions import NoScriptError

from redis_kit.core import connections, flow, scripts
from redis_kit.core.errors import KeyConflict, OutOfMemory, RedisFailure, RedisUnavailable
from redis_kit.core.gather import gather
from redis_kit.core.steps import Batch, Call, CombinedBatch, Spread

LIST_JOBS = scripts.load("redis_kit.queues.management", "list_jobs")
GET_HANDOVERS = scripts.load("redis_kit.queues.features.handover", "get_handovers")


def key(kit, name):
    return f"{kit.prefix}:{{{name}}}:"


def counted(kit, name):
    """Return the step that counts the jobs of a queue."""
    return LIST_JOBS(
        [key(kit, name) + part for part in ("scheduled", "ready", "running", "dead", "jobs", "reasons")], [""]
    )


@pytest.fixture
def jobs(any_kit):
    """A server with queues of 0 to 6 ready jobs."""
    for number in range(7):
        for job in range(number):
            any_kit.client.zadd(f"{key(any_kit, number)}ready", {f"j{job}": job})
    return any_kit


def test_replies_are_those_of_a_plain_batch(jobs):
    steps = [counted(jobs, number) for number in range(7)]
    steps.insert(2, Call("TYPE", f"{key(jobs, 1)}ready"))
    steps.append(GET_HANDOVERS([f"{key(jobs, 1)}handovers"]))
    plain = flow.run(flow.single(Batch(steps)), connections.client())
    for most in (2, 3, 25):
        assert flow.run(flow.single(CombinedBatch(steps, most=most)), connections.client()) == plain
    assert plain[0] == [0, 0, 0, 0]
    assert plain[2] == b"zset"
    assert plain[-2] == [0, 6, 0, 0]


def test_calls_of_one_script_are_one_command(kit, commands):
    steps = [counted(kit, number) for number in range(7)]
    flow.run(flow.single(CombinedBatch(steps)), connections.client())
    with commands(kit) as sent:
        flow.run(flow.single(CombinedBatch(steps)), connections.client())
    assert sent == ["EVALSHA"]
    with commands(kit) as sent:
        flow.run(flow.single(CombinedBatch(steps, most=3)), connections.client())
    assert sent == ["EVALSHA"] * 3


def test_script_that_the_server_has_lost_is_sent_with_its_source(kit):
    steps = [counted(kit, number) for number in range(3)]
    for _ in range(2):
        kit.client.script_flush()
        assert flow.run(flow.single(CombinedBatch(steps)), connections.client()) == [[0, 0, 0, 0]] * 3


def test_error_of_one_call_leaves_the_others(any_kit):
    any_kit.client.set(f"{key(any_kit, 1)}ready", "text")
    steps = [counted(any_kit, number) for number in range(3)]
    replies = flow.run(flow.single(CombinedBatch(steps, lenient=True)), connections.client())
    assert [replies[0], replies[2]] == [[0, 0, 0, 0]] * 2
    assert isinstance(replies[1], RedisFailure)
    assert f"{key(any_kit, 1)}ready" in str(replies[1])
    with pytest.raises(KeyConflict):
        flow.run(flow.single(CombinedBatch(steps)), connections.client())


async def _asked(steps):
    return await flow.arun(flow.single(CombinedBatch(steps, lenient=True)), connections.aclient())


def test_twin_returns_the_same(any_kit):
    import asyncio

    any_kit.client.set(f"{key(any_kit, 1)}ready", "text")
    replies = asyncio.run(_asked([counted(any_kit, number) for number in range(3)]))
    assert [replies[0], replies[2]] == [[0, 0, 0, 0]] * 2
    assert isinstance(replies[1], KeyConflict)


def test_flows_side_by_side_are_combined(kit, commands):
    flows = [flow.single(counted(kit, number)) for number in range(7)]
    flow.run(gather(flows, combine=True), connections.client())
    with commands(kit) as sent:
        flows = [flow.single(counted(kit, number)) for number in range(7)]
        assert flow.run(gather(flows, combine=True), connections.client()) == [[0, 0, 0, 0]] * 7
    assert sent == ["EVALSHA"]


@pytest.mark.parametrize("reply", ["return nil", "return false", "return {1, {2}}", "return 'x'", "error('broken')"])
def test_any_reply_is_passed_on(kit, reply):
    script = scripts.Script("test", f"-- KEYS[1]  key\n{reply}")
    steps = [script([f"{kit.prefix}:{number}"]) for number in range(2)]
    plain = flow.run(flow.single(Batch(steps[:1], lenient=True)), connections.client())
    replies = flow.run(flow.single(CombinedBatch(steps, lenient=True)), connections.client())
    if isinstance(plain[0], RedisFailure):
        assert [type(one) for one in replies] == [type(plain[0])] * 2
        assert "broken" in str(replies[0])
    else:
        assert replies == plain * 2


def test_spread_call_is_one_command_or_one_for_each_slot_of_a_cluster(any_kit):
    parts = [Call("STRLEN", key(any_kit, number)) for number in range(3)]
    whole = Call("EXISTS", *(part.command[1] for part in parts))
    is_cluster = connections.client().is_cluster
    assert flow.run(flow.single(Spread(whole, parts)), connections.client()) == ([0, 0, 0] if is_cluster else [0])


class Replying:
    """A client whose batches have these replies, one list after the other; an error is raised."""

    is_cluster = True

    def __init__(self, *replies):
        self.replies = list(replies)

    def batch(self, commands):
        replies = self.replies.pop(0)
        if isinstance(replies, Exception):
            raise replies
        return replies


@pytest.mark.parametrize(
    ("other", "indeterminate"),
    [(1, True), (None, True), (OutOfMemory("full"), False), (RedisUnavailable("slow", indeterminate=True), True)],
)
def test_call_that_a_node_refuses_is_indeterminate_beside_others(kit, other, indeterminate):
    with pytest.raises(RedisUnavailable, match="down") as caught:
        Batch([Call("GET", name) for name in "ab"]).run(Replying([RedisUnavailable("down"), other]))
    assert caught.value.indeterminate is indeterminate


@pytest.mark.parametrize("other", [1, OutOfMemory("full")])
def test_lenient_batch_raises_only_an_outage_of_all_nodes(kit, other):
    down = RedisUnavailable("down")
    batch = Batch([Call("GET", name) for name in "ab"], lenient=True)
    assert batch.run(Replying([down, other])) == [down, other]
    assert not down.indeterminate
    with pytest.raises(RedisUnavailable):
        batch.run(Replying([down, down]))


def test_script_that_is_not_sent_again_is_indeterminate_beside_others(kit):
    for other, indeterminate in ([0, 0, 0, 0], True), (NoScriptError("lost"), False):
        with pytest.raises(RedisUnavailable) as caught:
            Batch([counted(kit, 1), counted(kit, 2)]).run(
                Replying([NoScriptError("lost"), other], RedisUnavailable("down"))
            )
        assert caught.value.indeterminate is indeterminate
