"""Changes of schedules: rows of the database on their way to Redis, pause and resume, and a run by hand."""

import logging
from collections.abc import Iterator

from django.db import DatabaseError, router, transaction
from django.utils.translation import gettext as _

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue, RedisFailure, RedisKitError
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.text import did_you_mean
from redis_kit.queues import framework
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import definition, inspection, periodic, store, target
from redis_kit.queues.features.schedules.definition import Definition
from redis_kit.queues.features.schedules.store import SCHEDULES, StoredSchedule
from redis_kit.queues.models import Schedule
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery, registry
from redis_kit.queues.worker.shared.failures import UNAVAILABLE

logger = logging.getLogger("redis_kit")
LONGEST_ERROR = 300  # characters


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
    checked = made(row, periodic.all_declared().get(row.name, ""))
    if checked.kind == "task":
        task = registry.find_for(Message(checked.task, checked.args, checked.kwargs))
        definition.check_overlap(row.overlap or "allow", is_ours=periodic.runs_here(task), task=checked.task)
        if checked.queue:
            try:
                task.using(queue_name=checked.queue)
            except (RedisKitError, framework.InvalidTask) as error:
                raise InvalidSchedule(str(error), "queue") from error
    else:
        target.celery_send()


def load_rows() -> None:
    """Store all rows in Redis, and remove those whose row was deleted. Errors are logged.

    Supervisors run it in a process of its own: the database may take long to answer.
    """
    try:
        # First: a row that is saved in between is newer than what is read here.
        read, names = SCHEDULES.run_flow(store.stored())
        rows = list(_all_rows())
        deleted = [(name, "") for name in sorted(set(names) - {name for name, _ in rows})]
        SCHEDULES.run_flow(store.store([*rows, *deleted], read=read))
    except UNAVAILABLE:
        pass  # the next run says so, and has them read again
    except DatabaseError as error:
        logger.debug("The schedules of the database can't be read: %s", error)  # as before its migration
    except RedisFailure as error:
        logger.warning("The schedules of the database can't be stored in Redis: %s", text_of(error)[:LONGEST_ERROR])
    except BaseException as error:
        logger.warning("The schedules of the database can't be read: %s", text_of(error)[:LONGEST_ERROR])


def push(row: Schedule, *, deleted: bool = False) -> None:
    """Store a row in Redis after the commit, and remove its earlier name. If that fails, workers do it in a minute."""
    parts = {row.stored_name or row.name: "", row.name: "" if deleted else stored(row)}
    row.stored_name = row.name
    transaction.on_commit(lambda: _push(parts), using=router.db_for_write(Schedule, instance=row))


def turn(name: str, *, on: bool) -> None:
    """Turn a schedule on or off, in the database, which outlives what is in Redis. Raises InvalidValue."""
    schedule = _find(name)
    try:
        with transaction.atomic():
            row, created = Schedule.objects.get_or_create(name=name, defaults={"enabled": on})
            if on and not row.given() and schedule.code and definition.loaded(name, schedule.code).enabled:
                row.delete()  # it said no more than that the schedule is off
            elif not created:
                row.enabled = on
                row.save()
    except DatabaseError as error:
        text = _("The schedules of the database can't be changed: %(error)s. Is the app migrated?")
        raise InvalidValue(text % {"error": error}) from error


def run(name: str) -> tuple[str, str]:
    """Add a job of a schedule now, or start the waiting retry of its latest job; return the queue and id of the job.

    Raises InvalidValue if it can't.
    """
    discovery.discover()
    schedule = _find(name)
    try:
        call = target.call_of(schedule.load(), conf.section(QueueSettings).NAMES[0])
        step = call.step(0)
    except (RedisKitError, LookupError) as error:
        raise InvalidValue(str(error)) from error
    queue = Queue(call.shard)
    (answer,) = queue.run_flow(store.put([step]))
    if isinstance(answer, RedisFailure):
        raise answer
    queue.run_flow(enqueue.registered(queue))
    outcome, job = answer
    if outcome not in (store.ADDED, store.RETRIED):
        raise InvalidValue(_("Nothing was added: the job %(job)s of the schedule has not ended.") % {"job": job})
    return call.queue, job


def _find(name: str) -> StoredSchedule:
    schedule: StoredSchedule | None = SCHEDULES.run_flow(store.find(name))
    if schedule is None:
        names = [
            each.name for each in inspection.listed().schedules if each.name != name
        ]  # a deleted one may be listed yet
        hint = did_you_mean(name, names, _("Workers declare those of the code when they start."))
        raise InvalidValue(_("There is no schedule %(name)s.") % {"name": name} + f" {hint}")
    return schedule


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
