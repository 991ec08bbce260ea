"""``manage.py rk_cancel``: cancel jobs by their ids."""

from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError, CommandParser

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidName
from redis_kit.core.text import clean
from redis_kit.queues.commands.base import QueueCommand, identifier
from redis_kit.queues.engine.ids import in_full, queue_of
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports.lookup import look_up
from redis_kit.queues.settings import whole

REMOVED, STOPPING, ENDED, DEAD, NOT_FOUND = "removed", "stopping", "ended", "dead", "not found"
TEXTS = {
    REMOVED: "Removed: {id}, which waited.",
    STOPPING: "Stopping: {id}, which runs. Its worker stops it at its next heartbeat.",
    ENDED: "Not cancelled: {id} has ended.",
    DEAD: "Not cancelled: {id} is dead.",
    NOT_FOUND: "Not found: {id}, in the queue {queue}.",
}


class Command(QueueCommand):
    """Cancel jobs."""

    help = "Cancel jobs that wait or run, by the ids that enqueue() and put() return."
    takes_name = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        super().add_arguments(parser)
        parser.add_argument("ids", type=identifier, nargs="+", metavar="ID", help="id of a job")
        about = "their queue (default: that which the id names, else default)"
        parser.add_argument("--queue", action=terminal.Once, type=terminal.name, metavar="NAME", help=about)

    def run(self, *, ids: list[str], queue: str | None, using: str, **options: Any) -> None:
        """Cancel the jobs. Exit code 1 if none was. One round trip for each, and another one if it is not found."""
        if queue is not None:
            self.queue(queue, using)
        outcomes = [_cancelled(id, queue, using) for id in dict.fromkeys(ids)]
        if options["json"]:
            self.write_json(outcomes)
        else:
            self.write_lines(TEXTS[job["outcome"]].format(id=job["id"], queue=clean(job["queue"])) for job in outcomes)
        if not {REMOVED, STOPPING} & {job["outcome"] for job in outcomes}:
            missing = queue is None and any(job["outcome"] == NOT_FOUND for job in outcomes)
            hint = " For jobs of another queue, give --queue." if missing else ""
            raise CommandError(f"Nothing was cancelled.{hint}")


def _cancelled(id: str, queue: str | None, using: str) -> dict[str, str]:
    places = [(place, form) for place in _queues(id, queue, using) for form in in_full(id, place.name)]
    for place, form in places:
        if answer := place.run_flow(manage.cancel(place, form)):
            outcome = STOPPING if answer == manage.STOPPING else REMOVED
            return {"queue": place.name, "id": form, "outcome": outcome}
    for place, form in places:
        _, details = look_up([place.name], form, using=using)
        if details:
            return {"queue": place.name, "id": form, "outcome": DEAD if details.job else ENDED}
    return {"queue": places[0][0].name, "id": id, "outcome": NOT_FOUND}


def _queues(id: str, queue: str | None, using: str) -> list[Queue]:
    """Return the queue that is given, or that a call's id names; ``default`` for an id that a project has chosen."""
    queues = []
    for name in dict.fromkeys([whole(queue_of(id)), "default"] if queue is None else [queue]):
        with suppress(InvalidName):
            queues.append(Queue(name, using=using))
    return queues
