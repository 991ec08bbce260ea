"""The system check of the schedules in the database, which ``migrate`` and ``check --database default`` run."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db import DatabaseError, router

from redis_kit.core.errors import RedisKitError
from redis_kit.queues.database.models import Schedule
from redis_kit.queues.tasks import discovery
from redis_kit.queues.tasks.schedules import rows

MOST = 100  # messages


def check_schedules(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Return a warning for each schedule that is on and can't run, 100 at most. None before the migration."""
    if router.db_for_read(Schedule) not in (databases or ()):
        return []
    try:
        stored = list(Schedule.objects.filter(enabled=True))
        if stored:
            discovery.discover()
    except (DatabaseError, RedisKitError):
        return []
    return [problem for row in stored if (problem := _problem(row))][:MOST]


def _problem(row: Schedule) -> CheckMessage | None:
    try:
        rows.check(row)
    except RedisKitError as error:
        hint = "Change or delete it in the admin, or deploy the code that it needs."
        return Warning(f"The schedule {row.name!r} of the database can't run: {error}", hint=hint, id="redis_kit.W022")
    return None
