"""Names in the slots of a Cluster, and the slots on its nodes."""

from collections.abc import Iterable
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from redis.crc import key_slot

SLOTS = 16_384


class Balance(NamedTuple):
    """How evenly names are spread over bins: those in use, the fullest one, and the standard deviation."""

    used: int
    largest: int
    deviation: float


def slots_of(keys: Iterable[str]) -> list[int]:
    """Return how many of the keys are in each slot."""
    counts = [0] * SLOTS
    for key in keys:
        counts[key_slot(key.encode())] += 1
    return counts


def parts(nodes: int) -> list[range]:
    """Return the slots of each node, as ``redis-cli --cluster create`` shares them out: nearly as many each."""
    ends = [round(SLOTS * node / nodes) for node in range(nodes + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def on_nodes(counts: list[int], nodes: int) -> list[int]:
    """Return how many names are on each node."""
    return [sum(counts[part.start : part.stop]) for part in parts(nodes)]


def balance(counts: list[int]) -> Balance:
    """Return how evenly names are spread."""
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    return Balance(sum(map(bool, counts)), max(counts), sqrt(variance))
