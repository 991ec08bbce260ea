"""What Redis holds when all is over."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.engine.ids import part_of
from redis_kit.queues.engine.spread import spread

# What may be there in the end. Those that expire by themselves are not looked at.
LASTING = ("features", "jobs", "dead", "reasons", "sequence", "minutes")
CHUNK = 1000


class State(NamedTuple):
    """The queue, the outcomes it recorded, and what is left of workers."""

    counts: QueueCounts
    jobs: frozenset[str]
    dead: dict[str, str]  # id -> reason
    status: dict[str, str]  # id -> SUCCESSFUL or FAILED, of jobs with a stored result
    done: int  # jobs that were counted as done
    workers: int
    left: tuple[str, ...] = ()  # keys without an expiry that nobody needs any more


def read(queue: Queue, client: Any, ids: Iterable[str]) -> State:
    """Read it with a client that decodes, from all shards of the queue."""
    states = [_of_shard(Queue(name), client) for name in spread().names(queue.name)]
    return State(
        counts=queue.counts(),
        jobs=frozenset().union(*(state.jobs for state in states)),
        dead={id: reason for state in states for id, reason in state.dead.items()},
        status=_status(queue, client, list(ids)),
        done=sum(state.done for state in states),
        workers=max(state.workers for state in states),
        left=tuple(key for state in states for key in state.left),
    )


def _of_shard(queue: Queue, client: Any) -> State:
    reasons = client.hgetall(queue.key("reasons"))
    dead = client.zrange(queue.key("dead"), 0, -1)
    fields = [field for field in client.hkeys(queue.key("minutes")) if int(field) % 4 == 0]
    minutes = [int(number) for number in client.hmget(queue.key("minutes"), fields)] if fields else []
    return State(
        counts=queue.counts(),
        jobs=frozenset(client.hkeys(queue.key("jobs"))),
        dead={id: reasons.get(id, "") for id in dead},
        status={},
        done=sum(minutes),
        workers=client.zcard(queue.key("workers")),
        left=tuple(_left(queue, client)),
    )


def _status(queue: Queue, client: Any, ids: list[str]) -> dict[str, str]:
    found = {}
    for at in range(0, len(ids), CHUNK):
        part = ids[at : at + CHUNK]
        pipeline = client.pipeline(transaction=False)
        for id in part:
            shard = Queue(part_of(queue.name, id) or queue.name)
            pipeline.hget(shard.key(f"result:{id}"), "status")
        found |= {id: status for id, status in zip(part, pipeline.execute(), strict=True) if status}
    return found


def _left(queue: Queue, client: Any) -> list[str]:
    base = queue.key("")
    keys = [key for key in client.scan_iter(f"{base}*", count=1000) if not key.startswith(f"{base}result:")]
    return sorted(key for key in keys if key.removeprefix(base) not in LASTING and client.ttl(key) == -1)
