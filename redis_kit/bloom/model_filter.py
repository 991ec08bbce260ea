"""A filter of the values of a model's field: a look-up of a row that does not exist need not ask the database.

Each saved value is added before its row can be seen, and again at commit.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django import shortcuts
from django.core.checks import CheckMessage, Error
from django.db import connections, models, router, transaction
from django.db.models import Model, QuerySet
from django.db.models.signals import post_save, pre_save

from redis_kit.bloom.filter import BloomFilter, Progress, digest
from redis_kit.bloom.parameters import BloomParameters
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.client.addresses import aliases
from redis_kit.core.client.connection_options import alias_missing
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.model_index import NO_VALUE, ModelIndex, indexes
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import folded
from redis_kit.core.values.sequences import several

Row = TypeVar("Row", bound=Model)
if TYPE_CHECKING:
    Rows = type[Row] | QuerySet[Row] | models.Manager[Row]
EXACT = ("postgresql", "sqlite")  # databases that compare text as it is, unless a field has a collation
OTHER_TEXT = "\ufffd"  # stands for each text that only the database can compare
BATCH = 2000  # rows in one query: a rebuild that waits for one for a minute counts as dead
logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()


class ModelFilter(ModelIndex):
    """A Bloom filter of the values of a field. Create it in ``models.py``, below the model.

    It hides no row: only a filter that a rebuild has completed answers, until the server restarts or an add fails.
    Otherwise the answer is that there may be a row. ``capacity`` and ``error`` are those of BloomFilter; the next
    rebuild adopts other ones. The field has text, integers, UUIDs or IP addresses, or refers to a model by these.
    Text is compared without case, accents and spaces at its end, so that it suits each collation. A field that a model
    inherits with the table of its base is followed on the base.
    """

    command = "rk_bloom"
    types = (models.CharField, models.TextField, models.IntegerField, models.UUIDField, models.GenericIPAddressField)

    def __init__(
        self, model: Any, field: str = "pk", capacity: int = 1_000_000, error: float = 0.01, using: str | None = None
    ) -> None:
        self._parameters = BloomParameters.checked(capacity, error, None)
        self._using = using
        meta = model._meta.concrete_model._meta
        self.field: Any = meta.pk if field == "pk" else meta.get_field(field)
        if getattr(self.field, "column", None) is None:
            raise ConfigurationError(f"{meta.label}.{field} has no column, so {type(self).__name__} can't follow it.")
        if not self.field.remote_field and (wrong := self.wrong_type()):
            raise ConfigurationError(wrong)
        owner = self.field.model._meta
        name = f"{owner.label_lower}.{self.field.name}"
        if any(index.name == name for index in indexes(ModelFilter)):
            raise ConfigurationError(f"This is the second {type(self).__name__} of {name}. Use the first one.")
        fields = [self.field.name, "pk"][: 1 + self.field.primary_key]
        self._names = [name, *(f"{each.label_lower}.{field}" for each in (owner, meta) for field in fields)]
        super().__init__(self.field.model, name)
        pre_save.connect(_before, dispatch_uid="redis_kit.indexes.before")
        post_save.connect(_after, dispatch_uid="redis_kit.indexes.after")

    @property
    def names(self) -> Sequence[str]:
        """See ModelIndex.names."""
        return self._names

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

    def wrong_type(self) -> str:
        """Return what is wrong with the field's type; "" if nothing is. Relations can be asked when Django is ready."""
        field, _value = self.resolve(None)
        if isinstance(field, self.types):
            return ""
        types = ", ".join(each.__name__ for each in self.types)
        where = f"{self.field.model._meta.label}.{self.field.name}"
        return (
            f"{type(self).__name__} takes fields of the types {types}. {where} is of the type {type(field).__name__}."
        )

    def resolve(self, value: Any) -> tuple[Any, Any]:
        """Return the field to which a relation refers in the end, and the value there of a row that it refers to."""
        field = self.field
        while field.remote_field:
            field = field.target_field
            if isinstance(value, Model):
                value = getattr(value, field.attname)
        return (field.output_field if field.generated else field), value

    def comparable(self, value: Any) -> Any:
        """Return the same for all values that the database may take for equal. Raises an error for other values.

        Text is compared without case, accents and spaces at its end. Where the database may ignore more, text beyond
        printable ASCII is OTHER_TEXT.
        """
        field, value = self.resolve(value)
        if isinstance(value, Model) or hasattr(value, "resolve_expression"):
            raise InvalidValue(f"{self!r} takes values, and no {type(value).__name__}.")
        value = field.to_python(value)
        if not isinstance(value, str):
            return value
        return folded(value) if self.is_exact or (value.isascii() and value.isprintable()) else OTHER_TEXT

    @property
    def is_exact(self) -> bool:
        """Return whether the database ignores no more of a text than case, accents and spaces at its end."""
        vendor = connections[router.db_for_write(self.model)].vendor
        return vendor in EXACT and not getattr(self.resolve(None)[0], "db_collation", None)

    def read_values(self) -> Iterator[Any]:
        """Yield the values of all rows. Each batch is a query of its own: it sees what was committed before it.

        They come from the database that is written to: a replica may lack rows whose adds came before the rebuild.
        """
        rows: QuerySet[Any] = QuerySet(self.model, using=router.db_for_write(self.model)).order_by("pk")
        pairs = rows.values_list("pk", self.field.attname)
        batch = list(pairs[:BATCH])
        while batch:
            yield from (value for _pk, value in batch if value is not None)
            batch = list(pairs.filter(pk__gt=batch[-1][0])[:BATCH])

    def _look_up(self, seen: BloomFilter, value: Any) -> Flow[bool]:
        values = [self.comparable(value)]
        if isinstance(values[0], str) and not self.is_exact:
            values.append(OTHER_TEXT)
        answers = yield from seen.look_up(list(map(digest, values)), guarded=True)
        return any(answers) or values[0] == OTHER_TEXT

    def _unsure(self, error: Exception) -> bool:
        if not isinstance(error, NO_VALUE) and _log_limit.allows(f"{self.name} {type(error).__name__}"):
            logger.warning("bloom: %r is not asked: %s", self, described(error))
        return True


