"""The dashboard's page about locks and semaphores."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    MOST_ROWS,
    Alert,
    Bars,
    Content,
    Effect,
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
from redis_kit.core.text import first_of, grouped
from redis_kit.locks import inspection
from redis_kit.locks.arguments import LIMIT
from redis_kit.locks.inspection import Contended, HeldLock, HeldPage, HeldSemaphore, HeldSlot, LockWaits

CONTENDED = 20  # rows
LONG = 60  # seconds for which a lock is held before its waiters are an alert
MOST_CONTENDED = 200  # names whose waits are added up
HOLDERS = 5  # named in a sentence
KINDS = {
    "lock": _("lock"),
    "fairlock": _("fair lock"),
    "rwlock": _("read/write lock"),
    "semaphore": _("semaphore"),
}
VALUE = re.compile(
    r"(?:@([^/]+)/)?(lock|fairlock|rwlock|semaphore)/(\d{0,19})(?:-(\d{1,19}))?/([^/]+(?:/[^/]+)*)", re.ASCII
)
HOLDING = (_("Holder"), _("Held for"), _("Lease"))


class Target(NamedTuple):
    """A name and its kind, the fence of one lease or None for all, the semaphores it is within, and the connection.

    With a ``last_fence`` all leases up to that one are meant, and no later ones.
    """

    kind: str
    name: str
    fence: int | None = None
    within: tuple[str, ...] = ()
    using: str = "default"
    last_fence: int | None = None

    @classmethod
    def parse(cls, value: str) -> "Target":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := VALUE.fullmatch(value)) is None:
            raise InvalidValue(gettext("Nothing was done: that is not a lock or semaphore."))
        using, kind, *fences, names = match.groups()
        *within, name = map(unquote, names.split("/"))
        fence, last_fence = (int(text) if text else None for text in fences)
        return cls(kind, name, fence, tuple(within), unquote(using or "default"), last_fence)

    @property
    def value(self) -> str:
        """Return the value of a button."""
        names = (quote(name, safe="") for name in (*self.within, self.name))
        connection = () if self.using == "default" else (f"@{quote(self.using, safe='')}",)
        fence = self.fence if self.last_fence is None else f"-{self.last_fence}"
        return "/".join((*connection, self.kind, "" if fence is None else str(fence), *names))

    @property
    def shown(self) -> str:
        """Return how confirmations and the log name the target."""
        return self.name if self.using == "default" else f"{self.name} ({self.using})"

    def end(self) -> str:
        """End its leases, and return a message. Raises InvalidValue if they have ended."""
        releases = inspection.force(self.kind, self.name, self.within, self._fences, self.using)
        holders = inspection.over(self.using).run_flow(releases)
        if not holders:
            raise self._released_before()
        named = _text([(each.process_text, each.location, each.doing) for each in holders])
        return ngettext(
            "%(count)s lease of %(name)s was released, held by %(holders)s.",
            "%(count)s leases of %(name)s were released, held by %(holders)s.",
            len(holders),
        ) % {"name": self.shown, "count": grouped(len(holders)), "holders": named}

    def effect(self, action: str) -> Effect:
        """Return what end() or limit() will do. One round trip. end() raises InvalidValue if its leases have ended."""
        return self._effect_of_end() if action == "end" else self._effect_of_limit()

    def _effect_of_end(self) -> Effect:
        held = self._held()
        all_leases = [] if held is None else [held] if isinstance(held, HeldLock) else held.holders
        leases = [lease for lease in all_leases if lease.fence in self._fences]
        if held is None or not leases:
            raise self._released_before()
        named = _text([(lease.holder, lease.location, lease.doing) for lease in leases])
        ends = ngettext(
            "%(count)s lease ends, held by %(holders)s.", "%(count)s leases end, held by %(holders)s.", len(leases)
        ) % {"count": grouped(len(leases)), "holders": named}
        waits = ngettext("%(count)s caller is waiting.", "%(count)s callers are waiting.", held.waiters)
        waiting = [waits % {"count": grouped(held.waiters)}] if held.waiters else []
        text = gettext("The code that holds it is not stopped: it learns of the loss when it renews or releases.")
        named_leases = self if self.fence is not None else self._replace(last_fence=max(each.fence for each in leases))
        return Effect(" ".join((ends, *waiting, text)), named_leases.value)

    def _effect_of_limit(self) -> Effect:
        held, stays = self._held(), gettext("Held leases stay. The limit applies to new ones.")
        if held is None:
            return Effect(" ".join((gettext("No slot is in use."), stays)), self.value)
        numbers = {"used": grouped(held.used), "limit": grouped(held.limit), "waiters": grouped(held.waiters)}
        used = gettext("In use: %(used)s of %(limit)s slots. Waiting: %(waiters)s.") % numbers
        return Effect(" ".join((used, stays)), self.value)

    def limit(self, text: str) -> str:
        """Set the limit of a semaphore; without text the limit in the code counts again. Raises InvalidValue."""
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InvalidValue(gettext("The limit must be a whole number."))
        held = inspection.semaphore((*self.within, self.name), LIMIT[1:], using=self.using)
        held.set_limit(int(text) if text else None)
        if not text:
            return gettext("The limit of %(name)s is the limit in the code again.") % {"name": self.shown}
        return gettext("The limit of %(name)s is %(limit)s now.") % {"name": self.shown, "limit": grouped(int(text))}

    @property
    def _fences(self) -> range:
        if self.fence is not None:
            return range(self.fence, self.fence + 1)
        return inspection.ALL if self.last_fence is None else range(self.last_fence + 1)

    def _held(self) -> Any:
        held = inspection.find(self.name, within=self.within, limit=inspection.MAX_LEASES, using=self.using)
        return next((lock for lock in held if lock.kind == self.kind), None)

    def _released_before(self) -> InvalidValue:
        return InvalidValue(gettext("Nothing was released: %(name)s was released before.") % {"name": self.shown})


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
            inspection.read_page(self.viewer.page, search, MOST_ROWS, using),
            inspection.read_contended(MOST_CONTENDED, using),
            inspection.read_waits(chosen.hours if chosen.by_hour else chosen.minutes, using, by_hour=chosen.by_hour),
        ]
        held, most, history = inspection.over(using).run_flow(gather(parts))
        yield from _figures(held, most, search)
        if not search:
            yield from wait_charts(history, chosen, asked)
        yield from _tables(held, search, using)
        if held.pages > 1:
            yield Pages(self.slug, held.number, held.pages, asked)
        yield _contended(most[:CONTENDED])

    def reads(self) -> dict[str, Flow[Any]]:
        """Return how much is held, the locks for which callers wait, and the waits before. Two round trips."""
        using = self.viewer.connection
        parts: list[Flow[Any]] = [
            inspection.read_waiting(using),
            inspection.read_contended(MOST_CONTENDED, using),
            inspection.read_waits(60, using),
        ]
        return {using: gather(parts)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how much is held and how long callers waited. Alerts: locks that block callers, and lost leases."""
        (((held, waiting, awaited), most, recent),) = replies.values()
        figures = [
            Figure(_("Held"), held),
            Figure(_("Waiting now"), waiting),
            Figure(_("Waited in a day"), _waited(most), _("by all callers together")),
        ]
        return Tile(figures, _trend(recent), [*first_alerts(_blocking(awaited)), *_lost(recent)])

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


