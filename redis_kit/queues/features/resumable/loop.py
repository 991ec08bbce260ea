"""Loops over a queryset that go on where they were when their worker stopped. Imports no Redis client."""

import contextlib
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from django.db import router, transaction
from django.db.models import Manager, Model, QuerySet

from redis_kit.core.awaitables import is_async, not_awaitable
from redis_kit.core.errors import InvalidValue, PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow, single
from redis_kit.core.steps import Call, repeated
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import QueueScript, claim_of
from redis_kit.queues.errors import Cancelled, CorruptMessage, Interrupted, LeaseLost
from redis_kit.queues.keys import of_one
from redis_kit.queues.tasks import current_job
from redis_kit.queues.tasks import progress as stored_progress
from redis_kit.queues.tasks.current_job import CurrentJob

Row = TypeVar("Row", bound=Model)
Parameters = ParamSpec("Parameters")
if TYPE_CHECKING:
    Rows = QuerySet[Row] | Manager[Row] | Callable[..., QuerySet[Row]]
EVERY = (1, 100_000)
CHUNK = (100, 2000)  # rows of one query, at least and at most
KEPT = 30 * 86_400 * 1000  # ms: as long as a dead job, which goes on where it was when it is retried
NOT_ASYNC = "A function of resumable() that returns an awaitable must be a coroutine function."
ALLOWED = "a queryset, a manager, or a function of the task's arguments that returns a queryset"
STORE_CURSOR = QueueScript("store_cursor", __package__)
logger = logging.getLogger("redis_kit.worker")


class Resumable(Generic[Row]):
    """A loop over rows, also for ``async for``, and a decorator, made by resumable()."""

    def __init__(self, rows: "Rows[Row]", every: int, *, count: bool) -> None:
        self._rows, self._every, self._count = rows, every, count

    def __iter__(self) -> Iterator[Row]:
        return self._over((), {})

    def __aiter__(self) -> AsyncIterator[Row]:
        return self._aover((), {})

    @overload
    def __call__(
        self, function: Callable[Concatenate[Row, Parameters], Coroutine[Any, Any, None]]
    ) -> Callable[Parameters, Coroutine[Any, Any, None]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Row, Parameters], Any]) -> Callable[Parameters, None]: ...
    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls this one for each row, with the row before its own arguments."""
        if is_async(function):

            @wraps(function)
            async def acall(*args: Any, **kwargs: Any) -> None:
                async for row in self._aover(args, kwargs):
                    await function(row, *args, **kwargs)

            return _without_row(acall, function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> None:
            for row in self._over(args, kwargs):
                not_awaitable(function(row, *args, **kwargs), NOT_ASYNC)

        return _without_row(call, function)

    def _over(self, args: Any, kwargs: Any) -> Iterator[Row]:
        loop: _Loop[Row] = _Loop(self._queryset(args, kwargs), self._every)
        if loop.job:
            loop.load(loop.job.queue.run_flow(loop.read(loop.job)))
        if loop.over:
            return
        if loop.needs_total and self._count:
            loop.total = loop.queryset.count()
        while not loop.over:
            rows = list(loop.chunk())
            for row in rows:
                yield row
                if loop.passed(row):
                    # A transaction around the loop may be rolled back, and these rows with it.
                    transaction.on_commit(loop.save, using=loop.alias)
                    loop.stop()
            loop.over = not rows
        transaction.on_commit(loop.save, using=loop.alias)

    async def _aover(self, args: Any, kwargs: Any) -> AsyncIterator[Row]:
        loop: _Loop[Row] = _Loop(self._queryset(args, kwargs), self._every)
        if loop.job:
            loop.load(await loop.job.queue.arun_flow(loop.read(loop.job)))
        if loop.over:
            return
        if loop.needs_total and self._count:
            loop.total = await loop.queryset.acount()
        while not loop.over:
            rows = [row async for row in loop.chunk()]
            for row in rows:
                yield row
                if loop.passed(row):
                    await loop.asave()
                    loop.stop()
            loop.over = not rows
        await loop.asave()

    def _queryset(self, args: Any, kwargs: Any) -> "QuerySet[Row]":
        rows: Any = self._rows
        if inspect.isfunction(rows) or inspect.ismethod(rows):
            rows = rows(*args, **kwargs)
        if isinstance(rows, Manager):
            rows = rows.all()
        if not isinstance(rows, QuerySet):
            raise InvalidValue(f"resumable() needs {ALLOWED}, not {shortened(rows)}.")
        if rows.query.is_sliced:
            raise InvalidValue("resumable() can't take a sliced queryset: it reads the rows in chunks, by primary key.")
        return rows


class _Loop(Generic[Row]):
    """One run of a loop: how far it is, and when to store that."""

    def __init__(self, queryset: "QuerySet[Row]", every: int) -> None:
        self.queryset, self._every = queryset.order_by("pk"), every
        self.alias = router.db_for_write(queryset.model)
        self.job = current_job.get()
        self._number = self.job.begin_loop(self._forget) if self.job else 0
        self._pk: Any = None
        self._done = self._unsaved = 0
        self.total: int | None = None
        self.over = self._stops = False

    @property
    def needs_total(self) -> bool:
        """Tell whether somebody may look at the progress, and the number of rows is not known."""
        return bool(self.job and self.job.result_ttl and self.total is None)

    def read(self, job: CurrentJob) -> Flow[bytes | None]:
        """Read how far an earlier run of this loop came; None if that was not stored."""
        position: bytes | None = yield Call("HGET", of_one(job.queue.key(""), "cursor", job.job.id), self._number)
        return position

    def load(self, stored: bytes | None) -> None:
        """Go on where an earlier run was. If that can't be read, begin again."""
        if stored is None:
            return
        try:
            pk, done, total, over = payload.loads(stored)
            stored_progress.check(done, total)
        except (CorruptMessage, InvalidValue, ValueError, TypeError):
            logger.warning("It can't be read how far the loop of a job was; it begins again: %a", stored[:100])
            return
        self._pk, self._done, self.total, self.over = pk, done, total, bool(over)

    def chunk(self) -> "QuerySet[Row]":
        """Return the next rows."""
        pk = tuple(self._pk) if isinstance(self._pk, list) else self._pk  # of several columns
        rest = self.queryset if pk is None else self.queryset.filter(pk__gt=pk)
        return rest[: min(CHUNK[1], max(CHUNK[0], self._every))]

    def passed(self, row: Row) -> bool:
        """Note that a row is done. True if that is to be stored now."""
        try:
            self._pk = row.pk
        except AttributeError as error:
            raise InvalidValue("resumable() needs the rows of a model: values() have no primary key.") from error
        self._done, self._unsaved = self._done + 1, self._unsaved + 1
        if not self.job:
            return False
        if self.job.loops > self._number + 1:
            raise InvalidValue("A resumable() loop can't be within another one. Use a plain loop inside.")
        self._stops = self.job.cancelled or self.job.stops()
        if not self._stops and self._unsaved < self._every:
            return False
        self._unsaved = 0
        return True

    def stop(self) -> None:
        """End the loop if the job was cancelled or its worker stops."""
        if self.job and self._stops:
            if self.job.cancelled:
                raise Cancelled
            raise Interrupted(f"{self._done} rows are done")

    def _forget(self, job: CurrentJob) -> None:
        job.queue.run_flow(single(Call("DEL", of_one(job.queue.key(""), "cursor", job.job.id))))

    def save(self) -> None:
        """Store how far the loop is. One round trip. While Redis is unavailable, nothing is stored."""
        if self.job:
            with contextlib.suppress(RedisUnavailable, PoolExhausted):
                self.job.queue.run_flow(self._save(self.job))

    async def asave(self) -> None:
        """See save()."""
        if self.job:
            with contextlib.suppress(RedisUnavailable, PoolExhausted):
                await self.job.queue.arun_flow(self._save(self.job))

    def _save(self, job: CurrentJob) -> Flow[None]:
        keep = job.result_ttl(failed=True) if job.result_ttl else 0
        total = None if self.total is None else max(self.total, self._done)
        report = stored_progress.dumps(self._done, total, "") if keep else b""
        position = payload.dumps([self._pk, self._done, self.total, self.over], "The primary key")
        crashed = job.job.crashes > 0 and not job.went_on  # these crashes no longer count
        parts = self._number, position, KEPT, report, keep, int(crashed)
        # A call whose reply is lost is repeated, for it may be the last one before the worker stops.
        step = STORE_CURSOR(job.queue.key(""), *claim_of(job.job), *parts, job=job.job.id)
        if not (yield from repeated(step)):
            raise LeaseLost(f"The claim on job {job.job.id!a} of queue {job.queue.name!a} is over.")
        job.went_on = True


