"""``manage.py rk_schedule``: see, pause, resume, run and import schedules."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidValue
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.database.models import Schedule
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.tasks import discovery
from redis_kit.queues.tasks.schedules import celery_beat, control, rows, words
from redis_kit.queues.tasks.schedules.control import Listing, ScheduleInfo

COLUMNS = ("SCHEDULE", "WHEN", "NEXT", "LAST", "LATE", "RUNS", "SKIPPED", "MISSED", "STATE")
MOST = 10_000  # schedules
NAMED = ("pause", "resume", "run")
TRIED = ("prune", "import")


class Command(terminal.KitCommand):
    """Show and control schedules."""

    help = "Show schedules and when they tick next; pause, resume or run one; forget those that no code declares."
    actions = {
        "list": "show the schedules (default)",
        "pause": "turn the schedule NAME off",
        "resume": "turn it on again",
        "run": "add a job of it now",
        "prune": "forget schedules of code that no worker has any more",
        "import": "take over the schedules of django-celery-beat's tables",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        self.parser = parser
        about = "; ".join(f"{name}: {text}" for name, text in self.actions.items())
        parser.add_argument("action", nargs="?", default="list", choices=self.actions, metavar="ACTION", help=about)
        parser.add_argument("name", nargs="?", metavar="NAME", help="name of a schedule")
        parser.add_argument(
            "--next", type=terminal.whole(1, 1000), metavar="N", help="show the next N ticks within 24 hours, 1 to 1000"
        )
        parser.add_argument("--dry-run", action="store_true", help="with prune and import: change nothing")
        parser.add_argument("--json", action="store_true", help="print JSON, with times in seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command. Exit code 1: no schedule of this name or nothing to do; 69: Redis is unavailable."""
        action, name = options["action"], options["name"]
        if (name is not None) != (action in NAMED):
            self.parser.error(f"{action} needs the NAME of a schedule" if name is None else f"{action} takes no NAME")
        if options["next"] and action != "list":
            self.parser.error(f"--next belongs to list, not to {action}")
        if options["dry_run"] and action not in TRIED:
            self.parser.error(f"--dry-run belongs to {' and '.join(TRIED)}, not to {action}")
        with terminal.failing(), translation.override(None):
            try:
                if action in NAMED:
                    self.report(*getattr(self, f"_{action}")(name), as_json=options["json"])
                elif action == "prune":
                    self._prune(dry_run=options["dry_run"], as_json=options["json"])
                elif action == "import":
                    self._import(dry_run=options["dry_run"], as_json=options["json"])
                elif options["next"]:
                    self._show_next(options["next"], as_json=options["json"])
                else:
                    self._show(as_json=options["json"])
            except (InvalidValue, InvalidSchedule) as error:
                raise CommandError(clean(str(error))) from error

    def _pause(self, name: str) -> tuple[str, dict[str, Any]]:
        control.pause(name)
        return f"Paused: {clean(name)}.", {"schedule": name, "paused": True}

    def _resume(self, name: str) -> tuple[str, dict[str, Any]]:
        control.resume(name)
        return f"Resumed: {clean(name)}.", {"schedule": name, "paused": False}

    def _run(self, name: str) -> tuple[str, dict[str, Any]]:
        queue, job = control.run(name)
        return f"Added to {clean(queue)}: job {job} of {clean(name)}.", {"schedule": name, "queue": queue, "job": job}

    def _prune(self, *, dry_run: bool, as_json: bool) -> None:
        names = control.prune(dry_run=dry_run)
        if not names:
            raise CommandError("Nothing was forgotten: workers or the database have all schedules.")
        verb = "Would forget" if dry_run else "Forgotten"
        self.report(f"{verb}: {clean(', '.join(names))}.", {"forgotten": names, "dry_run": dry_run}, as_json=as_json)

    def _import(self, *, dry_run: bool, as_json: bool) -> None:
        discovery.discover()
        entries = celery_beat.entries()
        count = len([each for each in entries if each.outcome == "new"]) if dry_run else celery_beat.store(entries)
        if as_json:
            listed = [{"schedule": each.name, "outcome": each.outcome, "note": each.note} for each in entries]
            self.stdout.write(json.dumps({"imported": count, "dry_run": dry_run, "entries": listed}, indent=2))
            return
        table = [(cut(clean(each.name)), each.outcome, _described(each), clean(each.note)) for each in entries]
        for line in aligned([("SCHEDULE", "OUTCOME", "WHEN", "NOTE"), *table]):
            self.stdout.write(line)
        self.stdout.write(f"{'Would import' if dry_run else 'Imported'}: {count}.")

    def _show_next(self, count: int, *, as_json: bool) -> None:
        listing = control.listed("due", limit=count)
        ticks = control.next_ticks(listing, count)
        if as_json:
            rows = [{"schedule": info.name, "at": at / 1000, "in": (at - listing.now) / 1000} for at, info in ticks]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        if not ticks:
            self.stdout.write("No schedule ticks within 24 hours.")
            return
        for line in aligned([("AT", "IN", "SCHEDULE"), *(_tick(listing, at, info) for at, info in ticks)]):
            self.stdout.write(line)

    def _show(self, *, as_json: bool) -> None:
        listings = list(_all())
        infos = [info for listing in listings for info in listing.schedules]
        if as_json:
            self.stdout.write(json.dumps([_plain(info) for info in infos], indent=2))
            return
        if not infos:
            self.stdout.write("There are no schedules. Workers declare those of the code when they start.")
            return
        rows = [_row(info, listing.now) for listing in listings for info in listing.schedules]
        for line in aligned([COLUMNS, *rows], right=range(5, 8)):
            self.stdout.write(line)
        for info in infos:
            if info.problem not in ("", control.UNDECLARED):
                self.stdout.write(f"{clean(info.name)} can't run: {clean(info.problem)}")


