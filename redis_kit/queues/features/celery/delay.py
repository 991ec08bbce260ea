"""Delays that Redis keeps, so that no worker of Celery holds them and no broker delivers them twice."""

import logging
import math
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from secrets import token_hex
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.utils import uuid
from celery.utils.time import maybe_make_aware

from redis_kit.core.errors import InvalidValue, RedisKitError, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.calls import Turn
from redis_kit.queues.engine.feature import provided
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import UniqueKey
from redis_kit.queues.features.celery.stored_message import StoredMessage
from redis_kit.queues.management import manage
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import CELERY
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.shared.worker_queue import PatientQueue

logger = logging.getLogger("redis_kit")

OF_BROKER = ("producer", "publisher", "connection")  # options that choose a connection to the broker
TRIES, PAUSE = 5, 0.5  # of a task that is retried while Redis is unavailable, and seconds between them
LONGEST_KEY = 300  # bytes
LONGEST_ID = 100  # characters: the job of a retry has some more
MAY_BE_STORED = "The answer was lost, so the call may have been stored. A repeat may run it twice, unless it has a key."


class DelayedTask(DjangoTask):
    """A base of Celery tasks: ``@app.task(base=DelayedTask)``. Redis keeps long delays until a call is due.

    A running ``rk_worker`` then sends the call to the broker, with its options and its id. A delay of at most
    ``delay_limit`` seconds is left to Celery. Other delays, and all calls with a ``key``, wait in the queue
    ``delay_queue`` of the kit.
    """

    abstract = True
    delay_limit: float = 1.0
    delay_queue: str = CELERY

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        registry.sinks[cls.delay_queue] = CELERY

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: str | None = None,
        *more: Any,
        countdown: float | None = None,
        eta: datetime | None = None,
        key: str | None = None,
        **options: Any,
    ) -> Any:
        """Call the task, as Celery's ``apply_async()`` does. A long ``countdown`` or ``eta`` waits in Redis.

        With a ``key`` (1 to 300 bytes) the call takes the place of a call of this task with that key that still waits,
        and ``cancel(key)`` cancels it; the id is that of the first one. The delay is at most 10 years. A ``task_id`` is
        1 to 100 of ``A-Z a-z 0-9 _ . -``. Values that JSON can't hold raise NotSerializable or InvalidValue, and a call
        of over 256 KiB raises PayloadTooLarge. One round trip, beside those of Celery's result backend. Raises
        RedisUnavailable.

        The retry of a running task that Redis can't keep is left to Celery, with a line in the log.
        """
        app = self._get_app()
        wait = _seconds(app, countdown, eta)
        waits_here = key is not None or (wait is not None and wait > self.delay_limit)
        if not waits_here or app.conf.task_always_eager:
            return super().apply_async(args, kwargs, task_id, *more, countdown=countdown, eta=eta, **options)
        id = task_id or uuid()
        try:
            return self._store(args, kwargs, id, more[1:], options, key=key, wait=max(0.0, wait or 0.0))
        except RedisKitError as error:
            if not self._retries(id):
                raise
            logger.warning("The retry of task %a is left to Celery: %s", id, error)
        return super().apply_async(args, kwargs, id, *more, countdown=countdown, eta=eta, **options)

    @classmethod
    def cancel(cls, key: str) -> bool:
        """Cancel the call of this task with a key. False if none waits: it was sent already, or there was none.

        Two round trips.
        """
        unique = provided("unique_keys").chosen(cls._full_key(key), "queued", False)
        queue = Queue(spread().place(cls.delay_queue, key=unique) or cls.delay_queue)
        return bool(queue.run_flow(_delete(queue, unique))) if unique else False

    @classmethod
    def _full_key(cls, key: Any) -> str:
        if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "replace")) <= LONGEST_KEY:
            raise InvalidValue(f"key must be text of 1 to {LONGEST_KEY} bytes, not {shortened(key)}.")
        return f"{cls.name}\0{key}"

    def _retries(self, id: str) -> bool:
        """Return whether the call of an id is a retry of the running task."""
        return not self.request.called_directly and self.request.id == id

    def _store(
        self, args: Any, kwargs: Any, id: str, more: Any, given: Mapping[str, Any], *, key: str | None, wait: float
    ) -> Any:
        """Have Celery make the message and send its signals, store that, and return the result of the call."""
        unique = None if key is None else provided("unique_keys").chosen(self._full_key(key), "queued", True)
        job_id, delay = _job_id(validation.identifier("task_id", id, LONGEST_ID), given), validation.milliseconds(wait)
        options = {name: value for name, value in given.items() if name not in OF_BROKER}
        add_to_parent = options.pop("add_to_parent", True)
        with ExitStack() as stack:
            store = _Store(self._get_app(), stack, self.delay_queue, job_id, unique, delay, self._retries(id))
            result = super().apply_async(args, kwargs, id, store, *more, add_to_parent=False, **options)
        if unique and store.job_id != job_id:
            ignored, result = result.ignored, self.AsyncResult(store.job_id)
            result.ignored = ignored
        if add_to_parent and (parent := self._get_app().current_worker_task):
            parent.add_trail(result)
        return result