def resumable(rows: "Rows[Row]", *, every: int = 100, count: bool = True) -> Resumable[Row]:
    """Loop over a queryset so that the task goes on where it was if its worker stops or dies.

    ``for order in resumable(Order.objects.filter(paid=True), every=100)`` reads the rows by primary key, in chunks. It
    stores how far it is after ``every`` rows (1 to 100,000) that are done, and reports that as progress. When the
    worker is asked to stop, the loop ends after the row at hand, and another worker goes on; no attempt is counted.
    After a crash at most ``every`` rows are done again. A cancelled task ends after a row, too. ``async for`` does the
    same. Outside of a worker it is a plain loop.

    As a decorator, ``@resumable(Order.objects.all())`` below ``@task`` calls the function with each row, before the
    arguments of the call. In place of a queryset it takes a function of these arguments that returns one.

    ``count=False`` saves the query for the number of rows, which progress shows. One round trip when it begins, one for
    each ``every`` rows and one at its end. Raises InvalidValue.
    """
    whole_number("every", every, EVERY)
    if not (isinstance(rows, (QuerySet, Manager)) or inspect.isfunction(rows) or inspect.ismethod(rows)):
        raise InvalidValue(f"resumable() needs {ALLOWED}, not {shortened(rows)}.")
    return Resumable(rows, every, count=count)


def _without_row(call: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function the signature of another one without its first argument: callers don't pass the row."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    ):
        raise InvalidValue(f"{function.__qualname__}() needs an argument for the row.")
    rest = parameters if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:]
    call.__signature__ = signature.replace(parameters=rest, return_annotation=None)  # type: ignore[attr-defined]
    return call
