"""The base of locks and semaphores: how a lease is acquired, extended and released, by methods and by blocks."""

import contextlib
import math
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import monotonic
from types import FrameType
from typing import Any, ClassVar, Generic, Never, NoReturn, cast
from weakref import ref

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import shortened, unexpected
from redis_kit.locks import arguments
from redis_kit.locks.acquiring import reentrancy, wait
from redis_kit.locks.acquiring.wait import Attempt, Refusal
from redis_kit.locks.arguments import Release, Seconds
from redis_kit.locks.errors import CannotRenew, LockLost, LockNotAcquired, NotHeld
from redis_kit.locks.keys import LockKeys, tag_of
from redis_kit.locks.leases.lease import (
    ExtendMode,
    Lease,
    LeaseSource,
    LeaseT,
    OwnedLeases,
    check_live,
    current_owner,
    extension,
    mark_ended,
    note_extension,
    owned_by_name,
    safe_deadline,
)
from redis_kit.locks.renewal import pending_releases, renewer
from redis_kit.locks.settings import LockSettings

Block = tuple[Any, "ref[Any]", FrameType]  # what it holds, its owner, and the frame of its statement


class BlockContext(Generic[LeaseT]):
    """A lock object, which threads and tasks may share. It states at creation for how long its callers wait."""

    lease_type: ClassVar[type[Any]]

    def __init__(self, blocking: Any, blocking_timeout: Any) -> None:
        self.blocking = arguments.flag("blocking", blocking)
        self.blocking_timeout = arguments.blocking_seconds(blocking_timeout)
        self._blocks: list[Block] = []

    def acquire(
        self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None, **unknown: Never
    ) -> LeaseT | None:
        """Acquire a lease, and wait for it as stated here or at creation; None if it is still held by others then.

        0 to 31,536,000 seconds; None is the value stated at creation, as in redis-py. One round trip if it is free; a
        waiter sends one command per second. Raises AlreadyHeld if a caller would wait for itself, RedisUnavailable if
        the server is unavailable; its ``indeterminate`` means that the lease may be held until the server answers.
        """
        result = self._acquire(self.wait_seconds(blocking, blocking_timeout, unknown))
        return result if isinstance(result, self.lease_type) else None

    async def aacquire(
        self, blocking: bool | None = None, *, blocking_timeout: Seconds | None = None, **unknown: Never
    ) -> LeaseT | None:
        """See acquire()."""
        result = await self._aacquire(self.wait_seconds(blocking, blocking_timeout, unknown))
        return result if isinstance(result, self.lease_type) else None

    def acquire_or_raise(self) -> LeaseT:
        """Acquire a lease as ``with`` does, or raise LockNotAcquired."""
        return self.lease_or_raise(self._acquire(self.wait_seconds()))

    async def aacquire_or_raise(self) -> LeaseT:
        """See acquire_or_raise()."""
        return self.lease_or_raise(await self._aacquire(self.wait_seconds()))

    def lease_or_raise(self, result: Any) -> LeaseT:
        """Return what was acquired. Raises LockNotAcquired if it was refused."""
        raise NotImplementedError

    def acquire_flow(self, seconds: float) -> Flow[Any]:
        """Acquire a lease, and wait for it for some seconds. Return the lease, or the server's refusal."""
        raise NotImplementedError

    def sources(self) -> Sequence[LeaseSource]:
        """Return the locks and semaphores that are acquired, all of one connection."""
        raise NotImplementedError

    def _acquire(self, seconds: float) -> Any:
        start, sources = monotonic(), self.sources()
        try:
            steps = pending_releases.sent_first(sources, self.acquire_flow(seconds))
            return sources[0].run_flow(steps, if_closed=None)
        except BaseException:
            _abandon_since(start, sources)
            raise

    async def _aacquire(self, seconds: float) -> Any:
        start, sources = monotonic(), self.sources()
        try:
            steps = pending_releases.sent_first(sources, self.acquire_flow(seconds))
            return await sources[0].arun_flow(steps, if_closed=None)
        except BaseException:
            _abandon_since(start, sources)
            raise

    def wait_seconds(
        self, blocking: Any = None, blocking_timeout: Any = None, unknown: Mapping[str, Any] | None = None
    ) -> float:
        """Return for how many seconds a caller waits: 0 if it does not, infinity for ever. None means as at creation.

        Raises TypeError for arguments that acquire() does not have.
        """
        if unknown:
            raise unexpected("acquire", self.acquire, unknown, arguments.HINTS_OF_ACQUIRE)
        if not (self.blocking if blocking is None else arguments.flag("blocking", blocking)):
            return 0.0
        wait = self.blocking_timeout if blocking_timeout is None else arguments.blocking_seconds(blocking_timeout)
        return math.inf if wait is None else wait

    def __enter__(self) -> LeaseT:
        lease = self.acquire_or_raise()
        self._blocks.append((lease, ref(current_owner()), sys._getframe(1)))
        return lease

    def __exit__(self, *error: Any) -> None:
        self._leave(sys._getframe(1)).__exit__(*error)

    def __aenter__(self) -> Coroutine[Any, Any, LeaseT]:
        return self._aenter(sys._getframe(1))  # called in the block's frame, and awaited later

    def __aexit__(self, *error: Any) -> Coroutine[Any, Any, None]:
        return self._aexit(sys._getframe(1), error)

    async def _aenter(self, frame: FrameType) -> LeaseT:
        lease = await self.aacquire_or_raise()
        self._blocks.append((lease, ref(current_owner()), frame))
        return await lease.__aenter__()

    async def _aexit(self, frame: FrameType, error: Any) -> None:
        await self._leave(frame).__aexit__(*error)

    def _leave(self, frame: FrameType) -> LeaseT:
        """Return the lease of the block that is left.

        A ``with`` statement enters and leaves in one frame, whichever thread or task runs it. An ExitStack does not: it
        leaves the last block of the same owner or, if another thread or task entered it, the last one of all.
        """
        while blocks := self._blocks[::-1]:
            block = next((block for block in blocks if block[2] is frame), None) or _last(blocks)
            try:
                self._blocks.remove(block)
            except ValueError:  # another thread has left it
                continue
            lease: LeaseT = block[0]
            return lease
        raise NotHeld(f"No block of {self!r} was entered.")


