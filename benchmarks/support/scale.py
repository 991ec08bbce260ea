"""From the cost of one operation to the servers, memory, clients and network of many."""

from math import ceil
from typing import NamedTuple

BUSY = 0.6  # of a core: beyond that, calls wait for each other


class UnitCost(NamedTuple):
    """The cost of one operation, and the bytes that one thing takes on the server."""

    server: float  # us of its main thread
    client: float  # us
    network: float  # bytes, both ways
    stored: float = 0.0


class Need(NamedTuple):
    """What a load needs."""

    nodes: int  # of the server, of one core each
    clients: int  # cores of web or worker processes that are busy with calls
    gigabits: float  # a second, in all
    gigabytes: float


def need(cost: UnitCost, a_second: float, things: float = 0) -> Need:
    """Return what so many operations a second need, and so many things that are stored."""
    nodes, clients = (ceil(a_second * each / 1e6 / BUSY) for each in (cost.server, cost.client))
    return Need(nodes, clients, a_second * cost.network * 8 / 1e9, things * cost.stored / 1e9)


def total(costs: list[UnitCost]) -> UnitCost:
    """Return the cost of operations that belong together, as the put and the claim of a job do."""
    return UnitCost(*map(sum, zip(*costs, strict=True)))
