"""The dashboard's page about Bloom filters."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.bloom.filter import BloomFilter, Value
from redis_kit.bloom.inspection import FilterInfo, find_filter, list_filters, read_filters
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.settings import BloomSettings
from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.model_index import find_index, indexes
from redis_kit.core.panels import (
    MOST_ROWS,
    Alert,
    Bytes,
    Content,
    Field,
    Figure,
    Lines,
    Meter,
    Pages,
    Panel,
    Search,
    Table,
    Tile,
    action,
)


def _find(name: str) -> FilterInfo:
    if info := find_filter(name, conf.section(BloomSettings).USING):
        return info
    raise InvalidValue(_("Nothing was done: there is no filter %s.") % name)


def _effect_of_clear(name: str) -> str:
    count = _find(name).items
    return ngettext("%(count)d value is deleted.", "%(count)d values are deleted.", count) % {"count": count}


class BloomPanel(Panel):
    """The filters, how full they are, and whether a value is in one."""

    slug = "filters"
    title = gettext_lazy("Bloom filters")

    def search(self) -> Search:
        """Return the look-up of a value in a filter."""
        fields = [Field("filter", gettext_lazy("Filter")), Field("value", gettext_lazy("Value"))]
        return Search(gettext_lazy("Look up"), fields)

    def content(self) -> Iterator[Content]:
        """Return the answer to a look-up, and a page of filters. Two round trips, and two for a look-up."""
        asked = {name: text for name in ("filter", "value") if (text := self.viewer.asked.get(name, "").strip())}
        if len(asked) == 2:
            yield _answer(asked["filter"], asked["value"])
        number, using = self.viewer.page, conf.section(BloomSettings).USING
        total, filters = list_filters(using, start=(number - 1) * MOST_ROWS, count=MOST_ROWS)
        yield from _figures(total, filters)
        of_models = {index.name for index in indexes(ModelFilter)}
        yield Table(
            _("Filters"),
            (_("Name"), _("Values"), _("Layers"), _("Error now"), _("Memory"), _("State")),
            [_row(info, info.name in of_models) for info in filters],
            empty=_("There are no filters."),
            actions=("rebuild", "clear"),
            offered=[("rebuild", "clear") if info.name in of_models else ("clear",) for info in filters],
        )
        if total > MOST_ROWS:
            yield Pages(self.slug, number, -(-total // MOST_ROWS), asked)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the first filters. Two round trips."""
        using = conf.section(BloomSettings).USING
        return {using: read_filters(using, 0, MOST_ROWS)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many filters there are, and an alert for each that is larger than planned."""
        ((total, filters),) = replies.values()
        alerts = [
            Alert(_("%s is full") % info.name, _percent(info.items / info.capacity), _("of its capacity"))
            for info in filters
            if info.is_full
        ]
        return Tile(list(_figures(total, filters)), None, alerts) if total else None

    @action(gettext_lazy("Rebuild"), permission="redis_kit.change_indexes", asks=None, confirm=True, harmless=True)
    def rebuild(self, name: str) -> str:
        """Read the values of the model's field again, in a thread of this process."""
        find_index(ModelFilter, name).rebuild_in_background()
        return _("The rebuild of %s has begun. Until its end the filter answers as before.") % name

    @action(
        gettext_lazy("Clear"), permission="redis_kit.change_indexes", asks=None, typed=True, effect=_effect_of_clear
    )
    def clear(self, name: str) -> str:
        """Delete a filter with all its values."""
        _stored(_find(name)).clear()
        return _("The filter %s was deleted.") % name


def _answer(name: str, text: str) -> Content:
    info = find_filter(name, conf.section(BloomSettings).USING)
    values = _spellings(name, text) if info else {}
    answers = _stored(info).contains_many(values.values()) if info else []
    rows = [
        (text, kind, _("probably in it") if answer else _("surely not in it"))
        for kind, answer in zip(values, answers, strict=True)
    ]
    columns = (_("Value"), _("Looked up as"), _("Answer"))
    return Table(_("Look-up in %s") % name, columns, rows, empty=_("There is no filter with this name."))


def _spellings(name: str, text: str) -> dict[str, Value]:
    """Return the values that a text may stand for."""
    with suppress(InvalidValue, ValidationError):
        return {_("value of the field"): find_index(ModelFilter, name).comparable(text)}
    values: dict[str, Value] = {_("text"): text}
    for kind, read in ((_("whole number"), int), (_("UUID"), UUID)):
        with suppress(ValueError):
            values[kind] = read(text[:100])
    return values


def _figures(total: int, filters: list[FilterInfo]) -> Iterator[Figure]:
    yield Figure(_("Filters"), total)
    yield Figure(_("Values"), sum(info.items for info in filters))
    yield Figure(_("Memory"), Bytes(sum(info.memory for info in filters)))


def _row(info: FilterInfo, is_of_model: bool) -> tuple[Any, ...]:
    layers = Lines((info.layers, _("full: give it a larger capacity") if info.is_full else ""))
    error = Lines((_percent(info.error), _("of at most %s") % _percent(info.target_error)))
    return info.name, Meter(info.items, info.capacity), layers, error, Bytes(info.memory), _state(info, is_of_model)


def _state(info: FilterInfo, is_of_model: bool) -> str:
    if info.rebuilding:
        return _("is being rebuilt")
    if not is_of_model:
        return ""
    return _("complete") if info.complete else _("not asked: rebuild it")


def _percent(share: float) -> str:
    return f"{round(100 * share, 4):.3g} %"


def _stored(info: FilterInfo) -> BloomFilter:
    window = timedelta(seconds=info.window) if info.window else None
    return BloomFilter(info.name, info.capacity, info.target_error, window=window)
