"""The client of a Cluster apart from its servers."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis.crc import key_slot
from redis.exceptions import AskError, MovedError, TryAgainError

from redis_kit.core.client.cluster import REDIRECTIONS, ClusterClient, OnNode, Topology
from redis_kit.core.errors import RedisUnavailable


def test_threads_that_need_a_node_at_once_share_its_client():
    together = threading.Barrier(2)

    def connect(node):
        together.wait(10)
        return object()

    client = ClusterClient([("localhost", 1)], connect)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(client._node, [("localhost", 1)] * 2)
    assert first is second


def test_each_slot_has_the_node_of_its_range_and_gaps_have_none():
    asked = ("10.0.0.1", 7001)
    topology = Topology([asked])
    topology.learn([(2, 9, (b"d", 7000, b"id")), (0, 0, (b"", 7001, b"id"))], asked)
    assert topology.owner(0) == asked
    assert topology.owner(2) == topology.owner(9) == ("d", 7000)
    for slot in (1, 10, 16383):
        with pytest.raises(RedisUnavailable, match=f"slot {slot} "):
            topology.owner(slot)
    assert topology.stale


def test_slot_that_moved_has_its_new_node_until_the_topology_is_read_again():
    topology, new = Topology([("a", 1)]), ("b", 2)
    reply = [(first, first + 15, (f"n{first}".encode(), 7000, b"id")) for first in reversed(range(0, 16384, 16))]
    topology.learn(reply, ("a", 1))
    assert [topology.owner(slot)[0] for slot in (0, 15, 16, 8191, 16383)] == ["n0", "n0", "n16", "n8176", "n16368"]
    topology.move(16, new)
    assert topology.owner(16) == new
    topology.learn(reply, ("a", 1))
    assert topology.owner(16) == ("n16", 7000)


def _moved(key, kind, port):
    return kind(f"{key_slot(key.encode())} 127.0.0.1:{port}")


def _batch(*keys):
    """Return the flow of a batch of GETs at its first step, and that step. All slots are those of node 1."""
    client = ClusterClient([("127.0.0.1", 1)], None)
    client._topology.learn([(0, 16383, (b"127.0.0.1", 1, b"id"))], ("127.0.0.1", 1))
    steps = client._many([("GET", key) for key in keys])
    return client, steps, _port_and_commands(steps.send(None))


def _port_and_commands(step):
    assert isinstance(step, OnNode)
    assert step.method == "batch"
    return step.node[1], list(step.arguments[0])


def _result(steps, replies):
    with pytest.raises(StopIteration) as stop:
        steps.send(replies)
    return stop.value.value


def test_redirected_commands_of_a_batch_are_sent_at_once_to_each_new_node():
    client, steps, first = _batch(*"abcdef")
    assert first == (1, [("GET", key) for key in "abcdef"])
    targets = {"a": (MovedError, 2), "c": (AskError, 2), "d": (MovedError, 3), "e": (AskError, 2), "f": (MovedError, 2)}
    redirected = [_moved(key, *targets[key]) if key in targets else b"B" for key in "abcdef"]
    assert _port_and_commands(steps.send(redirected)) == (2, [("ASKING",), ("GET", "c"), ("ASKING",), ("GET", "e")])
    assert _port_and_commands(steps.send([b"OK", b"C", b"OK", b"E"])) == (2, [("GET", "a"), ("GET", "f")])
    assert _port_and_commands(steps.send([b"A", b"F"])) == (3, [("GET", "d")])
    assert _result(steps, [b"D"]) == [b"A", b"B", b"C", b"D", b"E", b"F"]
    owners = [client._topology.owner(key_slot(key.encode()))[1] for key in "abcdef"]
    assert owners == [2, 1, 1, 3, 1, 2]  # ASK is for one command


def test_command_of_a_batch_that_is_refused_for_now_is_sent_again():
    _, steps, _ = _batch("a")
    steps.send([_moved("a", AskError, 2)])
    assert steps.send([b"OK", TryAgainError("later")]).seconds
    assert _port_and_commands(next(steps)) == (1, [("GET", "a")])
    assert _result(steps, [b"A"]) == [b"A"]


def test_node_that_is_lost_leaves_the_commands_of_the_others_alone():
    _, steps, _ = _batch("a", "b", "c")
    lost = RedisUnavailable("refused")
    steps.send([_moved("a", MovedError, 2), _moved("b", MovedError, 3), b"C"])
    assert _port_and_commands(steps.throw(lost)) == (3, [("GET", "b")])
    assert _result(steps, [b"B"]) == [lost, b"B", b"C"]


def test_batch_without_an_answer_raises_an_indeterminate_error_first():
    _, steps, _ = _batch("a", "b", "c")
    refused, slow = RedisUnavailable("refused"), RedisUnavailable("slow", indeterminate=True)
    steps.send([_moved("a", MovedError, 2), _moved("b", MovedError, 3), _moved("c", MovedError, 4)])
    steps.throw(refused)
    steps.throw(slow)
    with pytest.raises(RedisUnavailable) as caught:
        steps.throw(refused)
    assert caught.value is slow


def test_slot_without_a_node_leaves_the_commands_of_others_alone():
    client = ClusterClient([("127.0.0.1", 1)], None)
    served = key_slot(b"a")
    client._topology.learn([(served, served, (b"127.0.0.1", 1, b"id"))], ("127.0.0.1", 1))
    steps = client._many([("GET", "b"), ("GET", "a")])
    assert _port_and_commands(steps.send(None)) == (1, [("GET", "a")])
    unserved, reply = _result(steps, [b"A"])
    assert (type(unserved), reply) == (RedisUnavailable, b"A")


def test_slot_that_moves_without_an_end_is_an_error_among_the_replies():
    _, steps, _ = _batch("a", "b")
    steps.send([_moved("a", MovedError, 2), b"B"])
    for port in range(3, 100):
        try:
            steps.send([_moved("a", MovedError, port)])
        except StopIteration as stop:
            error, other = stop.value
            break
    assert REDIRECTIONS <= port <= 3 * REDIRECTIONS
    assert isinstance(error, RedisUnavailable)
    assert not error.indeterminate
    assert other == b"B"
