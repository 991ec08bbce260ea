"""The dashboard's page about page views: of the site, of one page or object, or of two pages side by side."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core.errors import InvalidName
from redis_kit.core.flow import Flow
from redis_kit.core.panels import Content, Field, Panel, Search, Table, Tile
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.dashboard import drawings, report


class PageViewsPanel(Panel):
    """Views and visitors by day and hour, the most viewed pages, and where visitors come from."""

    slug = "pageviews"
    title = gettext_lazy("Page views")

    def search(self) -> Search | None:
        """Return the form for one page, one object, or two pages."""
        fields = (
            Field("page", gettext_lazy("Page (empty: the whole site)"), optional=True),
            Field("key", gettext_lazy("Key of an object"), optional=True),
            Field("other", gettext_lazy("Compare with the page"), optional=True),
        )
        return Search(gettext_lazy("Show"), fields)

    def content(self) -> Iterator[Content]:
        """Return the content, in one round trip; a comparison in a Cluster in two."""
        page, key, other = map(self.asked, ("page", "key", "other"))
        try:
            if other:
                yield from self._compared(page, key, other)
            else:
                yield from self._shown(page, key if page else "")
        except InvalidName as error:
            yield Table(_("Page views"), (), [], empty=str(error))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return today's numbers of the site. One round trip."""
        site = _page("")
        return {site.using: report.read_summary(site)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return today's views and visitors, and the views of the last 24 hours."""
        (summary,) = replies.values()
        return drawings.overview(summary)

    def _shown(self, page: str, key: str) -> Iterator[Content]:
        numbers = report.read(_page(page, key))
        yield from drawings.figures(numbers, is_site=not page)
        yield from drawings.charts(numbers)
        yield from drawings.lists(numbers, page, key)

    def _compared(self, page: str, key: str, other: str) -> Iterator[Content]:
        first, second = _page(page, key), _page(other)
        *reports, overlap = report.compare(first, second)
        names = (" ".join(filter(None, (page or _("Whole site"), key))), other)
        yield from drawings.comparison(names, reports, overlap)


def _page(name: str, key: str = "") -> PageViews:
    return PageViews(name, key or None, on_failure="raise") if name else PageViews.site(on_failure="raise")
