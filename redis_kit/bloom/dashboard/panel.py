"""The dashboard's page about Bloom filters."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from redis_kit.bloom.filter import Value
from redis_kit.bloom.inspection import filters, stored_filter
from redis_kit.bloom.model_filter import ModelFilter
from redis_kit.bloom.state import FilterInfo
from redis_kit.core.errors import InvalidValue
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.indexes.panel import IndexPanel
from redis_kit.core.panels import Alert, Bytes, Content, Field, Figure, Lines, Meter, Search, Table, Text, first_alerts
from redis_kit.core.text import whole_units


class BloomPanel(IndexPanel):
    """The filters, how full they are, and whether a value is in one."""

    slug = "filters"
    title = _("Bloom filters")
    inventory, listed = filters, title
    columns = (_("Values"), _("Layers"), _("Error now"), _("Memory"), _("State"))
    empty = _("There are no filters.")

    def search(self) -> Search:
        """Return the look-up of a value in a filter."""
        fields = [Field("filter", _("Filter")), Field("value", _("Value"))]
        return Search(_("Look up"), fields)

    def content(self) -> Iterator[Content]:
        """Return the answer to a look-up, and a page of filters. Two more round trips for a look-up."""
        name, text = (self.viewer.asked.get(field, "").strip() for field in ("filter", "value"))
        if name and text:
            yield _answer(name, text)
        yield from super().content()

    def figures(self, infos: Sequence[FilterInfo]) -> Iterator[Figure]:
        """Return what all filters hold."""
        yield Figure(_("Values"), sum(info.items for info in infos))
        yield Figure(_("Memory"), Bytes(sum(info.memory for info in infos)))

    def alerts(self, infos: Sequence[FilterInfo]) -> Iterator[Alert]:
        """Return an alert for each filter that needs a rebuild, or holds more than planned."""
        yield from super().alerts(infos)
        yield from first_alerts(
            Alert(_("%s is full") % info.name, hint=_overfull(info)) for info in infos if info.is_overfull
        )

    def cells(self, info: FilterInfo) -> tuple[Any, ...]:
        """Return the cells of a filter."""
        full = _overfull(info) if info.is_overfull else ""
        window = _("window of %s") % whole_units(info.window) if info.window else ""
        error = Lines((_percent(info.error), _("of at most %s") % _percent(info.target_error)))
        layers = Lines((info.layers, full, window))
        return Meter(info.items, info.capacity), layers, error, Bytes(info.memory), _state(info)


def _answer(name: str, text: str) -> Content:
    rows = []
    for info in filters.find(name, any_case=True):
        values = _spellings(info, text)
        answers = stored_filter(info).contains_many(values.values())
        for kind, answer in zip(values, answers, strict=True):
            rows.append((text, kind, _("probably in it") if answer else _("surely not in it")))
    columns = (_("Value"), _("Looked up as"), _("Answer"))
    return Table(_("Look-up in %s") % name, columns, rows, empty=_("There is no filter with this name."))


def _spellings(info: FilterInfo, text: str) -> dict[Text, Value]:
    """Return the values that a text may stand for."""
    with suppress(InvalidValue):
        index = find_index(ModelFilter, info.name)
        with suppress(ValueError, TypeError):
            return {_("value of the field"): index.comparable(text)}
    values: dict[Text, Value] = {_("text"): text}
    for kind, read in ((_("whole number"), int), (_("UUID"), UUID)):
        with suppress(ValueError):
            values[kind] = read(text[:100])
    return values


def _state(info: FilterInfo) -> Text:
    if info.rebuilding:
        return _("is being rebuilt")
    if not info.layers:
        return _("not built: rebuild it")
    states: dict[bool | None, Text] = {True: _("complete"), False: _("not asked: rebuild it")}
    return states.get(info.complete, "")


def _overfull(info: FilterInfo) -> str:
    return _("%s times its capacity: give it a larger one") % f"{info.items / info.capacity:.3g}"


def _percent(share: float) -> str:
    return f"{round(100 * share, 4):.3g} %"
