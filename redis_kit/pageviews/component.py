"""Page views as a component."""

from collections.abc import Iterator

from django.core.checks import CheckMessage
from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.pageviews.settings import PageViewSettings


class PageViews(Component):
    """Views and unique visitors of pages."""

    settings = PageViewSettings
    commands = (
        "del get getrange hget hincrby hmget hset pexpire pfadd pfcount pfmerge sadd scard set sismember smembers zadd "
        "zcard zincrby zmscore zpopmin zrange zremrangebyrank zscore"
    )
    panels = ("redis_kit.pageviews.dashboard.panel.PageViewsPanel",)
    group = _("Visitors")
    metrics = ("redis_kit.pageviews.metrics.PageViewMetrics",)

    def forget(self) -> None:
        """Drop the views that wait to be counted."""
        from redis_kit.pageviews.buffer import buffer

        # Not on a change of REDIS_KIT: a test may count views after the block of override_settings() that made them.
        buffer.discard()

    def checks(self) -> Iterator[CheckMessage]:
        """Yield what the middleware and the beacon need in ``MIDDLEWARE`` and ``urlpatterns``."""
        from redis_kit.pageviews.checks import messages

        return messages()
