"""Flows side by side."""

import asyncio
import traceback

import pytest

from redis_kit.core import flow
from redis_kit.core.errors import CommandFailed, RedisUnavailable
from redis_kit.core.gather import gather
from redis_kit.core.steps import Batch, Call


class Client:
    """Replies to each command with its argument; FAIL is refused. Remembers what was sent in one round trip."""

    def __init__(self):
        self.trips = []

    def batch(self, commands):
        self.trips.append([command[-1] for command in commands])
        return [CommandFailed("refused") if one[0] == "FAIL" else one[-1] for one in commands]


class Stopped(BaseException):
    """Stands for a cancellation."""


class Stopping:
    def batch(self, commands):
        raise Stopped


def asking(*values):
    found = []
    for value in values:
        found.append((yield Call("ECHO", value)))
    return found


def failing(seen):
    try:
        yield Call("FAIL", "x")
    except CommandFailed:
        seen.append((yield Call("ECHO", "cleaned")))
        raise


def batched():
    few = yield Batch([Call("ECHO", 1), Call("ECHO", 2)])
    none = yield Batch([])
    return few, none, (yield Call("ECHO", 3))


def test_next_steps_of_all_flows_need_one_round_trip():
    client = Client()
    assert flow.run(gather([asking(1, 2, 3), asking(4), asking()]), client) == [[1, 2, 3], [4], []]
    assert client.trips == [[1, 4], [2], [3]]


def test_no_flows_need_no_round_trip():
    client = Client()
    assert flow.run(gather([]), client) == []
    assert client.trips == []


def test_batches_are_sent_with_the_calls_of_others():
    client = Client()
    assert flow.run(gather([batched(), asking(7, 8, 9)]), client) == [([1, 2], [], 3), [7, 8, 9]]
    assert client.trips == [[1, 2, 7], [8], [3, 9]]


def test_first_exception_is_raised_after_all_flows_have_ended():
    client, seen = Client(), []
    with pytest.raises(CommandFailed):
        flow.run(gather([asking(1, 2, 3), failing(seen)]), client)
    assert seen == ["cleaned"]
    assert client.trips == [[1, "x"], [2, "cleaned"], [3]]


class Lost:
    def batch(self, commands):
        raise RedisUnavailable("no answer")


@pytest.mark.parametrize("step", [Call("ECHO", 1), Batch([Call("ECHO", 1)])], ids=["call", "batch"])
def test_one_error_of_many_flows_has_a_short_traceback(step):
    lengths = set()
    for count in (1, 40):
        with pytest.raises(RedisUnavailable) as caught:
            flow.run(gather([flow.single(step) for _ in range(count)]), Lost())
        lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(lengths) == 1


def test_exceptions_can_stand_in_place_of_results():
    results = flow.run(gather([asking(1), failing([])], return_exceptions=True), Client())
    assert results[0] == [1]
    assert isinstance(results[1], CommandFailed)


def test_error_in_a_batch_is_raised_in_its_flow_alone():
    def careful():
        try:
            yield Batch([Call("ECHO", 1), Call("FAIL", 2)])
        except CommandFailed:
            return "cleaned"

    def lenient():
        return (yield Batch([Call("FAIL", 1), Call("ECHO", 2)], lenient=True))

    first, (refused, reply), last = flow.run(gather([careful(), lenient(), asking(5)]), Client())
    assert (first, reply, last) == ("cleaned", 2, [5])
    assert isinstance(refused, CommandFailed)


@pytest.mark.parametrize("return_exceptions", [False, True])
def test_interruption_is_raised_in_each_flow_and_at_the_end(return_exceptions):
    seen = []

    def noting(name, step):
        try:
            yield step
        except Stopped:
            seen.append(name)
            raise

    flows = [noting("call", Call("ECHO", 1)), noting("batch", Batch([Call("ECHO", 1), Call("ECHO", 2)]))]
    with pytest.raises(Stopped):
        flow.run(gather(flows, return_exceptions=return_exceptions), Stopping())
    assert seen == ["call", "batch"]


def test_flow_of_one_step_returns_the_reply():
    class Asynchronous:
        async def call(self, *command):
            return command

    assert asyncio.run(flow.arun(flow.single(Call("PING")), Asynchronous())) == ("PING",)
