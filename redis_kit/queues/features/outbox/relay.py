"""A look at an outbox: rows that were left are sent, rows whose calls Redis has known for some seconds are deleted."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Any, NamedTuple

from django.db import DatabaseError, connections, transaction
from django.utils.connection import ConnectionDoesNotExist
from django.utils.timezone import now

from redis_kit.core.errors import AuthenticationFailed, InvalidName, RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow, single
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import signals
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.calls import Turn
from redis_kit.queues.engine.unique import PERIOD, PutResult, UniqueKey, key_of_call
from redis_kit.queues.features.outbox.transport import has_older, rows
from redis_kit.queues.keys import of_one, relay_key
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import whole
from redis_kit.queues.worker.shared.worker_queue import PatientQueue

SETTLED = timedelta(seconds=3)  # that a process has to send what it stored, before a worker does
SAFE = timedelta(seconds=10)  # after which a server does not lose a call any more
KNOWN = timedelta(milliseconds=PERIOD) - timedelta(minutes=1)  # for which a server that lost nothing knows a call
INTERVAL = 5.0  # seconds between two looks of all workers together
TURN = 4500  # ms: a bit less, so that the same worker may look again
BATCH = 200  # rows of one transaction
MISSING = -2  # the reply to PTTL for a key that does not exist
logger = logging.getLogger("redis_kit.worker")
_log_limit = LogRateLimit()


class Relayed(NamedTuple):
    """The result of a look: how many calls were sent, and since when the oldest waits that could not be."""

    sent: int
    oldest: datetime | None


class OutboxRelay:
    """The duty of the outbox: it looks at each database every five seconds, in one of all worker processes.

    The others find the turn taken, which a call of ``source`` in the name of ``worker`` does. ``report`` is called with
    the seconds for which the oldest call has waited that could not be sent; 0 without one. A database may take long to
    answer, so this duty is one of a worker process and not of its supervisor.
    """

    def __init__(
        self, aliases: Sequence[str], source: Primitive, worker: str, report: Callable[[float], object]
    ) -> None:
        self._aliases, self.due = aliases, 0.0
        self._source, self._worker, self._report = source, worker, report

    def run(self) -> None:
        """Send what is left, if it is this worker's turn."""
        try:
            for alias in self._aliases:
                if self._source.run_flow(single(Call("SET", relay_key(alias), self._worker, "NX", "PX", TURN))):
                    self._relay(alias)
        except (RedisUnavailable, AuthenticationFailed):
            raise
        except RedisFailure as error:
            _log_limit.log(logger.error, "turn", "The outbox can't be looked at: %s", error)
        self.due = monotonic() + INTERVAL

    def _relay(self, alias: str) -> None:
        try:
            relayed = relay(alias)
        except (DatabaseError, ConnectionDoesNotExist) as error:
            _log_limit.log(logger.error, "unreadable", "The outbox of database %a can't be read: %s", alias, error)
            return
        finally:
            if alias in connections:
                connections[alias].close()  # it is not needed for the next seconds
        if relayed.sent:
            calls = "1 waiting call" if relayed.sent == 1 else f"{relayed.sent} waiting calls"
            logger.info("Outbox of database %a: sent %s.", alias, calls)
        self._report((now() - relayed.oldest).total_seconds() if relayed.oldest else 0.0)


def relay(alias: str) -> Relayed:
    """Send what is left, in its order, and delete what is safe. One statement if there is nothing to do.

    Rows that another worker has in hand are left to it, where the database can skip locked ones. A call that can't be
    sent stays, and others of its queue with it. Raises RedisUnavailable.
    """
    if not rows(alias).filter(created__lte=now() - SETTLED).exists():
        return Relayed(0, None)
    _confirm(alias)
    sent, after, oldest = 0, 0, None
    refused: set[str] = set()  # queues
    while True:
        left = rows(alias).filter(sent=None, pk__gt=after, created__lte=now() - SETTLED).exclude(queue__in=refused)
        with _locked(alias, left) as batch:
            done, stays, error = _send(alias, batch, refused)
            rows(alias).filter(pk__in=stays).update(sent=now())
            rows(alias).filter(pk__in=done - stays).delete()
        if error:
            raise error
        sent += len(done)
        unsent = [row.created for row in batch if row.pk not in done]
        oldest = oldest or (unsent[0] if unsent else None)
        if len(batch) < BATCH:
            return Relayed(sent, oldest)
        after = batch[-1].pk


