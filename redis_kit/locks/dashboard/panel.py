"""The dashboard's page about locks and semaphores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    MOST_ROWS,
    Alert,
    Bars,
    Content,
    Field,
    Figure,
    Lines,
    Meter,
    Pages,
    Panel,
    Range,
    Ranges,
    Search,
    Sparkline,
    StackedBars,
    Table,
    Tile,
    connection_fields,
    first_alerts,
    range_of,
    target_action,
)
from redis_kit.core.text import grouped
from redis_kit.locks.dashboard.actions import Target
from redis_kit.locks.inspection import Contended, HeldLock, HeldSemaphore, HeldSlot, LockWaits, index
from redis_kit.locks.inspection.api import HeldPage, read_page, read_summary
from redis_kit.locks.inspection.history import read_waits

CONTENDED = 20  # rows
LONG = 60  # seconds for which a lock is held before its waiters are an alert
MOST_CONTENDED = 200  # names whose waits are added up
KINDS = {
    "lock": _("lock"),
    "fairlock": _("fair lock"),
    "rwlock": _("read/write lock"),
    "semaphore": _("semaphore"),
}
HOLDING = (_("Holder"), _("Held for"), _("Lease"))
release_button = partial(
    target_action, Target.parse, Target.end, permission="redis_kit.release_locks", typed=True, explained="end"
)


class LocksPanel(Panel):
    """The locks and semaphores of a connection that are held, their holders, their waiters, and buttons to release."""

    slug = "locks"
    title = _("Locks and semaphores")

    def search(self) -> Search:
        """Return the search by name, and by connection if there are several."""
        return Search(_("Search"), [*connection_fields(), Field("name", _("Name contains"), optional=True)])

    def content(self) -> Iterable[Content]:
        """Return the figures of all names, charts of waits, and a page of names as tables. Two round trips."""
        names, using = ("connection", "name", "range"), self.viewer.connection
        asked = {name: text for name in names if (text := self.asked(name))}
        search, chosen = asked.get("name", ""), range_of(asked.get("range", ""))
        parts: list[Flow[Any]] = [
            read_page(self.viewer.page, search, MOST_ROWS, using),
            index.contended(MOST_CONTENDED, using),
            read_waits(chosen.hours if chosen.by_hour else chosen.minutes, using, by_hour=chosen.by_hour),
        ]
        held, most, history = index.over(using).run_flow(gather(parts))
        yield from _figures(held, most, search)
        if not search:
            yield from wait_charts(history, chosen, asked)
        yield from _tables(held, search, using)
        if held.pages > 1:
            yield Pages(self.slug, held.number, held.pages, asked)
        yield _contended(most[:CONTENDED])

    def reads(self) -> dict[str, Flow[Any]]:
        """Return how much is held, the locks for which callers wait, and the waits before. Two round trips."""
        return {self.viewer.connection: read_summary(MOST_CONTENDED, self.viewer.connection)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how much is held and how long callers waited. Alerts: locks that block callers, and lost leases."""
        (summary,) = replies.values()
        figures = [
            Figure(_("Held"), summary.held),
            Figure(_("Waiting now"), summary.waiting),
            _waited(summary.contended, _("Waited in a day"), _("by all callers together")),
        ]
        alerts = [*first_alerts(_blocking(summary.awaited)), *_lost(summary.recent)]
        return Tile(figures, _trend(summary.recent), alerts)

    release = release_button(_("Release"))
    release_all = release_button(_("Release all"))

    set_limit = target_action(
        Target.parse,
        Target.limit,
        _("Set limit"),
        permission="redis_kit.change_limits",
        wants=_("Limit (empty: the limit in the code)"),
        explained="limit",
    )


def _figures(held: HeldPage, most: Sequence[Contended], search: str) -> Iterable[Figure]:
    yield Figure(_("Held"), held.held, _("locks and semaphores"))
    yield Figure(_("Waiting now"), held.waiting)
    yield _waited(most, _("Waited"), _("by all callers together, within the last day"))
    if search:
        yield Figure(_("Names that match"), held.matching)
    if held.left_out:
        yield Figure(_("Not listed"), held.left_out, hint=_("Only the 10,000 that end first are listed."))


def _waited(most: Sequence[Contended], label: Any, hint: Any) -> Figure:
    return Figure(label, _seconds(sum(name.waited for name in most)), hint)


def _blocking(locks: Sequence[HeldLock]) -> Iterator[Alert]:
    for lock in sorted(locks, key=lambda lock: -lock.held_for):
        if lock.waiters and lock.held_for > LONG:
            waiting = ngettext("%(count)s caller waits for it.", "%(count)s callers wait for it.", lock.waiters)
            hint = f"{waiting % {'count': grouped(lock.waiters)}} {lock.holder}"
            yield Alert(_("%s is held for") % lock.name, _seconds(lock.held_for), hint, {"name": lock.name})


def _tables(held: HeldPage, search: str, using: str) -> Iterable[Table]:
    semaphores = [semaphore for semaphore in held.semaphores if semaphore.kind == "semaphore"]
    read_write = [semaphore for semaphore in held.semaphores if semaphore.kind != "semaphore"]
    part = held.pages > 1 or bool(search)
    if held.locks or not part:
        yield _locks(held.locks, using)
    if semaphores or not part:
        yield _semaphores(semaphores, using)
    if read_write:
        yield _read_write(read_write, using)
    if held.semaphores:
        yield _slots(held.semaphores, using)
    if search and not held.matching:
        yield Table(_("Locks and semaphores"), (), [], empty=_("Nothing that is held matches the search."))


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def _named(entry: HeldLock | Contended, within: Sequence[str] = ()) -> Lines:
    return Lines((entry.name, KINDS.get(entry.kind, entry.kind), *_around(within)))


