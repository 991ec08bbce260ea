"""Calls that are stored in the project's database until Redis has them.

The process that enqueued a call sends it after the commit, and then deletes its row. A worker sends rows that are left.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.apps import apps
from django.db import DatabaseError, connections, transaction
from django.utils.timezone import now

from redis_kit.core.errors import ConfigurationError, InvalidName, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.signals import send_safely
from redis_kit.core.steps import Call
from redis_kit.queues import signals
from redis_kit.queues.jobs.lane import Lane
from redis_kit.queues.jobs.unique import PutResult, UniqueKey, digest
from redis_kit.queues.keys import relay_key
from redis_kit.queues.queue import Queue
from redis_kit.queues.store import enqueue

PERIOD = 600_000  # ms for which Redis knows that it got a call, so that a repeat adds none, even if the job is done
SETTLED = 3.0  # seconds that a process has to send what it stored, before a worker does
BATCH = 200  # rows of one transaction
logger = logging.getLogger("redis_kit.worker")
_log_limit = LogRateLimit()


class OutboxCall(NamedTuple):
    """A call to be stored: queue, id and body of its job, its unique key, priority, due time in ms or 0, and lane."""

    queue: str
    job: str
    body: bytes
    key: UniqueKey
    priority: int
    due: int
    lane: Lane | None = None


class Relayed(NamedTuple):
    """The result of a look at an outbox: how many calls were sent, and since when the oldest other one waits."""

    sent: int
    oldest: datetime | None


def key_of(job: str) -> UniqueKey:
    """Return the unique key by which Redis knows a call that was sent."""
    return UniqueKey(digest("outbox", job), str(PERIOD))


def store(alias: str, call: OutboxCall) -> int:
    """Store a call in the present transaction, and return the number of its row. One statement."""
    if not apps.is_installed("redis_kit"):
        raise ConfigurationError("The outbox needs a table: add 'redis_kit' to INSTALLED_APPS, and run migrate.")
    fields: dict[str, Any] = {"unique_key": call.key.key, "unique_until": call.key.until, "replace": call.key.replace}
    fields["lane"] = call.lane.text if call.lane else ""
    row = _rows(alias).create(
        queue=call.queue, job=call.job, body=call.body.decode(), priority=call.priority, due=call.due, **fields
    )
    return int(row.pk)


def remove(alias: str, number: int) -> None:
    """Delete the row of a call that Redis has. If that fails, a worker does it."""
    try:
        _rows(alias).filter(pk=number).delete()
    except DatabaseError as error:
        if _log_limit.allows(alias):
            logger.warning("A row of the outbox of database %a could not be deleted: %s", alias, error)


def note_failure(alias: str, error: RedisFailure) -> None:
    """Log that a call stays in the outbox."""
    if _log_limit.allows(alias):
        logger.warning("Calls wait in the outbox of database %a: %s", alias, error)


def waiting(alias: str) -> tuple[int, datetime | None]:
    """Return how many calls are in the outbox, and since when the oldest is. Two statements, one if it is empty."""
    oldest = _rows(alias).order_by("pk").values_list("created", flat=True).first()
    return (_rows(alias).count(), oldest) if oldest else (0, None)


def take_turn(alias: str, worker: str, ttl_ms: int) -> Flow[bool]:
    """Return whether it is this worker's turn to look at the outbox, for ``ttl_ms``. One round trip."""
    return bool((yield Call("SET", relay_key(alias), worker, "NX", "PX", ttl_ms)))


def relay(alias: str, queue_of: Callable[[str], Primitive]) -> Relayed:
    """Send the calls that are left, in their order, and delete their rows.

    Rows that another worker has in hand are left to it, where the database can skip locked ones. One that can't be sent
    stays, and others of its queue with it. Raises RedisUnavailable.
    """
    sent, after, oldest = 0, 0, None
    refused: set[str] = set()  # queues
    while True:
        rows = _rows(alias).filter(pk__gt=after, created__lte=now() - timedelta(seconds=SETTLED)).order_by("pk")
        rows = rows.exclude(queue__in=refused) if refused else rows
        locks = connections[alias].features.has_select_for_update_skip_locked
        if locks and not rows.exists():
            return Relayed(sent, oldest)  # all that an idle outbox costs
        with transaction.atomic(using=alias) if locks else nullcontext():
            batch = list((rows.select_for_update(skip_locked=True) if locks else rows)[:BATCH])
            gone, error = _send(batch, queue_of, refused)
            if gone:
                _rows(alias).filter(pk__in=gone).delete()
        if error:
            raise error
        sent += len(gone)
        left = [row.created for row in batch if row.pk not in gone]
        oldest = oldest or (left[0] if left else None)
        if len(batch) < BATCH:
            return Relayed(sent, oldest)
        after = batch[-1].pk


def _send(
    batch: list[Any], queue_of: Callable[[str], Primitive], refused: set[str]
) -> tuple[set[int], RedisUnavailable | None]:
    """Send rows. Return the numbers of the rows that Redis has, and its error if it is unavailable."""
    gone: set[int] = set()
    for row in batch:
        if row.queue in refused:
            continue
        try:
            queue = queue_of(row.queue)
            added = queue.run_flow(_put(queue, row))
        except RedisUnavailable as error:
            return gone, error
        except (RedisFailure, InvalidName) as error:
            refused.add(row.queue)
            if _log_limit.allows(f"queue {row.queue}"):
                logger.warning("Calls of queue %a stay in the outbox: %s", row.queue, error)
            continue
        gone.add(row.pk)
        if added.created:
            send_safely(signals.job_enqueued, Queue, queue=row.queue, id=row.job)
    return gone, None


def _put(queue: Primitive, row: Any) -> Flow[PutResult]:
    key = UniqueKey(row.unique_key, row.unique_until, row.replace)
    job, lane = (row.job, row.body.encode()), Lane(row.lane) if row.lane else None
    return (yield from enqueue.put_one(queue, job, key, due=row.due, priority=row.priority, own=True, lane=lane))


def _rows(alias: str) -> Any:
    from redis_kit.queues.database.models import OutboxMessage

    return OutboxMessage._base_manager.using(alias)
