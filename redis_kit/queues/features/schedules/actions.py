"""The actions of ``rk_schedule``, and their output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from redis_kit.core.terminal import KitCommand, aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.features.schedules import celery_beat, control, rows, words
from redis_kit.queues.features.schedules.control import Listing, ScheduleInfo
from redis_kit.queues.models import Schedule
from redis_kit.queues.tasks import discovery

COLUMNS = ("SCHEDULE", "WHEN", "NEXT", "LAST TICK", "LATE", "RUNS", "SKIPPED", "MISSED", "STATE")
MOST = 10_000  # schedules
Options = Mapping[str, Any]


def show(command: KitCommand, options: Options) -> None:
    """Show the schedules, or with ``next`` their next ticks."""
    (_show_next if options["next"] else _show_all)(command, options)


def pause(command: KitCommand, options: Options) -> None:
    """Turn a schedule off."""
    control.pause(name := options["name"])
    command.report(f"Paused: {clean(name)}.", {"schedule": name, "paused": True}, as_json=options["json"])


def resume(command: KitCommand, options: Options) -> None:
    """Turn a schedule on again."""
    control.resume(name := options["name"])
    command.report(f"Resumed: {clean(name)}.", {"schedule": name, "paused": False}, as_json=options["json"])


def run(command: KitCommand, options: Options) -> None:
    """Add a job of a schedule now."""
    queue, job = control.run(name := options["name"])
    data = {"schedule": name, "queue": queue, "job": job}
    command.report(f"Added to {clean(queue)}: job {job} of {clean(name)}.", data, as_json=options["json"])


def prune(command: KitCommand, options: Options) -> None:
    """Forget schedules of code that no worker has any more."""
    dry_run = options["dry_run"]
    names = control.prune(dry_run=dry_run)
    verb = "Would forget" if dry_run else "Forgotten"
    text = f"{verb}: {clean(', '.join(names))}." if names else "Nothing to forget: all schedules are in use."
    command.report(text, {"forgotten": names, "dry_run": dry_run}, as_json=options["json"])


def take_over(command: KitCommand, options: Options) -> None:
    """Import the schedules of django-celery-beat."""
    dry_run = options["dry_run"]
    discovery.discover()
    entries = celery_beat.entries()
    count = len([each for each in entries if each.outcome == "new"]) if dry_run else celery_beat.store(entries)
    if options["json"]:
        listed = [{"schedule": each.name, "outcome": each.outcome, "note": each.note} for each in entries]
        command.write_json({"imported": count, "dry_run": dry_run, "entries": listed})
        return
    table = [(cut(clean(each.name)), each.outcome, _described(each), clean(each.note)) for each in entries]
    command.write_lines(aligned([("SCHEDULE", "OUTCOME", "WHEN", "NOTE"), *table]))
    command.stdout.write(f"{'Would import' if dry_run else 'Imported'}: {count}.")


def _show_next(command: KitCommand, options: Options) -> None:
    count = options["next"]
    listing = control.listed("due", limit=count)
    ticks = control.next_ticks(listing, count)
    if options["json"]:
        rows = [{"schedule": info.name, "at": at / 1000, "in": (at - listing.now) / 1000} for at, info in ticks]
        command.write_json(rows)
    elif not ticks:
        command.stdout.write(_why_none_ticks())
    else:
        command.write_lines(aligned([("AT", "IN", "SCHEDULE"), *(_tick(listing, at, info) for at, info in ticks)]))
    _fail_if_overdue([listing])


def _why_none_ticks() -> str:
    new = sum(info.new and not info.paused for listing in _all() for info in listing.schedules)
    which = "1 schedule" if new == 1 else f"{new:,} schedules"
    return f"No worker has taken over {which} yet: start rk_worker." if new else "No schedule ticks within 24 hours."


def _show_all(command: KitCommand, options: Options) -> None:
    listings = list(_all())
    infos = [info for listing in listings for info in listing.schedules]
    if options["json"]:
        command.write_json([_plain(info, listing.now) for listing in listings for info in listing.schedules])
    elif not infos:
        command.stdout.write("There are no schedules. Workers declare those of the code when they start.")
    else:
        _write_table(command, listings)
    _fail_if_overdue(listings)


def _write_table(command: KitCommand, listings: Sequence[Listing]) -> None:
    infos = [info for listing in listings for info in listing.schedules]
    rows = [_row(info, listing.now) for listing in listings for info in listing.schedules]
    command.write_lines(aligned([COLUMNS, *rows], right=range(5, 8)))
    for info in infos:
        if info.problem not in ("", control.UNDECLARED):
            command.stdout.write(f"{clean(info.name)} can't run: {clean(info.problem)}")


def _fail_if_overdue(listings: Sequence[Listing]) -> None:
    """End with 1 if a tick should have run long ago, and say whether a worker would run it."""
    lates = [late for listing in listings for info in listing.schedules if (late := info.overdue(listing.now))]
    if lates:
        which = "1 schedule is" if len(lates) == 1 else f"{len(lates):,} schedules are"
        why = "see the log of the workers" if listings[-1].watched else "no worker is running"
        raise CommandError(f"{which} overdue by {duration(max(lates) / 1000)}: {why}.")


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
        f"{duration((now - became.tick) / 1000)} ago: {became.outcome}" if became.tick else "",
        duration(became.late / 1000) if became.tick else "",
        *(f"{count:,}" for count in (became.runs, became.skips, became.missed)),
        _state(info),
    )


def _state(info: ScheduleInfo) -> str:
    if info.problem:
        return "not declared" if info.problem == control.UNDECLARED else "can't run"
    if info.paused:
        return "paused"
    return "on" if info.state.tick else "new"


def _from_now(due: int | None, now: int) -> str:
    if due is None:
        return ""
    if now - due >= control.OVERDUE:
        return f"overdue by {duration((now - due) / 1000)}"
    return f"in {duration((due - now) / 1000)}" if due > now else "now"


def _tick(listing: Listing, at: int, info: ScheduleInfo) -> tuple[str, str, str]:
    zone = info.definition.zone if info.definition else "UTC"
    return f"{words.moment(at, zone)} {zone}", _from_now(at, listing.now), cut(clean(info.name))


def _plain(info: ScheduleInfo, now: int) -> dict[str, Any]:
    became = info.state
    return {
        "schedule": info.name,
        "task": info.definition and info.definition.task,
        "when": info.definition and words.when(info.definition),
        "source": info.source,
        "paused": info.paused,
        "next": info.due and info.due / 1000,
        "overdue": info.overdue(now) / 1000 or None,
        "last": became.tick / 1000 if became.tick else None,
        "outcome": became.outcome,
        "late": became.late / 1000,
        "job": became.job,
        "queue": became.queue,
        **{"runs": became.runs, "skipped": became.skips, "missed": became.missed},
        "problem": info.problem,
    }


ACTIONS: Mapping[str, Callable[[KitCommand, Options], None]] = {
    "list": show,
    "pause": pause,
    "resume": resume,
    "run": run,
    "prune": prune,
    "import": take_over,
}