def _abandon_since(start: float, sources: Sequence[LeaseSource]) -> None:
    """Abandon leases that were acquired since a moment, but never reached their caller: they must not be renewed."""
    for source in sources:
        lease = source.owned_leases.latest()
        if lease and lease.acquired_at >= start and not lease.over:
            source.abandon(lease)


def _last(blocks: list[Block]) -> Block:
    owner = current_owner()
    own = next((block for block in blocks if block[1]() is owner), None)
    return own or next((block for block in blocks if block[0].held), blocks[0])


class BaseLock(BlockContext[Lease], Primitive):
    """Base of what is held by lease. Names are spread over 16 buckets, each with an index of what is held."""

    component, settings, argument_hints, lease_type = "locks", LockSettings, arguments.HINTS, Lease
    kind: ClassVar[str]
    exclusive = False  # a second lease of the same caller would have to wait for the first
    fair = False  # each waiter has its own ticket, even if others of its process wait too

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
        **unknown: Never,
    ) -> None:
        Primitive.__init__(self, name, using=using, unknown=unknown)
        BlockContext.__init__(self, blocking, blocking_timeout)
        self.timeout = None if timeout is None else arguments.seconds("timeout", timeout, arguments.TIMEOUT)
        if release not in ("on_exit", "on_commit"):
            raise InvalidValue(f"release must be 'on_exit' or 'on_commit', not {shortened(release)}.")
        self.on_commit, self.database = release == "on_commit", database
        self.renew = arguments.flag("renew", renew) or self.on_commit
        if max_hold is not None and not self.renew:
            hint = "Without renewal, timeout is the limit."
            raise InvalidValue(f"max_hold limits renewals, so it needs renew=True. {hint}")
        self.max_hold = None if max_hold is None else arguments.seconds("max_hold", max_hold, arguments.MAX_HOLD)
        if on_lost is not None and not callable(on_lost):
            raise InvalidValue(f"on_lost must be a callable that takes the lease, not {shortened(on_lost)}.")
        self.on_lost = on_lost
        self.reentrant = arguments.flag("reentrant", reentrant)
        self.member = f"{self.kind}:{self.encoded}"
        self.owned_leases: OwnedLeases[Lease] = owned_by_name((using, self.member)) if self.reentrant else OwnedLeases()
        self._tag = tag_of(self.encoded)
        self._keys: tuple[str, LockKeys | None] = "", None  # a prefix, and the keys with it
        self._watched = self.renew or self.on_lost is not None

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"A {type(self).__name__} can't leave its process; pass its name instead.")

    def tag(self) -> str:
        """Return the tag of its bucket."""
        return self._tag

    def keys(self) -> LockKeys:
        """Return the keys that its bucket shares, and its own."""
        prefix, (known, keys) = conf.section(KitSettings).PREFIX, self._keys
        if keys is None or known != prefix:
            keys = LockKeys.of(self.key(""), self.member)
            self._keys = prefix, keys
        return keys

    @property
    def local_key(self) -> str:
        """Return the key under which callers of this process wait for it."""
        return f"{self.using} {self.key(self.member)}"

    @property
    def lease_timeout(self) -> float:
        """Return the timeout of a lease, in seconds."""
        return conf.section(LockSettings).TIMEOUT if self.timeout is None else self.timeout

    @operation
    def release(self, lease: Lease | None = None) -> Flow[None]:
        """Release the given lease, or the one that this thread or task acquired.

        Wakes one waiter. Raises NotHeld if there is no lease, LockLost if it ended before. After any other error the
        lease has ended for its holder too, and is released as soon as the server answers. One round trip.
        """
        return self.release_flow(lease)

    @operation
    def extend(self, additional_time: Seconds, *, replace_ttl: bool = False) -> Flow[bool]:
        """Extend the caller's lease. See Lease.extend()."""
        lease = self.own_lease()
        return self.extend_flow(lease, *extension(lease, additional_time, replace_ttl))

    @operation
    def reacquire(self) -> Flow[bool]:
        """Let the caller's lease start again with its full timeout. Raises LockLost if it has ended. One round trip."""
        lease = self.own_lease()
        return self.extend_flow(lease, *extension(lease))

    arelease = twin(release)
    aextend = twin(extend)
    areacquire = twin(reacquire)

    def sources(self) -> "tuple[BaseLock]":
        """See BlockContext."""
        return (self,)

    def acquire_flow(self, seconds: float) -> Flow[Lease | Refusal]:
        """Acquire a lease, and wait for it for some seconds. Return the lease, or the server's refusal."""
        if self.exclusive or self.on_commit:
            own = reentrancy.reusable_lease(self, seconds)
            if own and (yield from reentrancy.reenter(self, own)):
                return own
        attempt = Attempt(min(self.lease_timeout, self.max_hold or self.lease_timeout), wait=seconds)
        try:
            if attempt.blocking:
                reply = yield from wait.acquire_blocking(self, attempt)
            else:
                reply = yield attempt.request(self)
            if not isinstance(reply, int):
                return cast(Refusal, reply)
            deadline = safe_deadline(attempt.sent_at, attempt.timeout)
            self.owned_leases.add(lease := Lease(self, token=attempt.token, fence=reply, deadline=deadline))
            lease.late_until = attempt.late_until
        except BaseException as error:
            if attempt.may_hold(error):
                pending_releases.add(self, attempt.token)
            raise
        if self._watched:
            yield from self._watch(lease)
        return lease

    def _watch(self, lease: Lease) -> Flow[None]:
        try:
            renewer.start(lease)
        except CannotRenew:
            with contextlib.suppress(RedisKitError):
                yield from self.end_flow(lease)
            raise

    def release_flow(self, lease: Lease | None) -> Flow[None]:
        """Release a lease, unless its holder acquired it more than once or a transaction needs it."""
        lease = self._checked(lease)
        if not reentrancy.is_still_needed(self, lease):
            yield from self.end_flow(lease)

    def end_flow(self, lease: Lease) -> Flow[None]:
        """Release a lease, however often its holder acquired it."""
        try:
            self._end(lease)
            was_held = yield self.release_step(lease.token)
        except BaseException as error:
            self.abandon(lease)
            pending_releases.add_retry_note(error)
            raise
        if late_until := lease.late_until:
            pending_releases.add(self, lease.token, after=late_until - monotonic())
        if not was_held:
            mark_ended(lease, lost=True)
            raise LockLost(f"{lease!r} ended before it was released; another may have held it since.", self.name)

    def abandon(self, lease: Lease) -> None:
        """End a lease and let the background release it. No round trip."""
        self._end(lease)
        after = lease.late_until - monotonic()
        pending_releases.add(self, lease.token, ends_by=lease.ends_by, after=after)

    def _end(self, lease: Lease) -> None:
        renewer.stop(lease)
        mark_ended(lease)
        self.owned_leases.remove(lease)

    def extend_flow(self, lease: Lease, additional_time: float, replace_ttl: bool) -> Flow[bool]:
        """Extend a lease by some seconds, or replace its TTL by them."""
        self._checked(lease)
        sent_at = monotonic()
        note_extension(lease, sent_at if replace_ttl else lease.ends_by, additional_time)
        if replace_ttl:  # a shorter lease may begin although its reply gets lost
            lease.deadline = min(lease.deadline, safe_deadline(sent_at, additional_time))
        mode = ExtendMode.REPLACE if replace_ttl else ExtendMode.ADD
        try:
            ttl_ms = yield self.extend_step(lease.token, round(additional_time * 1000), mode)
        except BaseException as error:
            renewer.reschedule(lease, error=error)
            raise
        if not ttl_ms:
            renewer.lose(lease, "the server did not know it any more when its holder extended it.")
            raise LockLost(f"{lease!r} has ended; it can't be extended, only acquired again.", self.name)
        check_live(lease)  # it may have been lost, or released, before the reply arrived
        lease.deadline = safe_deadline(sent_at, ttl_ms / 1000)
        renewer.reschedule(lease)
        return True

    def acquire_step(self, attempt: Attempt) -> ScriptCall:
        """Return the step that acquires a lease: its fence, or a refusal that begins with the ms to wait at most."""
        raise NotImplementedError

    def release_step(self, token: str, *, unsure: bool = False) -> ScriptCall:
        """Return the step that ends a lease or gives up a ticket. See LeaseSource."""
        raise NotImplementedError

    def extend_step(self, token: str, ttl_ms: int, mode: ExtendMode) -> ScriptCall:
        """Return the step that extends a lease: its new TTL in ms, or 0 if the server does not know the token."""
        raise NotImplementedError

    def refusal_error(self, refusal: Any) -> LockNotAcquired:
        """Return the error for a refusal by the server or, if it is empty, by other callers of this process."""
        if refusal:
            return self._refusal_error(refusal)
        text = f"{self!r} was not acquired in time: other callers of this process came first."
        return LockNotAcquired(text, self.name)

    def _refusal_error(self, refusal: Refusal) -> LockNotAcquired:
        """Return the error that names the holder."""
        raise NotImplementedError

    def wake_up_list(self, refusal: Refusal, attempt: Attempt) -> str:
        """Return the list on which to wait after a refusal."""
        return attempt.wake_up_list or self.keys().signal

    def lease_or_raise(self, result: Lease | Refusal | None) -> Lease:
        """See BlockContext."""
        if result is None:
            raise LockNotAcquired(f"{self!r} counts as held while Redis is unavailable.", self.name)
        if not isinstance(result, Lease):
            raise self.refusal_error(result)
        return result

    def own_lease(self) -> Lease:
        """Return the lease of this thread or task. Raises NotHeld."""
        if lease := self.owned_leases.latest():
            return lease
        where = "This thread or task holds no lease of"
        raise NotHeld(f"{where} {self!r}. Elsewhere, release the lease that acquire() returned.", self.name)

    def _checked(self, lease: Lease | None) -> Lease:
        lease = lease or self.own_lease()
        if not isinstance(lease, Lease) or lease.source.member != self.member:
            raise NotHeld(f"{lease!r} is not a lease of {self!r}.", self.name)
        check_live(lease)
        return lease
