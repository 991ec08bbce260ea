"""Locks that replace those of redis-py, and of django-redis: ``client.lock("x", lock_class=Lock)``.

Arguments, methods, results and errors are redis-py's, and so are the key and its value: locks of both kinds exclude
each other.
"""

import asyncio
import logging
import threading
from binascii import crc_hqx
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import Any, ClassVar, Literal, TypeVar

import redis.asyncio.lock
import redis.lock
from redis.exceptions import LockError, LockNotOwnedError, RedisError, ResponseError

from redis_kit.core import flow, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal import scheduler
from redis_kit.locks.renewal.pending_releases import GIVE_UP_AFTER, IN_TRANSIT

__all__ = ["AsyncLock", "Lock"]

logger = logging.getLogger("redis_kit.locks")
Result = TypeVar("Result")

DEFAULT_TIMEOUT = 30.0  # seconds of a lock without a timeout, renewed at a third of it
RENEWAL_RETRY = 1.0  # seconds until a failed renewal is retried
RELEASE_RETRY = 0.5  # seconds until a failed release is retried
SLOTS = 16384
LOOP_TASKS = "_redis_kit_lock_tasks"  # the loop's attribute

PeriodicFlow = Flow[float | None]  # returns the seconds until the next run, None to stop


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
        # redis-py writes within asyncio.wait_for(). Before Python 3.12 that ignores a cancellation in the moment in
        # which the command was written, and a waiter would go on.
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        reply = await self.script(keys=self.keys, args=self.args, client=client)
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
        return reply


