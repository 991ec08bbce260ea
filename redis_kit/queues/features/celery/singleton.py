"""Celery tasks that run once at a time."""

import functools
import json
import logging
from typing import Any, Literal

from celery.contrib.django.task import DjangoTask
from celery.exceptions import Ignore, Retry

from redis_kit.core import activity
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import shortened
from redis_kit.locks import Lock, LockNotAcquired
from redis_kit.locks.decorators.locked import NameTemplate
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.unique import digest
from redis_kit.queues.settings import QueueSettings

logger = logging.getLogger("redis_kit")
ANSWERS = ("skip", "retry")
BEGUN, ENDED = "begun", "ended"


class Run(Primitive):
    """The run of a message, which has begun or ended. The id of the task and the number of its retries name it."""

    component, settings = "queues", QueueSettings

    def __init__(self, id: str, retries: int) -> None:
        super().__init__(f"celery-run:{digest('run', f'{retries} {id}')}")

    def begin(self, seconds: float) -> bool:
        """Note that it begins. False if it has ended. One round trip."""
        key = self.key("run")
        note = Call("SET", key, BEGUN, "PX", int(seconds * 1000), "NX")
        state, _ = self.run_flow(single(Batch([Call("GET", key), note])))
        return bool(state != ENDED.encode())

    def end(self, seconds: float) -> None:
        """Note that it has ended. One round trip."""
        self.run_flow(single(Call("SET", self.key("run"), ENDED, "PX", int(seconds * 1000))))

    def is_begun(self) -> bool:
        """Return whether it has begun, and has not ended. One round trip."""
        return bool(self.run_flow(single(Call("GET", self.key("run")))) == BEGUN.encode())


class SingletonTask(DjangoTask):
    """A base of Celery tasks that run once at a time: ``@app.task(base=SingletonTask)``.

    Runs are told apart by all arguments, or by ``lock_name``, such as ``"report:{user_id}"``, where ``user_id`` is an
    argument. A second run is skipped; with ``on_busy = "retry"`` it is tried again after ``busy_delay``
    seconds, which does not count as a retry. ``self.request.lease.fence`` is the fencing number of the run.

    A broker delivers a message again if its worker is slow or dies. The same message never runs twice at once, and not
    again within ``remember`` seconds after it has ended. The lock is renewed while the task runs; after a crash it is
    free again within ``lock_timeout`` seconds. Four round trips a run.
    """

    abstract = True
    lock_name: str | None = None
    on_busy: Literal["skip", "retry"] = "skip"
    busy_delay: float = 10.0
    lock_timeout: float = 30.0
    remember: float = 86_400.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.on_busy not in ANSWERS:
            raise InvalidValue(f"on_busy must be 'skip' or 'retry', not {shortened(cls.on_busy)}.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, unless it runs elsewhere."""
        if self.request.called_directly or self.request.is_eager:
            return super().__call__(*args, **kwargs)
        run = Run(self.request.id, self.request.retries or 0)
        with activity.doing(f"task {self.name} {self.request.id}"):
            return self._run_once(run, args, kwargs)

    def _run_once(self, run: Run, args: Any, kwargs: Any) -> Any:
        try:
            name = self._lock_name(args, kwargs)
            lease = Lock(name, timeout=self.lock_timeout, blocking=False, renew=True).acquire_or_raise()
        except LockNotAcquired as error:
            return self._busy(run, error)
        with lease:
            if not run.begin(self.remember):
                logger.info("Task %a was delivered again, and has ended before.", self.request.id)
                raise Ignore
            self.request.lease = lease
            try:
                return self.run(*args, **kwargs)
            finally:
                self._end(run)

    def _lock_name(self, args: Any, kwargs: Any) -> str:
        if self.lock_name is not None:
            return f"celery:{_template(self.lock_name, self.run)(args, kwargs)}"
        values = json.dumps(payload.plain([list(args), kwargs], "arguments"), sort_keys=True)
        return f"celery:{self.name}:{digest('arguments', values)}"

    def _end(self, run: Run) -> None:
        try:
            run.end(self.remember)
        except RedisFailure as error:  # the task has ended all the same
            logger.warning("The end of task %a could not be noted: %s", self.request.id, error)

    def _busy(self, run: Run, error: LockNotAcquired) -> None:
        logger.info("Task %a does not run now: %s", self.request.id, error)
        if self.on_busy == "skip":
            if run.is_begun():
                raise Ignore  # this message runs elsewhere, where its result is stored
            return
        options = {"countdown": self.busy_delay, "retries": self.request.retries}
        again = self.signature_from_request(self.request, **options)
        again.apply_async()
        raise Retry(when=self.busy_delay, sig=again)


@functools.cache
def _template(name: str, function: Any) -> NameTemplate:
    return NameTemplate(name, function)