def _text(holders: Sequence[tuple[str, str, str]]) -> str:
    """Return the first holders in a line: the process, location and work of each."""
    return first_of([", ".join(filter(None, holder)) for holder in holders], HOLDERS, "; ")


def _figures(held: HeldPage, most: Sequence[Contended], search: str) -> Iterable[Figure]:
    yield Figure(_("Held"), held.held, _("locks and semaphores"))
    yield Figure(_("Waiting now"), held.waiting)
    yield Figure(_("Waited"), _waited(most), _("by all callers together, within the last day"))
    if search:
        yield Figure(_("Names that match"), held.matching)
    if held.left_out:
        yield Figure(_("Not listed"), held.left_out, hint=_("Only the 10,000 that end first are listed."))


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


def _waited(most: Sequence[Contended]) -> timedelta:
    return _seconds(sum(name.waited for name in most))


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
    rows = []
    for each in semaphores:
        set_by = _("operator") if each.limit_is_set else _("code")
        rows.append((_nested(each), Meter(each.used, each.limit), each.waiters, _seconds(each.ends_in), set_by))
    return Table(
        _("Semaphores"),
        (_("Name"), _("In use"), _("Waiting"), _("Last lease ends in"), _("Limit set by")),
        rows,
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
    rows = []
    for each in most:
        average = each.waited / max(each.waits, 1)
        rows.append((_named(each, each.within), _seconds(each.waited), each.waits, _seconds(average)))
    columns = (_("Name"), _("Waited in all"), _("Waits"), _("Each on average"))
    return Table(_("Longest waits"), columns, rows, empty=_("Nobody has waited."))


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

    def sums(numbers: list[int]) -> list[float]:
        return [sum(bar) for bar in chosen.bars(numbers, last)]

    acquired, timeouts = sums([each.waits - each.timeouts for each in waits]), sums([each.timeouts for each in waits])
    longest = [_seconds(max(bar)) for bar in chosen.bars([each.longest for each in waits], last)]
    yield StackedBars(_("Waits that ended"), labels, [(_("Acquired"), acquired), (_("Timed out"), timeouts)])
    yield Bars(_("Longest wait"), list(zip(labels, longest, strict=True)))
    if any(lost := sums([each.lost for each in waits])):
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
