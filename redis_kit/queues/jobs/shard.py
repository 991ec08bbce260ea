"""The shards of a queue: each is a queue of its own, in a slot of its own. The first has the name of the queue."""

from random import choice
from zlib import crc32

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.keys import BUCKETS
from redis_kit.queues.jobs import ids
from redis_kit.queues.jobs.lane import Lane
from redis_kit.queues.jobs.unique import UniqueKey
from redis_kit.queues.settings import SHARD, QueueSettings, options_of, whole


def shard_names(queue: str) -> tuple[str, ...]:
    """Return the shards of a queue that get jobs: the queue itself if it has no others, or is a shard."""
    count = options_of(queue).SHARDS if may_have_shards(queue) else 1
    return (queue, *(f"{queue}{SHARD}{bucket}" for bucket in BUCKETS[1:count]))


def may_have_shards(queue: str) -> bool:
    """Return whether the settings name the option SHARDS of a queue: with a 1 there may be older shards."""
    entries = conf.section(QueueSettings).QUEUE_OPTIONS
    return bool(entries) and "SHARDS" in entries.get(queue, ())


def shard_for(queue: str, *, lane: Lane | None = None, key: UniqueKey | None = None, id: str = "") -> str:
    """Return the shard for a new job, "" for a queue without shards.

    Jobs of the same lane are in one shard, so that its limits hold; then those of the same unique key; then those of
    the same id, if the caller chose it. Any other job may be in any shard. Raises ConfigurationError for two limits.
    """
    if not may_have_shards(queue) or len(names := shard_names(queue)) == 1:
        return ""
    same = _only_limit(queue, lane) if lane else key.key if key else id
    return names[crc32(same.encode("utf-8", "surrogatepass")) % len(names)] if same else choice(names)  # noqa: S311 -- spreads load


def shard_of_id(queue: str, id: str) -> str:
    """Return the shard that an id names, "" if it names none of this queue: the caller of put() may have chosen it."""
    named = ids.queue_of(id) if "." in id else ""
    return named if whole(named) == queue else ""


def _only_limit(queue: str, lane: Lane) -> str:
    limits = lane.text.partition("\n")[0]
    if " " in limits:
        raise ConfigurationError(
            f"A job of the queue {queue!r} has several limits: {limits.replace(' ', ', ')}. With SHARDS it can have "
            "one: its group, or a limit of its task. Remove the others, or SHARDS."
        )
    return limits