def _around(within: Sequence[str]) -> list[str]:
    return [_("within %s") % name for name in reversed(within)]


def _holding(lease: HeldLock | HeldSlot) -> tuple[Any, ...]:
    remaining = Meter(lease.ends_in, lease.timeout, wanted=True, shown=_seconds(lease.ends_in))
    return Lines((lease.holder, lease.location, lease.doing)), _seconds(lease.held_for), remaining


def _locks(locks: Sequence[HeldLock], using: str) -> Table:
    return Table(
        _("Locks"),
        (_("Name"), *HOLDING, _("Waiting"), _("Fence")),
        [(_named(lock), *_holding(lock), lock.waiters, str(lock.fence)) for lock in locks],
        empty=_("No lock is held."),
        actions=("release",),
        values=[Target(lock.kind, lock.name, lock.fence, using=using).value for lock in locks],
    )


def _semaphores(semaphores: Sequence[HeldSemaphore], using: str) -> Table:
    return Table.of(
        _("Semaphores"),
        semaphores,
        [
            (_("Name"), _nested),
            (_("In use"), lambda semaphore: Meter(semaphore.used, semaphore.limit)),
            (_("Waiting"), lambda semaphore: semaphore.waiters),
            (_("Last lease ends in"), lambda semaphore: _seconds(semaphore.ends_in)),
            (_("Limit set by"), lambda semaphore: _("operator") if semaphore.limit_is_set else _("code")),
        ],
        empty=_("No slot of a semaphore is in use."),
        actions=("set_limit", "release_all"),
        values=[_target(semaphore, using) for semaphore in semaphores],
    )


def _read_write(locks: Sequence[HeldSemaphore], using: str) -> Table:
    return Table(
        _("Read/write locks"),
        (_("Name"), _("In use"), _("Waiting"), _("Last lease ends in")),
        [(lock.name, _readers(lock), lock.waiters, _seconds(lock.ends_in)) for lock in locks],
        actions=("release_all",),
        values=[_target(lock, using) for lock in locks],
    )


def _slots(semaphores: Sequence[HeldSemaphore], using: str) -> Table:
    slots = [(semaphore, slot) for semaphore in semaphores for slot in semaphore.holders]
    return Table(
        _("Slots (the 20 of each semaphore that end first)"),
        (_("Name"), *HOLDING, _("Weight"), _("Fence")),
        [(_nested(semaphore), *_holding(slot), _weight(semaphore, slot), str(slot.fence)) for semaphore, slot in slots],
        actions=("release",),
        values=[_target(semaphore, using, slot.fence) for semaphore, slot in slots],
    )


def _contended(most: Sequence[Contended]) -> Table:
    return Table.of(
        _("Longest waits"),
        most,
        [
            (_("Name"), lambda entry: _named(entry, entry.within)),
            (_("Waited in all"), lambda entry: _seconds(entry.waited)),
            (_("Waits"), lambda entry: entry.waits),
            (_("Each on average"), lambda entry: _seconds(entry.waited / max(entry.waits, 1))),
        ],
        empty=_("Nobody has waited."),
    )


def _target(semaphore: HeldSemaphore, using: str, fence: int | None = None) -> str:
    return Target(semaphore.kind, semaphore.name, fence, semaphore.within, using).value


def _nested(semaphore: HeldSemaphore) -> Any:
    return Lines((semaphore.name, *_around(semaphore.within)))


def _readers(lock: HeldSemaphore) -> Any:
    if lock.writing:
        return _("1 writer")
    return ngettext("%(count)s reader", "%(count)s readers", lock.used) % {"count": grouped(lock.used)}


def _weight(semaphore: HeldSemaphore, slot: HeldSlot) -> Any:
    if semaphore.kind == "semaphore":
        return slot.weight
    return _("writer") if slot.weight > 1 else _("reader")


def wait_charts(
    waits: Sequence[LockWaits], chosen: Range, asked: Mapping[str, str]
) -> Iterator[Ranges | StackedBars | Bars | Table]:
    """Yield the choice of a range, the waits in it, the longest ones, and lost leases if there are any."""
    yield chosen.choice("locks", asked)
    if not any(each.waits or each.lost for each in waits):
        yield Table(_("Waits that ended"), (), [], empty=_("No caller has waited in this time, and no lease was lost."))
        return
    last = chosen.last_minute(waits[-1].start)
    labels = chosen.labels(last)
    acquired = [sum(bar) for bar in chosen.bars([each.waits - each.timeouts for each in waits], last)]
    timeouts = [sum(bar) for bar in chosen.bars([each.timeouts for each in waits], last)]
    lost = [sum(bar) for bar in chosen.bars([each.lost for each in waits], last)]
    longest = [_seconds(max(bar)) for bar in chosen.bars([each.longest for each in waits], last)]
    yield StackedBars(_("Waits that ended"), labels, [(_("Acquired"), acquired), (_("Timed out"), timeouts)])
    yield Bars(_("Longest wait"), list(zip(labels, longest, strict=True)))
    if any(lost):
        yield Bars(_("Lost leases"), list(zip(labels, lost, strict=True)))


def _trend(waits: Sequence[LockWaits]) -> Sparkline:
    """Return the waits of the last hour by minute."""
    counts = [each.waits for each in waits]
    text = ngettext("%(count)s wait in an hour", "%(count)s waits in an hour", sum(counts))
    return Sparkline(text % {"count": grouped(sum(counts))}, counts)


def _lost(waits: Sequence[LockWaits]) -> Iterator[Alert]:
    """Yield the leases that were lost within the last hour, if there are any."""
    if count := sum(each.lost for each in waits):
        hint = _("They ended before their holders released them, or were released by force.")
        yield Alert(_("Leases lost in an hour"), count, hint)
