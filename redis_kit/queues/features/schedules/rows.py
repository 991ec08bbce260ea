"""The schedules of the database, on their way to Redis."""

import logging
from collections.abc import Iterator

from django.db import DatabaseError, router, transaction

from redis_kit.core.errors import RedisFailure, RedisKitError
from redis_kit.queues import framework
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import definition, registry, store, target
from redis_kit.queues.features.schedules.definition import Definition
from redis_kit.queues.features.schedules.periodic import runs_here
from redis_kit.queues.features.schedules.store import SCHEDULES
from redis_kit.queues.models import Schedule
from redis_kit.queues.tasks import registry as tasks

logger = logging.getLogger("redis_kit")


def made(row: Schedule, declared: str = "") -> Definition:
    """Return the schedule of a row over that of the code, given as stored JSON. Raises InvalidSchedule."""
    return definition.loaded(row.name, declared, stored(row))


def stored(row: Schedule) -> str:
    """Return what a row says as JSON. Raises InvalidSchedule for wrong fields."""
    values = definition.read({"name": row.name, "kind": row.kind, "enabled": row.enabled, **row.given()})
    if values["kind"] == Schedule.Kind.TASK:
        del values["kind"]
    del values["name"]
    return definition.encoded(values)


def check(row: Schedule) -> None:
    """Look whether a row makes a schedule that can run here, with what the code declares under its name.

    Raises InvalidSchedule, UnknownTask, ConfigurationError, or GiveUp for a task of Celery without Celery.
    """
    checked = made(row, registry.all_declared().get(row.name, ""))
    if checked.kind == "task":
        task = tasks.find_for(Message(checked.task, checked.args, checked.kwargs))
        definition.check_overlap(row.overlap or "allow", is_ours=runs_here(task), task=checked.task)
        if checked.queue:
            try:
                task.using(queue_name=checked.queue)
            except (RedisKitError, framework.InvalidTask) as error:
                raise InvalidSchedule(str(error), "queue") from error
    else:
        target.celery_send()


def store_all() -> None:
    """Store all rows in Redis, and remove those whose row was deleted."""
    # First: a row that is saved in between is newer than what is read here.
    read, names = SCHEDULES.run_flow(store.stored())
    try:
        rows = list(_all_rows())
    except DatabaseError as error:
        logger.debug("The schedules of the database can't be read: %s", error)  # as before its migration
        return
    deleted = [(name, "") for name in sorted(set(names) - {name for name, _ in rows})]
    SCHEDULES.run_flow(store.store([*rows, *deleted], read=read))


def push(row: Schedule, *, deleted: bool = False) -> None:
    """Store a row in Redis after the commit, and remove its earlier name. If that fails, workers do it in a minute."""
    parts = {row.stored_name or row.name: "", row.name: "" if deleted else stored(row)}
    row.stored_name = row.name
    transaction.on_commit(lambda: _push(parts), using=router.db_for_write(Schedule, instance=row))


def _push(parts: dict[str, str]) -> None:
    try:
        SCHEDULES.run_flow(store.store(list(parts.items())))
    except RedisFailure as error:
        logger.warning("Schedule %a is stored in Redis within a minute, and not at once: %s", list(parts)[-1], error)


def _all_rows() -> Iterator[tuple[str, str]]:
    for row in Schedule.objects.iterator():
        try:
            yield row.name, stored(row)
        except Exception as error:
            logger.error("Schedule %a of the database can't be used: %s", row.name, error)  # noqa: TRY400 -- says it all
