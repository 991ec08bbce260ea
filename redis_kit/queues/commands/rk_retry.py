"""``manage.py rk_retry``: let dead jobs run again."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core.errors import InvalidValue
from redis_kit.core.terminal import clean
from redis_kit.queues import validation
from redis_kit.queues.commands.base import SHOWN, QueueCommand, jobs
from redis_kit.queues.monitoring import failures
from redis_kit.queues.monitoring.failures import Group
from redis_kit.queues.queue import Queue

CHUNK = 1000  # jobs in one call


class Command(QueueCommand):
    """Put dead jobs back."""

    help = "Make dead jobs of a queue ready as if they were new: all, some by their ids, or by what they died of."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("ids", type=_id, nargs="*", metavar="ID", help="of a dead job (all)")
        parser.add_argument("--limit", type=_limit, metavar="N", help="so many, the oldest first")
        parser.add_argument("--task", metavar="NAME", help="those of one task, such as shop.tasks.send_mail")
        parser.add_argument("--error", metavar="NAME", help="those with one error, such as ValueError")

    def do(self, *, name: str, using: str, ids: list[str], **options: Any) -> None:
        """Put them back. Exit code 1 where there is none."""
        limit, task, error = options["limit"], options["task"], options["error"]
        if ids and (limit, task, error) != (None, None, None):
            self.parser.error("give either ids, or --limit, --task and --error")
        queue = self.queue(name, using)
        if ids:
            moved = queue.requeue(ids)
        elif task is None and error is None:
            moved = _oldest(queue, limit)
        else:
            moved = queue.requeue(task=task, error=error, limit=limit)
        if not moved:
            known = "" if ids else _known(queue._run(failures.latest(queue)))
            raise CommandError(f"Nothing was put back: {clean(name)} has no such dead job.{clean(known)}")
        of = f" of {len(set(ids)):,}" if ids and moved < len(set(ids)) else ""
        data = {"queue": name, "put_back": moved}
        self.tell(f"Put back into {clean(name)}: {jobs(moved)}{of}.", data, as_json=options["json"])


def _known(groups: list[Group]) -> str:
    texts = [f"{group.cause.task or 'no task'}, {group.cause.error or 'no error'}: {group.jobs:,}" for group in groups]
    more = f"; and {len(texts) - SHOWN:,} more" if len(texts) > SHOWN else ""
    return f" Dead there by task and error: {'; '.join(texts[:SHOWN])}{more}." if texts else ""


def _oldest(queue: Queue, limit: int | None) -> int:
    dead = queue.counts().dead
    most = dead if limit is None else min(dead, limit)
    moved = 0
    while moved < most and (count := queue.requeue(limit=min(CHUNK, most - moved))):
        moved += count
    return moved


def _id(text: str) -> str:
    try:
        return validation.identifier("ID", text)
    except InvalidValue as error:
        raise ArgumentTypeError(str(error)) from error


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise ArgumentTypeError(f"{text!a} is no whole number from 1 to 1,000,000")
    return int(text)
