"""Objects of models and their views: the most viewed ones for the public, and the numbers of many objects at once."""

from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from datetime import date
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.views.generic import ListView

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.values.numbers import whole_number
from redis_kit.pageviews import periods
from redis_kit.pageviews.counter import PageViews, Visitors, of_many, top, trending
from redis_kit.pageviews.pages import NO_KEY, encoded
from redis_kit.pageviews.pages import page as page_of_view

MOST_POPULAR, MOST_ANNOTATED = 100, 1000
SPARE = 20  # further keys that are read, as some objects may be deleted, or not for everyone
NOTHING = 0, Visitors(0)
By = Literal["now", "day", "week", "month"]
Object = TypeVar("Object")


def popular(queryset: QuerySet[Any], page: str, n: int = 5, *, by: By = "day", key: str = "pk") -> list[Any]:
    """Return the objects of a queryset with the most views of a page, each with its ``page_views``, in their order.

    ``by`` is today, or this week or month; with ``now`` a view counts half after 6 hours, and
    ``page_views`` is None. ``key`` is the field with the keys of the page's objects, such as ``slug``. Objects that the
    queryset lacks are left out. One round trip and one query; empty while Redis is unavailable. Raises InvalidValue
    unless ``n`` is from 1 to 100, or for another ``by``.
    """
    return _popular(queryset, page, n, by, key) or []


def _popular(queryset: QuerySet[Any], page: str, n: int, by: By, key: str) -> list[Any] | None:
    """Return what popular() returns, and None while Redis is unavailable."""
    if not hasattr(queryset, "filter"):
        raise InvalidValue(f"queryset must be a QuerySet, not {type(queryset).__name__}.")
    whole_number("n", n, (1, MOST_POPULAR))
    counted, most = PageViews(page), 2 * n + SPARE
    if by == "now":
        flow: Flow[Any] = trending(counted.encoded, most)
    elif by in ("day", "week", "month"):
        flow = top(counted.encoded, periods.period_of(periods.now().date(), by), most)
    else:
        raise InvalidValue(f"by is {by!r}; it must be 'now', 'day', 'week' or 'month'.")
    ranking = counted.run_flow(flow, if_open=None)
    if ranking is None:
        return None
    views = dict(_values(queryset, key, ranking))
    objects = list(queryset.filter(**{f"{key}__in": list(views)})) if views else []
    places = {value: place for place, value in enumerate(views)}
    objects.sort(key=lambda each: places[getattr(each, key)])
    for each in objects:
        each.page_views = None if by == "now" else views[getattr(each, key)]
    return objects[:n]


@page_of_view(None)
class PopularView(ListView):  # type: ignore[type-arg]  # has no parameters at run time
    """A box with the most viewed objects of a model, as a fragment of HTML that is cached for ``max_age`` seconds.

    While Redis is unavailable, the box is empty and not cached. It is not counted as a page view. ``page`` is the name
    under which the objects of ``model`` or ``queryset`` are counted; ``n``, ``by`` and ``key`` are the arguments of
    ``popular()``.
    """

    page: ClassVar[str] = ""
    n: ClassVar[int] = 5
    by: ClassVar[By] = "day"
    key: ClassVar[str] = "pk"
    max_age: ClassVar[int] = 60
    template_name = "redis_kit/pageviews/popular.html"
    context_object_name = "objects"
    http_method_names = ["get", "head", "options"]
    is_unavailable = False

    def get_queryset(self) -> Any:
        """Return the objects, the most viewed first."""
        if not self.page:
            raise ImproperlyConfigured(
                f"{type(self).__name__} needs page, the name under which its objects are counted."
            )
        objects = _popular(super().get_queryset(), self.page, self.n, self.by, self.key)
        self.is_unavailable = objects is None
        return objects or []

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the box."""
        response = super().get(request, *args, **kwargs)
        if self.is_unavailable:
            patch_cache_control(response, no_store=True)
        else:
            patch_cache_control(response, public=True, max_age=self.max_age)
        return response


def _values(queryset: QuerySet[Any], key: str, ranking: Iterable[tuple[str, float]]) -> Iterator[tuple[Any, float]]:
    """Yield the keys as values of the field. Others, such as ``(other)``, are left out."""
    field = queryset.model._meta.pk if key == "pk" else queryset.model._meta.get_field(key)
    for text, views in ranking:
        try:
            yield field.to_python(text), views
        except ValidationError:
            continue


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
    flow = of_many([*filter(None, names)], periods.days(start, end))
    return _annotated(listed, names, PageViews(page).run_flow(flow, if_open=()))


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
    flow = of_many([*filter(None, names)], periods.days(start, end))
    return _annotated(listed, names, await PageViews(page).arun_flow(flow, if_open=()))


def _names(objects: list[Any], page: str, key: str | Callable[[Any], Any]) -> list[str]:
    """Return the names under which objects are counted, "" for one without a key."""
    if len(objects) > MOST_ANNOTATED:
        count = len(objects)
        raise InvalidValue(f"These are {count} objects; with_views() takes at most {MOST_ANNOTATED}. Use a paginator.")
    key_of = attrgetter(key) if isinstance(key, str) else key
    return ["" if (value := key_of(each)) in NO_KEY else encoded(page, value) for each in objects]


def _annotated(objects: list[Any], names: list[str], figures: Iterable[tuple[int, Visitors]]) -> list[Any]:
    read = iter(figures)
    for each, name in zip(objects, names, strict=True):
        each.page_views, each.page_visitors = next(read, NOTHING) if name else NOTHING
    return objects
