"""Locks that replace those of redis-py, on any client of redis-py: ``client.lock("x", lock_class=Lock)``.

Arguments, methods, results and errors are redis-py's, and so are the key and its value: locks of both kinds exclude
each other.
"""

import contextlib
import threading
from binascii import crc_hqx
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import Any, ClassVar, Literal, TypeVar

import redis.asyncio.lock
import redis.lock
from redis.exceptions import LockError, LockNotOwnedError, ResponseError

from redis_kit.core import flow, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.locks.compat.background import AsyncRepeated, Repeated, RepeatedRelease, Run, renewal
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal.pending_releases import GIVE_UP_AFTER

Result = TypeVar("Result")

DEFAULT_TIMEOUT = 30.0  # seconds of a lock without a timeout, renewed at a third of it
SLOTS = 16384


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

    @contextlib.contextmanager
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
        every = DEFAULT_TIMEOUT / 3
        self.local.renewal = token, self._repeated(partial(renewal, step, self.name, every), self.redis, after=every)

    def _release_later(self, step: Run, until: float, *, acquired: bool) -> None:
        with contextlib.suppress(RuntimeError):  # without a thread or an event loop, the lease times out
            self._repeated(RepeatedRelease(step, until, acquired=acquired), self.redis, after=0.0)

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
