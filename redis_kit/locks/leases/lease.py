"""A lease: proof of holding a lock, or a slot of a semaphore."""

import logging
from os import getpid
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from redis_kit.core.errors import RedisKitError
from redis_kit.locks.arguments import LEASE, Seconds, seconds
from redis_kit.locks.errors import LockLost, NotHeld, with_notes
from redis_kit.locks.renewal import loss

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing
    from redis_kit.locks.renewal.loss import Keeper

logger = logging.getLogger("redis_kit.locks")

DRIFT = 0.01  # how much faster the server's clock may run than ours
MARGIN = 0.005  # seconds


class Lease:
    """Proof of holding a lock or a slot, for a limited time. It may be passed to other threads and tasks.

    ``token`` stands for this lease on the server and should stay secret. ``fence`` is a number that grows with every
    lease of a name, so that a database can refuse a holder which came too late. ``deadline`` is the moment of
    ``time.monotonic()`` until which the lease is surely live.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_pid",
        "deadline",
        "depth",
        "fence",
        "keeper",
        "kept",
        "may_last_until",
        "source",
        "taken_at",
        "token",
    )

    def __init__(self, source: "Leasing", *, token: str, fence: int, deadline: float) -> None:
        self.source, self.token, self.fence = source, token, fence
        self.deadline, self._pid = deadline, getpid()
        self.taken_at = monotonic()
        self.may_last_until = 0.0  # as far as it was made longer, or may have been
        self.depth = 0  # how often its holder took it again
        self.kept = False  # until the end of a transaction
        self.keeper: Keeper | None = None  # which renews it or sees to its loss
        self._end: type[NotHeld] | None = None

    def __repr__(self) -> str:
        return f"<Lease of {self.source!r}, fence {self.fence}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A lease can't leave its process; pass its name and fence instead.")

    @property
    def name(self) -> str:
        """Return the name of the lock or semaphore."""
        return self.source.name

    @property
    def held(self) -> bool:
        """Tell whether the lease is surely live, without asking the server.

        It turns False before the server lets anyone else in: the time counts from before the lease was asked for,
        less 1 % and 5 ms for clocks that drift. Always False in a forked child.
        """
        return self._end is None and monotonic() < self.deadline and getpid() == self._pid

    @property
    def lost(self) -> bool:
        """Tell whether it is known to have ended before it was released."""
        return self._end is LockLost or (self._end is None and monotonic() >= self.deadline)

    @property
    def over(self) -> bool:
        """Tell whether there is nothing left to release: released, known to be lost, or another process's."""
        return self._end is not None or getpid() != self._pid

    @property
    def ends_by(self) -> float:
        """Return the moment of ``time.monotonic()`` at which it has surely ended, whether replies were lost or not."""
        return max(self.may_last_until, latest_end(self.taken_at, self.source.lasting))

    def extend(self, additional_time: Seconds | None = None, *, replace_ttl: bool = False) -> bool:
        """Make the lease longer by some seconds, or let it end so many seconds from now with ``replace_ttl``.

        Without an argument it starts anew with its full length. 0.1 s to 24 h at once, and never more than 24 h in
        all. Raises LockLost when it has ended: it is never taken again. One round trip.
        """
        return self.source._run(self.source._extend(self, *self._change(additional_time, replace_ttl)))

    async def aextend(self, additional_time: Seconds | None = None, *, replace_ttl: bool = False) -> bool:
        """See extend()."""
        return await self.source._arun(self.source._extend(self, *self._change(additional_time, replace_ttl)))

    def release(self) -> None:
        """Give it back. Raises LockLost when it ended before, NotHeld when it was released. One round trip.

        After any other error it is over all the same, and given back as soon as the server answers.
        """
        self.source.release(self)

    async def arelease(self) -> None:
        """See release()."""
        await self.source.arelease(self)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.release()
        except RedisKitError as failure:
            self._failed(failure, error)

    async def __aenter__(self) -> "Lease":
        loss.entered(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        told_of_loss = loss.left(self, error)
        try:
            await self.arelease()
        except RedisKitError as failure:
            if told_of_loss:
                raise failure from error
            self._failed(failure, error)

    def check(self) -> None:
        """Raise NotHeld or LockLost where this process knows that the lease is over."""
        if getpid() != self._pid:
            raise NotHeld(f"{self!r} belongs to the process {self._pid}; a forked child must take its own.", self.name)
        if self._end is not None:
            raise self._end(f"{self!r} {'ended' if self._end is LockLost else 'was released'} before.", self.name)

    def end(self, *, lost: bool = False) -> None:
        """Note that it is over."""
        self.deadline, self._end = float("-inf"), LockLost if lost else NotHeld

    def may_last(self, since: float, seconds: float) -> None:
        """Note that the server is asked to let it last for so long; the reply may get lost."""
        self.may_last_until = max(self.may_last_until, latest_end(since, min(seconds, LEASE[1])))

    def _change(self, additional_time: Seconds | None, replace_ttl: bool) -> tuple[float, bool]:
        if additional_time is None:
            return self.source.lasting, True
        return seconds("additional_time", additional_time, LEASE), replace_ttl

    def _failed(self, failure: RedisKitError, error: BaseException | None) -> None:
        # What went wrong inside the block matters more than that its lease could not be given back.
        if error is None:
            raise failure
        logger.warning("%r could not be released: %s", self, with_notes(failure))


def safe_deadline(asked: float, lasting: float) -> float:
    """Return until when a lease is surely live that was asked for at a moment of our clock."""
    return asked + lasting * (1 - DRIFT) - MARGIN


def latest_end(since: float, lasting: float) -> float:
    """Return until when the server may hold a lease that it was asked for before that moment of our clock."""
    return since + lasting * (1 + DRIFT) + MARGIN
