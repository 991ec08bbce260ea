"""Connections of models with their indexes: each saved value is added before its row can be seen, and at commit."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any, TypeVar

from django.apps import apps
from django.db import connections, router, transaction
from django.db.models import Model
from django.db.models.signals import post_save, pre_save

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisKitError
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import did_you_mean, shortened

Kind = TypeVar("Kind", bound="ModelIndex")
logger = logging.getLogger("redis_kit")
PAUSE = 1.0  # seconds between two attempts to report that an index lacks a value
_log_limit = LogRateLimit()


class ModelIndex:
    """An index of a model's field. It is made in ``models.py``, so that each process follows the saves of its model.

    A subclass stores values by ``add_many()`` and ``rebuild()``, and stops all processes from asking by ``distrust()``.
    """

    def __init__(self, model: Any, field: str = "pk") -> None:
        if apps.ready and not conf.tests_run():
            raise ConfigurationError(
                f"A {type(self).__name__} is made in models.py. Made later, it would miss what other processes save."
            )
        self.model = model._meta.concrete_model
        self.field: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
        self.name = f"{self.model._meta.label_lower}.{self.field.name}"
        if not _indexes:
            pre_save.connect(_before, dispatch_uid="redis_kit.indexes.before")
            post_save.connect(_after, dispatch_uid="redis_kit.indexes.after")
        _indexes.append(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def add_many(self, values: Iterable[Any]) -> None:
        """Add values of the field."""
        raise NotImplementedError

    def distrust(self) -> None:
        """Let no process ask the index until the next rebuild."""
        raise NotImplementedError

    def rebuild(self, *, progress: Callable[[int], object] | None = None) -> int:
        """Read all values from the database and switch to them in one step; from then on the index is asked.

        Returns the number of rows. ``progress`` is called with the number of rows so far. Raises RebuildRunning, and
        RebuildLost if the server restarts during it.
        """
        raise NotImplementedError

    def rebuild_in_background(self) -> None:
        """Rebuild it in a thread of this process. The log says how it ended."""
        threading.Thread(target=self._rebuild_alone, name="redis-kit-rebuild", daemon=True).start()

    def lacks_values(self) -> bool:
        """Return whether this process failed to add a value, and could not report it yet."""
        if self not in _incomplete:
            return False
        _start_reporter()  # a fork has copied what is to report, and not the thread
        return True

    def read_values(self) -> Iterator[Any]:
        """Yield the values of all rows.

        They come from the database that is written to: a replica may lack rows whose adds came before the rebuild.
        """
        rows = self.model._base_manager.using(router.db_for_write(self.model))
        values = rows.exclude(**{self.field.attname: None}).values_list(self.field.attname, flat=True)
        return iter(values.iterator(chunk_size=2000))

    def _rebuild_alone(self) -> None:
        try:
            logger.info("The rebuild of %r read %d rows.", self, self.rebuild())
        except Exception as error:
            logger.error("The rebuild of %r failed: %s", self, described(error))  # noqa: TRY400
        finally:
            connections.close_all()


_indexes: list[ModelIndex] = []
_incomplete: set[ModelIndex] = set()  # those that lack a value, and whose server does not know it yet
_lock = threading.Lock()
_reporter: threading.Thread | None = None


def indexes(kind: type[Kind]) -> list[Kind]:
    """Return all indexes of models that are of a class."""
    return [index for index in _indexes if isinstance(index, kind)]


def find_index(kind: type[Kind], name: str) -> Kind:
    """Return the index with a name, such as ``shop.Product.pk``, in any case. Raises InvalidValue."""
    by_name = {index.name: index for index in indexes(kind)}
    for index in by_name.values():
        own = [index.name, f"{index.model._meta.label_lower}.pk"][: 1 + index.field.primary_key]
        if name.lower() in own:
            return index
    hint = did_you_mean(name, by_name, f"There are: {', '.join(sorted(by_name)) or 'none'}.")
    raise InvalidValue(f"No model has the {kind.__name__} {shortened(name)}. {hint}")


def _add(index: ModelIndex, value: Any) -> None:
    """Add a value. If that fails, no process may rely on the index: this one at once, others as soon as possible."""
    try:
        index.add_many([value])
    except RedisKitError as error:
        if _log_limit.allows(repr(index)):
            logger.error("%r lacks a value and is not asked until it is rebuilt: %s", index, error)  # noqa: TRY400
        with _lock:
            _incomplete.add(index)
        _start_reporter()


def _before(*, sender: type[Model], instance: Model, update_fields: Any, **kwargs: Any) -> None:
    for index in _of(sender, update_fields):
        if _is_known(index, instance) and (instance._state.adding or not index.field.primary_key):
            _add(index, getattr(instance, index.field.attname))


def _after(
    *, sender: type[Model], instance: Model, created: bool, using: str, update_fields: Any, **kwargs: Any
) -> None:
    for index in _of(sender, update_fields):
        if not _is_known(index, instance) or (index.field.primary_key and not created):
            continue
        value = getattr(instance, index.field.attname)
        if index.field.primary_key:  # the database may have chosen it, so _before() did not know it
            _add(index, value)
        if connections[using].in_atomic_block:
            # Once more: a rebuild that began after the first add may have read the table before the commit.
            transaction.on_commit(partial(_add, index, value), using=using, robust=True)


def _of(sender: type[Model], update_fields: Any) -> list[ModelIndex]:
    return [
        index
        for index in _indexes
        if issubclass(sender, index.model)
        and (update_fields is None or {index.field.name, index.field.attname} & set(update_fields))
    ]


def _is_known(index: ModelIndex, instance: Model) -> bool:
    name = index.field.attname
    return name not in instance.get_deferred_fields() and getattr(instance, name) is not None


def _start_reporter() -> None:
    global _reporter
    with _lock, suppress(RuntimeError):  # the system allows no more threads: the next look-up tries again
        if _reporter is None:
            thread = threading.Thread(target=_report, name="redis-kit-indexes", daemon=True)
            thread.start()
            _reporter = thread


def _report() -> None:
    global _reporter
    while True:
        with _lock:
            if not _incomplete:
                _reporter = None
                return
            index = next(iter(_incomplete))
        try:
            index.distrust()
        except RedisKitError:
            sleep(PAUSE)
        else:
            with _lock:
                _incomplete.discard(index)


def _forked() -> None:
    """Let a child process report what its parent has not yet: threads are not copied, and the lock may be taken."""
    global _lock, _reporter
    _lock, _reporter = threading.Lock(), None


os.register_at_fork(after_in_child=_forked)
