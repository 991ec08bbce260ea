"""A lock: one holder at a time, in every process, for a limited time."""

from redis_kit.core import scripts
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import with_own_init
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Call
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import TIMEOUT
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.kinds.base import BaseLock
from redis_kit.locks.leases.holder import RESERVED, Holder, describe_caller
from redis_kit.locks.leases.lease import ExtendMode

ACQUIRE = scripts.load("redis_kit.locks", "acquire")
RELEASE = scripts.load("redis_kit.locks", "release")
EXTEND = scripts.load("redis_kit.locks", "extend")


@with_own_init
class Lock(BaseLock):
    """One holder at a time, in every process, for ``timeout`` seconds (0.1 s to 24 h) unless it is extended.

    ``with`` and ``async with`` wait for it, for at most ``blocking_timeout`` seconds, and raise LockNotAcquired. The
    arguments and methods are those of redis-py's Lock. A random token per attempt tells who may release (antirez, "Is
    Redlock safe?"); the fence tells who came later (Kleppmann, "How to do distributed locking").
    """

    kind = "lock"
    exclusive = True

    @operation(if_closed=True)
    def locked(self) -> Flow[bool]:
        """Tell whether anyone holds it. One round trip."""
        start = yield Call("GETRANGE", self.keys().holder, 0, 0)
        return bool(start) and start != RESERVED

    @operation(if_closed=False)
    def owned(self) -> Flow[bool]:
        """Tell whether this thread or task holds it, as the server sees it. One round trip."""
        if (lease := self.owned_leases.latest()) is None:
            return False
        start = yield Call("GETRANGE", self.keys().holder, 0, len(lease.token) - 1)
        return bool(start == lease.token.encode())

    alocked = twin(locked)
    aowned = twin(owned)

    def acquire_step(self, attempt: Attempt) -> ScriptCall:
        """See BaseLock."""
        keys = self.keys()
        caller = attempt.token.encode() + b" " + describe_caller(ahead=6)
        args: list[Argument] = [caller, attempt.ttl_ms, self.member, attempt.waiter_ttl]
        own = [keys.holder, keys.live, keys.waiters, keys.signal]
        if not attempt.waiting_since:
            return ACQUIRE(own, args)
        return ACQUIRE([*own, keys.waited, keys.waits], [*args, attempt.waiting_since, attempt.woken])

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall:
        """See BaseLock."""
        keys = self.keys()
        args: list[Argument] = [token, self.member, 1] if unsure else [token, self.member]
        return RELEASE([keys.holder, keys.live, keys.waiters, keys.signal], args)

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """See BaseLock."""
        keys = self.keys()
        return EXTEND([keys.holder, keys.live], [token, ttl_ms, mode, int(TIMEOUT[1] * 1000), self.member])

    def _refusal_error(self, refusal: Refusal) -> LockNotAcquired:
        """See BaseLock."""
        ends_in, held_for = refusal[0] / 1000, refusal[1] / 1000
        if not refusal[2]:
            return LockNotAcquired(f"{self!r} was just released, and is reserved for a caller that waited.", self.name)
        holder = Holder.parse(refusal[2])
        text = f"{self!r} is held by {holder.text} for {held_for:.1f} s; that lease ends in {ends_in:.1f} s."
        return LockNotAcquired(text, self.name, holder.process_text)
