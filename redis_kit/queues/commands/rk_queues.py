"""``manage.py rk_queues``: how full queues are, how long jobs wait, what was done."""

import json
import time
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.terminal import clean, cut, duration
from redis_kit.queues.commands.base import QueueCommand, jobs
from redis_kit.queues.commands.tables import lateness, per_minute, table
from redis_kit.queues.monitoring.stats import Errors, QueueStats, list_workers, queue_names, queue_stats
from redis_kit.queues.store.unknown import UnknownCalls

MINUTES = 6  # five that are over, and the present one
PACE = 2.0  # seconds between two looks
CLEAR = "\x1b[H\x1b[J"


class Command(QueueCommand):
    """Show queues, once or until Ctrl-C."""

    help = "Show how full queues are, for how long the next job waits, and what was done per minute."
    name_count = "?"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("--watch", action="store_true", help="look again every 2 s, until Ctrl-C")

    def do(self, *, name: str | None, using: str, watch: bool, **options: Any) -> None:
        """Show them. Of all queues there are those that had been used when the command began."""
        names = queue_names(using=using) if name is None else [self.queue(name, using).name]
        if not watch:
            errors: Errors = {}
            reports = queue_stats(names, minutes=MINUTES, using=using, errors=errors)
            text = [json.dumps(_plain(reports, errors), indent=2)] if options["json"] else _text(reports, errors)
            self.write(text if options["json"] else [*text, *_late(names, using)])
            if errors:
                many = f"{len(errors):,} of {len(names):,} queues"
                raise CommandError(f"{many} can't be read.", returncode=terminal.UNAVAILABLE)
            return
        try:
            while True:
                self._look(names, using, as_json=options["json"])
                time.sleep(PACE)
        except KeyboardInterrupt:
            self.stdout.write("")

    def _look(self, names: list[str], using: str, *, as_json: bool) -> None:
        try:
            errors: Errors = {}
            reports = queue_stats(names, minutes=MINUTES, using=using, errors=errors)
            lines = [json.dumps(_plain(reports, errors))] if as_json else list(_text(reports, errors))
        except RedisUnavailable as error:
            lines = [json.dumps({"error": str(error)})] if as_json else [f"Redis is away: {clean(str(error))}"]
        if self.stdout.isatty() and not as_json:
            self.stdout.write(CLEAR, ending="")
        self.write(lines)
        self.stdout.flush()


def _late(names: list[str], using: str) -> list[str]:
    """Return a line where workers have seen the server's clock go back."""
    errors: Errors = {}
    back = max((one.clock_back for one in list_workers(names, using=using, errors=errors)), default=0)
    text = (
        f"The server's clock went back by {back:,} s: scheduled jobs, and those of workers that died before, are late."
    )
    return [text] if back else []


def _text(reports: dict[str, QueueStats], errors: Errors) -> Iterable[str]:
    yield from table(reports)
    yield "Means of the last 5 minutes and the present one. Late: how late attempts began."
    if deserted := [name for name, report in reports.items() if report.deserted]:
        yield f"No worker works on: {clean(', '.join(deserted))}"
    for name, report in reports.items():
        yield from (_unknown(name, one) for one in report.unknown if not one.known)
    for name, error in errors.items():
        yield f"Queue {clean(name)} can't be read: {clean(str(error))}"


def _unknown(queue: str, calls: UnknownCalls) -> str:
    waiting = f"{jobs(calls.jobs)} of {clean(queue)} wait{'s' if calls.jobs == 1 else ''}"
    return f"No living worker can run {cut(clean(calls.call))}: {waiting}, the first for {duration(calls.age)}."


def _plain(reports: dict[str, QueueStats], errors: Errors) -> list[dict[str, Any]]:
    found = [
        {
            "queue": name,
            **report.counts._asdict(),
            "wait": report.wait,
            "done_per_minute": per_minute(report.done, report.minute),
            "failed_per_minute": per_minute(report.failed, report.minute),
            "lateness": lateness(report),
            "lateness_at_most": max(report.latest),
            "workers": report.workers,
            "quiet_workers": report.quiet,
            "paused": report.paused and report.paused._asdict(),
            "unknown": [calls._asdict() for calls in report.unknown],
        }
        for name, report in reports.items()
    ]
    return found + [{"queue": name, "error": str(error)} for name, error in errors.items()]
