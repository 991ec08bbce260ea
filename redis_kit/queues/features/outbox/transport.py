"""Calls are stored in the project's database at once, and sent after the commit.

The process that enqueued a call sends it, and notes that. A worker sends what is left. It deletes rows whose calls
Redis has known for some seconds: a server that comes back without its last seconds gets them again.
"""

import logging
import math
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from time import time
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connections, transaction
from django.utils.timezone import now

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.unique import PutResult, UniqueKey, key_of_call
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.enqueue import Enqueuer, NewCall, PackedCall, WaitingCall, described, raise_first
from redis_kit.queues.tasks.options import outbox_of
from redis_kit.queues.tasks.task import Task

logger = logging.getLogger("redis_kit.worker")
_log_limit = LogRateLimit()


def send(alias: str, enqueuer: Enqueuer, new: Sequence[NewCall]) -> None:
    """Store calls of a task in a database, and send them after the commit."""
    task = enqueuer.task
    keys = [each.call.key or key_of_call(each.id) for each in new]
    calls = [call._replace(key=key) for call, key in zip(enqueuer.stored(new), keys, strict=True)]
    rows = [_row(task, each.id, call, key) for each, call, key in zip(new, calls, keys, strict=True)]
    numbers = store(alias, rows)

    def send_stored() -> None:
        ready = [at for at, key in enumerate(keys) if not has_older(alias, numbers[at], key)]
        added = enqueuer.add([new[at] for at in ready], [calls[at] for at in ready], own=True)
        stay, end = list[int](), list[int]()
        for at, answer in zip(ready, added, strict=True):
            if isinstance(answer, PutResult):
                (stay if answer.created and not new[at].call.key else end).append(numbers[at])
            elif isinstance(answer, RedisFailure):
                _log_limit.log(logger.warning, alias, "Calls wait in the outbox of database %a: %s", alias, answer)
        note_sent(alias, stay, end)
        raise_first(answer for answer in added if not isinstance(answer, RedisFailure))

    transaction.on_commit(WaitingCall(send_stored, partial(described, task)), using=alias)


def _row(task: Task[..., Any], id: str, call: PackedCall, key: UniqueKey) -> Any:
    due = 0 if task.run_after is None else validation.moment(task.run_after)
    if task.run_in is not None:
        due = math.ceil(time() * 1000) + validation.milliseconds(task.run_in)
    whole_number("priority", task.priority, validation.PRIORITY)
    return new_row(
        queue=ids.queue_of(id),
        job=id,
        body=call.body.decode(),
        priority=task.priority,
        due=due,
        unique_key=key.key,
        unique_until=key.until,
        replace=key.replace,
        lane=call.lane,
    )


def aliases() -> list[str]:
    """Return the databases through which calls of the registered tasks are sent, sorted."""
    named = {conf.section(QueueSettings).OUTBOX, *map(outbox_of, registry.all_tasks())}
    return sorted(named - {""})


def new_row(**fields: Any) -> Any:
    """Return a row of an outbox that is not saved yet. Raises ConfigurationError without the table."""
    if not apps.is_installed("redis_kit"):
        raise ConfigurationError("The outbox needs a table: add 'redis_kit' to INSTALLED_APPS, and run migrate.")
    from redis_kit.queues.models import OutboxMessage

    return OutboxMessage(**fields)


def store(alias: str, new: Sequence[Any]) -> list[int]:
    """Store rows in the present transaction, and return their numbers. A statement for some hundred."""
    if len(new) == 1:
        new[0].save(using=alias, force_insert=True)  # bulk_create() would begin and commit a transaction
        return [int(new[0].pk)]
    stored = rows(alias).bulk_create(new)
    if all(row.pk for row in stored):
        return [int(row.pk) for row in stored]
    numbers = dict[str, int]()  # MySQL does not return them
    for chunk in batched(new, 500):
        numbers.update(rows(alias).filter(job__in=[row.job for row in chunk]).values_list("job", "pk"))
    return [numbers[row.job] for row in new]


def note_sent(alias: str, stay: Sequence[int], end: Sequence[int]) -> None:
    """Note in the rows of calls that Redis has them, or delete the rows. If that fails, a worker does it.

    Rows that ``stay`` are there until Redis has known the call for some seconds. A statement for 500 of either.
    """
    try:
        for chunk in batched(stay, 500):
            rows(alias).filter(pk__in=chunk).update(sent=now())
        if len(end) == 1:
            connection = connections[alias]
            table, column = map(connection.ops.quote_name, (rows(alias).model._meta.db_table, "id"))
            with connection.cursor() as cursor:  # a queryset would begin and commit a transaction
                cursor.execute(f"DELETE FROM {table} WHERE {column} = %s", end)  # noqa: S608 -- names of our own
            return
        for chunk in batched(end, 500):
            rows(alias).filter(pk__in=chunk).delete()
    except DatabaseError as error:
        if _log_limit.allows(alias):
            logger.warning("Rows of the outbox of database %a could not be changed: %s", alias, error)


def has_older(alias: str, number: int, key: UniqueKey, *, sent: Collection[int] = ()) -> bool:
    """Return whether a call that replaces others has older ones in the outbox, but those ``sent``. One statement.

    It has to wait for them: sent later, they would replace it.
    """
    if not key.replace:
        return False
    older = rows(alias).filter(unique_key=key.key, pk__lt=number, sent=None)
    return bool(older.exclude(pk__in=sent).exists())


def waiting(alias: str) -> tuple[int, datetime | None]:
    """Return how many calls Redis does not have yet, and since when the oldest waits. Two statements, or one."""
    unsent = rows(alias).filter(sent=None)
    oldest = unsent.order_by("pk").values_list("created", flat=True).first()
    return (unsent.count(), oldest) if oldest else (0, None)


def rows(alias: str) -> Any:
    """Return the rows of an outbox."""
    from redis_kit.queues.models import OutboxMessage

    return OutboxMessage._base_manager.using(alias)
