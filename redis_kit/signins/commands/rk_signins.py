"""``manage.py rk_signins``: figures of sign-ins, their export, and their return from the database."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.text import clean, counted, did_you_mean
from redis_kit.core.values.csv_rows import CSVWriter
from redis_kit.core.values.sequences import batched
from redis_kit.signins import mixin
from redis_kit.signins.activity import Activity
from redis_kit.signins.database import record
from redis_kit.signins.database.models import SignInDay
from redis_kit.signins.database.record import BATCH, Rebuild
from redis_kit.signins.days import today

PROGRESS = 1000  # users


class Command(terminal.ActionCommand):
    """Count, export and restore sign-ins."""

    actions = {
        "stats": "count users: today, in 7 and in 30 days, and streaks that end today",
        "export": "write all days as CSV, or to the table of the setting RECORD",
        "rebuild": "store the days of that table in Redis again",
    }
    help = "Show figures of sign-ins, export all days, and store them again after Redis lost them."

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        about_model = "label of the model, such as shop.User (default: the only one)"
        parser.add_argument("--model", metavar="LABEL", help=about_model)
        parser.add_argument("--json", action="store_true", help="print JSON")
        if action == "export":
            parser.add_argument("--to-database", action="store_true", help="write to the table in place of CSV")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action for a model."""
        with terminal.failing():
            options["model"] = _chosen(options["model"])
        super().handle(*args, action=action, **options)

    def _stats(self, *, model: Any, **options: Any) -> None:
        activity, day = Activity(model), today()
        leaders = activity.leaderboard(1, day)
        figures = [
            ("today", "today", activity.active(day)),
            ("week", "in 7 days", activity.weekly_active(day, day)[0].users),
            ("month", "in 30 days", activity.monthly_active(day, day)[0].users),
            ("at_risk", "streaks of 3 that end today", activity.count_at_risk(day=day)),
            ("longest", "longest streak that goes on", leaders[0].streak if leaders else 0),
        ]
        if options["json"]:
            self.write_json({"model": model._meta.label, **{name: number for name, _text, number in figures}})
            return
        self.stdout.write(f"{model._meta.label}, {day}")
        self.write_lines(f"  {text:27} {number:,}" for _name, text, number in figures)

    def _export(self, *, model: Any, to_database: bool, **options: Any) -> None:
        rows = self._rows(model)
        if to_database:
            label = Rebuild(model).name
            count = record.write(SignInDay(label=label, object_id=id, day=day, kind=kind) for id, day, kind in rows)
            self.report(f"In the table: {counted(count, 'day')}.", {"days": count}, as_json=options["json"])
        elif options["json"]:
            for id, day, kind in rows:
                self.stdout.write(json.dumps({"id": id, "day": str(day), "kind": kind}))
        else:
            writer = CSVWriter(self.stdout, lineterminator="")
            first = list(islice(rows, 1))  # before the header, which an outage would leave alone
            writer.writerows([("id", "day", "kind"), *first])
            writer.writerows(rows)

    def _rebuild(self, *, model: Any, **options: Any) -> None:
        rebuild, count, days, deleted = Rebuild(model), 0, 0, 0
        for batch in batched(record.days_of(rebuild.name), BATCH):
            stored = record.existing(model, [id for id, _ in batch])
            users = [(id, each) for id, each in batch if id in stored]
            rebuild.add(users)
            days += sum(len(each) for _, each in users)
            deleted += len(batch) - len(users)
            count = self._counted(count, len(users))
        if deleted:
            self.stderr.write(f"Left out, as they were deleted: {counted(deleted, 'user')}.")
        if not count and not deleted:
            hint = "Days are recorded if REDIS_KIT['SIGNINS']['RECORD'] is True, and by rk_signins export --to-database"
            raise CommandError(f"Nothing was restored: the database has no days of {model._meta.label}. {hint}.")
        text = f"In Redis: {counted(days, 'day')} of {counted(count, 'user')}."
        self.report(text, {"users": count, "days": days}, as_json=options["json"])

    def _rows(self, model: Any) -> Iterator[tuple[str, date, str]]:
        count = 0
        for batch in Rebuild(model).users():
            for id, days in batch:
                yield from ((id, day, kind) for day, kind in days)
            count = self._counted(count, len(batch))

    def _counted(self, count: int, more: int) -> int:
        if count // PROGRESS != (count + more) // PROGRESS:
            print(f"{count + more:,} users", file=sys.stderr, flush=True)
        return count + more


def _chosen(label: str | None) -> Any:
    """Return the model of a label, or the only one that can sign in."""
    by_label: dict[str, Any] = {model._meta.label: model for model in mixin.models()}
    if label is None and len(by_label) == 1:
        return next(iter(by_label.values()))
    labels: Sequence[str] = sorted(by_label)
    if not labels:
        raise CommandError("No model has SignInMixin.")
    if label is None:
        raise CommandError(f"Give --model: one of {', '.join(labels)}.", returncode=2)
    chosen = next((model for name, model in by_label.items() if name.lower() == label.lower()), None)
    if chosen is None:
        hint = did_you_mean(label, labels, f"There are {', '.join(labels)}.")
        raise CommandError(f"No model {clean(label)} has SignInMixin. {hint}", returncode=2)
    return chosen
