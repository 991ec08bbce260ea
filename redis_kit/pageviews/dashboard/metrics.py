"""The metrics of page views."""

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.settings import PageViewSettings

VIEWS = Metric("redis_kit_page_views_total", "counter", "Views of all pages of the site since midnight.")
VISITORS = Metric("redis_kit_page_visitors_today", "gauge", "Unique visitors of the site since midnight, estimated.")


class PageViewMetrics(MetricSource):
    """The views and visitors of the site."""

    metrics = (VIEWS, VISITORS)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples. One round trip."""
        if using != conf.section(PageViewSettings).USING:
            return []
        ((views, visitors),) = yield from numbers.of_many([PageViews.site().encoded], periods.days(None, None))
        return [VIEWS.sample(views), VISITORS.sample(int(visitors))]
