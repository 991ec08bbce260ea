"""A filter of the values of a model's field: a look-up of a row that does not exist need not ask the database."""

import logging
import unicodedata
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import router
from django.http import Http404

from redis_kit.bloom import synchronization
from redis_kit.bloom.filter import BloomFilter, Progress
from redis_kit.bloom.hashing import Value, digests
from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.core.logs.rate_limit import LogRateLimit

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class ModelFilter:
    """The values of a field. Create it in ``models.py``, below the model, so that each process follows its saves.

    It hides no row: only a filter that a rebuild has completed answers, until the server restarts or an add fails.
    Otherwise the answer is that there may be a row. Text is compared without case, accents and spaces at its end, so
    that it suits each collation. Rows that send no signals, as those of ``bulk_create()``, need ``add_many()`` first.
    """

    def __init__(
        self,
        model: Any,
        field: str = "pk",
        *,
        capacity: int = 1_000_000,
        error: float = 0.01,
        using: str | None = None,
    ) -> None:
        if apps.ready and not conf.tests_run():
            raise ConfigurationError(
                "A ModelFilter is created in models.py. Made later, it would miss what other processes save."
            )
        self.model = model._meta.concrete_model
        self.field: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
        self.name = f"{self.model._meta.label_lower}.{self.field.name}"
        self._options = {"capacity": capacity, "error": error, "using": using}
        synchronization.follow(self)

    def __repr__(self) -> str:
        return f"<ModelFilter {self.name!r}>"

    @property
    def filter(self) -> BloomFilter:
        """Return the filter that holds the values."""
        return BloomFilter(self.name, **self._options)  # type: ignore[arg-type]

    def may_exist(self, value: Any) -> bool:
        """Return False if surely no row has this value. It never raises. One round trip."""
        try:
            known = self.filter
            packed = self._digests([value])
            if synchronization.lacks_values(self):
                return True
            (answer,) = known.run_flow(known.look_up(packed, guard=True))
        except (RedisKitError, ValidationError, TypeError, ValueError) as error:
            return self._unsure(error)
        return bool(answer)

    async def amay_exist(self, value: Any) -> bool:
        """See may_exist()."""
        try:
            known = self.filter
            packed = self._digests([value])
            if synchronization.lacks_values(self):
                return True
            (answer,) = await known.arun_flow(known.look_up(packed, guard=True))
        except (RedisKitError, ValidationError, TypeError, ValueError) as error:
            return self._unsure(error)
        return bool(answer)

    def add(self, value: Any) -> None:
        """Add a value; see add_many()."""
        self.add_many([value])

    def add_many(self, values: Iterable[Any]) -> None:
        """Add values of rows that send no signals, before their transaction commits, and once more after that."""
        self.filter.add_many(self._comparable(value) for value in values)

    def rebuild(self, *, progress: Progress | None = None) -> int:
        """Read all values from the database and switch to them in one step; from then on the filter is asked.

        Returns the number of rows. See BloomFilter.rebuild() for errors.
        """
        return self.filter.rebuild(self._stored(), progress=progress)

    def distrust(self) -> None:
        """Let no process ask the filter until the next rebuild."""
        self.filter.distrust()

    def _stored(self) -> Iterable[Value]:
        # The database that is written to: a replica may lack rows whose adds came before the rebuild.
        rows = self.model._base_manager.using(router.db_for_write(self.model))
        for value in rows.values_list(self.field.attname, flat=True).iterator(chunk_size=2000):
            if value is not None:
                yield self._comparable(value)

    def _digests(self, values: Iterable[Any]) -> list[bytes]:
        return digests([self._comparable(value) for value in values])

    def _comparable(self, value: Any) -> Any:
        """Return what stands for all values that the database may take for equal to this one."""
        value = self._target().to_python(value)
        if not isinstance(value, str):
            return value
        text = unicodedata.normalize("NFKD", value).casefold()
        return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)).rstrip()

    def _target(self) -> Any:
        field = self.field
        while field.remote_field:
            field = field.target_field
        return field

    def _unsure(self, error: Exception) -> bool:
        if isinstance(error, RedisKitError) and _log_limit.allows(f"{self.name} {type(error).__name__}"):
            logger.warning("bloom: %r is not asked: %s", self, error)
        return True


def get_object_or_404(filter: ModelFilter, value: Any, queryset: Any = None) -> Any:
    """Return the row with this value, as Django's function does, but ask the filter before the database."""
    if not filter.may_exist(value):
        raise _missing(filter)
    try:
        return _rows(filter, queryset).get(**{filter.field.attname: value})
    except filter.model.DoesNotExist:
        raise _missing(filter) from None


async def aget_object_or_404(filter: ModelFilter, value: Any, queryset: Any = None) -> Any:
    """See get_object_or_404()."""
    if not await filter.amay_exist(value):
        raise _missing(filter)
    try:
        return await _rows(filter, queryset).aget(**{filter.field.attname: value})
    except filter.model.DoesNotExist:
        raise _missing(filter) from None


def _rows(filter: ModelFilter, queryset: Any) -> Any:
    return filter.model._default_manager.all() if queryset is None else queryset


def _missing(filter: ModelFilter) -> Http404:
    return Http404(f"No {filter.model._meta.object_name} matches the given query.")
