"""``manage.py rk_locks``: lists locks and semaphores that are held, and releases them."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean, similar
from redis_kit.locks.inspection import KINDS, LIMIT, HeldLock, HeldSemaphore, HeldSlot, find, force_release, held_locks

Held = HeldLock | HeldSemaphore
COLUMNS = ("NAME", "KIND", "HELD BY", "FOR", "ENDS IN", "WAITING", "FENCE")


class Command(terminal.ActionCommand):
    """List, show and release locks and semaphores."""

    actions = {
        "list": "list what is held, in the order in which it ends",
        "show": "show all leases of one name",
        "release": "end the holder's lease and wake a waiter",
    }
    help = "Show locks and semaphores that are held, and their holders; release one whose holder does not."

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        add = parser.add_argument
        if action == "list":
            about = f"number of lines, 1 to {LIMIT[1]:,} (default: 100)"
            add("--limit", type=terminal.whole(*LIMIT), default=100, help=about)
        else:
            add("name", type=terminal.name, metavar="NAME")
            about = "name of a semaphore that it is within"
            add("--within", action="append", default=[], metavar="NAME", help=about)
        if action == "release":
            add("--kind", action=terminal.Once, choices=KINDS, help="required if two kinds have this name")
            about = "end only the lease with this fence (default: all leases)"
            add("--fence", action=terminal.Once, type=_fence, help=about)
            terminal.add_no_input(parser)
        else:
            add("--json", action="store_true", help="print JSON, with times in seconds")
        add("--using", type=terminal.alias, default="default", help="alias of the connection (default: default)")

    def _list(self, *, limit: int, using: str, **options: Any) -> None:
        held = held_locks(limit=limit, using=using)
        if options["json"]:
            self.write_json(held._asdict() | {name: [*map(_plain, getattr(held, name))] for name in held._fields[:2]})
        elif not held.locks and not held.semaphores:
            self.stdout.write("Nothing is held.")
        else:
            locks: list[Held] = [*held.locks, *held.semaphores]
            self.write_lines(aligned([COLUMNS, *map(_row, sorted(locks, key=lambda lock: lock.ends_in))]))
            if held.more:
                self.stdout.write(f"{held.more:,} more are held; --limit shows them.")

    def _show(self, *, name: str, within: list[str], using: str, **options: Any) -> None:
        held = self._held(name, within, using)
        if options["json"]:
            self.write_json([*map(_plain, held)])
        else:
            for lock in held:
                self.write_lines(_about(lock))

    def _release(
        self, *, name: str, within: list[str], using: str, kind: str | None, fence: int | None, **options: Any
    ) -> None:
        held = self._held(name, within, using)
        chosen = [lock for lock in held if kind in (None, lock.kind) and (fence is None or fence in _fences(lock))]
        if not chosen:
            raise CommandError(f"Nothing was released. {clean(name)} is held, but as {_kinds(held)}.")
        if len(chosen) > 1:
            self.parsers["release"].error(f"{clean(name)} is held as {_kinds(chosen)}; say which with --kind")
        if not options["no_input"]:
            self.write_lines(_about(chosen[0]))
            about = "The holder is not stopped: it learns of the release when it renews, extends or releases its lease."
            self.stdout.write(about)
            question = "Type the name to release it: "
            terminal.confirm(question, chosen[0].name, clean(chosen[0].name), nothing="Nothing was released")
        if fence is None and isinstance(chosen[0], HeldLock):
            fence = chosen[0].fence  # a later holder must keep its lease
        holders = force_release(name, kind=chosen[0].kind, fence=fence, within=within, using=using)
        if not holders:
            raise CommandError(f"Nothing was released: {clean(name)} was released by its holder.")
        for holder in holders:
            self.stdout.write(f"Released: {chosen[0].kind} {clean(name)}, held by {clean(holder.text)}.")

    def _held(self, name: str, within: list[str], using: str) -> list[Held]:
        if found := find(name, within=within, limit=LIMIT[1], using=using):
            return found
        held = held_locks(limit=1000, using=using)
        locks: list[Held] = [*held.semaphores, *held.locks]
        titles = {lock.name: _title(lock) for lock in locks}
        near = [titles[close] for close in similar(name, titles)]
        hint = f" Similar names that are held: {'; '.join(near)}." if near else ""
        raise CommandError(f"Nothing is held under the name {clean(name)}.{hint}")


def _plain(lock: Held) -> dict[str, Any]:
    slots = {"holders": [slot._asdict() for slot in lock.holders]} if isinstance(lock, HeldSemaphore) else {}
    return lock._asdict() | slots


def _fences(lock: Held) -> list[int]:
    return [lock.fence] if isinstance(lock, HeldLock) else [slot.fence for slot in lock.holders]


def _kinds(held: Iterable[Held]) -> str:
    return " and as ".join(f"{lock.kind} with the fence {', '.join(map(str, _fences(lock)[:5]))}" for lock in held)


def _fence(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!a} is not a fence")
    return int(text)


def _about(lock: Held) -> Iterator[str]:
    """Yield all fields of a lock or semaphore."""
    yield f"{_title(lock)}, {lock.kind}"
    if isinstance(lock, HeldLock):
        yield from _lease(lock)
        yield f"  waiting   {lock.waiters:,}"
        return
    yield f"  in use    {_used(lock)}"
    yield f"  waiting   {lock.waiters:,}"
    for slot in lock.holders:
        yield ""
        yield from _lease(slot)
        if slot.weight != 1:
            yield f"  weight    {slot.weight:,}"


def _title(lock: Held) -> str:
    """Return its name, and those of the semaphores that it is within, the outermost first."""
    outer = lock.within if isinstance(lock, HeldSemaphore) else ()
    return clean(f"{lock.name} (within {', '.join(outer)})" if outer else lock.name)


def _row(lock: Held) -> Sequence[str]:
    held_for, fence = (duration(lock.held_for), str(lock.fence)) if isinstance(lock, HeldLock) else ("", "")
    by, waiters = cut(clean(_used(lock))), f"{lock.waiters:,}"
    return cut(_title(lock)), lock.kind, by, held_for, duration(lock.ends_in), waiters, fence


def _used(lock: Held) -> str:
    if isinstance(lock, HeldLock):
        return lock.holder
    if lock.kind == "rwlock":
        return "a writer" if lock.writing else f"{lock.used:,} readers"
    return f"{lock.used:,} of {lock.limit:,} slots"


def _lease(lease: HeldLock | HeldSlot) -> Iterator[str]:
    yield f"  held by   {clean(lease.holder)}"
    if lease.location:
        yield f"  at        {clean(lease.location)}"
    if lease.doing:
        yield f"  doing     {clean(lease.doing)}"
    yield f"  for       {duration(lease.held_for)}"
    yield f"  ends in   {duration(lease.ends_in)} of {duration(lease.timeout)}"
    yield f"  fence     {lease.fence}"