@contextmanager
def _locked(alias: str, queryset: Any) -> Iterator[list[Any]]:
    """Lock the first of these rows in a transaction, where the database can skip those that are locked."""
    skips = connections[alias].features.has_select_for_update_skip_locked
    with transaction.atomic(using=alias) if skips else nullcontext():
        yield list((queryset.select_for_update(skip_locked=True) if skips else queryset).order_by("pk")[:BATCH])


def _confirm(alias: str) -> None:
    """Delete the rows of calls that Redis has known for some seconds. Rows of calls that it has lost are to be sent."""
    after = 0
    while True:
        moment = now()
        with _locked(alias, rows(alias).filter(pk__gt=after, sent__lte=moment - SAFE).defer("body")) as batch:
            recent = [row for row in batch if row.sent > moment - KNOWN]  # of older ones it may have forgotten
            lost = _lost(recent)
            rows(alias).filter(pk__in=lost).update(sent=None)
            rows(alias).filter(pk__in={row.pk for row in batch} - lost).delete()
        if lost:
            logger.warning(
                "Outbox of database %a: the server had lost %d calls; they are sent again.", alias, len(lost)
            )
        if len(batch) < BATCH:
            return
        after = batch[-1].pk


def _lost(batch: Sequence[Any]) -> set[int]:
    """Return the numbers of the rows whose calls Redis does not know. One round trip for each queue."""
    lost: set[int] = set()
    for name, group in groupby(sorted(batch, key=attrgetter("queue")), key=attrgetter("queue")):
        queue, several = PatientQueue(name), list(group)
        base = queue.key("")
        ages = [Call("PTTL", of_one(base, "period", row.unique_key)) for row in several]
        replies = queue.run_flow(single(Batch(ages)))
        lost |= {row.pk for row, reply in zip(several, replies, strict=True) if reply == MISSING}
    return lost


def _send(alias: str, batch: Sequence[Any], refused: set[str]) -> tuple[set[int], set[int], RedisUnavailable | None]:
    """Send rows. Return those that Redis has, those of them that stay, and its error if it is unavailable."""
    done: set[int] = set()
    stays: set[int] = set()
    for row in batch:
        # Another worker may have an older call of the key in hand, and a queue may have refused one.
        if row.queue in refused or has_older(alias, row.pk, _key(row), sent=done):
            continue
        try:
            queue = PatientQueue(row.queue)
            added = queue.run_flow(_put(queue, row))
        except RedisUnavailable as error:
            return done, stays, error
        except (RedisFailure, InvalidName) as error:
            refused.add(row.queue)
            if _log_limit.allows(f"queue {row.queue}"):
                logger.warning("Calls of queue %a stay in the outbox: %s", row.queue, error)
            continue
        done.add(row.pk)
        if added.created:
            stays |= {row.pk} if row.unique_key == key_of_call(row.job).key else set()
    return done, stays, None


def _put(queue: Queue, row: Any) -> Flow[PutResult]:
    job, turn = (row.job, row.body.encode()), Turn(row.due, priority=row.priority, lane=row.lane)
    added = yield from enqueue.put_one(queue, job, _key(row), turn, own=True)
    yield from signals.announcement(Queue, whole(row.queue), [row.job] if added.created else [])
    return added


def _key(row: Any) -> UniqueKey:
    return UniqueKey(row.unique_key, row.unique_until, row.replace)
