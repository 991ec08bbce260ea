"""A filter of the values of a model's field: a look-up of a row that does not exist need not ask the database."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import shortcuts
from django.core.exceptions import ValidationError
from django.db import models, router

from redis_kit.bloom.filter import BloomFilter, Progress, digest
from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.field_index import FieldIndex
from redis_kit.core.indexes.model_index import indexes
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import folded

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class ModelFilter(FieldIndex):
    """A Bloom filter of the values of a field. Create it in ``models.py``, below the model.

    It hides no row: only a filter that a rebuild has completed answers, until the server restarts or an add fails.
    Otherwise the answer is that there may be a row. Text is compared without case, accents and spaces at its end, so
    that it suits each collation. Rows that send no signals, as those of ``bulk_create()``, need ``add_many()`` before
    their transaction commits, and once more after that.
    """

    def __init__(self, model: Any, field: str = "pk", **options: Any) -> None:
        super().__init__(model, field)
        self._options = options

    @property
    def filter(self) -> BloomFilter:
        """Return the filter that holds the values."""
        return BloomFilter(self.name, **self._options)

    def may_exist(self, value: Any) -> bool:
        """Return False if surely no row has this value. It never raises. One round trip."""
        try:
            return self.misses_change() or bool(self.filter.run_flow(self._look_up(value)))
        except (RedisKitError, ValidationError, TypeError, ValueError) as error:
            return self._unsure(error)

    async def amay_exist(self, value: Any) -> bool:
        """See may_exist()."""
        try:
            return self.misses_change() or bool(await self.filter.arun_flow(self._look_up(value)))
        except (RedisKitError, ValidationError, TypeError, ValueError) as error:
            return self._unsure(error)

    def add_many(self, values: Iterable[Any]) -> None:
        """Add values. One round trip for each 1,000."""
        self.filter.add_many(map(self.comparable, values))

    def rebuild(self, *, progress: Progress | None = None) -> int:
        """See ModelIndex.rebuild()."""
        # Rows of open transactions may be among the former values only, so these count until the next rebuild.
        return self.filter.rebuild(map(self.comparable, self.read_values()), progress=progress, keep=True)

    def distrust(self) -> None:
        """See ModelIndex.distrust()."""
        self.filter.distrust()

    def _look_up(self, value: Any) -> Flow[bool]:
        (answer,) = yield from self.filter.look_up([digest(self.comparable(value))], guard=True)
        return answer

    def comparable(self, value: Any) -> Any:
        """Return the same for all values that the database may take for equal. Raises ValidationError."""
        field = self.field
        while field.remote_field:
            field = field.target_field
        value = field.to_python(value)
        return folded(value) if isinstance(value, str) else value

    def _unsure(self, error: Exception) -> bool:
        if isinstance(error, RedisKitError) and _log_limit.allows(f"{self.name} {type(error).__name__}"):
            logger.warning("bloom: %r is not asked: %s", self, error)
        return True


class BloomQuerySet(models.QuerySet[Any]):
    """A queryset whose ``get_filtered()`` asks the filters of its model before the database."""

    def get_filtered(self, **lookups: Any) -> Any:
        """Return the row, as ``get()`` does. Raises DoesNotExist without a query if a filter excludes it."""
        return (self.none() if _is_excluded(self, lookups) else self).get(**lookups)

    async def aget_filtered(self, **lookups: Any) -> Any:
        """See get_filtered()."""
        return await (self.none() if await _ais_excluded(self, lookups) else self).aget(**lookups)


BloomManager = models.Manager.from_queryset(BloomQuerySet, "BloomManager")


def get_object_or_404(klass: Any, *args: Any, **lookups: Any) -> Any:
    """Return the row, as the function of ``django.shortcuts`` does, but ask the filters of the model first."""
    queryset = _queryset(klass)
    return shortcuts.get_object_or_404(queryset.none() if _is_excluded(queryset, lookups) else klass, *args, **lookups)


async def aget_object_or_404(klass: Any, *args: Any, **lookups: Any) -> Any:
    """See get_object_or_404()."""
    queryset = _queryset(klass)
    rows = queryset.none() if await _ais_excluded(queryset, lookups) else klass
    return await shortcuts.aget_object_or_404(rows, *args, **lookups)


def _is_excluded(queryset: Any, lookups: Mapping[str, Any]) -> bool:
    return not all(each.may_exist(value) for each, value in _asked(queryset, lookups))


async def _ais_excluded(queryset: Any, lookups: Mapping[str, Any]) -> bool:
    for each, value in _asked(queryset, lookups):
        if not await each.amay_exist(value):
            return True
    return False


def _asked(queryset: Any, lookups: Mapping[str, Any]) -> Iterator[tuple[ModelFilter, Any]]:
    """Yield the filters that know whether a row can match, each with the value to ask for."""
    for each in indexes(ModelFilter):
        aliases = {router.db_for_read(each.model), router.db_for_write(each.model)}
        if not issubclass(queryset.model, each.model) or queryset.db not in aliases:
            continue
        names = {each.field.name, each.field.attname}
        if each.field.primary_key and queryset.model._meta.concrete_model is each.model:
            names.add("pk")
        yield from ((each, value) for name, value in lookups.items() if name.removesuffix("__exact") in names)


def _queryset(klass: Any) -> Any:
    return klass._default_manager.all() if hasattr(klass, "_default_manager") else klass.all()
