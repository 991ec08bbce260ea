"""Indexes of the values of a field: each saved value is added before its row can be seen, and again at commit."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.db import connections, router, transaction
from django.db.models import Model
from django.db.models.signals import post_save, pre_save

from redis_kit.core.errors import RedisKitError
from redis_kit.core.indexes.model_index import ModelIndex, indexes


class FieldIndex(ModelIndex):
    """An index of a model's field, to which values are only added."""

    def __init__(self, model: Any, field: str = "pk") -> None:
        meta = model._meta.concrete_model._meta
        self.field: Any = model._meta.pk if field == "pk" else model._meta.get_field(field)
        super().__init__(model, f"{meta.label_lower}.{self.field.name}")
        pre_save.connect(_before, dispatch_uid="redis_kit.indexes.before")
        post_save.connect(_after, dispatch_uid="redis_kit.indexes.after")

    @property
    def names(self) -> Sequence[str]:
        """See ModelIndex.names."""
        return [self.name, f"{self.model._meta.label_lower}.pk"][: 1 + self.field.primary_key]

    def add_many(self, values: Iterable[Any]) -> None:
        """Add values of the field."""
        raise NotImplementedError

    def read_values(self) -> Iterator[Any]:
        """Yield the values of all rows.

        They come from the database that is written to: a replica may lack rows whose adds came before the rebuild.
        """
        rows = self.model._base_manager.using(router.db_for_write(self.model))
        values = rows.exclude(**{self.field.attname: None}).values_list(self.field.attname, flat=True)
        return iter(values.iterator(chunk_size=2000))


def _add(index: FieldIndex, value: Any) -> None:
    try:
        index.add_many([value])
    except RedisKitError as error:
        index.report_miss(error)


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


def _of(sender: type[Model], update_fields: Any) -> list[FieldIndex]:
    return [
        index
        for index in indexes(FieldIndex)
        if issubclass(sender, index.model)
        and (update_fields is None or {index.field.name, index.field.attname} & set(update_fields))
    ]


def _is_known(index: FieldIndex, instance: Model) -> bool:
    name = index.field.attname
    return name not in instance.get_deferred_fields() and getattr(instance, name) is not None
