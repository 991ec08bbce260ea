"""What locks and semaphores share: how a lease is asked for, waited for, made longer and given back."""

import contextlib
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, Literal, NoReturn
from zlib import crc32

from redis_kit.core import conf
from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.locks.acquiring.acquire import asking
from redis_kit.locks.acquiring.reentrancy import still_needed, taken_again
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import (
    LEASE,
    Seconds,
    blocking_time,
    callback,
    flag,
    longest,
    patience,
    seconds,
    until_commit,
)
from redis_kit.locks.errors import CannotRenew, LockLost, LockNotAcquired, NotHeld
from redis_kit.locks.leases.lease import Lease, safe_deadline
from redis_kit.locks.leases.ownership import Taken, shared
from redis_kit.locks.renewal import loss, pending_releases, renewer
from redis_kit.locks.settings import LockSettings

BUCKETS = 16
BEHIND_OTHERS = "stayed taken while others of this process waited for it too."
SHARED = ("fence", "live", "waited", "waits")  # the keys that all names of a bucket share

Release = Literal["on_exit", "on_commit"]


class Leasing(Primitive):
    """Base of what is held by lease. Names are spread over 16 slots, each with an index of what is held."""

    component, settings = "locks", LockSettings
    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]  # of its own keys; the last one is the list on which waiters block
    exclusive: ClassVar[bool] = False  # a second lease of the same caller would have to wait for the first
    fair = False  # each waiter has a ticket of its own, whatever the process that it waits in

    def __init__(
        self,
        name: str,
        *,
        timeout: Seconds | None = None,
        blocking: bool = True,
        blocking_timeout: Seconds | None = None,
        renew: bool = False,
        max_hold: Seconds | None = None,
        on_lost: Callable[[Lease], Any] | None = None,
        release: Release = "on_exit",
        database: str = "default",
        reentrant: bool = False,
        using: str = "default",
    ) -> None:
        super().__init__(name, using=using)
        self.timeout = None if timeout is None else seconds("timeout", timeout, LEASE)
        self.blocking = flag("blocking", blocking)
        self.blocking_timeout = blocking_time(blocking_timeout)
        self.on_commit, self.database = until_commit(release), database
        self.renew = flag("renew", renew) or self.on_commit
        self.max_hold = longest(max_hold, self.renew)
        self.on_lost = callback(on_lost)
        self.reentrant = flag("reentrant", reentrant)
        self.member = f"{self.kind}:{self.encoded}"
        self._tag = f"locks:{crc32(self.encoded.encode()) % BUCKETS:x}"
        self._named: tuple[str, tuple[str, ...]] = ("", ())
        self._watched = self.renew or self.on_lost is not None
        self._taken = shared((using, self.member)) if self.reentrant else Taken()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"A {type(self).__name__} can't leave its process; pass its name instead.")

    def tag(self) -> str:
        """Return the tag of its bucket."""
        return self._tag

    @property
    def lasting(self) -> float:
        """Return the length of a lease, in seconds."""
        return conf.section(LockSettings).TIMEOUT if self.timeout is None else self.timeout

    def acquire(self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None) -> Lease | None:
        """Take a lease, waiting as long as told here or at creation; None when it stays taken.

        0 to 31,536,000 seconds; None is what was told at creation, as in redis-py. One round trip when free; a waiter
        sends one command a second. Raises AlreadyHeld where a caller would wait for itself, RedisUnavailable where the
        server is away: ``indeterminate`` then means that the lease may be taken, until the server is back.
        """
        found = self._asked(patience(self, blocking, blocking_timeout))
        return found if isinstance(found, Lease) else None

    async def aacquire(self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None) -> Lease | None:
        """See acquire()."""
        found = await self._aasked(patience(self, blocking, blocking_timeout))
        return found if isinstance(found, Lease) else None

    def release(self, lease: Lease | None = None) -> None:
        """Give back a lease: the one given, else the one that this thread or task took.

        Wakes one waiter. Raises NotHeld where there is none, LockLost where it ended before. After any other error the
        lease is over all the same, and given back as soon as the server answers. One round trip.
        """
        self._run(self._release(lease))

    async def arelease(self, lease: Lease | None = None) -> None:
        """See release()."""
        await self._arun(self._release(lease))

    def extend(self, additional_time: Seconds, *, replace_ttl: bool = False) -> bool:
        """Make the caller's lease longer. See Lease.extend()."""
        return self._own().extend(additional_time, replace_ttl=replace_ttl)

    async def aextend(self, additional_time: Seconds, *, replace_ttl: bool = False) -> bool:
        """See extend()."""
        return await self._own().aextend(additional_time, replace_ttl=replace_ttl)

    def reacquire(self) -> bool:
        """Let the caller's lease start anew with its full length. Raises LockLost when it has ended. One round trip."""
        return self._own().extend()

    async def areacquire(self) -> bool:
        """See reacquire()."""
        return await self._own().aextend()

    def __enter__(self) -> Lease:
        return self._entered(self._asked(patience(self)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._own().__exit__(kind, error, at)

    async def __aenter__(self) -> Lease:
        lease = self._entered(await self._aasked(patience(self)))
        loss.entered(lease)
        return lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._own().__aexit__(kind, error, at)

    def _asked(self, wait: float) -> Lease | Refusal | None:
        began = monotonic()
        try:
            return self._run(pending_releases.first((self,), self._acquire(wait)), if_closed=None)
        except BaseException:
            self._abandon_since(began)
            raise

    async def _aasked(self, wait: float) -> Lease | Refusal | None:
        began = monotonic()
        try:
            return await self._arun(pending_releases.first((self,), self._acquire(wait)), if_closed=None)
        except BaseException:
            self._abandon_since(began)
            raise

    def _abandon_since(self, began: float) -> None:
        # It struck between the server's answer and the caller: a lease that nobody knows of must not be renewed.
        lease = self._taken.latest()
        if lease and lease.taken_at >= began and not lease.over:
            self._abandon(lease)

    def _acquire(self, patience: float) -> Flow[Lease | Refusal]:
        if (self.exclusive or self.on_commit) and (mine := taken_again(self, patience)):
            return mine
        attempt = Attempt(min(self.lasting, self.max_hold or self.lasting), patience=patience)
        try:
            reply = yield from asking(self, attempt)
            if not isinstance(reply, int):
                refusal: Refusal = reply
                return refusal
            ends = safe_deadline(attempt.asked, attempt.lasting)
            self._taken.add(lease := Lease(self, token=attempt.token, fence=reply, deadline=ends))
        except BaseException as error:
            if attempt.may_hold(error):
                pending_releases.add(self, attempt.token)
            raise
        if self._watched:
            yield from self._watch(lease)
        return lease

    def _watch(self, lease: Lease) -> Flow[None]:
        try:
            renewer.keep(lease)
        except CannotRenew:
            with contextlib.suppress(RedisKitError):
                yield from self._let_go(lease)
            raise

    def _release(self, lease: Lease | None) -> Flow[None]:
        lease = self._checked(lease)
        if not ((lease.depth or self.on_commit) and still_needed(self, lease)):
            yield from self._let_go(lease)

    def _let_go(self, lease: Lease) -> Flow[None]:
        try:
            self._end(lease)
            given_back = yield self._give_back(lease.token)
        except BaseException as error:
            self._abandon(lease)
            pending_releases.note(error)
            raise
        if not given_back:
            lease.end(lost=True)
            raise LockLost(f"{lease!r} ended before it was released; another may have held it since.", self.name)

    def _end(self, lease: Lease) -> None:
        renewer.let_go(lease)
        lease.end()
        self._taken.drop(lease)

    def _abandon(self, lease: Lease) -> None:
        """End a lease and let the background give it back. No round trip."""
        self._end(lease)
        pending_releases.add(self, lease.token, ends_by=lease.ends_by)

    def _extend(self, lease: Lease, more: float, replace_ttl: bool) -> Flow[bool]:
        self._checked(lease)
        asked = monotonic()
        lease.may_last(asked if replace_ttl else lease.ends_by, more)
        if replace_ttl:  # a shorter lease may begin although its reply gets lost
            lease.deadline = min(lease.deadline, safe_deadline(asked, more))
        try:
            lasting = yield self._prolong(lease.token, round(more * 1000), int(replace_ttl))
        except BaseException as error:
            renewer.changed(lease, began=asked if replace_ttl else None, error=error)
            raise
        if not lasting:
            renewer.lose(lease, "the server did not know it any more when its holder made it longer.")
            raise LockLost(f"{lease!r} has ended; it can't be made longer, only taken anew.", self.name)
        lease.check()  # it may have been lost, or released, while the reply was on its way
        lease.deadline = safe_deadline(asked, lasting / 1000)
        renewer.changed(lease, began=asked)
        return True

    def _take(self, attempt: Attempt) -> ScriptCall:
        """Return the step that takes a lease: its fence, or a refusal that begins with the ms to wait at most."""
        raise NotImplementedError

    def _give_back(self, token: str) -> ScriptCall:
        """Return the step that ends a lease, or gives a ticket up: 1, or 0 when there is none of this token."""
        raise NotImplementedError

    def _prolong(self, token: str, more: int, how: int) -> ScriptCall:
        """Return the step that makes a lease longer: its new length in ms, or 0 when there is none of this token.

        ``how`` is 0 to add ``more`` ms, 1 to let it last so long from now on, 2 to let it last at least so long.
        """
        raise NotImplementedError

    def _refused(self, refusal: Refusal) -> LockNotAcquired:
        """Return the error that says who holds it."""
        raise NotImplementedError

    def _signal(self, refusal: Refusal, attempt: Attempt) -> str:
        """Return the list on which to wait after a refusal."""
        return attempt.wake or self._keys()[-1]

    @property
    def place(self) -> str:
        """Return what stands for it in this process."""
        return f"{self.using} {self._keys()[len(SHARED)]}"

    def _keys(self) -> tuple[str, ...]:
        """Return the keys that its bucket shares, and then its own."""
        if self._named[0] != (prefix := conf.section(KitSettings).PREFIX):
            own = (f"{self.member}:{part}" for part in self.parts)
            self._named = prefix, tuple(self.key(part) for part in (*SHARED, *own))
        return self._named[1]

    def _entered(self, found: Lease | Refusal | None) -> Lease:
        if found is None:
            raise LockNotAcquired(f"{self!r} counts as taken while Redis is away.", self.name)
        if not isinstance(found, Lease):
            raise self._refused(found) if found else LockNotAcquired(f"{self!r} {BEHIND_OTHERS}", self.name)
        return found

    def _own(self) -> Lease:
        if lease := self._taken.latest():
            return lease
        raise NotHeld(f"This thread or task holds no lease of {self!r}.", self.name)

    def _checked(self, lease: Lease | None) -> Lease:
        lease = lease or self._own()
        if not isinstance(lease, Lease) or lease.source.member != self.member:
            raise NotHeld(f"{lease!r} is no lease of {self!r}.", self.name)
        lease.check()
        return lease
