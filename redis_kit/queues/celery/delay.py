"""Delays that Redis keeps, so that no worker of Celery holds them and no broker delivers them twice."""

import logging
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery.contrib.django.task import DjangoTask
from celery.utils import uuid
from celery.utils.time import maybe_make_aware
from kombu.entity import Exchange
from kombu.entity import Queue as Destination

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.core.text import shortened
from redis_kit.core.tracing import spans
from redis_kit.queues import validation
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs.shard import shard_for
from redis_kit.queues.jobs.unique import PutResult, UniqueKey, chosen
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import CELERY
from redis_kit.queues.store import calls, enqueue
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.shared.worker_queue import PatientQueue

logger = logging.getLogger("redis_kit")

LOCAL = ("producer", "publisher", "connection", "router", "result_cls", "add_to_parent", "route_name", "task_type")
TRIES, PAUSE = 5, 0.5  # of a task that is retried while Redis is unavailable, and seconds between them
LONGEST_ID = 100  # characters: the job of a retry has some more


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
        registry.register_queue(cls.delay_queue, CELERY)

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
        1 to 100 of ``A-Z a-z 0-9 _ . -``. Options that JSON can't hold raise NotSerializable or InvalidValue. One round
        trip. Raises RedisUnavailable; a retry of a running task is then left to Celery.
        """
        app = self._get_app()
        wait = _seconds(app, countdown, eta)
        waits_here = key is not None or (wait is not None and wait > self.delay_limit)
        if not waits_here or app.conf.task_always_eager:
            return super().apply_async(args, kwargs, task_id, *more, countdown=countdown, eta=eta, **options)
        if more:
            names = ("producer", "link", "link_error", "shadow")
            options |= dict(zip(names, more, strict=False))
        unique = None if key is None else chosen(self._full_key(key), "queued", True)
        id = validation.identifier("task_id", task_id or uuid(), LONGEST_ID)
        job_id = _job_id(id, options)
        if job_id != id:
            options["task_id"] = id
        call = self._call(app, args, kwargs, options)
        try:
            placed = self._put(job_id, call, unique, max(0.0, wait or 0.0), patient=self._is_retry(id))
        except RedisUnavailable as error:
            if not self._is_retry(id):
                raise
            logger.warning("The retry of task %a is left to Celery, as Redis is unavailable: %s", id, error)
            options.pop("task_id", None)
            return super().apply_async(args, kwargs, id, countdown=countdown, eta=eta, **options)
        result = self.AsyncResult(id if placed.id == job_id else placed.id)
        result.ignored = bool(options.get("ignore_result", self.ignore_result))
        if options.get("add_to_parent", True) and (parent := app.current_worker_task):
            parent.add_trail(result)
        return result

    @classmethod
    def cancel(cls, key: str) -> bool:
        """Cancel the call of this task with a key. False if none waits: it was sent already, or there was none.

        Two round trips.
        """
        unique = chosen(cls._full_key(key), "queued", False)
        queue = Queue(shard_for(cls.delay_queue, key=unique) or cls.delay_queue)
        return bool(queue.run_flow(_delete(queue, unique))) if unique else False

    @classmethod
    def _full_key(cls, key: Any) -> str:
        if not isinstance(key, str) or not key:
            raise InvalidValue(f"key must be text of 1 to 300 bytes, not {shortened(key)}.")
        return f"{cls.name}\0{key}"

    def _is_retry(self, id: str) -> bool:
        return bool(not self.request.called_directly and self.request.id == id)

    def _put(self, id: str, call: bytes, unique: UniqueKey | None, wait: float, *, patient: bool) -> PutResult:
        """Add the job. While Redis is unavailable, a retry is tried some times: the worker has no other copy of it."""
        name = shard_for(self.delay_queue, key=unique, id=id) or self.delay_queue
        queue = PatientQueue(name) if patient else Queue(name)
        for left in reversed(range(TRIES if patient else 1)):
            steps = enqueue.put_one(queue, (id, call), unique, delay=wait, own=True)
            try:
                placed: PutResult = queue.run_flow(steps)
                return placed
            except RedisUnavailable:
                if not left:
                    raise
                time.sleep(PAUSE)
        raise AssertionError

    def _call(self, app: Any, args: Any, kwargs: Any, given: dict[str, Any]) -> bytes:
        """Return the call as it is stored. Raises what Celery raises for arguments that do not fit, and more."""
        if self.typing and (check := getattr(self, "__header__", None)):
            check(*(args or ()), **(kwargs or {}))
        options = {**self._get_exec_options(), **given}
        if dump := getattr(self, "_dump_pydantic_arguments", None):
            args, kwargs = dump(args, kwargs)
        options.setdefault("ignore_result", self.ignore_result)
        options["shadow"] = options.get("shadow") or self.shadow_name(args, kwargs, options)
        options["reply_to"] = options.get("reply_to") or app.thread_oid
        if parent := app.current_worker_task:
            options["root_id"] = options.get("root_id") or parent.request.root_id or parent.request.id
            options["parent_id"] = options.get("parent_id") or parent.request.id
        options["expires"] = _absolute(app, options.get("expires"))
        serializer = options.get("serializer") or app.conf.task_serializer
        if serializer != "json":
            raise InvalidValue(
                f"A delayed call of {self.name} can't be stored with the serializer {serializer!r}: only 'json' is "
                f"possible. Pass serializer='json', or set delay_limit to float('inf') to leave delays to Celery."
            )
        stored = {
            name: _plain(name, value) for name, value in options.items() if value is not None and name not in LOCAL
        }
        tracer = spans.tracer()
        trace = tracer.sent(self.name, self.delay_queue) if tracer else None
        return message.dumps(self.name, list(args or ()), dict(kwargs or {}), sink=CELERY, options=stored, trace=trace)


def _job_id(id: str, options: Mapping[str, Any]) -> str:
    """Return the id of the job for a call. Calls that a task makes again under its own id have jobs of their own.

    The job of the call before may still be in the queue, as it is acknowledged after the broker took its message.
    """
    again = options.get("replaced_task_nesting") or 0, options.get("retries") or 0
    return f"{id}-{again[0]}-{again[1]}" if any(again) else id


def _seconds(app: Any, countdown: float | None, eta: Any) -> float | None:
    """Return in how many seconds a call is due; None for now."""
    if eta is not None:
        moment = datetime.fromisoformat(eta) if isinstance(eta, str) else eta
        return float((maybe_make_aware(moment, app.timezone) - app.now()).total_seconds())
    if not countdown:
        return None
    try:
        return float(countdown)
    except (TypeError, ValueError):
        raise InvalidValue(f"countdown must be a number of seconds, not {shortened(countdown)}.") from None


def _absolute(app: Any, expires: Any) -> str | None:
    """Return when a call expires as text. Seconds count from the call, as they do in Celery."""
    if not expires or isinstance(expires, str):
        return expires or None
    moment = expires if isinstance(expires, datetime) else app.now() + timedelta(seconds=expires)
    return str(maybe_make_aware(moment, app.timezone).isoformat())


def _plain(name: str, value: Any) -> Any:
    """Return an option in a form that JSON can hold."""
    if isinstance(value, (Destination, Exchange)):
        return value.name
    return [dict(value)] if name in ("link", "link_error") and isinstance(value, Mapping) else value


def _delete(queue: Queue, unique: UniqueKey) -> Flow[bool]:
    id: bytes | None = yield Call("HGET", queue.key("unique"), unique.key)
    return bool(id is not None and (yield calls.DELETE(queue.key(""), id)))


registry.register_queue(DelayedTask.delay_queue, CELERY)
