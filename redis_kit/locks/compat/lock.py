"""Locks that replace those of redis-py, on any client of redis-py: ``client.lock("x", lock_class=Lock)``.

Arguments, methods, results and errors are redis-py's, and so are the key and its value: locks of both kinds exclude
each other.
"""

from typing import Any, Literal

import redis.asyncio.lock
import redis.lock

from redis_kit.core import flow
from redis_kit.locks.compat.background import AsyncRepeated, Repeated
from redis_kit.locks.compat.flows import Flows


class Lock(Flows, redis.lock.Lock):
    """A lock of redis-py that times out when its holder dies, survives lost replies and wakes its waiters.

    Without a ``timeout`` it has a lease of 30 s, which this process renews until release(). ``sleep`` (at least 0.01 s)
    is the time between requests while a lock of redis-py itself holds it. ``fence`` grows with every holder.
    """

    _repeated = Repeated

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: Any = None,
    ) -> bool:
        """Acquire it, and wait as stated here or at creation; False if it is still held by others then.

        One round trip if it is free. Raises redis-py's errors; if the reply is lost, the attempt is undone soon after.
        """
        pause = self.sleep if sleep is None else sleep
        wait = self._wait_seconds(
            self.blocking if blocking is None else blocking,
            self.blocking_timeout if blocking_timeout is None else blocking_timeout,
        )
        return flow.run(self._acquire_flow(token, pause, wait), self)

    def do_acquire(self, token: Any) -> bool:
        """Request it once with a token; a client that repeats the command gets the first answer again."""
        return flow.run(self._do_acquire_flow(token), self.redis)

    def release(self) -> None:
        """Release it and wake one waiter. Raises LockError, or LockNotOwnedError if it ended before.

        After any other error it has ended for its holder too, and is released as soon as the server answers; release()
        can also be called again. One round trip.
        """
        with self._released_token() as token:
            self.do_release(token)

    def do_release(self, expected_token: Any) -> None:
        """Release it for the holder of a token, whichever thread acquired it."""
        flow.run(self._release_flow(expected_token), self.redis)

    def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        """Extend the lease. Raises LockError rather than end it."""
        flow.run(self._extend_flow(additional_time, replace_ttl), self.redis)
        return True

    def do_reacquire(self) -> Literal[True]:
        """Let the lease start again with its full timeout."""
        flow.run(self._reacquire_flow(), self.redis)
        return True


class AsyncLock(Flows, redis.asyncio.lock.Lock):
    """See Lock. For clients of ``redis.asyncio``; without a ``timeout`` it is renewed while its event loop runs."""

    _repeated = AsyncRepeated

    async def acquire(
        self, blocking: bool | None = None, blocking_timeout: float | None = None, token: Any = None
    ) -> bool:
        """See Lock."""
        wait = self._wait_seconds(
            self.blocking if blocking is None else blocking,
            self.blocking_timeout if blocking_timeout is None else blocking_timeout,
        )
        return await flow.arun(self._acquire_flow(token, self.sleep, wait), self)

    async def do_acquire(self, token: Any) -> bool:
        """See Lock."""
        return await flow.arun(self._do_acquire_flow(token), self.redis)

    async def release(self) -> None:
        """See Lock."""
        with self._released_token() as token:
            await self.do_release(token)

    async def do_release(self, expected_token: Any) -> None:
        """See Lock."""
        await flow.arun(self._release_flow(expected_token), self.redis)

    async def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        """See Lock."""
        await flow.arun(self._extend_flow(additional_time, replace_ttl), self.redis)
        return True

    async def do_reacquire(self) -> Literal[True]:
        """See Lock."""
        await flow.arun(self._reacquire_flow(), self.redis)
        return True
