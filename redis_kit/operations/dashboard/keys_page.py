"""The dashboard's page about keys."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import components
from redis_kit.core.panels import (
    Bytes,
    Content,
    Field,
    Link,
    Meter,
    NextPage,
    Panel,
    Search,
    Table,
    Text,
    connection_fields,
)
from redis_kit.operations.keyspace import OTHER_PROGRAMS, ComponentMemory, component_memory, find_keys

SHOWN = 50  # keys on a page
OTHERS = {"": _("other keys with this prefix"), OTHER_PROGRAMS: _("other programs")}
FIELDS = ("connection", "component", "text")


class KeysPanel(Panel):
    """The keys of this project by component, and a search that can be continued. It shows names, never values."""

    slug = "keys"
    title = _("Keys")
    permission = "redis_kit.view_keys"

    def search(self) -> Search | None:
        """Return the search for a text in names, among the keys of one component or of all."""
        titles = titles_of_components()
        choices, labels = list(titles), list(titles.values())
        fields = [
            Field("component", _("Component"), choices, any=_("All components"), labels=labels),
            Field("text", _("Text in the key; *, ? and [a-z] are wildcards"), optional=True),
        ]
        return Search(_("Search"), [*connection_fields(), *fields])

    def content(self) -> Iterator[Content]:
        """Return a page of keys in three round trips; without a search the components, in two."""
        asked, using = self.viewer.asked, self.viewer.connection
        if not {"text", "component", "cursor"} & asked.keys():
            yield memory_table(component_memory(using), linked=True)
            return
        titles = titles_of_components()
        component, cursor = self.asked("component"), self.asked("cursor")
        page = find_keys(self.asked("text"), component=component, cursor=cursor, limit=SHOWN, using=using)
        yield Table.of(
            _("Keys"),
            page.keys,
            [
                (_("Key"), lambda key: key.name),
                (_("Component"), lambda key: titles.get(key.component, key.component)),
                (_("Type"), lambda key: key.type),
                (_("Memory"), lambda key: None if key.size is None else Bytes(key.size)),
                (_("Expires in"), lambda key: _seconds(key.expires_in)),
            ],
            empty=_("No match on this page. Continue the search.") if page.cursor else _("No further key matches."),
        )
        given = {name: asked[name] for name in FIELDS if asked.get(name)}
        further = {**given, "text": given.get("text", ""), "cursor": page.cursor}
        note = gettext("Keys searched: %s.") % f"{100 * page.share:.0f} %"
        yield NextPage(self.slug, further, note)

    def tile(self, replies: Mapping[str, Any]) -> None:
        """Return nothing: the overview does not list keys."""


def _seconds(expires_in: float | None) -> Any:
    return _("never") if expires_in is None else timedelta(seconds=expires_in)


def titles_of_components() -> dict[str, Text]:
    """Return the titles of components by their labels: those of their first panels."""
    panels = {component.label: component.load_panels() for component in components()}
    return {label: each[0].title if each else label for label, each in panels.items()}


def memory_table(rows: Sequence[ComponentMemory], *, linked: bool) -> Table:
    """Return the memory of components and their shares of it as a table, whose names link to their keys."""
    total = sum(row.size for row in rows)
    exact = all(row.share == 1 for row in rows)
    titles = titles_of_components() | OTHERS
    return Table(
        _("Memory by component") if exact else _("Memory by component, estimated from a part of the keys"),
        (_("Component"), _("Keys"), _("Memory")),
        [
            (
                Link(titles.get(row.component, row.component), KeysPanel.slug, {"component": row.component})
                if linked and row.component not in OTHERS
                else titles.get(row.component, row.component),
                row.keys,
                Meter(row.size, total, wanted=True, shown=Bytes(row.size)) if row.size else "?",
            )
            for row in rows
        ],
        empty=_("There are no keys of this project."),
    )
