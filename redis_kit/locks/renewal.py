"""Renewal of leases: each is made longer when a third of it is over, for as long as its holder keeps it."""

import random
from time import monotonic
from typing import TYPE_CHECKING, Any

from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Flow, Step
from redis_kit.locks import renewals
from redis_kit.locks.errors import CannotRenew
from redis_kit.locks.lease import DRIFT, MARGIN, Lease, safe_deadline
from redis_kit.locks.loss import Keeper
from redis_kit.locks.stack import stack_of
from redis_kit.locks.taken import caller

if TYPE_CHECKING:
    from redis_kit.locks.leasing import Leasing

SHARE = 1 / 3  # of a lease that is over when it is renewed
AT_LEAST = 2
SOON = 1.0  # seconds, at most, until a renewal that failed is tried again
ON_ITS_WAY = 1.0  # seconds in which a command whose reply was lost may still reach the server


def keep(lease: Lease) -> None:
    """Watch a lease that was just taken, and renew it where its source says so, until it is let go or lost.

    Raises CannotRenew where no thread can be started for it; then nothing is done. No round trip.
    """
    keeper = lease.keeper = Keeper(lease, caller())
    watch = _Watch(keeper)
    keeper.items = (watch, watch.renewal) if watch.renewal else (watch,)
    try:
        changed(lease)
    except BaseException:
        let_go(lease)
        raise


def let_go(lease: Lease) -> None:
    """Stop watching and renewing: from now on the lease can't be lost any more, only released. No round trip."""
    keeper, lease.keeper = lease.keeper, None
    if keeper:
        keeper.decide()
        for item in keeper.items:
            renewals.remove(item)


def changed(lease: Lease) -> None:
    """Look at the lease's deadline anew: it may come earlier than it did."""
    if not (keeper := lease.keeper) or keeper.decided:
        return
    now = monotonic()
    watch, *renewal = keeper.items
    renewals.add(watch, after=lease.deadline - now, lane=renewals.CLOCK)
    for item in renewal:
        renewals.add(item, after=_due(lease) - now, lane=lease.source.using)


def undo(source: "Leasing", token: str, lasting: float, *, after: float = 0.0) -> None:
    """Give a lease back that may have been taken, as soon as the server answers, without waiting for it here.

    Gives up after ``lasting`` seconds, when it has ended by itself.
    """
    try:
        renewals.add(_Undo(source, token, lasting), after=after, lane=source.using)
    except CannotRenew:
        return


class _Renewal:
    """Makes one lease longer, again and again."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.lease = keeper, keeper.lease
        self.lasting = keeper.lease.source.lasting
        self.latest = keeper.lease.taken_at
        self.error: RedisFailure | None = None
        most = keeper.lease.source.max_hold
        self.end = None if most is None else keeper.lease.taken_at + most
        self.spent = False  # it reaches as far as max_hold

    def beat(self) -> float | None:
        """Renew it if that is due. One round trip then."""
        lease, asked = self.lease, monotonic()
        if self.keeper.decided or self.spent or asked >= lease.deadline:
            return None
        due = _due(lease)
        if asked < due:
            return due - asked
        more = self.lasting if self.end is None else min(self.lasting, self.end - asked)
        if more < self.lasting and safe_deadline(asked, more) <= lease.deadline:
            self.spent = True
            return None
        return self._renew(asked, more)

    def _renew(self, asked: float, more: float) -> float | None:
        lease, before = self.lease, self.lease.deadline
        try:
            lasting = _asked(lease.source, lease.source._prolong(lease.token, round(more * 1000), AT_LEAST))
        except RedisFailure as error:
            self.error = error
            return _soon(self.lasting)
        if not lasting:
            self.keeper.lose("the server does not know it any more.")
            return None
        # Unless its holder made it shorter meanwhile.
        if lease.deadline == before:
            lease.deadline = safe_deadline(asked, lasting / 1000)
        self.latest, self.error, self.spent = asked, None, more < self.lasting
        return _due(lease) - monotonic()


class _Watch:
    """Notices that a lease's time is over, whether or not the server answers."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.lease = keeper, keeper.lease
        self.renewal = _Renewal(keeper) if keeper.lease.source.renew else None

    def beat(self) -> float | None:
        """Look at the deadline. No round trip."""
        lease = self.lease
        left = lease.deadline - monotonic()
        if self.keeper.decided:
            return None
        if left > 0:
            return left
        if self.keeper.lose(self._why()) and self.renewal:
            # A renewal whose reply was late or lost must not keep others out, who would have got in by now.
            undo(lease.source, lease.token, self.renewal.lasting, after=self.renewal.lasting * DRIFT + MARGIN)
        return None

    def _why(self) -> str:
        renewal = self.renewal
        if renewal is None:
            return "its time is over and nobody made it longer."
        if renewal.spent:
            return (
                f"it was held for {self.lease.source.max_hold:g} seconds, its max_hold, and its holder is still here:\n"
                f"{stack_of(self.keeper.taker, self.keeper.thread)}"
            )
        reason = f"the last try failed: {renewal.error}" if renewal.error else "the renewal came too late."
        return f"it lasts {renewal.lasting:g} s, was renewed {monotonic() - renewal.latest:.1f} s ago, and {reason}"


class _Undo:
    """Gives one lease back, again and again until the server has answered."""

    def __init__(self, source: "Leasing", token: str, lasting: float) -> None:
        self.source, self.token, self.lasting = source, token, lasting
        self.until = monotonic() + lasting
        self.looked = False

    def beat(self) -> float | None:
        """Give it back. One round trip."""
        if monotonic() >= self.until:
            return None
        try:
            given_back = _asked(self.source, self.source._give_back(self.token))
        except RedisFailure:
            return _soon(self.lasting)
        if given_back or self.looked:
            return None
        # There was nothing to give back; the command that takes it may come after this one.
        self.looked = True
        return ON_ITS_WAY


def _due(lease: Lease) -> float:
    return lease.deadline - lease.source.lasting * (1 - SHARE)


def _soon(lasting: float) -> float:
    return random.uniform(0, min(SOON, lasting / 10))  # noqa: S311 -- spreads tries, hides nothing


def _asked(source: "Leasing", step: Step) -> Any:
    return source._run(_only(step))


def _only(step: Step) -> Flow[Any]:
    return (yield step)
