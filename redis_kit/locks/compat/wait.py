"""Waiting for a lock on a caller's own client: blocked on its signal, if its holder sends one."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import RedisError

from redis_kit.locks.compat.cancellation import cancellable

INTERVAL = 1.0  # seconds of one blocking command: the cost of a lost wake-up
WAITER_TTL = 2500  # ms that a waiter counts as one after each request
MIN_SLEEP = 0.01  # seconds between two requests, if ``sleep`` is shorter
MIN_BLOCK = 0.1  # seconds: to block for a shorter time is not better than to sleep

_permits: MutableMapping[Any, threading.Semaphore] = WeakKeyDictionary()


class Request:
    """A step for a lock itself: request it once, by do_acquire(), which users override."""

    __slots__ = ("token",)

    def __init__(self, token: bytes) -> None:
        self.token = token

    def run(self, lock: Any) -> Any:
        """Send the request: one round trip."""
        return lock.do_acquire(self.token)

    async def arun(self, lock: Any) -> Any:
        """See run()."""
        return await lock.do_acquire(self.token)


class Wait:
    """A step for a lock itself: wait until it may be free, or until the next request is due.

    A lock of redis-py itself sends no signal, and neither does a lease that times out. So this ends after ``sleep``
    seconds if the holder is not a lock of this module, and in any case when the lease ends.
    """

    __slots__ = ("_longest", "_sleep", "_wakes_waiters", "key")

    def __init__(self, key: bytes, refusal: tuple[int, int], *, sleep: float, remaining: float) -> None:
        ends_in, self._wakes_waiters = refusal
        self.key = key
        self._longest = max(remaining if ends_in < 0 else min(remaining, ends_in / 1000 + 0.001), 0.001)
        self._sleep = min(max(sleep, MIN_SLEEP), self._longest)

    def run(self, lock: Any) -> None:
        """Block on the server, or sleep in this thread."""
        with _permit(lock.redis, wanted=self._wakes_waiters) as longest:
            if longest:
                with contextlib.suppress(RedisError):  # the next request will raise it
                    lock.redis.blpop([self.key], timeout=round(min(longest, self._longest), 3))
                    return
        time.sleep(self._sleep)

    async def arun(self, lock: Any) -> None:
        """See run()."""
        with _permit(lock.redis, wanted=self._wakes_waiters) as longest:
            if longest:
                with contextlib.suppress(RedisError):
                    await cancellable(lock.redis.blpop([self.key], timeout=round(min(longest, self._longest), 3)))
                    return
        await asyncio.sleep(self._sleep)


@contextlib.contextmanager
def _permit(client: Any, *, wanted: int) -> Iterator[float]:
    """Give the seconds for which one of the client's connections may be blocked; 0 if none may be."""
    # A read that lasts longer than the client allows is an error there, and is repeated.
    limit = client.get_connection_kwargs().get("socket_timeout")
    longest = INTERVAL if limit is None else min(INTERVAL, limit / 2)
    permits = _permits_of(client)
    if not wanted or longest < MIN_BLOCK or not permits.acquire(blocking=False):
        yield 0.0
        return
    try:
        yield longest
    finally:
        permits.release()


def _permits_of(client: Any) -> threading.Semaphore:
    """Return the permits to block a client's connections: for half of them, so that holders can always release."""
    pool = getattr(client, "connection_pool", client)
    permits = _permits.get(pool)
    if permits is None:
        only_one = getattr(client, "connection", None) is not None
        most = getattr(pool, "max_connections", None) or client.get_connection_kwargs().get("max_connections") or 100
        permits = _permits.setdefault(pool, threading.Semaphore(0 if only_one else most // 2))
    return permits


os.register_at_fork(after_in_child=_permits.clear)
