"""The page of a request: a name that the project gives, or its URL pattern, never its path."""

from collections.abc import Callable
from types import EllipsisType
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve

from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import encode
from redis_kit.core.text import shortened
from redis_kit.core.web.page_marks import AnyView, PageMark, mark_of, marked

Key = str | int | UUID
# A name, a name with the key of an object, or None for a page that does not count.
Named = str | tuple[str, Key] | None

SITE = "(site)"
OTHER = "(other)"
NEEDS_NAME = "page() needs a name first, or beacon=True: @page('front')."
NO_KEY = (None, "")  # of an object that is not saved; a variable of a template that is not there is ""


def page(
    name: Named | Callable[..., Named] | EllipsisType = ..., *, beacon: bool = False
) -> Callable[[AnyView], AnyView]:
    """Name the page of a view or a view class: by a name, or by a callable of the request and the view's arguments.

    A name with a key, such as ``("post", 42)``, counts for the object and for all of ``post``. None does not count.
    Without a name, the page is the URL pattern. With ``beacon=True`` the middleware does not count the page, since the
    script of ``{% page_view_beacon %}`` does. Raises InvalidName for a name that is not allowed.
    """
    if isinstance(name, type) or (name is ... and not beacon):
        raise TypeError(NEEDS_NAME)
    if not callable(name) and not isinstance(name, EllipsisType):
        checked(name)

    def decorate(view: AnyView) -> AnyView:
        if isinstance(view, HttpRequest):  # of a view that stands in the place of the name
            raise TypeError(NEEDS_NAME)
        code = getattr(view, "__code__", None)
        if code and code.co_varnames[:1] == ("self",) and view.__name__ != "dispatch":
            raise TypeError(
                f"page() names views, not the method {view.__qualname__}: "
                "put it on the view class, or use PageViewMixin."
            )
        return marked(view, PageMark(name, beacon))

    return decorate


class PageViewMixin:
    """Name the page of a class-based view by ``page``; ``page_key`` is the URL argument with the key of its object.

    With ``page_beacon`` the beacon counts its views, and not the middleware.
    """

    page: ClassVar[str] = ""
    page_key: ClassVar[str] = ""
    page_beacon: ClassVar[bool] = False

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        """Return the view with its page."""

        def name(request: HttpRequest, *args: Any, **kwargs: Any) -> Named:
            view: Any = cls(**initkwargs)
            if cls.get_page is not PageViewMixin.get_page:  # a setup() of the project may take queries
                view.setup(request, *args, **kwargs)
            named: Named = view.get_page(request, *args, **kwargs)
            return named

        view: Callable[..., Any] = super().as_view(**initkwargs)  # type: ignore[misc]
        return page(name, beacon=initkwargs.get("page_beacon", cls.page_beacon))(view)

    def get_page(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Named:
        """Return the page's name, optionally with a key; None if it does not count.

        Your own is called after ``setup()``, but on an instance that has not answered: ``self.kwargs`` is there, and
        ``self.object`` is not.
        """
        match = _match(request)
        name = self.page or (_pattern(match) if match else OTHER)
        return (name, kwargs[self.page_key]) if self.page_key else name


def page_of(request: HttpRequest) -> tuple[str, str] | None:
    """Return the name of a request's page and the key of its object, or None if it does not count.

    A path that no URL pattern matches is ``(other)``, for which a middleware may have an answer.
    Raises InvalidName for a name that is not allowed.
    """
    match = _match(request)
    if match is None:
        return OTHER, ""
    named = mark_of(match.func).name
    if callable(named):
        named = named(request, *match.args, **match.kwargs)
    return checked(_pattern(match) if named is ... else named)


def is_reported(request: HttpRequest) -> bool:
    """Return whether the beacon counts the views of a request's page, and not the middleware."""
    match = _match(request)
    return match is not None and mark_of(match.func).beacon


def checked(named: Named) -> tuple[str, str] | None:
    """Return a name and a key, "" without one; None for a page that does not count. Raises InvalidName."""
    if named is None:
        return None
    if isinstance(named, tuple) and len(named) != 2:
        raise InvalidName(f"A page is a name, or a name with the key of an object, not {shortened(named)}.")
    name, key = named if isinstance(named, tuple) else (named, None)
    if name == SITE:
        raise InvalidName(f"A page can't be named {SITE!r}: that name means all pages together.")
    encoded(name, key)
    return name, "" if key is None else str(key)


def encoded(name: str, key: Key | None = None) -> str:
    """Return the part of a key that names a page, or an object of it. Raises InvalidName."""
    if key is None:
        return encode(name)
    if isinstance(key, bool) or not isinstance(key, (str, int, UUID)):
        raise InvalidName(f"The key of an object must be text, a whole number or a UUID, not {type(key).__name__}.")
    return f"{encode(name)}:{encode(str(key))}"


def _match(request: HttpRequest) -> ResolverMatch | None:
    """Return the view of a request; None if a middleware answered a path without one, such as that of flat pages."""
    try:
        # A page from the cache middleware was answered before Django resolved its view.
        return request.resolver_match or resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return None


def _pattern(match: ResolverMatch) -> str:
    return match.view_name if match.url_name else f"/{match.route}"
