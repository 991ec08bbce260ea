"""A lock: one holder at a time, in every process, for a limited time."""

from redis_kit.core import scripts
from redis_kit.core.flow import Flow
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Call
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import LEASE
from redis_kit.locks.errors import LockNotAcquired
from redis_kit.locks.holders.holder import RESERVED, Holder, who
from redis_kit.locks.kinds.base import Leasing
from redis_kit.locks.leases.lease import Lease

ACQUIRE = scripts.load("redis_kit.locks", "acquire")
RELEASE = scripts.load("redis_kit.locks", "release")
EXTEND = scripts.load("redis_kit.locks", "extend")


class Lock(Leasing):
    """One holder at a time, in every process, for ``timeout`` seconds (0.1 s to 24 h) unless it is extended.

    ``with`` and ``async with`` wait for it, for ``blocking_timeout`` seconds at most, and raise LockNotAcquired. The
    arguments and methods are those of redis-py's Lock. A random token per attempt tells who may release (antirez, "Is
    Redlock safe?"); the fence tells who came later (Kleppmann, "How to do distributed locking").
    """

    kind = "lock"
    parts = ("holder", "waiters", "signal")
    exclusive = True

    def locked(self) -> bool:
        """Tell whether anyone holds it. One round trip."""
        return bool(self._run(self._is_locked(), if_closed=True))

    async def alocked(self) -> bool:
        """See locked()."""
        return bool(await self._arun(self._is_locked(), if_closed=True))

    def owned(self) -> bool:
        """Tell whether this thread or task holds it, as the server sees it. One round trip."""
        return self._run(self._is_owned(self._taken.latest()), if_closed=False)

    async def aowned(self) -> bool:
        """See owned()."""
        return await self._arun(self._is_owned(self._taken.latest()), if_closed=False)

    def _is_locked(self) -> Flow[bool]:
        start = yield Call("GETRANGE", self._keys()[4], 0, 0)
        return bool(start) and start != RESERVED

    def _is_owned(self, lease: Lease | None) -> Flow[bool]:
        if lease is None:
            return False
        start = yield Call("GETRANGE", self._keys()[4], 0, len(lease.token) - 1)
        return bool(start == lease.token.encode())

    def _take(self, attempt: Attempt) -> ScriptCall:
        fence, live, waited, waits, holder, waiters, signal = self._keys()
        told: list[Argument] = [
            attempt.token,
            attempt.ttl,
            self.member,
            who(ahead=6),
            attempt.waiting,
            attempt.woken,
            attempt.since,
        ]
        contention = (waited, waits) if attempt.since else ()
        return ACQUIRE([holder, fence, live, waiters, signal, *contention], told)

    def _give_back(self, token: str) -> ScriptCall:
        _, live, _, _, holder, waiters, signal = self._keys()
        return RELEASE([holder, live, waiters, signal], [token, self.member])

    def _prolong(self, token: str, more: int, how: int) -> ScriptCall:
        _, live, _, _, holder, *_ = self._keys()
        return EXTEND([holder, live], [token, more, how, int(LEASE[1] * 1000), self.member])

    def _refused(self, refusal: Refusal) -> LockNotAcquired:
        left, since = refusal[0] / 1000, refusal[1] / 1000
        if not refusal[2]:
            return LockNotAcquired(f"{self!r} was just released, for another one who waited for it.", self.name)
        holder = Holder.parse(refusal[2])
        text = f"{self!r} is held by {holder.text} for {since:.1f} s; that lease ends in {left:.1f} s."
        return LockNotAcquired(text, self.name, holder.place)
