"""``manage.py rk_limit``: list the limits of a queue, change one, or reset it."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core.errors import InvalidValue
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean, did_you_mean
from redis_kit.queues import limits
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.jobs import lane
from redis_kit.queues.limits import LimitInfo
from redis_kit.queues.tasks import discovery, registry
from redis_kit.queues.tasks import limits as task_limits

COLUMNS = ("LIMIT", "CONCURRENCY", "RATE", "RUNNING", "WAITING", "NEXT", "CHANGED")


class Command(QueueCommand):
    """List the limits of a queue, change one, or reset it."""

    help = (
        "List the limits of a queue. With LIMIT and --concurrency or --rate, change that limit at once, in place of "
        "what the code says. It then has no other limit: --rate alone ends a limit of concurrency. --reset goes back "
        "to the code."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        about = "name of a limit as it is listed, or such as group=tenant:7"
        parser.add_argument("limit", nargs="?", metavar="LIMIT", help=about)
        parser.add_argument("--concurrency", type=int, metavar="N", help="jobs that may run at once; 0 for none")
        parser.add_argument("--rate", metavar="RATE", help="rate of starts, such as 10/s")
        parser.add_argument("--unlimited", action="store_true", help="allow everything")
        parser.add_argument("--reset", action="store_true", help="go back to what the code says")

    def run(self, *, name: str, limit: str | None, using: str, json: bool, **options: Any) -> None:
        """List the limits, or change one. Exit code 1 if a limit to reset was not changed."""
        self._check(limit, **options)
        self.queue(name, using)
        if limit is None:
            listed = limits.list_limits(name, using=using)
            data = {"queue": name, "limits": [info._asdict() for info in listed]}
            text = "\n".join(_table(listed)) if listed else f"{clean(name)} has no limits."
            self.report(text, data, as_json=json)
            return
        try:
            if options["reset"]:
                if not limits.reset_limit(name, limit, using=using):
                    raise CommandError(f"The limit {clean(limit)} of {clean(name)} was not changed.")
                self.report(f"Reset: {clean(limit)}.", {"queue": name, "limit": limit, "reset": True}, as_json=json)
                return
            self._check_name(name, limit, using)
            allowed = {"concurrency": options["concurrency"], "rate": options["rate"]}
            limits.set_limit(name, limit, **allowed, using=using)
        except InvalidValue as error:
            self.parser.error(str(error))
        text = f"Changed: {clean(limit)}, to {_allowed(**allowed)}."
        self.report(text, {"queue": name, "limit": limit, **allowed}, as_json=json)

    def _check_name(self, queue: str, limit: str, using: str) -> None:
        """End with 2 for a limit that no job can have: its task or argument is misspelt. A group may have any name."""
        declared = lane.declared_name(lane.limit_name(limit))
        if declared.startswith("group="):
            return
        discovery.discover()
        tasks = [task for task in registry.all_tasks() if hasattr(task, "limits")]  # others are not the kit's
        listed = [info.name for info in limits.list_limits(queue, using=using)]
        names = sorted({*listed, *task_limits.declared_names(queue, tasks)})
        if declared not in names:
            hint = did_you_mean(declared, names, f"Limits: {', '.join(['group=<name>', *names])}.")
            self.parser.error(f"{clean(queue)} has no limit {clean(limit)}. {clean(hint)}")

    def _check(self, limit: str | None, **options: Any) -> None:
        changes = options["concurrency"] is not None or options["rate"] is not None
        given = sum((changes, options["unlimited"], options["reset"]))
        if (limit is not None) != (given == 1):
            self.parser.error("to change a limit, give LIMIT and --concurrency or --rate, or --unlimited, or --reset")


def _allowed(concurrency: int | None, rate: str | None) -> str:
    at_once = "no limit of concurrency" if concurrency is None else f"concurrency {concurrency:,}"
    return f"{at_once} and {'no limit of starts' if rate is None else f'rate {clean(rate)}'}"


def _table(listed: Sequence[LimitInfo]) -> Iterator[str]:
    return aligned([COLUMNS, *map(_row, listed)], right=(1, 3, 4))


def _row(info: LimitInfo) -> tuple[str, ...]:
    return (
        cut(clean(info.name)),
        "" if info.concurrency is None else f"{info.concurrency:,}",
        info.rate or "",
        f"{info.running:,}",
        f"{info.waiting:,}",
        f"in {duration(info.next_start)}" if info.next_start else "",
        "yes" if info.changed else "",
    )
