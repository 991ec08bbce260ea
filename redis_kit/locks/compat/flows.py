"""What a lock on a client of the caller's own asks of the server, for both classes of compat."""

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from secrets import token_hex
from time import monotonic
from types import SimpleNamespace
from typing import Any, ClassVar

from redis.exceptions import LockError, LockNotOwnedError, ResponseError

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.locks.acquiring.local_queue import Turn
from redis_kit.locks.compat.background import AsyncBeat, Beat, GivingBack, Run, renewing
from redis_kit.locks.compat.keys import SideKeys, side_keys
from redis_kit.locks.compat.waiting import WAITING, Ask, Wait
from redis_kit.locks.errors import CannotRenew

LEASE = 30.0  # seconds of a lock without a timeout, renewed at a third of it
AWAY = 3600.0  # seconds without an answer after which an attempt is forgotten
STRANGER = (-1, 0)  # a refusal of which nothing is known


class State:
    """What a lock knows of its holder: one for each thread, or one for all."""

    token: bytes | None = None
    released: bytes | None = None  # the token whose release did not get through
    taken: tuple[bytes, int] | None = None  # the last token that took it, with its fence
    ends_by: float = 0.0  # when that lease has surely ended
    renewal: tuple[bytes, Any] | None = None
    waiting: int = 0
    refusal: tuple[int, int] = STRANGER


class PerThread(State, threading.local):
    """With ``thread_local=True``."""


class Shared(State, SimpleNamespace):
    """With ``thread_local=False``."""


