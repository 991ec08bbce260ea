"""The base of panels about indexes: a table of all, with buttons to rebuild those of models, and to clear some."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from redis_kit.core.client.addresses import aliases
from redis_kit.core.flow import Flow
from redis_kit.core.indexes.inventory import Contents, Inventory
from redis_kit.core.indexes.model_index import find_index
from redis_kit.core.panels import (
    MOST_ROWS,
    Action,
    Alert,
    Content,
    Effect,
    Figure,
    Lines,
    Pages,
    Panel,
    Table,
    Text,
    Tile,
    action,
    first_alerts,
)
from redis_kit.core.text import grouped


def _parse(value: str) -> list[tuple[str, str | None]]:
    """Return the name and the connection of each row in the value of a button."""
    pairs = [line.rpartition("/") for line in value.splitlines()]
    return [(unquote(name), unquote(using) or None) for using, _slash, name in pairs]


def _named(value: str) -> str:
    return ", ".join(name for name, _using in _parse(value))


class IndexPanel(Panel):
    """The indexes of a component, on all connections. A subclass has the figures, and the cells of a row."""

    inventory: ClassVar[Inventory]
    #: What is listed, the columns of the table beside the name, and what it says if it has no row.
    listed: ClassVar[Text] = gettext_lazy("Indexes")
    columns: ClassVar[tuple[Text, ...]]
    empty: ClassVar[Text] = gettext_lazy("There are no indexes.")

    def figures(self, infos: Sequence[Any]) -> Iterator[Figure]:
        """Yield the figures of the page and the tile beside the number of indexes."""
        raise NotImplementedError

    def incomplete(self, info: Any) -> str:
        """Return what an alert says of the index of a model that is not complete, with %s for its name."""
        return _("%s does not answer")

    def cells(self, info: Any) -> Sequence[Any]:
        """Return the cells of a row beside its name."""
        raise NotImplementedError

    def alerts(self, infos: Sequence[Any]) -> Iterator[Alert]:
        """Yield an alert for each index of a model that needs a rebuild, of three of them at most."""
        yield from first_alerts(
            Alert(self.incomplete(info) % info.name, _("rebuild it"))
            for info in infos
            if not info.complete and not info.rebuilding and self.inventory.is_of_model(info)
        )

    def details(self, infos: Sequence[Any]) -> Iterator[Content]:
        """Yield what stands below the table."""
        yield from ()

    def content(self) -> Iterator[Content]:
        """Return the figures, and a page of the table. Two round trips to each connection.

        The error of a connection comes last, so that the indexes of the others are shown.
        """
        listed, number = self.inventory.read_all(), self.viewer.page
        yield from self._figures(listed)
        infos = listed.infos[(number - 1) * MOST_ROWS : number * MOST_ROWS]
        several = len(aliases()) > 1
        yield Table(
            self.listed,
            (_("Name"), *self.columns),
            [(Lines((each.name, each.using if several else "")), *self.cells(each)) for each in infos],
            empty=self.empty,
            actions=("rebuild",),
            values=[f"{quote(each.using, safe='')}/{quote(each.name, safe='')}" for each in infos],
            offered=[("rebuild",) if self.inventory.is_of_model(each) else () for each in infos],
            selects=("clear",),
        )
        yield from Pages.of(self.slug, number, len(listed.infos))
        yield from self.details(listed.infos)
        listed.check_available()

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the indexes of each connection. Two round trips."""
        return {alias: self.inventory.read(alias) for alias in aliases()}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return the figures and the alerts; None if there is no index."""
        listed = self.inventory.merged(replies.values())
        if listed.infos:
            figures, alerts = list(self._figures(listed)), list(self.alerts(listed.infos))
            return Tile(figures, None, alerts, unavailable=listed.unavailable)
        listed.check_available()
        return None

    def _figures(self, listed: Contents) -> Iterator[Figure]:
        count = len(listed.infos)
        yield Figure(self.listed, listed.total, _("%s were read") % grouped(count) if listed.total > count else "")
        yield from self.figures(listed.infos)

    @action(
        gettext_lazy("Rebuild"),
        permission="redis_kit.change_indexes",
        asks=None,
        named=_named,
        confirm=True,
        harmless=True,
    )
    def rebuild(self, value: str) -> str:
        """Read the rows of the model again, in a thread of this process."""
        ((name, _using),) = _parse(value)
        find_index(self.inventory.kind, name).rebuild_in_background()
        return _("The rebuild of %s has begun. Until its end it answers as before.") % name

    @action(gettext_lazy("Clear"), permission="redis_kit.change_indexes", asks=None, named=_named, confirm=True)
    def clear(self, value: str) -> str:
        """Delete indexes with all that they hold."""
        for info in self._find(value):
            self.inventory.clear(info)
        return _("Deleted: %s.") % _named(value)

    def effect_of(self, action: Action, value: str) -> Text | Effect:
        """See Panel.effect_of()."""
        if action.harmless:
            return super().effect_of(action, value)
        count = sum(map(self.inventory.size, self._find(value)))
        text = ngettext("%(count)s entry is deleted.", "%(count)s entries are deleted.", count)
        return text % {"count": grouped(count)}

    def _find(self, value: str) -> list[Any]:
        return [self.inventory.find_one(name, using) for name, using in _parse(value)]
