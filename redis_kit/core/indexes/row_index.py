"""Indexes of rows: each committed change of a row is marked in Redis, and one writer at a time carries it out.

A change is announced before its commit, and marked as committed after it. If a process dies in between, the
announcement counts as a commit after some seconds. The writer reads the rows of the marks anew. As there is one writer,
what it wrote last is what it read last; its token is compared by each script that writes.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from django.core.signals import request_finished
from django.db import close_old_connections, connections, router, transaction
from django.db.models import IntegerField, Model, QuerySet
from django.db.models.fields.related import resolve_relation
from django.db.models.signals import class_prepared, m2m_changed, post_save, pre_delete, pre_save

from redis_kit.core import conf, scripts
from redis_kit.core.background import BackgroundSender
from redis_kit.core.errors import InvalidValue, RebuildLost, RedisKitError, RedisUnavailable
from redis_kit.core.flow import single
from redis_kit.core.indexes.generations import Generation, Generations, in_use
from redis_kit.core.indexes.model_index import NO_VALUE, ModelIndex, indexes
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Argument
from redis_kit.core.text import shortened
from redis_kit.core.values.sequences import several
from redis_kit.core.web.lifespan import on_shutdown

ANNOUNCE = scripts.load(__package__, "announce")
COMMIT = scripts.load(__package__, "commit")
DRAIN = scripts.load(__package__, "drain")
BATCH = 200  # rows in one write
GRACE = 30.0  # seconds after which an announced change counts as committed: the process may have died
RETRY = 60.0  # seconds until a row is read again whose document could not be made
LEASE_MS = 60_000  # of a writer, renewed with each batch
PATIENCE = 10.0  # seconds that refresh() and rebuild() wait for another writer
PAUSE = 0.02  # seconds between two of their tries
AT_EXIT = 2.0  # seconds for which the end of a process waits for what it has marked; another one writes the rest
logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class WriterLost(RedisKitError):
    """Another process writes to this index now, as this one paused for too long."""


class RowIndex(ModelIndex):
    """An index with a document for each row. A subclass makes documents of rows, and stores them."""

    #: The names of the fields whose change matters; None for all.
    fields: frozenset[str] | None = None

    def __init__(self, model: Any, name: str) -> None:
        super().__init__(model, name)
        pre_save.connect(_before, dispatch_uid="redis_kit.rows.before")
        post_save.connect(_after, dispatch_uid="redis_kit.rows.after")
        class_prepared.connect(_follow, dispatch_uid="redis_kit.rows.classes")
        for each in _classes(self.model):
            _follow(each)

    @property
    def generations(self) -> Generations:
        """Return the generations of the index, with its keys."""
        raise NotImplementedError

    def document(self, row: Any) -> Any:
        """Return what is stored for a row; None if the index leaves it out. Code of the project may raise."""
        raise NotImplementedError

    def write(self, documents: Mapping[str, Any], gone: Sequence[str], writer: str, rebuild: str = "") -> None:
        """Store documents by primary key, and delete those of the keys in ``gone``.

        That concerns all generations, or only that of a rebuild. Each script is given ``writer_key`` and the token.
        It changes nothing if the key holds another one; then raise WriterLost. A repeat must change nothing.
        """
        raise NotImplementedError

    def rows(self) -> QuerySet[Any]:
        """Return the rows that have documents."""
        return QuerySet(self.model)

    def schedule(self) -> None:
        """Have the marked rows written soon, and not by this thread. Called after each commit."""
        refresher.add(self)

    @property
    def writer_key(self) -> str:
        """Return the key of the writer's lease."""
        return self.generations.index.key("writer")

    def update(self, rows: Iterable[Any]) -> None:
        """Mark rows as changed whose change sends no signal, as that of ``bulk_create()``. They are written soon.

        ``rows`` has instances or primary keys. One round trip. Call it after the commit. Raises InvalidValue for one
        value in place of a list, and for one that can't be a primary key, such as that of a row that was not saved.
        """
        pks = [row.pk if isinstance(row, Model) else row for row in several(rows)]
        for pk in pks:
            if next(self._parsed([pk]), None) is None:
                raise InvalidValue(f"{shortened(pk)} is not a primary key of {self.model._meta.label}.")
        self.commit([self.key_of(pk) for pk in pks])

    def refresh(self) -> int:
        """Write all marked rows now, and return their number. Waits for another writer for at most 10 seconds.

        Raises RebuildRunning if it does not end: only a rebuild lasts longer.
        """
        return self._drain_in_turn(token_hex(8))

    def refresh_unless_busy(self) -> bool:
        """Write all marked rows, and return whether no other process writes: that one goes on until none is left."""
        return self._drain(token_hex(8)) is not None

    def distrust(self) -> None:
        """See ModelIndex.distrust()."""
        self._run(self.generations.distrust())

    def rebuild(self, *, progress: Callable[[int], object] | None = None) -> int:
        """See ModelIndex.rebuild(). Rows that change meanwhile are written between its batches."""
        generations, writer, token = self.generations, token_hex(8), Generation.new().id
        count = 0
        try:
            self._run(generations.start(token))
            self._drain_in_turn(writer, stay=True)
            for rows in self._batches():
                if failed := self._write(rows, [], writer, token):
                    self._mark(COMMIT(self._keys(), [0, *failed]))
                count += len(rows)
                if progress:
                    progress(count)
                if self._drain(writer, stay=True) is None:
                    raise WriterLost(f"Another process writes to {self!r}.")
            self._run(generations.switch(token))
        except WriterLost as error:
            raise RebuildLost("The rebuild paused for too long, or the index was cleared. Start it again.") from error
        finally:
            try:
                self._run(generations.abandon(token))
                self._drain(writer)
            except RedisKitError:  # the leases end
                logger.debug("%r: the end of a rebuild was not stored.", self)
        return count

    def announce(self, row: Model) -> None:
        """Store that a row is about to change. If it has no key yet, any row may."""
        key = self.key_of(row.pk)
        if not key:
            _of_thread.inserts.add(self)
        self._mark(ANNOUNCE(self._keys()[:1], [int(GRACE * 1_000_000), _announcement(key)]))

    def commit(self, pks: Sequence[str]) -> None:
        """Store that rows have changed, and end what this thread has announced about them. One round trip."""
        _of_thread.inserts.discard(self)
        members = [_announcement(""), *map(_announcement, pks)]
        if self._mark(COMMIT(self._keys(), [len(members), *members, *pks])):
            self.schedule()

    def withdraw(self) -> None:
        """End what this thread has announced about a row without a key. One round trip."""
        self._mark(COMMIT(self._keys(), [1, _announcement("")]))

    def key_of(self, pk: Any) -> str:
        """Return the text of a primary key, as a row from the database has it; "" if only the database knows it."""
        if pk is None or hasattr(pk, "resolve_expression"):
            return ""
        return str(next(self._parsed([pk]), pk))

    def _mark(self, call: scripts.ScriptCall) -> bool:
        try:
            self._run(single(call))
        except RedisKitError as error:
            self.report_miss(error)
            return False
        return True

    def _drain_in_turn(self, writer: str, *, stay: bool = False) -> int:
        """See _drain(); waits for another writer, as refresh() says."""
        deadline = monotonic() + PATIENCE
        while (count := self._drain(writer, stay=stay)) is None:
            if monotonic() > deadline:
                raise in_use(f"writes to {self!r}", LEASE_MS)
            sleep(PAUSE)
        return count

    def _batches(self) -> Iterator[list[Any]]:
        """Yield all rows. Each batch is a query of its own: the next one sees what was committed meanwhile."""
        rows = self.rows().using(router.db_for_write(self.model)).order_by("pk")
        batch = list(rows[:BATCH])
        while batch:
            yield batch
            batch = list(rows.filter(pk__gt=batch[-1].pk)[:BATCH])

    def _drain(self, writer: str, *, stay: bool = False) -> int | None:
        """Write the rows that are marked until none is left, and return their number; None if another one writes.

        With ``stay`` the caller remains the writer afterwards.
        """
        keys, count, done, failed = [*self._keys(), self.writer_key], 0, list[Argument](), list[Argument]()
        try:
            while True:
                args: list[Argument] = [writer, LEASE_MS, BATCH, int(stay), int(RETRY * 1_000_000)]
                args += [f"{_process}.", len(done), *done, *failed]
                reason, unknown, *marks = self._run(single(DRAIN(keys, args)))
                if reason == b"lost":
                    raise WriterLost(f"Another process writes to {self!r}.")
                if reason == b"busy":
                    return None
                if unknown:
                    self.report_miss(RedisKitError("a process died while it saved a new row"))
                if not marks:
                    return count
                times = dict(zip((pk.decode() for pk in marks[::2]), marks[1::2], strict=True))
                wrong = self._write(self._read(times), times, writer)
                done = [each for pk in times.keys() - wrong for each in (pk, times[pk])]
                failed = [each for pk in times.keys() & wrong for each in (pk, times[pk])]
                count += len(times)
        except BaseException:
            with suppress(RedisKitError):  # else the lease ends
                self._run(single(DRAIN(keys, [writer, LEASE_MS, 0, 0, 0, "", 0])))
            raise

    def _read(self, pks: Iterable[str]) -> list[Any]:
        rows = self.rows().using(router.db_for_write(self.model))
        return list(rows.filter(pk__in=list(self._parsed(pks))))

    def _parsed(self, pks: Iterable[Any]) -> Iterator[Any]:
        """Yield the primary keys among values. A mark may be none: the model had others in another release."""
        field = self.model._meta.pk
        while field.remote_field:
            field = field.target_field
        for pk in pks:
            with suppress(*NO_VALUE):
                value = field.to_python(pk)
                if isinstance(field, IntegerField):
                    field.run_validators(value)  # a database refuses a query for a number that it can't hold
                yield value

    def _write(self, rows: Iterable[Any], pks: Iterable[str], writer: str, rebuild: str = "") -> set[str]:
        """Store the documents of rows, delete those of other keys, and return the keys whose document failed."""
        documents, failed = dict[str, Any](), set[str]()
        for row in rows:
            try:
                document = self.document(row)
            except Exception as error:
                failed.add(str(row.pk))
                if _log_limit.allows(repr(self)):
                    logger.error("%r can't take the row %s: %s", self, row.pk, described(error), exc_info=True)
            else:
                if document is not None:
                    documents[str(row.pk)] = document
        gone = [pk for pk in pks if pk not in documents and pk not in failed]
        if documents or gone:
            try:
                self.write(documents, gone, writer, rebuild)
            except RedisUnavailable as error:  # a slow reply of a busy server should not end a rebuild of hours
                if not error.indeterminate:
                    raise
                self.write(documents, gone, writer, rebuild)
        return failed

    def _keys(self) -> list[str]:
        """Return the keys of the changes that are announced, and of those that are committed."""
        index = self.generations.index
        return [index.key("announced"), index.key("committed")]

    def _run(self, steps: Any) -> Any:
        return self.generations.index.run_flow(steps)