class Flows:
    """What both classes put in the place of redis-py's own ways."""

    LUA_ACQUIRE_SCRIPT = scripts.load("redis_kit.locks", "compat_acquire").source
    LUA_RELEASE_SCRIPT = scripts.load("redis_kit.locks", "compat_release").source
    LUA_EXTEND_SCRIPT = scripts.load("redis_kit.locks", "compat_extend").source
    LUA_REACQUIRE_SCRIPT = scripts.load("redis_kit.locks", "compat_renew").source
    # Without these a class would inherit those that a lock of redis-py has registered.
    lua_acquire: Any = None
    lua_release: Any = None
    lua_extend: Any = None
    lua_reacquire: Any = None

    redis: Any
    name: Any
    timeout: Any
    local: Any
    thread_local: bool
    _beat: ClassVar[type[Beat | AsyncBeat]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.local = PerThread() if self.thread_local else Shared()
        self._named: tuple[Any, tuple[bytes, SideKeys]] | None = None

    def register_scripts(self) -> None:
        """Register the scripts of this class with its client. No round trip."""
        super().register_scripts()  # type: ignore[misc]
        if self.lua_acquire is None:
            type(self).lua_acquire = self.redis.register_script(self.LUA_ACQUIRE_SCRIPT)

    @property
    def fence(self) -> int | None:
        """Return a number greater than that of each holder before; None where this thread has not taken the lock."""
        taken: tuple[bytes, int] | None = self.local.taken
        return taken[1] if taken and taken[0] == self.local.token else None

    def _acquiring(self, given: Any, sleep: float, patience: float) -> Flow[bool]:
        """Ask until it is taken or the time is over. Of all who wait for a name in this process, one asks."""
        give_up = monotonic() + patience
        token = token_hex(16).encode() if given is None else self._encoded(given)
        turn = Turn(self._place(), token_hex(8), until=give_up)
        try:
            in_turn = patience > 0 and (yield turn)
            while True:
                waits = in_turn and monotonic() < give_up
                self.local.waiting, self.local.refusal = WAITING if waits else 0, STRANGER
                if (yield Ask(token)):
                    self.local.token = token
                    return True
                if not waits:
                    return False
                yield Wait(self._keys()[1].signal, self.local.refusal, sleep=sleep, left=give_up - monotonic())
        finally:
            turn.end()

    def _taking(self, token: Any) -> Flow[bool]:
        token, call, ttl = self._encoded(token), token_hex(8), self._ttl()
        name, side = self._keys()
        args = [token, call, ttl, self.local.waiting]
        try:
            reply = yield Run(self.lua_acquire, [name, side.fence, side.waiters], args)
        except ResponseError:
            raise
        except BaseException:  # the server may have done it, or do it yet
            self._give_back_later(self._give_back(token, taken=call), monotonic() + AWAY, taken=False)
            raise
        if not isinstance(reply, int):
            self.local.refusal = tuple(reply)
            return False
        self.local.taken, self.local.ends_by = (token, reply), monotonic() + ttl / 1000
        if not self.timeout:
            try:
                self._renew(token)
            except CannotRenew:
                yield self._give_back(token)
                raise
        return True

    def _releasing(self, token: Any) -> Flow[None]:
        token = self._encoded(token)
        if self.local.renewal and self.local.renewal[0] == token:
            self.local.renewal[1].stop()
            self.local.renewal = None
        try:
            given_back = yield self._give_back(token)
        except BaseException:
            taken = self.local.taken
            if taken and taken[0] == token:  # a token alone may be one that its caller uses again
                step = self._give_back(token, given=str(taken[1]))
                self._give_back_later(step, max(self.local.ends_by, monotonic() + self._ttl() / 1000), taken=True)
            raise
        if not (given_back or token == self.local.released):
            raise LockNotOwnedError("Cannot release a lock that's no longer owned", lock_name=self.name)

    def _extending(self, additional_time: float, replace_ttl: bool) -> Flow[None]:
        self._check_timeout("extend")
        name, side = self._keys()
        args = [self.local.token, int(additional_time * 1000), "1" if replace_ttl else "0", token_hex(8)]
        self.local.ends_by = max(self.local.ends_by, monotonic()) + additional_time
        done = yield Run(self.lua_extend, [name, side.fence], args)
        if done == -1:
            raise LockError("Cannot extend a lock so that it ends at once; release it instead.", lock_name=self.name)
        if not done:
            raise LockNotOwnedError("Cannot extend a lock that's no longer owned", lock_name=self.name)

    def _reacquiring(self) -> Flow[None]:
        self._check_timeout("reacquire")
        name, side = self._keys()
        if not (yield Run(self.lua_reacquire, [name, side.fence], [self.local.token, self._ttl()])):
            raise LockNotOwnedError("Cannot reacquire a lock that's no longer owned", lock_name=self.name)

    @contextlib.contextmanager
    def _let_go(self) -> Iterator[bytes]:
        """Give the token to release. It holds nothing from now on; one whose release failed may be released again."""
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
        if self.local.released == token:  # another thread or task may have taken the lock meanwhile
            self.local.released = None

    def _give_back(self, token: bytes, *, taken: str = "", given: str = "") -> Run:
        name, side = self._keys()
        return Run(self.lua_release, [name, *side], [token, token_hex(8), taken, given])

    def _renew(self, token: bytes) -> None:
        name, side = self._keys()
        step = Run(self.lua_reacquire, [name, side.fence], [token, int(LEASE * 1000)])
        every = LEASE / 3
        self.local.renewal = token, self._beat(partial(renewing, step, self.name, every), self.redis, after=every)

    def _give_back_later(self, step: Run, until: float, *, taken: bool) -> None:
        with contextlib.suppress(RuntimeError):  # neither thread nor event loop is left: the lease ends by itself
            self._beat(GivingBack(step, until, taken=taken), self.redis, after=0.0)

    def _check_timeout(self, verb: str) -> None:
        if not self.timeout:
            raise LockError(f"Cannot {verb} a lock with no timeout", lock_name=self.name)

    def _ttl(self) -> int:
        ms = int((self.timeout or LEASE) * 1000)
        if ms < 1:
            raise InvalidValue(f"timeout must be at least 0.001 seconds, or None, not {self.timeout!r}.")
        return ms

    def _patience(self, blocking: bool, blocking_timeout: float | None) -> float:
        if not blocking:
            return 0.0
        return float("inf") if blocking_timeout is None else blocking_timeout

    def _place(self) -> str:
        """Return what stands for it in this process."""
        return f"redis-py {id(getattr(self.redis, 'connection_pool', self.redis)):x} {self._keys()[0]!r}"

    def _keys(self) -> tuple[bytes, SideKeys]:
        if self._named is None or self._named[0] is not self.name:
            name = self._encoded(self.name)
            self._named = self.name, (name, side_keys(name))
        return self._named[1]

    def _encoded(self, value: Any) -> bytes:
        return value if type(value) is bytes else bytes(self.redis.get_encoder().encode(value))
