"""The client of a Cluster apart from its servers."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from redis_kit.core.client.cluster import ClusterClient, Topology
from redis_kit.core.errors import RedisUnavailable


def test_threads_that_need_a_node_at_once_share_its_client():
    together = threading.Barrier(2)

    def connect(node):
        together.wait(10)
        return object()

    client = ClusterClient(("localhost", 1), connect)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(client._node, [("localhost", 1)] * 2)
    assert first is second


def test_each_slot_has_the_node_of_its_range_and_gaps_have_none():
    asked = ("10.0.0.1", 7001)
    topology = Topology(asked)
    topology.learn([(2, 9, (b"d", 7000, b"id")), (0, 0, (b"", 7001, b"id"))], asked)
    assert topology.owner(0) == asked
    assert topology.owner(2) == topology.owner(9) == ("d", 7000)
    for slot in (1, 10, 16383):
        with pytest.raises(RedisUnavailable, match=f"slot {slot} "):
            topology.owner(slot)
    assert topology.stale


def test_slot_that_moved_has_its_new_node_until_the_topology_is_read_again():
    topology, new = Topology(("a", 1)), ("b", 2)
    reply = [(first, first + 15, (f"n{first}".encode(), 7000, b"id")) for first in reversed(range(0, 16384, 16))]
    topology.learn(reply, ("a", 1))
    assert [topology.owner(slot)[0] for slot in (0, 15, 16, 8191, 16383)] == ["n0", "n0", "n16", "n8176", "n16368"]
    topology.move(16, new)
    assert topology.owner(16) == new
    topology.learn(reply, ("a", 1))
    assert topology.owner(16) == ("n16", 7000)
