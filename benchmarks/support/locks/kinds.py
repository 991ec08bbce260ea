"""The locks that are measured beside each other. Each waits for at most 10 s and then fails."""

from typing import Any, ClassVar

import redis

from redis_kit.locks import Lock

try:
    from redis_kit.locks import FairLock
except ImportError:
    FairLock = None  # type: ignore[assignment,misc]

PATIENCE = 10  # seconds
LEASE = 30


class BareHandOff:
    """One token in a list, popped and pushed: the fastest hand-off, without any safety."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.client = name, redis.Redis.from_url(url, socket_timeout=None)

    @classmethod
    def prepare(cls, name: str, client: redis.Redis) -> None:
        """Push the token."""
        client.rpush(name, "token")

    def take(self) -> None:
        """Wait for the token."""
        assert self.client.blpop([self.name], timeout=PATIENCE)

    def give(self) -> None:
        """Push the token."""
        self.client.rpush(self.name, "token")


class RedisPyLock:
    """redis-py's lock with its default options: it polls every 0.1 s."""

    def __init__(self, name: str, url: str) -> None:
        self.lock = redis.Redis.from_url(url).lock(name, timeout=LEASE, blocking_timeout=PATIENCE)

    @classmethod
    def prepare(cls, name: str, client: redis.Redis) -> None:
        """Do nothing."""

    def take(self) -> None:
        """Wait for the lock."""
        assert self.lock.acquire()

    def give(self) -> None:
        """Release it."""
        self.lock.release()


class KitLock(RedisPyLock):
    """The kit's lock."""

    kind: ClassVar[Any] = Lock

    def __init__(self, name: str, url: str) -> None:
        self.lock = self.kind(name, timeout=LEASE, blocking_timeout=PATIENCE)


class KitFairLock(KitLock):
    """The kit's lock with waiters in order."""

    kind = FairLock


BARE, THEIRS, OURS, FAIR = "bare hand-off: BLPOP, RPUSH", "redis-py: Lock", "kit: Lock", "kit: FairLock"
LOCKS: dict[str, type[Any]] = {BARE: BareHandOff, THEIRS: RedisPyLock, OURS: KitLock}
if FairLock is not None:
    LOCKS[FAIR] = KitFairLock
