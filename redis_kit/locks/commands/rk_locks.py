"""``manage.py rk_locks``: what is held, by whom, and how to end that."""

import argparse
import json
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.terminal import clean
from redis_kit.core.text import similar
from redis_kit.locks.commands.tables import about, table, title
from redis_kit.locks.inspection.api import KINDS, MOST, LiveLock, LiveSemaphore, find, force_release, live_locks

Held = LiveLock | LiveSemaphore


class Command(BaseCommand):
    """List, show and release locks and semaphores."""

    help = "Show which locks and semaphores are held and by whom, and release one whose holder does not."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions and their options."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        actions.add_parser("list", help="what is held now, first what ends first").add_argument(
            "--limit", type=_limit, default=100, help=f"lines, 1 to {MOST[1]:,} (100)"
        )
        actions.add_parser("show", help="all about one name")
        actions.add_parser("release", help="end the lease of whoever holds it, and wake who waits for it")
        for action, one in actions.choices.items():
            if action != "list":
                one.add_argument("name", type=terminal.name, metavar="NAME")
                one.add_argument(
                    "--within", action="append", default=[], metavar="NAME", help="the semaphore that it is within"
                )
            if action != "release":
                one.add_argument("--json", action="store_true", help="for programs: times in seconds")
            one.add_argument(
                "--using", type=terminal.alias, default="default", help="alias of the connection (default)"
            )
            for option in terminal.EVERYWHERE:
                one.add_argument(option, help=argparse.SUPPRESS, default=argparse.SUPPRESS)
        self.release = release = actions.choices["release"]
        release.add_argument("--kind", choices=KINDS, help="needed where two kinds have this name")
        release.add_argument("--fence", type=_fence, help="end only the lease with this fence, not all of a semaphore")
        release.add_argument("--yes", action="store_true", help="don't ask")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Do it. Exit code 1 where nothing of the name is held, 69 while Redis is away."""
        with terminal.failing():
            getattr(self, f"_{action}")(**options)

    def _list(self, *, limit: int, using: str, **options: Any) -> None:
        live = live_locks(limit=limit, using=using)
        if options["json"]:
            self._write_json(live._asdict() | {name: [*map(_plain, getattr(live, name))] for name in live._fields[:2]})
        elif not live.locks and not live.semaphores:
            self.stdout.write("Nothing is held.")
        else:
            self._write(table(sorted([*live.locks, *live.semaphores], key=lambda one: one.ends_in)))
            if live.more:
                self.stdout.write(f"{live.more:,} more are held; --limit shows them.")

    def _show(self, *, name: str, within: list[str], using: str, **options: Any) -> None:
        held = self._held(name, within, using)
        if options["json"]:
            self._write_json([*map(_plain, held)])
        else:
            for one in held:
                self._write(about(one))

    def _release(
        self, *, name: str, within: list[str], using: str, kind: str | None, fence: int | None, **options: Any
    ) -> None:
        held = self._held(name, within, using)
        chosen = [one for one in held if kind in (None, one.kind) and (fence is None or fence in _fences(one))]
        if not chosen:
            raise CommandError(f"Nothing was released. {clean(name)} is held, but as {_kinds(held)}.")
        if len(chosen) > 1:
            self.release.error(f"{clean(name)} is held as {_kinds(chosen)}; say which with --kind")
        if not options["yes"]:
            self._confirm(chosen[0])
        if fence is None and isinstance(chosen[0], LiveLock):
            fence = chosen[0].fence  # nobody is to be hit who takes it meanwhile
        holders = force_release(name, kind=chosen[0].kind, fence=fence, within=within, using=using)
        if not holders:
            raise CommandError(f"Nothing was released: the holder of {clean(name)} did it first.")
        for holder in holders:
            self.stdout.write(f"Released: {chosen[0].kind} {clean(name)}, held by {clean(holder.text)}.")

    def _confirm(self, one: Held) -> None:
        self._write(about(one))
        self.stdout.write("The holder is not stopped: it learns of it when it renews, extends or releases its lease.")
        try:
            typed = input("Type the name to release it: ")
        except EOFError:
            typed = ""
        if typed not in (one.name, clean(one.name)):
            raise CommandError("Nothing was released: that is not the name. Use --yes where nobody can type it.")

    def _held(self, name: str, within: list[str], using: str) -> list[Held]:
        if not within:
            return find(name, limit=MOST[1], using=using) or self._nothing(name, using)
        every = live_locks(limit=MOST[1], using=using).semaphores
        nested: list[Held] = [one for one in every if (one.name, one.within) == (name, tuple(within))]
        return nested or self._nothing(name, using)

    def _nothing(self, name: str, using: str) -> list[Held]:
        live = live_locks(limit=1000, using=using)
        held: list[Held] = [*live.semaphores, *live.locks]
        titles = {one.name: title(one) for one in held}
        near = [titles[one] for one in similar(name, titles)]
        hint = f" Held are: {'; '.join(near)}." if near else ""
        raise CommandError(f"Nothing is held under the name {clean(name)}.{hint}")

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)

    def _write_json(self, data: Any) -> None:
        self.stdout.write(json.dumps(data, indent=2))


def _plain(one: Held) -> dict[str, Any]:
    slots = {"holders": [slot._asdict() for slot in one.holders]} if isinstance(one, LiveSemaphore) else {}
    return one._asdict() | slots


def _fences(one: Held) -> list[int]:
    return [one.fence] if isinstance(one, LiveLock) else [slot.fence for slot in one.holders]


def _kinds(held: Iterable[Held]) -> str:
    return " and as ".join(f"{one.kind} with the fence {', '.join(map(str, _fences(one)[:5]))}" for one in held)


def _limit(text: str) -> int:
    if not text.isdecimal() or not MOST[0] <= int(text) <= MOST[1]:
        raise argparse.ArgumentTypeError(f"{text!a} is no whole number from {MOST[0]} to {MOST[1]:,}")
    return int(text)


def _fence(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!a} is no fence")
    return int(text)
