"""``manage.py rk_pageviews``: copies closed periods into the database, exports days, lists pages."""

import argparse
import json
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, get_args

from django.core.management.base import CommandError, CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.terminal import aligned, cut, whole
from redis_kit.core.values.csv_rows import CSVWriter
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import MAX_TOP, Day, PageViews, Period, dropped
from redis_kit.pageviews.database.snapshots import MAX_DAYS, history, snapshot

EXPORTED = 30  # days


class Command(terminal.ActionCommand):
    """Snapshots, exports and lists of page views."""

    help = "Copy page views of closed periods into the database, export them by day, or list the most viewed pages."
    actions = {
        "snapshot": "copy days, weeks and months that are over into the database",
        "export": "print the views and visitors of each day, also from snapshots, as CSV",
        "top": "list the most viewed pages, or the objects of a page",
        "dropped": "print how many views were not counted on each day, as CSV",
    }

    def add_options(self, action: str, parser: CommandParser) -> None:
        """Add the options of an action."""
        add = parser.add_argument
        if action == "snapshot":
            add("--days", type=whole(1, MAX_DAYS), default=3, help=f"days to go back, 1 to {MAX_DAYS} (default: 3)")
        if action in ("export", "top"):
            about = "name of a page (default: the whole site)"
            add("--page", action=terminal.Once, type=terminal.name, help=about)
        if action in ("export", "dropped"):
            about = f"first day, YYYY-MM-DD (default: {EXPORTED} days)"
            add("--since", "--start", dest="start", type=_day, help=about)
            add("--until", "--end", dest="end", type=_day, help="last day (default: today)")
        if action == "export":
            add("--key", action=terminal.Once, type=terminal.name, help="key of an object of the page")
        if action == "top":
            add("--day", type=_day, help="YYYY-MM-DD (default: today)")
            add("--period", choices=get_args(Period), default="day", help="the day, or what it is in (default: day)")
            about = f"number of lines, 1 to {MAX_TOP:,} (default: 10)"
            add("-n", "--limit", type=whole(1, MAX_TOP), default=10, help=about)
        add("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action, in English."""
        with translation.override(None):
            super().handle(*args, **options)

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
        self._write(Day._fields, history(_views(page, key), *_range(start, end)), as_json=options["json"])

    def _dropped(self, *, start: date | None, end: date | None, **options: Any) -> None:
        days = periods.days(*_range(start, end))
        counts = _views(None).run_flow(dropped(days))
        self._write(("day", "dropped"), zip(days, counts, strict=True), as_json=options["json"])

    def _write(self, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]], *, as_json: bool) -> None:
        if as_json:
            self.write_json([dict(zip(names, row, strict=True)) for row in rows])
        else:
            CSVWriter(self.stdout, lineterminator="\n").writerows([names, *rows])

    def _top(self, *, page: str | None, day: date | None, period: Period, limit: int, **options: Any) -> None:
        rows = _views(page).top(limit, day, period=period)
        if options["json"]:
            self.write_json([{"name": name, "views": number} for name, number in rows])
        if not rows:
            raise CommandError("There are no views.")
        if not options["json"]:
            lines = [(cut(name), f"{number:,}") for name, number in rows]
            self.write_lines(aligned([("OBJECT" if page else "PAGE", "VIEWS"), *lines], right=(1,)))


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
