"""``manage.py rk_limit``: list the limits of queues, change one, or reset it."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidValue, KeyConflict
from redis_kit.core.terminal import aligned, cut, duration
from redis_kit.core.text import clean, did_you_mean
from redis_kit.queues import limits
from redis_kit.queues.commands.base import QueueCommand
from redis_kit.queues.features.limits import lanes
from redis_kit.queues.limits import LimitInfo
from redis_kit.queues.reports.stats import Errors, queue_names
from redis_kit.queues.tasks import discovery, registry

COLUMNS = ("QUEUE", "LIMIT", "CONCURRENCY", "RATE", "RUNNING", "WAITING", "NEXT", "CHANGED")
WRONG = "to change a limit, give NAME, LIMIT and --concurrency or --rate, or --unlimited, or --reset"


class Command(QueueCommand):
    """List the limits of queues, change one, or reset it."""

    help = (
        "List the limits of a queue, or of all queues. With LIMIT and --concurrency or --rate, change that limit at "
        "once, in place of what the code says. It then has no other limit: --rate alone ends a limit of concurrency. "
        "--reset goes back to the code."
    )
    name_count = "?"

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        about = "name of a limit as it is listed, or such as group=tenant:7"
        parser.add_argument("limit", nargs="?", metavar="LIMIT", help=about)
        whole = terminal.whole(*lanes.CONCURRENCY)
        parser.add_argument("--concurrency", type=whole, metavar="N", help="jobs that may run at once; 0 for none")
        parser.add_argument("--rate", metavar="RATE", help="rate of starts, such as 10/s")
        parser.add_argument("--unlimited", action="store_true", help="allow everything")
        parser.add_argument("--reset", action="store_true", help="go back to what the code says")

    def run(self, *, name: str | None, limit: str | None, using: str, **options: Any) -> None:
        """List the limits, one round trip for each queue, or change one. Exit code 1 if there is nothing to reset."""
        changes = options["concurrency"] is not None or options["rate"] is not None
        if (limit is not None) != (sum((changes, options["unlimited"], options["reset"])) == 1):
            self.parser.error(WRONG)
        if name is not None:
            self.queue(name, using)
        if name is None or limit is None:
            self._list(name, using, as_json=options["json"])
            return
        try:
            self._change(name, limit, using, **options)
        except InvalidValue as error:
            self.parser.error(str(error))

    def _list(self, name: str | None, using: str, *, as_json: bool) -> None:
        rows: list[tuple[str, LimitInfo]] = []
        errors: Errors = {}
        names = queue_names(using=using) if name is None else [name]
        for queue in names:
            try:
                rows += [(queue, info) for info in limits.list_limits(queue, using=using)]
            except KeyConflict as error:
                errors[queue] = error
        if as_json:
            self.write_json([{"queue": queue, **info._asdict()} for queue, info in rows])
        elif rows:
            self.write_lines(aligned([COLUMNS, *(_row(queue, info) for queue, info in rows)], right=(2, 4, 5)))
        elif not errors:
            self.stdout.write(f"{clean(name)} has no limits." if name else "No queue has limits.")
        self.fail_for(errors, names)

    def _change(self, name: str, limit: str, using: str, **options: Any) -> None:
        if options["reset"]:
            if not limits.reset_limit(name, limit, using=using):
                raise CommandError(f"The limit {clean(limit)} of {clean(name)} was not changed.")
            said = f"Reset: {clean(limit)}."
            data: dict[str, Any] = {"reset": True}
        else:
            self._check_name(name, limit, using)
            data = {"concurrency": options["concurrency"], "rate": options["rate"]}
            limits.set_limit(name, limit, **data, using=using)
            said = f"Changed: {clean(limit)}, to {_allowed(**data)}."
        self.report(said, {"queue": name, "limit": limit, **data}, as_json=options["json"])

    def _check_name(self, queue: str, limit: str, using: str) -> None:
        """End with 2 for a limit that no job can have: its task or argument is misspelt. A group may have any name."""
        declared = lanes.declared_name(lanes.limit_name(limit))
        if declared.startswith("group="):
            return
        discovery.discover()
        tasks = [task for task in registry.all_tasks() if hasattr(task, "limits")]  # others are not the kit's
        listed = [info.name for info in limits.list_limits(queue, using=using)]
        names = sorted({*listed, *lanes.declared_names(queue, tasks)})
        if declared not in names:
            hint = did_you_mean(declared, names, f"Limits: {', '.join(['group=<name>', *names])}.")
            self.parser.error(f"{clean(queue)} has no limit {clean(limit)}. {clean(hint)}")


def _allowed(concurrency: int | None, rate: str | None) -> str:
    at_once = "no limit of concurrency" if concurrency is None else f"concurrency {concurrency:,}"
    return f"{at_once} and {'no limit of starts' if rate is None else f'rate {clean(rate)}'}"


def _row(queue: str, info: LimitInfo) -> tuple[str, ...]:
    return (
        cut(clean(queue)),
        cut(clean(info.name)),
        "" if info.concurrency is None else f"{info.concurrency:,}",
        info.rate or "",
        f"{info.running:,}",
        f"{info.waiting:,}",
        f"in {duration(info.next_start)}" if info.next_start else "",
        "yes" if info.changed else "",
    )