class _OfThread(threading.local):
    """The indexes to which a thread has announced a new row, and no commit of it yet."""

    def __init__(self) -> None:
        self.inserts = set[RowIndex]()


_of_thread = _OfThread()


def _end_inserts(**kwargs: Any) -> None:
    """End what a request announced and could not insert: else its process would seem to have died before the mark."""
    while _of_thread.inserts:
        index = _of_thread.inserts.pop()
        index.withdraw()


request_finished.connect(_end_inserts, dispatch_uid="redis_kit.rows.inserts")


class _Commit:
    """The rows that a transaction has changed. One call for each index marks all of them."""

    def __init__(self) -> None:
        self.rows: dict[RowIndex, dict[str, None]] = {}

    def add(self, index: RowIndex, pk: str) -> None:
        self.rows.setdefault(index, {})[pk] = None

    def __call__(self) -> None:
        for index, pks in self.rows.items():
            index.commit(list(pks))


class Refresher(BackgroundSender):
    """The thread of a process that writes the rows that were marked by it."""

    name, logger = "redis-kit-refresher", logger
    messages = "Can't refresh indexes; up to %d wait: %s", "Indexes are refreshed again."
    INTERVAL = 0.2

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._waiting: dict[RowIndex, bool] = {}  # whether the last attempt failed

    def add(self, index: RowIndex) -> None:
        """Have the marked rows of an index written soon."""
        self._waiting.setdefault(index, False)
        if self.is_sender():
            return  # a document saves a row: the loop of this thread goes on with it
        if conf.tests_run():
            self.flush()  # a test sees what it saved, and leaves no thread behind
        else:
            self._added()

    def _count(self) -> int:
        return len(self._waiting)

    def _has_work(self) -> bool:
        return bool(self._waiting)

    _next = _has_work

    def _send(self) -> bool:
        index = next(iter(self._waiting))
        has_failed = self._waiting.pop(index)  # before the look: a mark after it adds the index again
        try:
            if not index.refresh_unless_busy() and has_failed:  # by this process, perhaps, whose lease has to end
                self._waiting[index] = True
                return False
        except WriterLost:
            return True
        except Exception as error:  # of the server, the database or the project; the marks stay
            self._waiting[index] = True
            self._failed(error)
            return False
        self._recovered()
        return True

    def _send_waiting(self) -> bool:
        try:
            return self.flush()
        finally:
            close_old_connections()


