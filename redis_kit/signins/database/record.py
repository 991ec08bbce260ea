"""Writes days to the database, if the setting ``RECORD`` is on."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, router
from django.db.models import QuerySet

from redis_kit.core import conf
from redis_kit.core.values.sequences import batched
from redis_kit.signins import keys
from redis_kit.signins.database.models import SignInDay
from redis_kit.signins.settings import SignInSettings

BATCH = 1000
UNIQUE = ["label", "object_id", "day"]


def record(instance: Any, day: date, kind: str) -> None:
    """Write a day, if the setting is on. One query; again for the same day it changes only its kind."""
    if conf.section(SignInSettings).RECORD:
        write([_row(instance, day, kind)])


async def arecord(instance: Any, day: date, kind: str) -> None:
    """See record()."""
    if conf.section(SignInSettings).RECORD:
        await SignInDay.objects.abulk_create([_row(instance, day, kind)], **_on_conflict())


def write(rows: Iterable[SignInDay]) -> int:
    """Write rows in batches, and return their number."""
    count = 0
    for batch in batched(rows, BATCH):
        SignInDay.objects.bulk_create(batch, **_on_conflict())
        count += len(batch)
    return count


def rows_of(instance: Any) -> QuerySet[SignInDay]:
    """Return the rows of an instance."""
    return SignInDay.objects.filter(label=keys.label(type(instance)), object_id=str(instance.pk))


def existing(model: Any, ids: Sequence[str]) -> set[str]:
    """Return those of the ids whose instances are in the database. One query."""
    pks = []
    for id in ids:
        with suppress(ValidationError):  # the model had another primary key
            pks.append(model._meta.pk.to_python(id))
    return {str(pk) for pk in model._base_manager.filter(pk__in=pks).values_list("pk", flat=True)}


def days_of(label: str) -> Iterator[tuple[str, list[tuple[date, str]]]]:
    """Yield the id of each instance of a model with its days, in their order. The rows are read in chunks."""
    rows = SignInDay.objects.filter(label=label).order_by("object_id", "day").values_list("object_id", "day", "kind")
    for object_id, group in groupby(rows.iterator(chunk_size=10_000), key=itemgetter(0)):
        yield object_id, [(day, kind) for _id, day, kind in group]


def _row(instance: Any, day: date, kind: str) -> SignInDay:
    return SignInDay(label=keys.label(type(instance)), object_id=str(instance.pk), day=day, kind=kind)


def _on_conflict() -> dict[str, Any]:
    options: dict[str, Any] = {"update_conflicts": True, "update_fields": ["kind"]}
    if connections[router.db_for_write(SignInDay)].features.supports_update_conflicts_with_target:
        options["unique_fields"] = UNIQUE
    return options
