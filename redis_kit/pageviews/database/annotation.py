"""The views and visitors of many model objects at once."""

from collections.abc import Callable, Iterable
from datetime import date
from operator import attrgetter
from typing import Any, TypeVar

from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.pages import encoded
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Visitors

MOST = 1000  # objects
Object = TypeVar("Object")


def with_views(
    objects: Iterable[Object],
    page: str,
    *,
    start: date | None = None,
    end: date | None = None,
    key: str | Callable[[Object], Any] = "pk",
) -> list[Object]:
    """Return the objects of a queryset, a page of a paginator or a list with ``page_views`` and ``page_visitors``.

    ``page`` is the name under which they are counted, and ``key`` the attribute that is their key, or a function that
    returns it. The range is that of ``PageViews.views()``. One round trip for all, however many there are. Raises
    InvalidValue for over 1000 objects, for which you should ask page by page.
    """
    listed = list(objects)
    names = _names(listed, page, key)
    views = PageViews(page)
    return _annotated(listed, views.run_flow(numbers.of_many(names, periods.days(start, end)), if_open=None))


async def awith_views(
    objects: Any,
    page: str,
    *,
    start: date | None = None,
    end: date | None = None,
    key: str | Callable[[Object], Any] = "pk",
) -> list[Object]:
    """See with_views()."""
    listed = [each async for each in objects] if hasattr(objects, "__aiter__") else list(objects)
    names = _names(listed, page, key)
    views = PageViews(page)
    return _annotated(listed, await views.arun_flow(numbers.of_many(names, periods.days(start, end)), if_open=None))


def _names(objects: list[Any], page: str, key: str | Callable[[Any], Any]) -> list[str]:
    if len(objects) > MOST:
        raise InvalidValue(f"These are {len(objects)} objects; with_views() takes at most {MOST}. Use a paginator.")
    key_of = attrgetter(key) if isinstance(key, str) else key
    return [encoded(page, key_of(each)) for each in objects]


def _annotated(objects: list[Any], figures: list[tuple[int, Visitors]] | None) -> list[Any]:
    nothing = [(0, Visitors(0))] * len(objects)
    for each, (views, visitors) in zip(objects, nothing if figures is None else figures, strict=True):
        each.page_views, each.page_visitors = views, visitors
    return objects