def _described(entry: celery_beat.Entry) -> str:
    if entry.row is None:
        return ""
    kind = "Celery: " if entry.row.kind == Schedule.Kind.CELERY else ""
    return kind + cut(words.when(rows.made(entry.row)))


def _all() -> Iterator[Listing]:
    for offset in range(0, MOST, control.PAGE):
        yield (listing := control.listed(offset=offset))
        if offset + control.PAGE >= listing.total:
            return


def _row(info: ScheduleInfo, now: int) -> tuple[str, ...]:
    became = info.state
    return (
        cut(clean(info.name)),
        cut(words.when(info.definition)) if info.definition else "",
        _from_now(info.due, now),
        f"{duration((now - became.tick) / 1000)} ago" if became.tick else "",
        f"{became.late / 1000:.3f} s" if became.tick else "",
        *(f"{count:,}" for count in (became.runs, became.skips, became.missed)),
        _state(info),
    )


def _state(info: ScheduleInfo) -> str:
    if info.problem:
        return "not declared" if info.problem == control.UNDECLARED else "can't run"
    return "paused" if info.paused else info.state.outcome or "new"


def _from_now(due: int | None, now: int) -> str:
    if due is None:
        return ""
    return f"in {duration((due - now) / 1000)}" if due > now else "now"


def _tick(listing: Listing, at: int, info: ScheduleInfo) -> tuple[str, str, str]:
    zone = info.definition.zone if info.definition else "UTC"
    return f"{words.moment(at, zone)} {zone}", _from_now(at, listing.now) or "now", cut(clean(info.name))


def _plain(info: ScheduleInfo) -> dict[str, Any]:
    became = info.state
    return {
        "schedule": info.name,
        "task": info.definition and info.definition.task,
        "when": info.definition and words.when(info.definition),
        "source": info.source,
        "paused": info.paused,
        "next": info.due and info.due / 1000,
        "last": became.tick / 1000 if became.tick else None,
        "outcome": became.outcome,
        "late": became.late / 1000,
        "job": became.job,
        "queue": became.queue,
        **{"runs": became.runs, "skipped": became.skips, "missed": became.missed},
        "problem": info.problem,
    }
