"""``manage.py rk_queues``: the sizes, waiting times and throughput of queues."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand, jobs, unreadable
from redis_kit.queues.engine.feature import queue_views
from redis_kit.queues.queue import over
from redis_kit.queues.reports.stats import Errors, QueueStats, queue_names, queue_stats
from redis_kit.queues.reports.unknown_calls import UnknownCalls
from redis_kit.queues.reports.workers import DEAD, HOUR, UNRESPONSIVE, LostWorker, WorkerInfo, read_workers

MINUTES = 6  # five full ones and the current one
INTERVAL = 2.0  # seconds between two updates of --watch
CLEAR = "\x1b[H\x1b[J"
COLUMNS = (
    *("QUEUE", "READY", "SCHEDULED", "RUNNING", "DEAD", "WAITS"),
    *("DONE/MIN", "FAILED/MIN", "LATE", "WORKERS", "PAUSED"),
)


class Command(QueueCommand):
    """Show queues, once or until Ctrl-C."""

    help = "Show the number of jobs in queues, how long the next job has waited, and the jobs done per minute."
    name_count = "?"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        views = parser.add_mutually_exclusive_group()
        views.add_argument("--watch", action="store_true", help="update every 2 s, until Ctrl-C")
        for view in queue_views():
            view.add_argument(views)

    def run(self, *, name: str | None, using: str, watch: bool, **options: Any) -> None:
        """Show the queues. Queues that are first used later do not appear."""
        names = queue_names(using=using) if name is None else [self.queue(name, using).name]
        for view in queue_views():
            if wanted := options[view.NAME]:
                view.show(self, names, wanted, using, as_json=options["json"])
                return
        if not watch:
            errors: Errors = {}
            reports = queue_stats(names, minutes=MINUTES, using=using, errors=errors)
            if options["json"]:
                self.write_json(_plain(reports, errors))
            else:
                self.write_lines([*_text(reports, errors), *_warnings(names, using)])
            self.fail_for(errors, names, named=True)
            if any(report.refused for report in reports.values()):
                raise CommandError("Redis refuses writes.", returncode=terminal.UNAVAILABLE)
            return
        try:
            while True:
                self._look(names, using, as_json=options["json"])
                time.sleep(INTERVAL)
        except KeyboardInterrupt:
            self.stdout.write("")

    def _look(self, names: list[str], using: str, *, as_json: bool) -> None:
        try:
            errors: Errors = {}
            reports = queue_stats(names, minutes=MINUTES, using=using, errors=errors)
            lines = [json.dumps(_plain(reports, errors))] if as_json else list(_text(reports, errors))
        except RedisUnavailable as error:
            lines = [json.dumps({"error": str(error)})] if as_json else [f"Redis is unavailable: {clean(str(error))}"]
        if self.stdout.isatty() and not as_json:
            self.stdout.write(CLEAR, ending="")
        self.write_lines(lines)
        self.stdout.flush()


def _warnings(names: list[str], using: str) -> list[str]:
    """Return a line for each dead worker that has jobs, that does not respond, or that was lost in the last hour."""
    workers, lost = over(using).run_flow(read_workers(names, using, {}))
    return [
        *(_dead(worker) for worker in workers if worker.state == DEAD and worker.jobs),
        *(_unresponsive(worker) for worker in workers if worker.state == UNRESPONSIVE),
        *(_lost(worker) for worker in lost if worker.age < HOUR),
    ]


def _dead(worker: WorkerInfo) -> str:
    queues, count = clean(", ".join(worker.queues)), worker.running
    late = f"Worker {clean(worker.id)} of {queues} has sent no heartbeat for {duration(worker.silent)}"
    return f"{late}: its {jobs(count)} wait{'s' if count == 1 else ''} until another worker runs."


def _unresponsive(worker: WorkerInfo) -> str:
    silent = f"{_process(worker)} has not responded for {duration(worker.unresponsive)}"
    return f"{silent}: it was stopped, or a job holds the interpreter."


def _lost(worker: LostWorker) -> str:
    taken = f"others took {jobs(worker.jobs)} from it" if worker.jobs else "it held no jobs"
    return f"{_process(worker)} was found lost {duration(worker.age)} ago, as it ended without signing off: {taken}."


def _process(worker: WorkerInfo | LostWorker) -> str:
    return clean(f"Worker {worker.id} ({worker.host}, process {worker.pid}) of {', '.join(worker.queues)}")


def _text(reports: dict[str, QueueStats], errors: Errors) -> Iterable[str]:
    yield from table(reports)
    yield "Means of the last 5 minutes and the current one. RUNNING: claimed by workers. LATE: how late attempts began."
    if deserted := [name for name, report in reports.items() if report.deserted]:
        yield f"No worker works on: {clean(', '.join(map(cut, deserted)))}"
    if several := [f"{clean(name)}: {report.shards}" for name, report in reports.items() if report.shards > 1]:
        yield f"Shards: {', '.join(several)}"
    by_reason: dict[str, list[str]] = {}
    for name, report in reports.items():
        by_reason.setdefault(report.refused, []).append(name)
    for reason in filter(None, by_reason):
        yield f"Redis refuses writes to {clean(', '.join(by_reason[reason]))}: {clean(reason)}"
    for name, report in reports.items():
        yield from (_unknown(name, calls) for calls in report.unknown if not calls.known)
    yield from unreadable(errors)


def _unknown(queue: str, calls: UnknownCalls) -> str:
    waiting = f"{jobs(calls.jobs)} of {clean(queue)} wait{'s' if calls.jobs == 1 else ''}"
    return f"No living worker can run {cut(clean(calls.call))}: {waiting}, the first for {duration(calls.age)}."


def _plain(reports: dict[str, QueueStats], errors: Errors) -> list[dict[str, Any]]:
    rows = [
        {
            "queue": name,
            **report.counts._asdict(),
            "wait": report.wait,
            "done_per_minute": round(per_minute(report.done, report.minute), 3),
            "failed_per_minute": round(per_minute(report.failed, report.minute), 3),
            "lateness": round(lateness(report), 3),
            "lateness_at_most": max(report.latest),
            "workers": report.workers,
            "quiet_workers": report.quiet,
            "paused": report.paused and report.paused._asdict(),
            "shards": report.shards,
            "refused": report.refused,
            "unknown": [calls._asdict() for calls in report.unknown],
        }
        for name, report in reports.items()
    ]
    return rows + [{"queue": name, "error": str(error)} for name, error in errors.items()]


def table(reports: Mapping[str, QueueStats]) -> Iterator[str]:
    """Return a header line and a line for each queue."""
    rows = [COLUMNS, *(_row(name, report) for name, report in reports.items())]
    return aligned(rows, right=range(1, len(COLUMNS) - 1))


def per_minute(counts: Sequence[int], minute: int) -> float:
    """Return the mean per minute. The last one, ``minute``, is the current one and counts as far as it has passed."""
    # The clocks of this machine and the server may differ; the error is less than a minute.
    over = min(1.0, max(0.0, time.time() / 60 - minute))
    return sum(counts) / max(1.0, len(counts) - 1 + over)


def lateness(report: QueueStats) -> float:
    """Return by how many seconds attempts began too late on average; 0 without attempts."""
    late = sum(begun * mean for begun, mean in zip(report.begun, report.lateness, strict=True))
    return late / max(1, sum(report.begun))


def _row(name: str, report: QueueStats) -> tuple[str, ...]:
    counts = report.counts
    return (
        cut(clean(name)),
        *(f"{count:,}" for count in (counts.ready, counts.scheduled, counts.running, counts.dead)),
        "" if report.wait is None else duration(report.wait),
        f"{per_minute(report.done, report.minute):,.1f}",
        f"{per_minute(report.failed, report.minute):,.1f}",
        duration(lateness(report)) if any(report.begun) else "",
        _workers(report),
        _paused(report),
    )


def _workers(report: QueueStats) -> str:
    quiet = f"{report.quiet:,} quiet" if report.quiet else ""
    if report.deserted:
        return f"none! ({quiet})" if quiet else "none!"
    return f"{report.claiming:,} ({quiet})" if quiet else f"{report.claiming:,}"


def _paused(report: QueueStats) -> str:
    if report.paused is None:
        return ""
    return "until resumed" if report.paused.ends_in is None else f"for {duration(report.paused.ends_in)}"
