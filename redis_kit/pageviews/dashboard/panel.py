"""The dashboard's page about page views."""

from collections.abc import Iterator

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import Bars, Content, Figure, Panel, Table
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.questions import numbers


class PageViewsPanel(Panel):
    """Today's views and visitors, by hour and by page."""

    slug = "pageviews"
    title = _("Page views")

    def content(self) -> Iterator[Content]:
        """Return the content, in three round trips."""
        site = PageViews.site(on_failure="raise")
        (hours,) = site.run_flow(numbers.hours_of_days(site.encoded, [periods.now().date()]))
        yield Figure(_("Views today"), sum(hours))
        yield Figure(_("Unique visitors today"), int(site.visitors()), hint=_("An estimate: ±0.81 %."))
        yield Bars(_("Views per hour today"), [(f"{hour:02}", views) for hour, views in enumerate(hours)])
        yield Table(_("Top pages today"), (_("Page"), _("Views")), site.top(20), empty=_("No views today."))
