"""Renewal of leases: each is made longer when a third of it is over, for as long as its holder keeps it."""

from time import monotonic
from typing import TYPE_CHECKING, Any

from redis_kit.core import flow
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import RedisFailure
from redis_kit.core.flow import Step
from redis_kit.locks.holders.stack_trace import stack_of
from redis_kit.locks.leases.lease import DRIFT, MARGIN, Lease, safe_deadline
from redis_kit.locks.leases.ownership import caller
from redis_kit.locks.renewal import pending_releases, scheduler
from redis_kit.locks.renewal.loss import Keeper

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing

SHARE = 1 / 3  # of a lease that is over when it is renewed
AT_LEAST = 2
SOON = 1.0  # seconds, at most, until a renewal that failed is tried again


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
            scheduler.remove(item)


def lose(lease: Lease, why: str) -> None:
    """End a lease that the server does not know any more, and tell its holder where it is watched. No round trip."""
    keeper = lease.keeper
    if not (keeper and keeper.lose(why)):
        lease.end(lost=True)


def changed(lease: Lease, *, began: float | None = None, error: BaseException | None = None) -> None:
    """Look at the lease's deadline anew, which its holder changed, or tried to: it may come earlier than it did.

    ``began`` is when its time began anew, ``error`` what that failed with.
    """
    if not (keeper := lease.keeper) or keeper.decided:
        return
    keeper.began = keeper.began if began is None else began
    keeper.error = error if isinstance(error, RedisFailure) else None
    now = monotonic()
    watch, *renewal = keeper.items
    scheduler.add(watch, after=lease.deadline - now, lane=scheduler.CLOCK)
    for item in renewal:
        scheduler.add(item, after=_due(lease) - now, lane=lease.source.using)


class _Renewal:
    """Makes one lease longer, again and again."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.lease = keeper, keeper.lease
        self.lasting = keeper.lease.source.lasting
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
        lease.may_last(asked, more)
        try:
            lasting = _asked(lease.source, lease.source._prolong(lease.token, round(more * 1000), AT_LEAST))
        except RedisFailure as error:
            self.keeper.error = error
            return _soon(self.lasting)
        if not lasting:
            self.keeper.lose("the server does not know it any more.")
            return None
        # Unless its holder made it shorter meanwhile.
        if lease.deadline == before:
            lease.deadline = safe_deadline(asked, lasting / 1000)
        self.keeper.began, self.keeper.error, self.spent = asked, None, more < self.lasting
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
        after = lease.source.lasting * DRIFT + MARGIN
        if self.keeper.lose(self._why()) and lease.may_last_until > monotonic():
            # What made it longer and got no reply must not keep others out, who would have got in by now.
            pending_releases.add(lease.source, lease.token, ends_by=lease.ends_by, after=after)
        return None

    def _why(self) -> str:
        renewal, error = self.renewal, self.keeper.error
        if renewal is None:
            return f"its time is over, and {f'extend() failed: {error}' if error else 'nobody made it longer.'}"
        if renewal.spent:
            return (
                f"it was held for {self.lease.source.max_hold:g} seconds, its max_hold, and its holder is still here:\n"
                f"{stack_of(self.keeper.taker, self.keeper.thread)}"
            )
        reason = f"the last try failed: {error}" if error else "the renewal came too late."
        began = self.keeper.began
        lasting = round((self.lease.deadline + MARGIN - began) / (1 - DRIFT), 1)
        return f"it lasts {lasting:g} s, was renewed {monotonic() - began:.1f} s ago, and {reason}"


def _due(lease: Lease) -> float:
    return lease.deadline - lease.source.lasting * (1 - SHARE)


def _soon(lasting: float) -> float:
    return full_jitter(0, first=SOON, longest=lasting / 10)


def _asked(source: "Leasing", step: Step) -> Any:
    return source._run(flow.one(step))
