"""What goes on in the background for locks on a client of the caller's own: leases renewed, lost attempts undone."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from redis.exceptions import RedisError

from redis_kit.core import flow
from redis_kit.core.flow import Flow
from redis_kit.locks.renewal import scheduler

logger = logging.getLogger("redis_kit.locks")

AGAIN = 1.0  # seconds until a beat that failed is tried again
SOON = 0.5  # seconds until a release that failed is tried again
ON_ITS_WAY = 1.0  # seconds in which a command whose reply was lost may still reach the server

Beats = Flow[float | None]


class Run:
    """A step: one run of a script that the client's register_script() made."""

    __slots__ = ("args", "keys", "script")

    def __init__(self, script: Any, keys: list[bytes], args: list[Any]) -> None:
        self.script, self.keys, self.args = script, keys, args

    def run(self, client: Any) -> Any:
        """Run it: one round trip, three the first time on a server."""
        return self.script(keys=self.keys, args=self.args, client=client)

    async def arun(self, client: Any) -> Any:
        """See run()."""
        return await self.script(keys=self.keys, args=self.args, client=client)


class Beat:
    """A flow that this process carries out again and again, in the thread that renews leases."""

    def __init__(self, make: Callable[[], Beats], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        scheduler.add(self, after=after, lane=_lane(client))

    def beat(self) -> float | None:
        """Carry it out once; return the seconds until the next time, None to stop."""
        return flow.run(self._make(), self._client)

    def stop(self) -> None:
        """Let it go on no more."""
        scheduler.remove(self)


class AsyncBeat:
    """A flow that the running event loop carries out again and again, as long as it runs.

    It keeps a timer and no task, so that a loop which is closed has nothing pending.
    """

    def __init__(self, make: Callable[[], Beats], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(after, self._start)
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Let it go on no more."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _start(self) -> None:
        self._task = self._loop.create_task(self._beat())

    async def _beat(self) -> None:
        try:
            after = await flow.arun(self._make(), self._client)
        except RedisError as error:
            logger.warning("A lease was not renewed, which is tried again: %s", error)
            after = AGAIN
        if after is not None and self._timer:
            self._timer = self._loop.call_later(after, self._start)


def renewing(step: Run, name: Any, every: float) -> Beats:
    """Renew a lease, for as long as it lasts."""
    if (yield step):
        return every
    logger.warning("The lock %r was released elsewhere, or lost; it is renewed no longer.", name)
    return None


class GivingBack:
    """Gives a lease back, again and again until the server has answered, or until it has ended by itself.

    Of an attempt that the server may carry out yet, one answer that it holds nothing is not the last word.
    """

    def __init__(self, step: Run, until: float, *, taken: bool) -> None:
        self.step, self.until = step, until
        self._looked = taken

    def __call__(self) -> Beats:
        """Try once."""
        if monotonic() > self.until:
            return None
        try:
            given_back = yield self.step
        except RedisError:
            return SOON
        if given_back or self._looked:
            return None
        self._looked = True
        return ON_ITS_WAY


def _lane(client: Any) -> str:
    options = client.get_connection_kwargs()
    return f"redis-py {options.get('path') or options.get('host')}:{options.get('port', '')}"
