"""Connections of models with their indexes: each saved value is added before its row can be seen, and at commit.

An index is anything with ``model``, ``field``, ``add(value)`` and ``distrust()``; what it stores is its own business.
"""

import logging
import threading
from functools import partial
from typing import Any, Protocol

from django.db import connections, transaction
from django.db.models import Model
from django.db.models.signals import post_save, pre_save

from redis_kit.core.errors import RedisKitError
from redis_kit.core.logs.rate_limit import LogRateLimit

logger = logging.getLogger("redis_kit")
PAUSE = 1.0  # seconds between two attempts to report that an index lacks a value
_log_limit = LogRateLimit()


class Index(Protocol):
    """What follows a field of a model."""

    model: Any
    field: Any

    def add(self, value: Any) -> None:
        """Add a value of the field."""

    def distrust(self) -> None:
        """Let no process rely on the index until it is rebuilt."""


_indexes: list[Index] = []
_incomplete: dict[int, Index] = {}  # those that lack a value, and whose server does not know it yet
_lock = threading.Lock()


def follow(index: Index) -> None:
    """Add the values of saved instances to an index from now on."""
    if not _indexes:
        pre_save.connect(_before, dispatch_uid="redis_kit.bloom.before")
        post_save.connect(_after, dispatch_uid="redis_kit.bloom.after")
    _indexes.append(index)


def indexes() -> list[Index]:
    """Return all indexes that follow models."""
    return [*_indexes]


def lacks_values(index: Index) -> bool:
    """Return whether this process failed to add a value, and could not report it yet."""
    return id(index) in _incomplete


def add(index: Index, value: Any) -> None:
    """Add a value. If that fails, no process may rely on the index: this one at once, others as soon as possible."""
    try:
        index.add(value)
    except RedisKitError as error:
        if _log_limit.allows(repr(index)):
            logger.error("bloom: %r lacks a value and is not asked until rebuilt: %s", index, error)  # noqa: TRY400
        _report(index)


def _before(*, sender: type[Model], instance: Model, update_fields: Any, **kwargs: Any) -> None:
    for index in _of(sender, update_fields):
        if _is_known(index, instance) and (instance._state.adding or not index.field.primary_key):
            add(index, getattr(instance, index.field.attname))


def _after(
    *, sender: type[Model], instance: Model, created: bool, using: str, update_fields: Any, **kwargs: Any
) -> None:
    for index in _of(sender, update_fields):
        if not _is_known(index, instance) or (index.field.primary_key and not created):
            continue
        value = getattr(instance, index.field.attname)
        if index.field.primary_key:  # the database may have chosen it, so _before() did not know it
            add(index, value)
        if connections[using].in_atomic_block:
            # Once more: a rebuild that began after the first add may have read the table before the commit.
            transaction.on_commit(partial(add, index, value), using=using, robust=True)


def _of(sender: type[Model], update_fields: Any) -> list[Index]:
    return [
        index
        for index in _indexes
        if issubclass(sender, index.model) and (update_fields is None or index.field.name in update_fields)
    ]


def _is_known(index: Index, instance: Model) -> bool:
    name = index.field.attname
    return name not in instance.get_deferred_fields() and getattr(instance, name) is not None


def _report(index: Index) -> None:
    with _lock:
        is_first = not _incomplete
        _incomplete[id(index)] = index
    if is_first and not _try_to_report():
        threading.Thread(target=_keep_reporting, name="redis_kit bloom", daemon=True).start()


def _keep_reporting() -> None:
    pause = threading.Event()
    while not _try_to_report():
        pause.wait(PAUSE)


def _try_to_report() -> bool:
    for key, index in list(_incomplete.items()):
        try:
            index.distrust()
        except RedisKitError:
            return False
        with _lock:
            _incomplete.pop(key, None)
    return not _incomplete
