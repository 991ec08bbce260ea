"""Views and unique visitors of pages, counted off the response path."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily
from redis_kit.pageviews.pages import OTHER, PageViewMixin, page

if TYPE_CHECKING:
    from redis_kit.pageviews.buffer import aflush, dropped, flush
    from redis_kit.pageviews.counter import PageViews

__all__ = ["OTHER", "PageViewMixin", "PageViews", "aflush", "dropped", "flush", "page"]

__getattr__, __dir__ = lazily(__name__, {"buffer": ("aflush", "dropped", "flush"), "counter": ("PageViews",)})