class Repeated:
    """A flow that this process repeats, in the thread that renews leases."""

    def __init__(self, make: Callable[[], PeriodicFlow], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        options = client.get_connection_kwargs()
        server = f"{options.get('path') or options.get('host')}:{options.get('port', '')}"
        scheduler.add(self.run_once, after=after, lane=f"redis-py {server}")

    def run_once(self) -> float | None:
        """Carry it out once; return the seconds until the next run, None to stop."""
        return flow.run(self._make(), self._client)

    def stop(self) -> None:
        """Stop."""
        scheduler.remove(self.run_once)


class _LoopTasks:
    """The runs of flows in one event loop. To be made while that loop runs.

    A timer may start one while asyncio.run() cancels all tasks, so the loop's end cancels those that are left.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False
        # A loop that ends closes its asynchronous generators after it has cancelled its tasks.
        self._generator = self._until_the_end()
        with suppress(StopIteration):
            self._generator.__anext__().send(None)

    def start(self, run: Coroutine[Any, Any, None]) -> None:
        """Start a run, unless the loop ends."""
        if self._ended:
            run.close()
            return
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._ended = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


class AsyncRepeated:
    """A flow that the running event loop repeats, as long as it runs.

    It has a timer, and a task only for each run, so nothing is pending in a closed loop.
    """

    def __init__(self, make: Callable[[], PeriodicFlow], client: Any, *, after: float) -> None:
        self._make, self._client = make, client
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(after, self._start)
        self._tasks = _loop_tasks(self._loop)

    def stop(self) -> None:
        """Stop."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _start(self) -> None:
        self._tasks.start(self._run_once())

    async def _run_once(self) -> None:
        try:
            after = await flow.arun(self._make(), self._client)
        except Exception as error:  # a subclass of the client may raise anything
            logger.warning("A lease was not renewed; retrying: %s", error)
            after = RENEWAL_RETRY
        if after is not None and self._timer:
            self._timer = self._loop.call_later(after, self._start)


def _loop_tasks(loop: asyncio.AbstractEventLoop) -> _LoopTasks:
    if not hasattr(loop, LOOP_TASKS):
        setattr(loop, LOOP_TASKS, _LoopTasks())
    tasks: _LoopTasks = getattr(loop, LOOP_TASKS)
    return tasks


class State:
    """The state of a lock's holder: with ``thread_local=False``, one for all threads."""

    token: bytes | None = None
    released: bytes | None = None  # the token whose release failed
    acquired: tuple[bytes, int] | None = None  # the last token that acquired it, with its fence
    ends_by: float = 0.0  # when that lease has surely ended
    renewal: tuple[bytes, Any] | None = None


class PerThread(State, threading.local):
    """The state of each thread."""


class Flows:
    """The flows and scripts that replace those of redis-py, for both classes."""

    LUA_ACQUIRE_SCRIPT = scripts.load("redis_kit.locks", "compat_acquire").source
    LUA_RELEASE_SCRIPT = scripts.load("redis_kit.locks", "compat_release").source
    LUA_EXTEND_SCRIPT = scripts.load("redis_kit.locks", "compat_extend").source
    LUA_REACQUIRE_SCRIPT = LUA_EXTEND_SCRIPT
    # Without these a class would inherit the scripts that a lock of redis-py has registered.
    lua_acquire: Any = None
    lua_release: Any = None
    lua_extend: Any = None
    lua_reacquire: Any = None

    redis: Any
    name: Any
    timeout: Any
    blocking: bool
    blocking_timeout: float | None
    local: Any
    thread_local: bool
    _repeated: ClassVar[type[Repeated | AsyncRepeated]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.local = PerThread() if self.thread_local else State()

    def register_scripts(self) -> None:
        """Register the scripts of this class with its client. No round trip."""
        super().register_scripts()  # type: ignore[misc]
        if self.lua_acquire is None:
            type(self).lua_acquire = self.redis.register_script(self.LUA_ACQUIRE_SCRIPT)

    @property
    def fence(self) -> int | None:
        """Return a number greater than that of each earlier holder; None if this thread does not hold the lock."""
        acquired: tuple[bytes, int] | None = self.local.acquired
        return acquired[1] if acquired and acquired[0] == self.local.token else None

    def _request(self, token: Any) -> Flow[bool]:
        """Request it once with a token; a client that repeats the command gets the first answer again."""
        token, call, ttl_ms = self._encoded(token), token_hex(8), self._ttl_ms()
        try:
            fence = yield Run(self.lua_acquire, self._keys(), [token, call, ttl_ms])
        except ResponseError:
            raise
        except BaseException:  # the server may have granted it, or may still grant it
            step = self._release_step(token, acquired_by=call)
            self._release_later(step, monotonic() + GIVE_UP_AFTER, acquired=False)
            raise
        if not fence:
            return False
        self.local.acquired, self.local.ends_by = (token, fence), monotonic() + ttl_ms / 1000
        if not self.timeout:
            try:
                self._renew(token)
            except CannotRenew:
                yield self._release_step(token)
                raise
        return True

    def _end(self, expected_token: Any) -> Flow[None]:
        """Release it for the holder of a token, whichever thread acquired it."""
        token = self._encoded(expected_token)
        if self.local.renewal and self.local.renewal[0] == token:
            self.local.renewal[1].stop()
            self.local.renewal = None
        try:
            was_held = yield self._release_step(token)
        except BaseException:
            acquired = self.local.acquired
            if acquired and acquired[0] == token:  # its caller may use the same token again, so the fence counts too
                step = self._release_step(token, fence=str(acquired[1]))
                self._release_later(step, max(self.local.ends_by, monotonic() + self._ttl_ms() / 1000), acquired=True)
            raise
        if not (was_held or token == self.local.released):
            raise LockNotOwnedError("Cannot release a lock that's no longer owned", lock_name=self.name)

    def _lengthen(self, additional_time: float, replace_ttl: bool) -> Flow[Literal[True]]:
        """Extend the lease. Raises LockError rather than end it."""
        self._check_timeout("extend")
        args = [self.local.token, int(additional_time * 1000), "1" if replace_ttl else "0", token_hex(8)]
        self.local.ends_by = max(self.local.ends_by, monotonic()) + additional_time
        done = yield Run(self.lua_extend, self._keys(), args)
        if done == -1:
            raise LockError("Cannot extend a lock so that it ends at once; release it instead.", lock_name=self.name)
        if not done:
            raise LockNotOwnedError("Cannot extend a lock that's no longer owned", lock_name=self.name)
        return True

    def _restart(self) -> Flow[Literal[True]]:
        """Let the lease start again with its full timeout."""
        self._check_timeout("reacquire")
        if not (yield Run(self.lua_reacquire, self._keys(), [self.local.token, self._ttl_ms()])):
            raise LockNotOwnedError("Cannot reacquire a lock that's no longer owned", lock_name=self.name)
        return True

    @contextmanager
    def _released_token(self) -> Iterator[bytes]:
        """Give the token to release. It is not held any more; if its release fails, it can be released again."""
        token = self.local.token or self.local.released
        if token is None:
            raise LockError("Cannot release a lock that's not owned or is already unlocked.", lock_name=self.name)
        if self.local.token == token:
            self.local.token = None
        try:
            yield token
        except LockNotOwnedError:
            raise
        except BaseException:
            self.local.released = token
            raise
        if self.local.released == token:  # another thread or task may have acquired the lock
            self.local.released = None

    def _release_step(self, token: bytes, *, acquired_by: str = "", fence: str = "") -> Run:
        return Run(self.lua_release, self._keys(), [token, token_hex(8), acquired_by, fence])

    def _renew(self, token: bytes) -> None:
        step = Run(self.lua_reacquire, self._keys(), [token, int(DEFAULT_TIMEOUT * 1000)])
        name, every = self.name, DEFAULT_TIMEOUT / 3

        def renew() -> PeriodicFlow:
            if (yield step):
                return every
            logger.warning("The lock %r was released elsewhere, or lost; its renewal stops.", name)
            return None

        self.local.renewal = token, self._repeated(renew, self.redis, after=every)

    def _release_later(self, step: Run, until: float, *, acquired: bool) -> None:
        """Release a lease, repeatedly until the server has answered or the lease has timed out.

        If the server may still carry out the attempt to acquire it, one answer that nothing is held is not final.
        """
        was_unknown = acquired

        def release() -> PeriodicFlow:
            nonlocal was_unknown
            if monotonic() > until:
                return None
            try:
                was_held = yield step
            except RedisError:
                return RELEASE_RETRY
            if was_held or was_unknown:
                return None
            was_unknown = True
            return IN_TRANSIT

        with suppress(RuntimeError):  # without a thread or an event loop, the lease times out
            self._repeated(release, self.redis, after=0.0)

    def _check_timeout(self, verb: str) -> None:
        if not self.timeout:
            raise LockError(f"Cannot {verb} a lock with no timeout", lock_name=self.name)

    def _ttl_ms(self) -> int:
        ms = int((self.timeout or DEFAULT_TIMEOUT) * 1000)
        if ms < 1:
            raise InvalidValue(f"timeout must be at least 0.001 seconds, or None, not {self.timeout!r}.")
        return ms

    def _keys(self) -> list[bytes]:
        name = self._encoded(self.name)
        return [name, fence_key(name)]

    def _encoded(self, value: Any) -> bytes:
        return value if type(value) is bytes else bytes(self.redis.get_encoder().encode(value))


@lru_cache(maxsize=4096)
def fence_key(name: bytes) -> bytes:
    """Return the key that goes with a name, in its slot. Two names never share one, not even ``a`` and ``{a}``."""
    start = name.find(b"{")
    tagged = start >= 0 and name.find(b"}", start) > start + 1
    if tagged:
        return b"%s::lock:fence" % name
    if name and b"}" not in name:
        return b"{%s}:lock:fence" % name
    # The whole name decides its slot, but it can't stand in braces.
    return b"{%s}:lock:fence:%s" % (_tag(crc_hqx(name, 0) % SLOTS), name)


@lru_cache(maxsize=SLOTS)
def _tag(slot: int) -> bytes:
    return next(tag for tag in (b"%x" % number for number in count()) if crc_hqx(tag, 0) % SLOTS == slot)


class Lock(Flows, redis.lock.Lock):
    """A lock of redis-py that times out when its holder dies, and survives lost replies.

    Without a ``timeout`` it has a lease of 30 s, which this process renews until release(). If the reply to acquire()
    is lost, the attempt is undone soon after. ``fence`` grows with every holder.
    """

    _repeated = Repeated

    def run_flow(self, steps: Flow[Result]) -> Result:
        """Carry out a flow on the client."""
        return flow.run(steps, self.redis)

    do_acquire: Any = operation(Flows._request)
    do_release: Any = operation(Flows._end)
    do_extend: Any = operation(Flows._lengthen)
    do_reacquire: Any = operation(Flows._restart)

    def release(self) -> None:
        """Release it. Raises LockError, or LockNotOwnedError if it ended before.

        After any other error it has ended for its holder too, and is released as soon as the server answers; release()
        can also be called again. One round trip.
        """
        with self._released_token() as token:
            self.do_release(token)


class AsyncLock(Flows, redis.asyncio.lock.Lock):
    """See Lock. For clients of ``redis.asyncio``; without a ``timeout`` it is renewed while its event loop runs."""

    _repeated = AsyncRepeated

    async def arun_flow(self, steps: Flow[Result]) -> Result:
        """See Lock."""
        return await flow.arun(steps, self.redis)

    do_acquire: Any = twin(Lock.do_acquire)
    do_release: Any = twin(Lock.do_release)
    do_extend: Any = twin(Lock.do_extend)
    do_reacquire: Any = twin(Lock.do_reacquire)

    async def release(self) -> None:
        """See Lock."""
        with self._released_token() as token:
            await self.do_release(token)
