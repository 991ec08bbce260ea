"""How many jobs of queues other systems took."""

from collections.abc import Iterable, Sequence

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.steps import CombinedBatch
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.features.handover import store
from redis_kit.queues.features.handover.store import HandOvers
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports.stats import read_names


def hand_overs(queues: Iterable[str], *, using: str = "default") -> dict[str, HandOvers]:
    """Return how many jobs of queues other systems took, and the last error. One round trip.

    Queues without any are left out, and those whose key is damaged.
    """
    sources = [Queue(name, using=using) for name in queues]
    return sources[0].run_flow(_read_hand_overs(sources)) if sources else {}


async def ahand_overs(queues: Iterable[str], *, using: str = "default") -> dict[str, HandOvers]:
    """See hand_overs()."""
    sources = [Queue(name, using=using) for name in queues]
    return await sources[0].arun_flow(_read_hand_overs(sources)) if sources else {}


def read_hand_overs(using: str) -> Flow[dict[str, HandOvers]]:
    """Read the hand-overs of all queues. Two round trips, and one more if the settings name SHARDS of a queue."""
    names = yield from read_names()
    return (yield from _read_hand_overs([Queue(name, using=using) for name in names])) if names else {}


def _read_hand_overs(sources: Sequence[Queue]) -> Flow[dict[str, HandOvers]]:
    names = yield from spread().existing([source.name for source in sources])
    places = [(source.name, Queue(name, using=source.using)) for source in sources for name in names[source.name]]
    replies = yield CombinedBatch([store.GET_HANDOVERS(part.key("")) for _, part in places], lenient=True)
    counts: dict[str, HandOvers] = {}
    for (name, _), reply in zip(places, replies, strict=True):
        if not isinstance(reply, RedisFailure) and (count := store.counted(reply)):
            counts[name] = store.merged(counts[name], count) if name in counts else count
    return counts
