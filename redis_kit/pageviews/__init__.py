"""Views and unique visitors of pages, counted off the response path."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily
from redis_kit.pageviews.pages import OTHER as OTHER
from redis_kit.pageviews.pages import PageViewMixin as PageViewMixin
from redis_kit.pageviews.pages import page as page

if TYPE_CHECKING:
    from redis_kit.pageviews.beacon import page_token as page_token
    from redis_kit.pageviews.buffer import aflush as aflush
    from redis_kit.pageviews.buffer import dropped as dropped
    from redis_kit.pageviews.buffer import flush as flush
    from redis_kit.pageviews.counter import PageViews as PageViews
    from redis_kit.pageviews.database.snapshots import ahistory as ahistory
    from redis_kit.pageviews.database.snapshots import asnapshot as asnapshot
    from redis_kit.pageviews.database.snapshots import history as history
    from redis_kit.pageviews.database.snapshots import snapshot as snapshot
    from redis_kit.pageviews.objects import PopularView as PopularView
    from redis_kit.pageviews.objects import awith_views as awith_views
    from redis_kit.pageviews.objects import popular as popular
    from redis_kit.pageviews.objects import with_views as with_views

_PUBLIC: dict[str, tuple[str, ...]] = {
    "beacon": ("page_token",),
    "buffer": ("aflush", "dropped", "flush"),
    "counter": ("PageViews",),
    "database.snapshots": ("ahistory", "asnapshot", "history", "snapshot"),
    "objects": ("PopularView", "awith_views", "popular", "with_views"),
}
__all__ = ["OTHER", "PageViewMixin", "page", *(name for names in _PUBLIC.values() for name in names)]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
