"""Views and unique visitors of pages, counted off the response path."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily
from redis_kit.pageviews.pages import OTHER, PageViewMixin, page

if TYPE_CHECKING:
    from redis_kit.pageviews.buffer import aflush, dropped, flush
    from redis_kit.pageviews.counter import PageViews
    from redis_kit.pageviews.database.annotation import awith_views, with_views
    from redis_kit.pageviews.database.history import ahistory, history
    from redis_kit.pageviews.database.snapshots import asnapshot, snapshot
    from redis_kit.pageviews.http.beacon import page_token
    from redis_kit.pageviews.http.popular import PopularView, popular

__all__ = [
    "OTHER",
    "PageViewMixin",
    "PageViews",
    "PopularView",
    "aflush",
    "ahistory",
    "asnapshot",
    "awith_views",
    "dropped",
    "flush",
    "history",
    "page",
    "page_token",
    "popular",
    "snapshot",
    "with_views",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "database.annotation": ("awith_views", "with_views"),
        "buffer": ("aflush", "dropped", "flush"),
        "counter": ("PageViews",),
        "database.history": ("ahistory", "history"),
        "database.snapshots": ("asnapshot", "snapshot"),
        "http.beacon": ("page_token",),
        "http.popular": ("PopularView", "popular"),
    },
)
