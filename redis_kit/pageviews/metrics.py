"""The metrics of page views."""

from typing import Any

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews, dropped, of_many
from redis_kit.pageviews.settings import PageViewSettings

VIEWS = Metric("redis_kit_page_views_total", "counter", "Views of all pages of the site since midnight.")
DROPPED = Metric("redis_kit_page_views_dropped_total", "counter", "Views that were not counted since midnight.")
VISITORS = Metric("redis_kit_page_visitors_today", "gauge", "Unique visitors of the site since midnight, estimated.")


class PageViewMetrics(MetricSource):
    """The views, dropped views and visitors of the site."""

    metrics = (VIEWS, DROPPED, VISITORS)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        if using != conf.section(PageViewSettings).USING:
            return []
        today = periods.days(None, None)
        flows: list[Flow[Any]] = [of_many([PageViews.site().encoded], today), dropped(today)]
        ((views, visitors),), (lost,) = yield from gather(flows)
        return [VIEWS.sample(views), DROPPED.sample(lost), VISITORS.sample(int(visitors))]