refresher = Refresher()
_process = token_hex(4)


def _forked() -> None:
    global _process
    _process = token_hex(4)
    refresher.reset()


os.register_at_fork(after_in_child=_forked)
on_shutdown(partial(refresher.flush, AT_EXIT))
atexit.register(refresher.flush, AT_EXIT)


def _announcement(pk: str) -> str:
    """Return the mark of a change that this thread is about to commit; without a key, of any row."""
    return f"{_process}.{threading.get_ident():x} {pk}"


def _classes(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for each in model.__subclasses__():
        yield from _classes(each)


def _follow(sender: type[Model], **kwargs: Any) -> None:
    """Connect a class with rows of an index. A listener to all classes would take the fast deletes from the others."""
    if any(issubclass(sender, index.model) for index in indexes(RowIndex)):
        pre_delete.connect(_after, sender=sender, dispatch_uid="redis_kit.rows.deleted")
        for field in sender._meta.local_many_to_many:
            through: Any = field.remote_field.through
            m2m_changed.connect(
                _related, sender=resolve_relation(sender, through), dispatch_uid="redis_kit.rows.related"
            )


def _before(*, sender: type[Model], instance: Model, using: str, update_fields: Any, **kwargs: Any) -> None:
    if not connections[using].in_atomic_block:  # else the commit comes after _after()
        for index in _of(sender, update_fields):
            index.announce(instance)


def _after(*, sender: type[Model], instance: Model, using: str, update_fields: Any = None, **kwargs: Any) -> None:
    for index in _of(sender, update_fields):
        _changed(index, instance, using)


def _related(
    *, sender: Any, instance: Model, action: str, reverse: bool, model: Any, pk_set: Any, using: str, **kwargs: Any
) -> None:
    pks = pk_set or ()
    if action == "pre_clear" and reverse:  # later nobody knows the rows
        name = next(field.name for field in model._meta.many_to_many if field.remote_field.through is sender)
        pks = model._base_manager.using(using).filter(**{name: instance}).values_list("pk", flat=True)
    elif not action.startswith("post_"):
        return
    for row in (instance, *(model(pk=pk) for pk in pks)):
        for index in _of(type(row), None):
            _changed(index, row, using)


def _changed(index: RowIndex, row: Model, using: str) -> None:
    """Announce a change whose commit is still to come, and mark it at the commit; or mark it now."""
    connection = connections[using]
    if not connection.in_atomic_block and connection.get_autocommit():
        index.commit([index.key_of(row.pk)])
        return
    index.announce(row)
    if connection.in_atomic_block:
        callbacks = connection.run_on_commit
        commit = callbacks[-1][1] if callbacks else None
        if not isinstance(commit, _Commit):
            commit = _Commit()
            transaction.on_commit(commit, using=using, robust=True)
        commit.add(index, index.key_of(row.pk))


def _of(sender: type[Model], update_fields: Any) -> list[RowIndex]:
    return [
        index
        for index in indexes(RowIndex)
        if issubclass(sender, index.model)
        and (update_fields is None or index.fields is None or index.fields & set(update_fields))
    ]
