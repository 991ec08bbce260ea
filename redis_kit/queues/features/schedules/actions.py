"""The actions of ``rk_schedule``, and their output."""

from collections.abc import Callable, Mapping
from typing import Any

from django.core.management.base import CommandError

from redis_kit.core.terminal import KitCommand, aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.features.schedules import celery_beat, control, rows, words
from redis_kit.queues.features.schedules.state import OVERDUE, StoredSchedule
from redis_kit.queues.features.schedules.store import Page
from redis_kit.queues.models import Schedule
from redis_kit.queues.tasks import discovery

COLUMNS = ("SCHEDULE", "WHEN", "NEXT", "LAST TICK", "LATE", "RUNS", "SKIPPED", "MISSED", "STATE")
Options = Mapping[str, Any]


def show(command: KitCommand, options: Options) -> None:
    """Show the schedules, or with ``next`` their next ticks."""
    count = options["next"]
    page = control.listed("due", limit=count) if count else control.all_schedules()
    if count:
        _show_next(command, page, count, as_json=options["json"])
    elif options["json"]:
        command.write_json([_plain(schedule, page.now) for schedule in page.schedules])
    elif page.schedules:
        _show_all(command, page)
    else:
        command.stdout.write("There are no schedules. Workers declare those of the code when they start.")
    _fail_if_overdue(page)


def turn(command: KitCommand, options: Options) -> None:
    """Turn a schedule off, or on again."""
    name, on = options["name"], options["action"] == "resume"
    control.turn(name, on=on)
    said = f"{'Resumed' if on else 'Paused'}: {clean(name)}."
    command.report(said, {"schedule": name, "paused": not on}, as_json=options["json"])


def run(command: KitCommand, options: Options) -> None:
    """Add a job of a schedule now."""
    queue, job = control.run(name := options["name"])
    data = {"schedule": name, "queue": queue, "job": job}
    command.report(f"Added to {clean(queue)}: job {job} of {clean(name)}.", data, as_json=options["json"])


def take_over(command: KitCommand, options: Options) -> None:
    """Import the schedules of django-celery-beat."""
    dry_run = options["dry_run"]
    discovery.discover()
    entries = celery_beat.entries()
    new = [each.row for each in entries if each.outcome == "new" and each.row]
    for row in () if dry_run else new:
        row.save()
    if options["json"]:
        listed = [{"schedule": each.name, "outcome": each.outcome, "note": each.note} for each in entries]
        command.write_json({"imported": len(new), "dry_run": dry_run, "entries": listed})
        return
    table = [(cut(clean(each.name)), each.outcome, _described(each), clean(each.note)) for each in entries]
    command.write_lines(aligned([("SCHEDULE", "OUTCOME", "WHEN", "NOTE"), *table]))
    command.stdout.write(f"{'Would import' if dry_run else 'Imported'}: {len(new)}.")


def _show_next(command: KitCommand, page: Page, count: int, *, as_json: bool) -> None:
    ticks = control.next_ticks(page, count)
    if as_json:
        listed = [{"schedule": each.name, "at": at / 1000, "in": (at - page.now) / 1000} for at, each in ticks]
        command.write_json(listed)
    elif ticks:
        command.write_lines(aligned([("AT", "IN", "SCHEDULE"), *(_tick(at, each, page.now) for at, each in ticks)]))
    else:
        new = sum(each.new and not each.paused for each in control.all_schedules().schedules)
        which = "1 schedule" if new == 1 else f"{new:,} schedules"
        why = f"No worker has taken over {which} yet: start rk_worker."
        command.stdout.write(why if new else "No schedule ticks within 24 hours.")


def _show_all(command: KitCommand, page: Page) -> None:
    command.write_lines(aligned([COLUMNS, *(_row(each, page.now) for each in page.schedules)], right=range(5, 8)))
    for each in page.schedules:
        if each.problem:
            command.stdout.write(f"{clean(each.name)} can't run: {clean(each.problem)}")


def _fail_if_overdue(page: Page) -> None:
    """End with 1 if a tick should have run long ago, and say whether a worker would run it."""
    lates = [late for schedule in page.schedules if (late := schedule.overdue(page.now))]
    if lates:
        which = "1 schedule is" if len(lates) == 1 else f"{len(lates):,} schedules are"
        why = "see the log of the workers" if page.watched else "no worker is running"
        raise CommandError(f"{which} overdue by {duration(max(lates) / 1000)}: {why}.")


def _described(entry: celery_beat.Entry) -> str:
    if entry.row is None:
        return ""
    kind = "Celery: " if entry.row.kind == Schedule.Kind.CELERY else ""
    return kind + cut(words.when(rows.made(entry.row)))


def _row(schedule: StoredSchedule, now: int) -> tuple[str, ...]:
    state = schedule.state
    return (
        cut(clean(schedule.name)),
        cut(words.when(schedule.definition)) if schedule.definition else "",
        _from_now(schedule.due, now),
        f"{duration((now - state.tick) / 1000)} ago: {state.outcome}" if state.tick else "",
        duration(state.late / 1000) if state.tick else "",
        *(f"{count:,}" for count in (state.runs, state.skips, state.missed)),
        _condition(schedule),
    )


def _condition(schedule: StoredSchedule) -> str:
    if schedule.problem:
        return "can't run"
    if schedule.paused:
        return "paused"
    return "on" if schedule.state.tick else "new"


def _from_now(due: int | None, now: int) -> str:
    if due is None:
        return ""
    if now - due >= OVERDUE:
        return f"overdue by {duration((now - due) / 1000)}"
    return f"in {duration((due - now) / 1000)}" if due > now else "now"


def _tick(at: int, schedule: StoredSchedule, now: int) -> tuple[str, str, str]:
    zone = schedule.definition.zone if schedule.definition else "UTC"
    return f"{words.moment(at, zone)} {zone}", _from_now(at, now), cut(clean(schedule.name))


def _plain(schedule: StoredSchedule, now: int) -> dict[str, Any]:
    state = schedule.state
    return {
        "schedule": schedule.name,
        "task": schedule.definition and schedule.definition.task,
        "when": schedule.definition and words.when(schedule.definition),
        "source": schedule.source,
        "paused": schedule.paused,
        "next": schedule.due and schedule.due / 1000,
        "overdue": schedule.overdue(now) / 1000 or None,
        "last": state.tick / 1000 if state.tick else None,
        "outcome": state.outcome,
        "late": state.late / 1000,
        "job": state.job,
        "queue": state.queue,
        **{"runs": state.runs, "skipped": state.skips, "missed": state.missed},
        "problem": schedule.problem,
    }


ACTIONS: Mapping[str, Callable[[KitCommand, Options], None]] = {
    "list": show,
    "pause": turn,
    "resume": turn,
    "run": run,
    "import": take_over,
}
