"""``manage.py rk_schedule``: see, pause, resume, run and import schedules."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidValue
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import inspection
from redis_kit.queues.features.schedules.store import OVERDUE, Page, StoredSchedule

NAMED = ("pause", "resume", "run")
COLUMNS = ("SCHEDULE", "WHEN", "NEXT", "LAST TICK", "LATE", "RUNS", "SKIPPED", "MISSED", "STATE")


class Command(terminal.KitCommand):
    """Show and control schedules."""

    help = "Show schedules and when they tick next; pause, resume or run one; import those of celery beat."
    exit_codes = (
        "Exit codes: 0 done, 1 no schedule of this name, nothing to do, or a schedule is overdue, 2 wrong arguments, "
        "69 Redis is unavailable."
    )
    actions = {
        "list": "show the schedules (default)",
        "pause": "turn the schedule NAME off",
        "resume": "turn it on again",
        "run": "add a job of it now",
        "import": "take over the schedules of django-celery-beat's tables",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        self.parser = parser
        about = "; ".join(f"{name}: {text}" for name, text in self.actions.items())
        parser.add_argument("action", nargs="?", default="list", choices=self.actions, metavar="ACTION", help=about)
        parser.add_argument("name", type=terminal.name, nargs="?", metavar="NAME", help="name of a schedule")
        parser.add_argument(
            "--next", type=terminal.whole(1, 1000), metavar="N", help="show the next N ticks within 24 hours, 1 to 1000"
        )
        parser.add_argument("--dry-run", action="store_true", help="with import: change nothing")
        parser.add_argument("--json", action="store_true", help="print JSON, with times in seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command. Exit code 1: no schedule of this name, or one is overdue; 69: Redis is unavailable."""
        action, name, as_json = options["action"], options["name"], options["json"]
        if (name is not None) != (action in NAMED):
            self.parser.error(f"{action} needs the NAME of a schedule" if name is None else f"{action} takes no NAME")
        if options["next"] and action != "list":
            self.parser.error(f"--next belongs to list, not to {action}")
        if options["dry_run"] and action != "import":
            self.parser.error(f"--dry-run belongs to import, not to {action}")
        with terminal.failing(), translation.override(None):
            # Without a task framework this says what to install.
            from redis_kit.queues.features.schedules import control

            try:
                if action == "list":
                    self._list(options["next"], as_json=as_json)
                elif action == "import":
                    self._import(dry_run=options["dry_run"], as_json=as_json)
                elif action == "run":
                    queue, job = control.run(name)
                    data = {"schedule": name, "queue": queue, "job": job}
                    self.report(f"Added to {clean(queue)}: job {job} of {clean(name)}.", data, as_json=as_json)
                else:
                    on = action == "resume"
                    control.turn(name, on=on)
                    said = f"{'Resumed' if on else 'Paused'}: {clean(name)}."
                    self.report(said, {"schedule": name, "paused": not on}, as_json=as_json)
            except (InvalidValue, InvalidSchedule) as error:
                raise CommandError(clean(str(error))) from error

    def _list(self, count: int | None, *, as_json: bool) -> None:
        """Show the schedules, or the next ``count`` ticks. End with 1 if a tick should have run long ago."""
        page = inspection.listed("due", limit=count) if count else inspection.all_schedules()
        if count:
            self._show_next(page, count, as_json=as_json)
        elif as_json:
            self.write_json([_plain(schedule, page.now) for schedule in page.schedules])
        elif page.schedules:
            rows = [_row(schedule, page.now) for schedule in page.schedules]
            self.write_lines(aligned([COLUMNS, *rows], right=range(5, 8)))
            for each in page.schedules:
                if each.problem:
                    self.stdout.write(f"{clean(each.name)} can't run: {clean(each.problem)}")
        else:
            self.stdout.write("There are no schedules. Workers declare those of the code when they start.")
        lates = [late for schedule in page.schedules if (late := schedule.overdue(page.now))]
        if lates:
            which = "1 schedule is" if len(lates) == 1 else f"{len(lates):,} schedules are"
            why = "see the log of the workers" if page.watched else "no worker is running"
            raise CommandError(f"{which} overdue by {duration(max(lates) / 1000)}: {why}.")

    def _show_next(self, page: Page, count: int, *, as_json: bool) -> None:
        ticks = inspection.next_ticks(page, count)
        if as_json:
            listed = [{"schedule": each.name, "at": at / 1000, "in": (at - page.now) / 1000} for at, each in ticks]
            self.write_json(listed)
        elif ticks:
            self.write_lines(aligned([("AT", "IN", "SCHEDULE"), *(_tick(at, each, page.now) for at, each in ticks)]))
        elif new := sum(each.new and not each.paused for each in inspection.all_schedules().schedules):
            which = "1 schedule" if new == 1 else f"{new:,} schedules"
            self.stdout.write(f"No worker has taken over {which} yet: start rk_worker.")
        else:
            self.stdout.write("No schedule ticks within 24 hours.")

    def _import(self, *, dry_run: bool, as_json: bool) -> None:
        """Import the schedules of django-celery-beat."""
        from redis_kit.queues.features.schedules import celery_beat

        entries = celery_beat.entries()
        new = [each.row for each in entries if each.outcome == "new" and each.row]
        for row in () if dry_run else new:
            row.save()
        if as_json:
            listed = [{"schedule": each.name, "outcome": each.outcome, "note": each.note} for each in entries]
            self.write_json({"imported": len(new), "dry_run": dry_run, "entries": listed})
            return
        table = [(cut(clean(each.name)), each.outcome, cut(each.when), clean(each.note)) for each in entries]
        self.write_lines(aligned([("SCHEDULE", "OUTCOME", "WHEN", "NOTE"), *table]))
        self.stdout.write(f"{'Would import' if dry_run else 'Imported'}: {len(new)}.")


def _row(schedule: StoredSchedule, now: int) -> tuple[str, ...]:
    state = schedule.state
    return (
        cut(clean(schedule.name)),
        cut(inspection.when(schedule.definition)) if schedule.definition else "",
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
    return f"{inspection.moment(at, zone)} {zone}", _from_now(at, now), cut(clean(schedule.name))


def _plain(schedule: StoredSchedule, now: int) -> dict[str, Any]:
    state = schedule.state
    return {
        "schedule": schedule.name,
        "task": schedule.definition and schedule.definition.task,
        "when": schedule.definition and inspection.when(schedule.definition),
        "source": schedule.source,
        "paused": schedule.paused,
        "next": schedule.due and schedule.due / 1000,
        "overdue": schedule.overdue(now) / 1000 or None,
        "last": state.tick / 1000 if state.tick else None,
        "outcome": state.outcome,
        "late": state.late / 1000,
        "job": state.job,
        "queue": state.queue,
        "runs": state.runs,
        "skipped": state.skips,
        "missed": state.missed,
        "problem": schedule.problem,
    }
