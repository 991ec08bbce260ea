"""The ways to take turns that are measured beside each other. Each waits for at most 10 s and then fails."""

from typing import Any, ClassVar

import redis

from redis_kit.locks import Lock

try:
    from redis_kit.locks import FairLock
except ImportError:
    FairLock = None  # type: ignore[assignment,misc]

PATIENCE = 10  # seconds
LEASE = 30


class Bare:
    """One token in a list, taken and put back: the least that hands anything on, with no safety at all."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.client = name, redis.Redis.from_url(url, socket_timeout=None)

    @classmethod
    def prepare(cls, name: str, client: redis.Redis) -> None:
        """Put the token there."""
        client.rpush(name, "token")

    def take(self) -> None:
        """Wait for the token."""
        assert self.client.blpop([self.name], timeout=PATIENCE)

    def give(self) -> None:
        """Put it back."""
        self.client.rpush(self.name, "token")


class Theirs:
    """redis-py's own lock, as it is by default: it asks again every 0.1 s."""

    def __init__(self, name: str, url: str) -> None:
        self.lock = redis.Redis.from_url(url).lock(name, timeout=LEASE, blocking_timeout=PATIENCE)

    @classmethod
    def prepare(cls, name: str, client: redis.Redis) -> None:
        """Need nothing."""

    def take(self) -> None:
        """Wait for the lock."""
        assert self.lock.acquire()

    def give(self) -> None:
        """Release it."""
        self.lock.release()


class Ours(Theirs):
    """The kit's lock."""

    kind: ClassVar[Any] = Lock

    def __init__(self, name: str, url: str) -> None:
        self.lock = self.kind(name, timeout=LEASE, blocking_timeout=PATIENCE)


class OursFair(Ours):
    """The kit's lock that keeps the order."""

    kind = FairLock


BARE, THEIRS, OURS, FAIR = "bare hand-off: BLPOP, RPUSH", "redis-py: Lock", "kit: Lock", "kit: FairLock"
CONTENDERS: dict[str, type[Any]] = {BARE: Bare, THEIRS: Theirs, OURS: Ours}
if FairLock is not None:
    CONTENDERS[FAIR] = OursFair
