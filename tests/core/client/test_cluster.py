"""The client of a Cluster apart from its servers."""

import threading
from concurrent.futures import ThreadPoolExecutor

from redis_kit.core.client.cluster import ClusterClient


def test_threads_that_need_a_node_at_once_share_its_client():
    together = threading.Barrier(2)

    def connect(node):
        together.wait(10)
        return object()

    client = ClusterClient(("localhost", 1), connect)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(client._node, [("localhost", 1)] * 2)
    assert first is second
