"""The dashboard's page about locks and semaphores."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.panels import MOST_ROWS, Content, Figure, Lines, Meter, Panel, Ring, Table, action
from redis_kit.locks.dashboard.actions import Target

if TYPE_CHECKING:
    from redis_kit.locks.inspection import Contended, HeldLock, HeldSemaphore, HeldSlot

CONTENDED = 20  # rows
KINDS = {
    "lock": _("lock"),
    "fairlock": _("fair lock"),
    "rwlock": _("read/write lock"),
    "semaphore": _("semaphore"),
}
HOLDING = (_("Holder"), _("Held for"), _("Lease"))


def _name(value: str) -> str:
    return Target.parse(value).name


class LocksPanel(Panel):
    """The locks and semaphores that are held, their holders, their waiters, and buttons to release them."""

    slug = "locks"
    title = _("Locks and semaphores")

    def content(self) -> Iterable[Content]:
        """Return the figures and the tables. Three round trips."""
        from redis_kit.locks.inspection import contended, held_locks

        held, most = held_locks(limit=MOST_ROWS), contended(limit=CONTENDED)
        semaphores = [one for one in held.semaphores if one.kind == "semaphore"]
        others = [one for one in held.semaphores if one.kind != "semaphore"]
        waiting = sum(one.waiters for one in held.locks) + sum(one.waiters for one in held.semaphores)
        yield Figure(_("Locks held"), len(held.locks) + len(others))
        yield Figure(_("Slots in use"), sum(one.used for one in semaphores))
        yield Figure(_("Waiting now"), waiting)
        yield Figure(_("Waited"), _seconds(sum(one.waited for one in most)), _("in all, in a day at most"))
        if held.more:
            yield Figure(_("Not shown"), held.more, hint=_("Only those that end first are shown and counted."))
        yield _locks(held.locks)
        yield _semaphores(semaphores)
        if others:
            yield _read_write(others)
        if held.semaphores:
            yield _slots(held.semaphores)
        yield _contended(most)

    @action(_("Release"), permission="redis_kit.release_locks", asks=None, named=_name, typed=True)
    def release(self, value: str) -> str:
        """End the lease with this fence, unless it has ended."""
        return Target.parse(value).end()

    @action(_("Release all"), permission="redis_kit.release_locks", asks=None, named=_name, typed=True)
    def release_all(self, value: str) -> str:
        """End all leases of a semaphore, or of a read/write lock."""
        return Target.parse(value).end()

    @action(
        _("Set limit"),
        permission="redis_kit.change_limits",
        asks=_("Semaphore"),
        named=lambda value: Target.semaphore(value).name,
        wants=_("Limit (empty: the one that the code states)"),
    )
    def set_limit(self, value: str, limit: str) -> str:
        """Set this limit, or let the limit in the code count again."""
        return Target.semaphore(value).limit(limit)


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def _named(one: "HeldLock | Contended", within: Sequence[str] = ()) -> Lines:
    return Lines((one.name, KINDS.get(one.kind, one.kind), *_around(within)))


def _around(within: Sequence[str]) -> list[str]:
    return [_("within %s") % name for name in reversed(within)]


def _holding(one: "HeldLock | HeldSlot") -> tuple[Any, ...]:
    lease = Ring(_seconds(one.ends_in), one.ends_in / one.timeout if one.timeout else 1)
    return Lines((one.holder, one.location, one.doing)), _seconds(one.held_for), lease


def _locks(locks: Sequence["HeldLock"]) -> Table:
    return Table(
        _("Locks"),
        (_("Name"), *HOLDING, _("Waiting"), _("Fence")),
        [(_named(one), *_holding(one), one.waiters, str(one.fence)) for one in locks],
        empty=_("No lock is held."),
        actions=("release",),
        values=[Target(one.kind, one.name, one.fence).value for one in locks],
    )


def _semaphores(semaphores: Sequence["HeldSemaphore"]) -> Table:
    return Table(
        _("Semaphores"),
        (_("Name"), _("In use"), _("Waiting"), _("Last lease ends in"), _("Limit set by")),
        [
            (_nested(one), Meter(one.used, one.limit), one.waiters, _seconds(one.ends_in), _limited_by(one))
            for one in semaphores
        ],
        empty=_("No slot of a semaphore is in use."),
        actions=("set_limit", "release_all"),
        values=[_target(one) for one in semaphores],
    )


def _read_write(locks: Sequence["HeldSemaphore"]) -> Table:
    return Table(
        _("Read/write locks"),
        (_("Name"), _("In use"), _("Waiting"), _("Last lease ends in")),
        [(one.name, _readers(one), one.waiters, _seconds(one.ends_in)) for one in locks],
        actions=("release_all",),
        values=[_target(one) for one in locks],
    )


def _slots(semaphores: Sequence["HeldSemaphore"]) -> Table:
    slots = [(one, slot) for one in semaphores for slot in one.holders]
    return Table(
        _("Slots, the first 20 to end of each semaphore"),
        (_("Name"), *HOLDING, _("Weight"), _("Fence")),
        [(_nested(one), *_holding(slot), _weight(one, slot), str(slot.fence)) for one, slot in slots],
        actions=("release",),
        values=[_target(one, slot.fence) for one, slot in slots],
    )


def _contended(most: Sequence["Contended"]) -> Table:
    return Table(
        _("Waited for longest"),
        (_("Name"), _("Waited in all"), _("Waits"), _("Each on average")),
        [
            (_named(one, one.within), _seconds(one.waited), one.waits, _seconds(one.waited / max(one.waits, 1)))
            for one in most
        ],
        empty=_("Nobody has waited."),
    )


def _target(one: "HeldSemaphore", fence: int | None = None) -> str:
    return Target(one.kind, one.name, fence, one.within).value


def _nested(one: "HeldSemaphore") -> Any:
    return Lines((one.name, *_around(one.within)))


def _readers(one: "HeldSemaphore") -> Any:
    if one.writing:
        return _("1 writer")
    return ngettext("%(count)d reader", "%(count)d readers", one.used) % {"count": one.used}


def _limited_by(one: "HeldSemaphore") -> Any:
    return _("operator") if one.limit_is_set else _("code")


def _weight(one: "HeldSemaphore", slot: "HeldSlot") -> Any:
    if one.kind == "semaphore":
        return slot.weight
    return _("writer") if slot.weight > 1 else _("reader")