class BloomQuerySet(QuerySet[Any]):
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

    def bulk_create(self, objs: Iterable[Any], *args: Any, **options: Any) -> list[Any]:
        """See QuerySet.bulk_create()."""
        with self._change() as using:
            rows = super().bulk_create(objs, *args, **options)
            _add_saved(self.model, rows, using)
        return rows

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        """See QuerySet.bulk_update()."""
        rows, names = list(objs), list(fields)
        with self._change() as using:
            # Not by this class: its update() would meet expressions.
            plain: QuerySet[Any] = QuerySet(self.model, self.query.chain(), using, self._hints)  # type: ignore[attr-defined]
            count = plain.bulk_update(rows, names, batch_size)
            _add_saved(self.model, rows, using, names, created=False)
        return count

    def update(self, **values: Any) -> int:
        """See QuerySet.update()."""
        with self._change() as using:
            count = super().update(**values)
            _add_updated(self.model, values, using)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    @contextmanager
    def _change(self) -> Iterator[str]:
        """Let values be added before the commit of their rows."""
        self._for_write = True
        with transaction.atomic(using=self.db, savepoint=False):
            yield self.db


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
    return not all(each.may_exist(value) for each, value in _filters_of(queryset, lookups))


async def _ais_excluded(queryset: Any, lookups: Mapping[str, Any]) -> bool:
    for each, value in _filters_of(queryset, lookups):
        if not await each.amay_exist(value):
            return True
    return False


def _queryset(klass: Any) -> Any:
    """Return the rows of a model or a manager, and anything else as it is: Django says what is wrong with it."""
    rows = getattr(klass, "_default_manager", klass)
    return rows.all() if isinstance(rows, models.Manager) else rows


def _filters_of(queryset: Any, lookups: Mapping[str, Any]) -> Iterator[tuple[ModelFilter, Any]]:
    """Yield the filters that know whether a row can match lookups, each with the value to ask for."""
    for index in indexes(ModelFilter) if isinstance(queryset, QuerySet) else ():
        databases = {router.db_for_read(index.model), router.db_for_write(index.model)}
        if not issubclass(queryset.model, index.model) or queryset.db not in databases:
            continue
        names = {index.field.name, index.field.attname}
        if index.field.primary_key and queryset.model._meta.concrete_model is index.model:
            names.add("pk")
        yield from ((index, value) for name, value in lookups.items() if name.removesuffix("__exact") in names)


