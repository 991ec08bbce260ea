"""Stored counts of attempts, made older."""

from redis_kit.core import connections
from redis_kit.queues.features.statistics import counts as run_counts


def put_back(queue, hours, task):
    """Make all blocks of a task older by some hours."""
    client = connections.client()
    for part in ("tasks", "past"):
        if stored := client.call("HGET", queue.key(part), task):
            blocks = run_counts._blocks(stored)
            older = [run_counts._BLOCK.pack(hour - hours, len(block) // 5) + block for hour, block in blocks]
            client.call("HSET", queue.key(part), task, b"".join(older))
