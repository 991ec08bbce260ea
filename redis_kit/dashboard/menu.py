"""The menu of the dashboard: its pages, in the groups of their components."""

from collections.abc import Callable
from typing import NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.component import components
from redis_kit.core.panels import Panel
from redis_kit.dashboard.cells import Cell, cell
from redis_kit.dashboard.collect import may_view


class Page(NamedTuple):
    """A link of the menu."""

    title: Cell
    url: str
    current: bool


class Group(NamedTuple):
    """Pages under one title. A group of one page is a link to it."""

    title: Cell
    pages: list[Page]

    @property
    def current(self) -> bool:
        """Return whether one of its pages is the present one."""
        return any(page.current for page in self.pages)


def menu(here: str | None, *, may: Callable[[str], bool], url: Callable[..., str]) -> list[Group]:
    """Return the pages that a viewer may see. ``here`` is the slug of the present one, "" for the overview."""
    overview = cell(_("Overview"))
    groups = {"": Group(overview, [Page(overview, url("changelist"), here == "")])}
    for component in components():
        if panels := [panel for panel in component.load_panels() if may_view(panel, may)]:
            title = cell(component.group or panels[0].title)
            pages = groups.setdefault(title.text, Group(title, [])).pages
            pages += [_page(panel, here, url) for panel in panels]
    return list(groups.values())


def _page(panel: Panel, here: str | None, url: Callable[..., str]) -> Page:
    return Page(cell(panel.title), url("change", panel.slug), panel.slug == here)
