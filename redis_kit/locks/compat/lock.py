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
from typing import Any, ClassVar, Literal, NamedTuple

import redis.asyncio.lock
import redis.lock
from redis import exceptions
from redis.exceptions import LockError, LockNotOwnedError, ResponseError

from redis_kit.core import flow, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.locks.acquiring.attempt import WAITER_TTL
from redis_kit.locks.acquiring.local_queue import Turn
from redis_kit.locks.acquiring.wait import pause
from redis_kit.locks.compat.background import (
    AsyncRepeated,
    Repeated,
    RepeatedRelease,
    Request,
    Run,
    Wait,
    renewal,
)
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.renewal.pending_releases import GIVE_UP_AFTER

DEFAULT_TIMEOUT = 30.0  # seconds of a lock without a timeout, renewed at a third of it
PASSING = (exceptions.ConnectionError, exceptions.TimeoutError)  # failures that may pass, unless they are these:
REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError)
UNKNOWN = (-1, 0)  # the refusal of a lock whose holder is unknown
SLOTS = 16384


class SideKeys(NamedTuple):
    """The keys beside the key of a lock."""

    fence: bytes
    waiters: bytes
    signal: bytes


class State:
    """The state of a lock's holder: with ``thread_local=False``, one for all threads."""

    token: bytes | None = None
    released: bytes | None = None  # the token whose release failed
    acquired: tuple[bytes, int] | None = None  # the last token that acquired it, with its fence
    ends_by: float = 0.0  # when that lease has surely ended
    renewal: tuple[bytes, Any] | None = None
    waiter_ttl: int = 0
    refusal: tuple[int, int] = UNKNOWN


class PerThread(State, threading.local):
    """The state of each thread."""


