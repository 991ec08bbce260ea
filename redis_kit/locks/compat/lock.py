"""Locks that take the place of redis-py's own, on any client of redis-py: ``client.lock("x", lock_class=Lock)``.

Arguments, methods, results and errors are redis-py's, and so are the key and what it holds: locks of both kinds exclude
each other.
"""

from typing import Any, Literal

import redis.asyncio.lock
import redis.lock

from redis_kit.core import flow
from redis_kit.locks.compat.background import AsyncBeat, Beat
from redis_kit.locks.compat.flows import Flows


class Lock(Flows, redis.lock.Lock):
    """A lock of redis-py that ends when its holder dies, survives lost replies and wakes who waits for it.

    Without a ``timeout`` it has a lease of 30 s, which this process renews until release(). ``sleep`` (at least 0.01 s)
    is how often to look again while redis-py's own lock holds it. ``fence`` is a number that grows with every holder.
    """

    _beat = Beat

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: Any = None,
    ) -> bool:
        """Take it, waiting as long as told here or at creation; False when it stays taken.

        One round trip when free. Raises redis-py's errors; where the reply got lost, the attempt is undone soon after.
        """
        pause = self.sleep if sleep is None else sleep
        patience = self._patience(
            self.blocking if blocking is None else blocking,
            self.blocking_timeout if blocking_timeout is None else blocking_timeout,
        )
        return flow.run(self._acquiring(token, pause, patience), self)

    def do_acquire(self, token: Any) -> bool:
        """Try once to take it with a token; a client that repeats the command gets the first answer again."""
        return flow.run(self._taking(token), self.redis)

    def release(self) -> None:
        """Give it back and wake one who waits. Raises LockError, LockNotOwnedError where it ended before.

        After any other error it is over all the same and given back as soon as the server answers; releasing it may be
        tried again. One round trip.
        """
        with self._let_go() as token:
            self.do_release(token)

    def do_release(self, expected_token: Any) -> None:
        """Give it back for the holder of a token, whoever took it."""
        flow.run(self._releasing(expected_token), self.redis)

    def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        """Make the lease longer. Raises LockError rather than end it."""
        flow.run(self._extending(additional_time, replace_ttl), self.redis)
        return True

    def do_reacquire(self) -> Literal[True]:
        """Let the lease start anew with its full length."""
        flow.run(self._reacquiring(), self.redis)
        return True


class AsyncLock(Flows, redis.asyncio.lock.Lock):
    """See Lock. For clients of ``redis.asyncio``; without a ``timeout`` it is renewed while its event loop runs."""

    _beat = AsyncBeat

    async def acquire(
        self, blocking: bool | None = None, blocking_timeout: float | None = None, token: Any = None
    ) -> bool:
        """See Lock."""
        patience = self._patience(
            self.blocking if blocking is None else blocking,
            self.blocking_timeout if blocking_timeout is None else blocking_timeout,
        )
        return await flow.arun(self._acquiring(token, self.sleep, patience), self)

    async def do_acquire(self, token: Any) -> bool:
        """See Lock."""
        return await flow.arun(self._taking(token), self.redis)

    async def release(self) -> None:
        """See Lock."""
        with self._let_go() as token:
            await self.do_release(token)

    async def do_release(self, expected_token: Any) -> None:
        """See Lock."""
        await flow.arun(self._releasing(expected_token), self.redis)

    async def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        """See Lock."""
        await flow.arun(self._extending(additional_time, replace_ttl), self.redis)
        return True

    async def do_reacquire(self) -> Literal[True]:
        """See Lock."""
        await flow.arun(self._reacquiring(), self.redis)
        return True