def _add_saved(model: Any, rows: Sequence[Any], using: str, fields: Any = None, *, created: bool = True) -> None:
    """Add the values of rows that were saved, and again at the commit of an open transaction.

    ``fields`` names those that were saved, None for all. A value that is not known is a missed change.
    """
    for index in _of(model, fields):
        if created or not index.field.primary_key:
            with _reporting(index):
                values = _values(index, model, rows, using, created)
                if values:
                    _add(index, values, using)


def _add_updated(model: Any, values: Mapping[str, Any], using: str) -> None:
    """Add the values that ``QuerySet.update()`` was given, as _add_saved() does."""
    by_name = {model._meta.pk.name if name == "pk" else name: value for name, value in values.items()}
    for index in _of(model, by_name):
        with _reporting(index):
            names = {index.field.name, index.field.attname} & by_name.keys()
            added = [by_name[name] for name in names if by_name[name] is not None]
            if index.field.generated or any(hasattr(value, "resolve_expression") for value in added):
                raise RedisKitError("update() had an expression")
            _add(index, added, using)


def _add(index: ModelFilter, values: list[Any], using: str) -> None:
    index.add_many(values)
    # Once more: a rebuild that began after the first add may have read the table before the commit.
    if connections[using].in_atomic_block:
        transaction.on_commit(partial(_add_again, index, values), using=using, robust=True)


def _add_again(index: ModelFilter, values: list[Any]) -> None:
    with _reporting(index):
        index.add_many(values)


@contextmanager
def _reporting(index: ModelFilter) -> Iterator[None]:
    """Report any error as a missed change; an interruption goes on after that."""
    try:
        yield
    except BaseException as error:
        index.report_miss(error)
        if not isinstance(error, Exception):
            raise


def _values(index: ModelFilter, model: Any, rows: Sequence[Any], using: str, created: bool) -> list[Any]:
    """Return the values that rows have in the database. Those that it made are read back."""
    name, values, keys = index.field.attname, list[Any](), list[Any]()
    for row in rows:
        value = vars(row).get(name)
        is_made = index.field.generated or hasattr(value, "resolve_expression") or (created and name not in vars(row))
        if is_made or (value is None and index.field.primary_key):
            keys.append(row.pk)
        elif value is not None:
            values.append(value)
    if keys:
        rows_again: QuerySet[Any] = QuerySet(model, using=using).filter(pk__in=keys)
        made = list(rows_again.values_list(name, flat=True))
        if len(made) < len(keys):
            raise RedisKitError("the key of a new row is not known")
        values += [value for value in made if value is not None]
    return values


def _before(*, sender: type[Model], instance: Model, using: str, update_fields: Any, **kwargs: Any) -> None:
    if connections[using].in_atomic_block:
        return  # the commit comes after _after()
    for index in _of(sender, update_fields):
        value = vars(instance).get(index.field.attname)
        is_made = index.field.generated or hasattr(value, "resolve_expression")
        if value is None or is_made or (index.field.primary_key and not instance._state.adding):
            continue
        with _reporting(index), suppress(*NO_VALUE):  # a value that can be saved nevertheless fails in _after()
            index.add_many([value])


def _after(
    *, sender: type[Model], instance: Model, created: bool, using: str, update_fields: Any, **kwargs: Any
) -> None:
    _add_saved(sender, [instance], using, update_fields, created=created)


def _of(sender: type[Model], fields: Any) -> list[ModelFilter]:
    return [
        index
        for index in indexes(ModelFilter)
        if issubclass(sender, index.model)
        and (fields is None or index.field.generated or {index.field.name, index.field.attname} & set(fields))
    ]


def problems() -> Iterator[CheckMessage]:
    """Yield an error for each filter with an unknown connection, or with a relation to a field that it can't take."""
    for index in indexes(ModelFilter):
        for problem in alias_missing(index.using, aliases()):
            yield Error(f"{index!r}: {problem.message}", hint=problem.hint, id="redis_kit.E002")
        if wrong := index.wrong_type():
            yield Error(wrong, id="redis_kit.E033")
