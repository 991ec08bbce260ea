"""Template tags of page views: ``{% load redis_kit_pageviews %}``."""

from datetime import date, timedelta
from types import EllipsisType
from typing import Any

from django import template
from django.db.models import QuerySet
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from redis_kit.core.values.numbers import whole_number
from redis_kit.pageviews import periods
from redis_kit.pageviews.beacon import beacon_url, page_token
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.objects import By, popular
from redis_kit.pageviews.pages import NO_KEY, Key, is_reported, page_of

register = template.Library()


@register.simple_tag
def page_views(page: str, key: Key | EllipsisType | None = ..., *, days: int = 1) -> int:
    """Return the views of a page, or of its object by its key, today or in the last days. One round trip.

    It is 0 for an object that is not saved, and for a variable that is not there.
    """
    views = _views(page, key)
    return views.views(*_last(days)) if views else 0


@register.simple_tag
def page_visitors(page: str, key: Key | EllipsisType | None = ..., *, days: int = 1) -> int:
    """Return the unique visitors, as page_views() returns views."""
    views = _views(page, key)
    return views.visitors(*_last(days)) if views else 0


@register.inclusion_tag("redis_kit/pageviews/popular.html", name="popular")
def popular_list(queryset: QuerySet[Any], page: str, n: int = 5, *, by: By = "day", key: str = "pk") -> dict[str, Any]:
    """Show links to the objects with the most views: see popular(). One round trip and one query."""
    # A variable that is not there is "".
    return {"objects": [] if "" in (queryset, page) else popular(queryset, page, n, by=by, key=key)}


@register.simple_tag(takes_context=True)
def page_view_beacon(context: template.Context) -> SafeString:
    """Return the script that reports a view of this page; nothing if the middleware counts the page.

    The middleware leaves pages with ``@page(..., beacon=True)`` to the beacon.
    """
    request: HttpRequest | None = context.get("request")
    if request is None:
        raise ValueError("page_view_beacon needs the context processor django.template.context_processors.request.")
    if hasattr(request, "counts_page_views") and not is_reported(request):
        return SafeString("")
    if not (page := page_of(request)):
        return SafeString("")
    name, key = page
    script = '<script src="{}" data-url="{}" data-page="{}" defer></script>'
    return format_html(script, static("redis_kit/pageviews.js"), beacon_url(), page_token(name, key or None))


def _views(page: str, key: Key | EllipsisType | None) -> PageViews | None:
    if page == "" or key in NO_KEY:
        return None
    return PageViews(page, None if isinstance(key, EllipsisType) else key)


def _last(days: int) -> tuple[date, date]:
    today = periods.now().date()
    return today - timedelta(whole_number("days", days, (1, 366)) - 1), today