@dataclass
class _Store:
    """Stands in for the producer of a call: keeps the message that Celery publishes. It connects to no broker."""

    app: Any
    stack: ExitStack
    queue: str
    job_id: str
    unique: UniqueKey | None
    delay: int
    is_retry: bool
    is_stored: bool = False

    @property
    def connection(self) -> Any:
        """Return a connection that knows the errors of the broker."""
        return self.app.producer_pool.connections.connection

    @property
    def channel(self) -> Any:
        """Return a channel of the broker, on which some result backends declare a queue for the result."""
        return self._producer.channel

    def publish(self, body: Any, **options: Any) -> None:
        """Store the message. An event that tells of it goes to the broker."""
        if self.is_stored:
            self._producer.publish(body, **options)
            return
        call = StoredMessage.made(self.app, body, options)
        self.job_id = self._put(call, self.job_id)
        self.is_stored = True

    def _put(self, call: StoredMessage, id: str) -> str:
        """Add the job, and return its id. Another call with this ``task_id`` that waits stays, as in Celery.

        While Redis is unavailable, a retry is tried some times: the worker has no other copy of it. A retry that waits
        is the same one: the broker delivered its message again.
        """
        name = spread().place(self.queue, key=self.unique, id=id) or self.queue
        queue = PatientQueue(name) if self.is_retry else Queue(name)
        job = id, call.dumps(self.queue, id)
        for left in reversed(range(TRIES if self.is_retry else 1)):
            try:
                placed = queue.run_flow(enqueue.put_one(queue, job, self.unique, Turn(delay=self.delay), own=True))
                break
            except RedisUnavailable as error:
                if error.indeterminate:
                    error.__notes__ = [MAY_BE_STORED]
                if not left:
                    raise
                time.sleep(PAUSE)
        if placed.created or self.unique or self.is_retry:
            return str(placed.id)
        return self._put(call, f"{id}-{token_hex(4)}")

    @cached_property
    def _producer(self) -> Any:
        return self.stack.enter_context(self.app.producer_or_acquire())


def _job_id(id: str, options: Mapping[str, Any]) -> str:
    """Return the id of the job for a call. Calls that a task makes again under its own id have jobs of their own.

    The job of the call before may still be in the queue, as it is acknowledged after the broker took its message.
    """
    again = options.get("replaced_task_nesting") or 0, options.get("retries") or 0
    return f"{id}-{again[0]}-{again[1]}" if any(again) else id


def _seconds(app: Any, countdown: float | None, eta: Any) -> float | None:
    """Return in how many seconds a call is due; None for now."""
    if countdown:  # Celery ignores eta beside it
        try:
            if not math.isnan(wait := float(countdown)):
                return wait
        except (TypeError, ValueError):
            pass
        raise InvalidValue(f"countdown must be a number of seconds, not {shortened(countdown)}.")
    if not eta:
        return None
    try:
        moment = datetime.fromisoformat(eta) if isinstance(eta, str) else eta
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise InvalidValue(f"eta must be a datetime, not {shortened(eta)}.")
    return float((maybe_make_aware(moment, app.timezone) - app.now()).total_seconds())


def _delete(queue: Queue, unique: UniqueKey) -> Flow[bool]:
    id: bytes | None = yield Call("HGET", queue.key("unique"), unique.key)
    return bool(id is not None and (yield manage.delete_step(queue.key(""), id.decode("utf-8", "surrogateescape"))))


registry.sinks[DelayedTask.delay_queue] = CELERY
