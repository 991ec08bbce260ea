"""Writes to the database that are refused after a later holder has written: the fence of the lease decides.

Models import this when Django starts, so it loads no Redis client.
"""

import re
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.core.exceptions import EmptyResultSet, FieldDoesNotExist
from django.db import models, transaction

from redis_kit.core.errors import ConfigurationError, InvalidValue

if TYPE_CHECKING:
    from redis_kit.locks.leases.lease import Lease

Rows = models.QuerySet[Any]

# If a row matches depending on other rows, the UPDATE itself may change that; and PostgreSQL does not evaluate a
# subquery again after it had to wait for a row. So these rows are named by their keys.
DEPENDS = re.compile(r"\(\s*SELECT\b|\bJOIN\b|\bGROUP BY\b", re.IGNORECASE)


def fenced(queryset: "Rows | models.Manager[Any]", lease: "Lease") -> "Fenced":
    """Return the rows of a queryset, to be changed unless one of them was changed under a newer lease.

    Each write stores the lease's fence in the row; a row with a newer fence refuses it with StaleFence. The fences of
    one name always grow. Names are spread over 16 buckets, and a fence is the microseconds of the server's clock, or
    one more than the last in its bucket; so between two names it only says which lease is later, and not surely if they
    are on different nodes. Guard a row by one name: of two names, or of a semaphore with several slots, the later lease
    refuses the earlier one, although both are live.

    The state of the lease is not checked. An ended lease may still write until a later holder does; a lease that seems
    live may be refused: only the database knows. Any thread or task may use it. Raises ConfigurationError for a model
    without the column, and InvalidValue if it is not given a lease and a plain queryset, both without a query.
    """
    return Fenced(queryset, lease)


class Fenced:
    """The rows of ``fenced()``: only the newest holder can change them, either all of them or none.

    Each change is made in ``transaction.atomic()``, if need be with a savepoint, on the database that the queryset
    writes to. After StaleFence an outer transaction can go on.
    """

    def __init__(self, queryset: "Rows | models.Manager[Any]", lease: "Lease") -> None:
        self._lease = checked(lease)
        self._rows = _plain(queryset)
        self._model = self._rows.model
        _check_column(self._model)

    def update(self, **values: Any) -> int:
        """Change columns as QuerySet.update() does, and return the number of rows; 0 if nothing matches.

        Without values it stores the fence alone, so that earlier holders are refused from now on: do that before
        reading what is written later. Raises StaleFence and changes nothing if a row has a newer fence. Two
        statements in a transaction; a third one if the filter uses other tables or subqueries, whose annotations
        the values can't refer to.
        """
        self._check_values(values)
        with transaction.atomic(using=self._rows.db):
            rows = self._by_key() if self._depends() else self._rows
            changed = rows.filter(fence__lte=self._lease.fence).update(**values, fence=self._lease.fence)
            self._refuse_newer(rows)
        return changed

    async def aupdate(self, **values: Any) -> int:
        """See update()."""
        return await sync_to_async(self.update)(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete as QuerySet.delete() does, with its cascades, signals and answer.

        Raises StaleFence and deletes nothing if a row has a newer fence. The fence is deleted with the row: a row that
        is inserted later starts without it. Three statements before those of Django; the first reads the primary keys.
        """
        with transaction.atomic(using=self._rows.db):
            rows = self._by_key()
            rows.filter(fence__lte=self._lease.fence).update(fence=self._lease.fence)  # locks them
            self._refuse_newer(rows)
            return rows.filter(fence=self._lease.fence).delete()

    async def adelete(self) -> tuple[int, dict[str, int]]:
        """See delete()."""
        return await sync_to_async(self.delete)()

    def _depends(self) -> bool:
        compiler = self._rows.values("pk").query.get_compiler(using=self._rows.db)
        try:
            return DEPENDS.search(compiler.as_sql()[0]) is not None
        except EmptyResultSet:
            return False

    def _by_key(self) -> Rows:
        every: Rows = type(self._rows)(self._model, using=self._rows.db)
        return every.filter(pk__in=list(self._rows.values_list("pk", flat=True)))

    def _refuse_newer(self, rows: Rows) -> None:
        # This comes after the UPDATE, which waits for transactions that change a row at this moment. And SQLite can't
        # turn a transaction that began with a read into a writing one after another one has written. It locks the rows,
        # since MySQL's REPEATABLE READ shows an older snapshot to any other read.
        newer_rows = rows.filter(fence__gt=self._lease.fence).select_for_update()
        newer = newer_rows.order_by("-fence").values_list("fence", flat=True).first()
        if newer is None:
            return
        from redis_kit.locks.errors import StaleFence

        label, fence = self._model._meta.label, self._lease.fence
        text = f"{self._lease!r} came too late: {label} was changed under the newer fence {newer}. Nothing was changed."
        raise StaleFence(text, self._lease.name, model=label, fence=fence, newer=newer)

    def _check_values(self, values: dict[str, Any]) -> None:
        if "fence" in values:
            raise InvalidValue("fenced() writes the fence itself; give the other values only.")
        for field in self._model._meta.concrete_fields:
            if not _is_own(field, self._model) and {field.name, field.attname} & values.keys():
                raise InvalidValue(
                    f"{field.name} is in the table of {field.model._meta.label}, whose rows this fence does not guard."
                    " Use save_fenced() of the instance."
                )


def checked(lease: Any) -> "Lease":
    """Return the lease. Raises InvalidValue for anything else."""
    from redis_kit.locks.leases.lease import Lease

    if not isinstance(lease, Lease):
        hint = " acquire() returns None if the lock is held by others." if lease is None else ""
        raise InvalidValue(f"A lease is what acquire() and 'with' return, not {type(lease).__name__}.{hint}")
    return lease


def _plain(queryset: Any) -> Rows:
    if not isinstance(queryset, (models.QuerySet, models.Manager)):
        raise InvalidValue(f"fenced() takes a queryset, not {type(queryset).__name__}.")
    rows: Any = queryset.all()
    query = rows.query
    wrong = {
        "sliced": query.is_sliced,
        "ordered": query.order_by or query.extra_order_by,
        "distinct": query.distinct,
        "a union": query.combinator,
        "one of values": rows._fields is not None,
    }
    for word, is_so in wrong.items():
        if is_so:
            raise InvalidValue(
                f"The queryset is {word}; a fenced write changes all rows that match, at once. "
                "Use filter(pk__in=...) with the primary keys."
            )
    rows._for_write = True  # else a router names the database to read from
    return rows.using(rows.db)  # type: ignore[no-any-return]


def _check_column(model: type[models.Model]) -> None:
    label = model._meta.label
    try:
        field = model._meta.get_field("fence")
    except FieldDoesNotExist:
        field = None
    if not isinstance(field, models.BigIntegerField) or field.null:
        raise ConfigurationError(
            f"{label} has no column for the fence, a BigIntegerField named fence that can't be null. Make "
            "FencedModelMixin one of its bases, then run makemigrations and migrate."
        )
    if not _is_own(field, model):
        raise ConfigurationError(
            f"The fence of {label} is in the table of {field.model._meta.label}: write to that model, or make "
            f"FencedModelMixin a base of the model whose rows are written."
        )


def _is_own(field: "models.Field[Any, Any]", model: type[models.Model]) -> bool:
    return field.model._meta.concrete_model is model._meta.concrete_model
