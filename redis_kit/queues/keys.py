"""The keys of queues. All keys of one queue are in one slot of a Redis Cluster; those of two queues need not be."""

from typing import NamedTuple

from redis_kit.core import conf
from redis_kit.core.keys import encode
from redis_kit.core.settings import KitSettings

OF_JOB = ("result", "finished")  # of one job: what is stored about its call, and the list for callers that wait for it
OF_ONE = (*OF_JOB, "cursor", "log", "period", "deferred")  # the last two are of a unique key, and of a shape of calls
OF_WORKER = ("answers",)


class QueueKeys(NamedTuple):
    """The keys of one queue. Scripts name them in their headers, with what they hold."""

    jobs: str
    ready: str
    scheduled: str
    running: str
    dead: str
    reasons: str
    endings: str
    features: str
    workers: str
    info: str
    repeats: str
    orders: str
    cancels: str
    crashed: str
    unique: str
    owners: str
    unknown: str
    minutes: str
    hours: str
    sequence: str
    signal: str
    paused: str
    handovers: str
    lanes: str
    turns: str
    limits: str
    parked: str
    done: str
    tasks: str
    past: str
    lost: str

    @classmethod
    def of(cls, base: str) -> "QueueKeys":
        """Return the keys of the queue whose keys begin with ``base``."""
        return cls(*(base + part for part in cls._fields))


def of_one(base: str, part: str, name: str) -> str:
    """Return a key that belongs to one job, worker, unique key or shape of calls."""
    return f"{base}{part}:{name}"


def relay_key(alias: str) -> str:
    """Return the key of the turn to look at the outbox of a database. It is in a slot of its own."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues}}:relay:{encode(alias)}"


def names_key() -> str:
    """Return the key of the set of the queues' names. It is in a slot of its own."""
    return f"{conf.section(KitSettings).PREFIX}:{{queues}}:names"
