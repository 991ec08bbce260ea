"""The views and visitors of many model objects at once."""

from collections.abc import AsyncIterable, Callable, Iterable
from datetime import date
from operator import attrgetter
from typing import Any, TypeVar

from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews
from redis_kit.pageviews.pages import NO_KEY, encoded
from redis_kit.pageviews.questions import numbers
from redis_kit.pageviews.questions.values import Visitors

MOST = 1000  # objects
NOTHING = 0, Visitors(0)
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
    returns it; an object without one, such as one that is not saved, has 0. The range is that of ``PageViews.views()``.
    One round trip for all, however many there are. Raises InvalidValue for over 1000 objects, for which you should ask
    page by page.
    """
    listed = list(objects)
    names = _names(listed, page, key)
    views, flow = PageViews(page), numbers.of_many([*filter(None, names)], periods.days(start, end))
    return _annotated(listed, names, views.run_flow(flow, if_open=()))


async def awith_views(
    objects: Iterable[Object] | AsyncIterable[Object],
    page: str,
    *,
    start: date | None = None,
    end: date | None = None,
    key: str | Callable[[Object], Any] = "pk",
) -> list[Object]:
    """See with_views()."""
    listed = [each async for each in objects] if isinstance(objects, AsyncIterable) else list(objects)
    names = _names(listed, page, key)
    views, flow = PageViews(page), numbers.of_many([*filter(None, names)], periods.days(start, end))
    return _annotated(listed, names, await views.arun_flow(flow, if_open=()))


def _names(objects: list[Any], page: str, key: str | Callable[[Any], Any]) -> list[str]:
    """Return the names under which objects are counted, "" for one without a key."""
    if len(objects) > MOST:
        raise InvalidValue(f"These are {len(objects)} objects; with_views() takes at most {MOST}. Use a paginator.")
    key_of = attrgetter(key) if isinstance(key, str) else key
    return ["" if (value := key_of(each)) in NO_KEY else encoded(page, value) for each in objects]


def _annotated(objects: list[Any], names: list[str], figures: Iterable[tuple[int, Visitors]]) -> list[Any]:
    read = iter(figures)
    for each, name in zip(objects, names, strict=True):
        each.page_views, each.page_visitors = next(read, NOTHING) if name else NOTHING
    return objects
