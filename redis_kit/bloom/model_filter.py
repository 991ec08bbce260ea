"""A filter of the values of a model's field: a look-up of a row that does not exist need not ask the database."""

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from django import shortcuts
from django.core.exceptions import ValidationError
from django.db import models

from redis_kit.bloom.filter import BloomFilter, Progress, digest
from redis_kit.bloom.parameters import BloomParameters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.field_index import OTHER_TEXT, FieldIndex, FollowedQuerySet, lookups_of
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.values.sequences import several

Row = TypeVar("Row", bound=models.Model)
if TYPE_CHECKING:
    Rows = type[Row] | models.QuerySet[Row] | models.Manager[Row]
logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class ModelFilter(FieldIndex):
    """A Bloom filter of the values of a field. Create it in ``models.py``, below the model.

    It hides no row: only a filter that a rebuild has completed answers, until the server restarts or an add fails.
    Otherwise the answer is that there may be a row. ``capacity`` and ``error`` are those of BloomFilter; the next
    rebuild adopts other ones. The field has text, integers, UUIDs or IP addresses, or refers to a model by these.
    Text is compared without case, accents and spaces at its end, so that it suits each collation.
    """

    command = "rk_bloom"
    types = (models.CharField, models.TextField, models.IntegerField, models.UUIDField, models.GenericIPAddressField)

    def __init__(
        self, model: Any, field: str = "pk", capacity: int = 1_000_000, error: float = 0.01, using: str | None = None
    ) -> None:
        self._parameters = BloomParameters.checked(capacity, error, None)
        self._using = using
        super().__init__(model, field)

    @property
    def using(self) -> str:
        """Return the alias of its connection."""
        return self._using or conf.section(BloomSettings).USING

    @property
    def filter(self) -> BloomFilter:
        """Return the filter that holds the values. Its new generations name the database that is written to."""
        parameters = self._parameters._replace(source=self.database_digest())
        return BloomFilter.with_parameters(self.name, parameters, self.using)

    def may_exist(self, value: Any) -> bool:
        """Return False if surely no row has this value. It never raises. One round trip."""
        try:
            seen = self.filter
            return self.misses_change() or bool(seen.run_flow(self._look_up(seen, value)))
        except Exception as error:
            return self._unsure(error)

    async def amay_exist(self, value: Any) -> bool:
        """See may_exist()."""
        try:
            seen = self.filter
            return self.misses_change() or bool(await seen.arun_flow(self._look_up(seen, value)))
        except Exception as error:
            return self._unsure(error)

    def __contains__(self, value: Any) -> bool:
        return self.may_exist(value)

    def add(self, value: Any) -> None:
        """Add a value, as add_many() does."""
        self.add_many([value])

    def add_many(self, values: Iterable[Any]) -> None:
        """Add values. One round trip for each 1,000."""
        self.filter.add_many(map(self.comparable, several(values)))

    def rebuild(self, *, progress: Progress | None = None) -> int:
        """See ModelIndex.rebuild()."""
        # Rows of open transactions may be among the former values only, so these count until the next rebuild.
        return self.filter.rebuild(map(self.comparable, self.read_values()), progress=progress, keep=True)

    def distrust(self) -> None:
        """See ModelIndex.distrust()."""
        self.filter.distrust()

    def _look_up(self, seen: BloomFilter, value: Any) -> Flow[bool]:
        values = [self.comparable(value)]
        if isinstance(values[0], str) and not self.is_exact:
            values.append(OTHER_TEXT)
        answers = yield from seen.look_up(list(map(digest, values)), guarded=True)
        return any(answers) or values[0] == OTHER_TEXT

    def _unsure(self, error: Exception) -> bool:
        is_about_value = isinstance(error, (InvalidValue, ValidationError, TypeError, ValueError, ArithmeticError))
        if not is_about_value and _log_limit.allows(f"{self.name} {type(error).__name__}"):
            logger.warning("bloom: %r is not asked: %s", self, described(error))
        return True


class BloomQuerySet(FollowedQuerySet):
    """A queryset whose ``get_filtered()`` asks the filters of its model before the database.

    The values of its bulk changes are added to them. If one is not known, as that of an expression in ``update()``, the
    filter counts as incomplete.
    """

    def get_filtered(self, **lookups: Any) -> Any:
        """Return the row, as ``get()`` does. Raises DoesNotExist without a query if a filter excludes it."""
        return (self.none() if _is_excluded(self, lookups) else self).get(**lookups)

    async def aget_filtered(self, **lookups: Any) -> Any:
        """See get_filtered()."""
        return await (self.none() if await _ais_excluded(self, lookups) else self).aget(**lookups)


BloomManager = models.Manager.from_queryset(BloomQuerySet, "BloomManager")


def get_object_or_404(klass: "Rows[Row]", *args: Any, **lookups: Any) -> Row:
    """Return the row, as the function of ``django.shortcuts`` does, but ask the filters of the model first."""
    queryset = _queryset(klass)
    rows = queryset.none() if _is_excluded(queryset, lookups) else klass
    row: Row = shortcuts.get_object_or_404(rows, *args, **lookups)
    return row


async def aget_object_or_404(klass: "Rows[Row]", *args: Any, **lookups: Any) -> Row:
    """See get_object_or_404()."""
    queryset = _queryset(klass)
    rows = queryset.none() if await _ais_excluded(queryset, lookups) else klass
    row: Row = await shortcuts.aget_object_or_404(rows, *args, **lookups)
    return row


def _is_excluded(queryset: Any, lookups: Mapping[str, Any]) -> bool:
    return not all(each.may_exist(value) for each, value in lookups_of(ModelFilter, queryset, lookups))


async def _ais_excluded(queryset: Any, lookups: Mapping[str, Any]) -> bool:
    for each, value in lookups_of(ModelFilter, queryset, lookups):
        if not await each.amay_exist(value):
            return True
    return False


def _queryset(klass: Any) -> Any:
    """Return the rows of a model or a manager, and anything else as it is: Django says what is wrong with it."""
    rows = getattr(klass, "_default_manager", klass)
    return rows.all() if isinstance(rows, models.Manager) else rows
