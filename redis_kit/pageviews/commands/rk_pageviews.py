"""``manage.py rk_pageviews``: copies closed periods into the database, exports days, lists pages."""

import argparse
import json
from datetime import date, timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.terminal import aligned, cut, whole
from redis_kit.core.text import clean
from redis_kit.core.values.csv_rows import CSVWriter
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import MAX_TOP, PageViews
from redis_kit.pageviews.database.history import history
from redis_kit.pageviews.database.snapshots import MAX_DAYS, snapshot
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Day

EXPORTED = 30  # days


class Command(terminal.KitCommand):
    """Snapshots, exports and lists of page views."""

    help = "Copy page views of closed periods into the database, export them by day, or list the most viewed pages."
    actions = {
        "snapshot": "copy days, weeks and months that are over into the database",
        "export": "print the views and visitors of each day, also from snapshots, as CSV",
        "top": "list the most viewed pages, or the objects of a page",
        "dropped": "print how many views were not counted on each day, as CSV",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions and their options."""
        added = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for action, about in self.actions.items():
            added.add_parser(action, help=about)
        of_snapshot, of_export, of_top, of_dropped = (added.choices[action] for action in self.actions)
        of_snapshot.add_argument(
            "--days", type=whole(1, MAX_DAYS), default=3, help=f"days to go back, 1 to {MAX_DAYS} (default: 3)"
        )
        for subparser in (of_export, of_top):
            subparser.add_argument(
                "--page", action=terminal.Once, type=terminal.name, help="name of a page (default: the whole site)"
            )
        for subparser in (of_export, of_dropped):
            subparser.add_argument(
                "--since", "--start", dest="start", type=_day, help=f"first day, YYYY-MM-DD (default: {EXPORTED} days)"
            )
            subparser.add_argument("--until", "--end", dest="end", type=_day, help="last day (default: today)")
        of_export.add_argument("--key", action=terminal.Once, type=terminal.name, help="key of an object of the page")
        of_top.add_argument("--day", type=_day, help="YYYY-MM-DD (default: today)")
        of_top.add_argument(
            "--period", choices=("day", "week", "month"), help="the day, or what it is in (default: day)"
        )
        of_top.add_argument("--trending", action="store_true", help="by views that lose weight with time")
        of_top.add_argument(
            "-n", "--limit", type=whole(1, MAX_TOP), default=10, help=f"number of lines, 1 to {MAX_TOP:,} (default: 10)"
        )
        for subparser in added.choices.values():
            subparser.add_argument("--json", action="store_true", help="print JSON")
            terminal.add_everywhere(subparser)

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        """Run the action. Exit code 1 if there is nothing to list, 69 while Redis is unavailable."""
        with terminal.failing(), translation.override(None):
            try:
                getattr(self, f"_{action}")(**options)
            except (InvalidName, InvalidValue) as error:
                raise CommandError(clean(str(error)), returncode=2) from error

    def _snapshot(self, *, days: int, **options: Any) -> None:
        result = snapshot(days=days)
        plain = f"Created {result.created:,}, updated {result.updated:,}, unchanged {result.unchanged:,}."
        if not sum(result):
            plain = "There are no views in these days."
        self.stdout.write(json.dumps(result._asdict()) if options["json"] else plain)

    def _export(
        self, *, page: str | None, key: str | None, start: date | None, end: date | None, **options: Any
    ) -> None:
        if key is not None and page is None:
            raise CommandError("--key needs --page, the page that it is an object of", returncode=2)
        days = history(_views(page, key), *_range(start, end))
        if options["json"]:
            self.write_json([day._asdict() for day in days])
            return
        writer = CSVWriter(self.stdout, lineterminator="\n")
        writer.writerows([Day._fields, *days])

    def _dropped(self, *, start: date | None, end: date | None, **options: Any) -> None:
        days = periods.days(*_range(start, end))
        rows = list(zip(days, PageViews.site(on_failure="raise").run_flow(numbers.dropped(days)), strict=True))
        if options["json"]:
            self.write_json([{"day": day, "dropped": count} for day, count in rows])
        else:
            CSVWriter(self.stdout, lineterminator="\n").writerows([("day", "dropped"), *rows])

    def _top(
        self, *, page: str | None, day: date | None, period: str | None, trending: bool, limit: int, **options: Any
    ) -> None:
        if trending and (day or period):
            raise CommandError("--trending is about now: it takes no --day and no --period", returncode=2)
        views = _views(page)
        rows = views.trending(limit) if trending else views.top(limit, day, period=period or "day")  # type: ignore[arg-type]
        column = "score" if trending else "views"
        if options["json"]:
            self.write_json([{"name": name, column: round(number, 2)} for name, number in rows])
        if not rows:
            raise CommandError("There are no views.")
        if not options["json"]:
            lines = [(cut(name), f"{number:,.1f}" if trending else f"{number:,}") for name, number in rows]
            self.write_lines(aligned([("OBJECT" if page else "PAGE", column.upper()), *lines], right=(1,)))


def _views(page: str | None, key: str | None = None) -> PageViews:
    return PageViews(page, key, on_failure="raise") if page else PageViews.site(on_failure="raise")


def _range(start: date | None, end: date | None) -> tuple[date, date]:
    last = end or periods.now().date()
    return start or last - timedelta(EXPORTED - 1), last


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!a} is not a day such as 2026-11-20") from error
