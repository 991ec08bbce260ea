"""How many jobs of queues other systems took."""

from collections.abc import Iterable

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.queues.features.handover import store
from redis_kit.queues.features.handover.store import HandOvers
from redis_kit.queues.queue import over
from redis_kit.queues.reports.stats import of_all, read_names


@operation(over=over)
def hand_overs(queues: Iterable[str], *, using: str = "default") -> Flow[dict[str, HandOvers]]:
    """Return how many jobs of queues other systems took, and the last error. One round trip.

    Queues without any are left out, and those whose key is damaged.
    """
    return _read(queues, using)


def read_hand_overs(using: str) -> Flow[dict[str, HandOvers]]:
    """Read the hand-overs of all queues. Two round trips, and one more if the settings name SHARDS of a queue."""
    return (yield from _read((yield from read_names()), using))


def _read(names: Iterable[str], using: str) -> Flow[dict[str, HandOvers]]:
    counts: dict[str, HandOvers] = {}
    for name, reply in (yield from of_all(names, using, store.GET_HANDOVERS)):
        if not isinstance(reply, RedisFailure) and (count := store.counted(reply)):
            counts[name] = store.merged(counts[name], count) if name in counts else count
    return counts


ahand_overs = twin(hand_overs)
