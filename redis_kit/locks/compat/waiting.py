"""How a lock on a client of the caller's own is waited for: blocked on its signal where the holder gives one."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import RedisError

NAP = 1.0  # seconds of one blocking command: what a lost wake-up costs
WAITING = 2500  # ms that a waiter counts as one after it asked
SHORTEST = 0.01  # seconds between two questions, where ``sleep`` says less
BRIEF = 0.1  # seconds: blocking for less than that is no better than sleeping

_seats: MutableMapping[Any, threading.Semaphore] = WeakKeyDictionary()


class Ask:
    """A step for a lock itself: try once to take it. Goes through do_acquire(), which users override."""

    __slots__ = ("token",)

    def __init__(self, token: bytes) -> None:
        self.token = token

    def run(self, lock: Any) -> Any:
        """Ask the server: one round trip."""
        return lock.do_acquire(self.token)

    async def arun(self, lock: Any) -> Any:
        """See run()."""
        return await lock.do_acquire(self.token)


class Wait:
    """A step for a lock itself: wait until it may be free, or until it is time to look again.

    A holder that is a stock lock of redis-py gives no signal, nor does an end that nobody released. So this ends after
    ``sleep`` seconds where the holder is not ours, and in any case when the lease does.
    """

    __slots__ = ("_most", "_nap", "_ours", "key")

    def __init__(self, key: bytes, refusal: tuple[int, int], *, sleep: float, left: float) -> None:
        ends_in, self._ours = refusal
        self.key = key
        self._most = max(left if ends_in < 0 else min(left, ends_in / 1000 + 0.001), 0.001)
        self._nap = min(max(sleep, SHORTEST), self._most)

    def run(self, lock: Any) -> None:
        """Block on the server, or sleep in this thread."""
        with _seat(lock.redis, wanted=self._ours) as longest:
            if longest:
                with contextlib.suppress(RedisError):  # asking for the lock will tell what is wrong
                    lock.redis.blpop([self.key], timeout=round(min(longest, self._most), 3))
                    return
        time.sleep(self._nap)

    async def arun(self, lock: Any) -> None:
        """See run()."""
        with _seat(lock.redis, wanted=self._ours) as longest:
            if longest:
                with contextlib.suppress(RedisError):
                    await lock.redis.blpop([self.key], timeout=round(min(longest, self._most), 3))
                    return
        await asyncio.sleep(self._nap)


@contextlib.contextmanager
def _seat(client: Any, *, wanted: int) -> Iterator[float]:
    """Give the seconds for which one of the client's connections may be blocked; 0 where none may."""
    # A read that lasts longer than the client allows is an error there, and is repeated.
    limit = client.get_connection_kwargs().get("socket_timeout")
    longest = NAP if limit is None else min(NAP, limit / 2)
    seats = _seats_of(client)
    if not wanted or longest < BRIEF or not seats.acquire(blocking=False):
        yield 0.0
        return
    try:
        yield longest
    finally:
        seats.release()


def _seats_of(client: Any) -> threading.Semaphore:
    """Return how many of a client's connections may be blocked: half, so that holders can always release."""
    pool = getattr(client, "connection_pool", client)
    seats = _seats.get(pool)
    if seats is None:
        only_one = getattr(client, "connection", None) is not None
        most = getattr(pool, "max_connections", None) or client.get_connection_kwargs().get("max_connections") or 100
        seats = _seats.setdefault(pool, threading.Semaphore(0 if only_one else most // 2))
    return seats


os.register_at_fork(after_in_child=_seats.clear)