class Flows:
    """The flows and scripts that replace those of redis-py, for both classes."""

    LUA_ACQUIRE_SCRIPT = scripts.load("redis_kit.locks", "compat_acquire").source
    LUA_RELEASE_SCRIPT = scripts.load("redis_kit.locks", "compat_release").source
    LUA_EXTEND_SCRIPT = scripts.load("redis_kit.locks", "compat_extend").source
    LUA_REACQUIRE_SCRIPT = scripts.load("redis_kit.locks", "compat_reacquire").source
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
        self._named_keys: tuple[Any, tuple[bytes, SideKeys]] | None = None

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

    def _acquire_flow(self, given: Any, sleep: float, wait: float) -> Flow[bool]:
        """Request it until it is acquired or the time is over. Only the first waiter of a process sends requests.

        Once it was refused it goes on after a lost connection; the request whose reply was lost is undone.
        """
        deadline = monotonic() + wait
        token = token_hex(16).encode() if given is None else self._encoded(given)
        pool = getattr(self.redis, "connection_pool", self.redis)
        turn = Turn(f"redis-py {id(pool):x} {self._keys()[0]!r}", token_hex(8), until=deadline)
        has_waited, failures = False, 0
        try:
            in_turn = wait > 0 and (yield turn)
            while True:
                waits = in_turn and monotonic() < deadline
                self.local.waiter_ttl, self.local.refusal = WAITER_TTL if waits else 0, UNKNOWN
                try:
                    acquired = yield Request(token)
                except PASSING as error:
                    if not (waits and has_waited) or isinstance(error, REFUSED):
                        raise
                    yield pause(deadline, failures)
                    failures += 1
                    continue
                if acquired:
                    self.local.token = token
                    return True
                if not waits:
                    return False
                has_waited, failures = True, 0
                remaining = deadline - monotonic()
                yield Wait(self._keys()[1].signal, self.local.refusal, sleep=sleep, remaining=remaining)
        finally:
            turn.end()

    def _do_acquire_flow(self, token: Any) -> Flow[bool]:
        token, call, ttl_ms = self._encoded(token), token_hex(8), self._ttl_ms()
        name, side = self._keys()
        args = [token, call, ttl_ms, self.local.waiter_ttl]
        try:
            reply = yield Run(self.lua_acquire, [name, side.fence, side.waiters], args)
        except ResponseError:
            raise
        except BaseException:  # the server may have granted it, or may still grant it
            step = self._release_step(token, acquired_by=call)
            self._release_later(step, monotonic() + GIVE_UP_AFTER, acquired=False)
            raise
        if not isinstance(reply, int):
            self.local.refusal = tuple(reply)
            return False
        self.local.acquired, self.local.ends_by = (token, reply), monotonic() + ttl_ms / 1000
        if not self.timeout:
            try:
                self._renew(token)
            except CannotRenew:
                yield self._release_step(token)
                raise
        return True

    def _release_flow(self, token: Any) -> Flow[None]:
        token = self._encoded(token)
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

    def _extend_flow(self, additional_time: float, replace_ttl: bool) -> Flow[None]:
        self._check_timeout("extend")
        name, side = self._keys()
        args = [self.local.token, int(additional_time * 1000), "1" if replace_ttl else "0", token_hex(8)]
        self.local.ends_by = max(self.local.ends_by, monotonic()) + additional_time
        done = yield Run(self.lua_extend, [name, side.fence], args)
        if done == -1:
            raise LockError("Cannot extend a lock so that it ends at once; release it instead.", lock_name=self.name)
        if not done:
            raise LockNotOwnedError("Cannot extend a lock that's no longer owned", lock_name=self.name)

    def _reacquire_flow(self) -> Flow[None]:
        self._check_timeout("reacquire")
        name, side = self._keys()
        if not (yield Run(self.lua_reacquire, [name, side.fence], [self.local.token, self._ttl_ms()])):
            raise LockNotOwnedError("Cannot reacquire a lock that's no longer owned", lock_name=self.name)

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
        name, side = self._keys()
        return Run(self.lua_release, [name, *side], [token, token_hex(8), acquired_by, fence])

    def _renew(self, token: bytes) -> None:
        name, side = self._keys()
        step = Run(self.lua_reacquire, [name, side.fence], [token, int(DEFAULT_TIMEOUT * 1000)])
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

    def _wait_seconds(self, blocking: bool | None, blocking_timeout: float | None) -> float:
        if not (self.blocking if blocking is None else blocking):
            return 0.0
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        return float("inf") if wait is None else wait

    def _keys(self) -> tuple[bytes, SideKeys]:
        if self._named_keys is None or self._named_keys[0] is not self.name:
            name = self._encoded(self.name)
            self._named_keys = self.name, (name, side_keys(name))
        return self._named_keys[1]

    def _encoded(self, value: Any) -> bytes:
        return value if type(value) is bytes else bytes(self.redis.get_encoder().encode(value))


@lru_cache(maxsize=4096)
def side_keys(name: bytes) -> SideKeys:
    """Return the keys that go with a name. Two names never share one, not even ``a`` and ``{a}``."""
    return SideKeys(*(_beside(name, part) for part in (b"fence", b"waiters", b"signal")))


def _beside(name: bytes, part: bytes) -> bytes:
    start = name.find(b"{")
    tagged = start >= 0 and name.find(b"}", start) > start + 1
    if tagged:
        return b"%s::lock:%s" % (name, part)
    if name and b"}" not in name:
        return b"{%s}:lock:%s" % (name, part)
    # The whole name decides its slot, but it can't stand in braces.
    return b"{%s}:lock:%s:%s" % (_tag(crc_hqx(name, 0) % SLOTS), part, name)


@lru_cache(maxsize=SLOTS)
def _tag(slot: int) -> bytes:
    return next(tag for tag in (b"%x" % number for number in count()) if crc_hqx(tag, 0) % SLOTS == slot)


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
        return flow.run(self._acquire_flow(token, pause, self._wait_seconds(blocking, blocking_timeout)), self)

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
        wait = self._wait_seconds(blocking, blocking_timeout)
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
