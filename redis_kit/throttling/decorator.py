"""The decorator ``throttle`` for views."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial, wraps
from inspect import isawaitable, unwrap
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest

from redis_kit.core.errors import InvalidValue
from redis_kit.throttling.identities import Key
from redis_kit.throttling.rates import parse
from redis_kit.throttling.responses import add_headers, refusal
from redis_kit.throttling.throttles import Throttle

METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
View = TypeVar("View", bound=Callable[..., Any])


def throttle(
    rates: Any,
    *,
    key: str | Callable[[HttpRequest], Any] = "user_or_ip",
    methods: Iterable[str] | None = None,
    name: str | None = None,
    strategy: str = "gcra",
    on_failure: str | None = None,
    using: str = "default",
) -> Callable[[View], View]:
    """Limit how often a client may call a view; more is answered by 429 with ``Retry-After``.

    Takes sync and async views, and methods of view classes through ``method_decorator``. ``rates`` may be a Throttle,
    which then is shared, and with it its name, strategy and policy. Only requests with one of ``methods`` count, all
    without. The name, under which the dashboard shows it, is the view's path unless given. ``request.throttle`` is
    the Decision. One round trip before the view runs.
    """
    given = rates if isinstance(rates, Throttle) else None
    found = parse(None if given else rates)  # a wrong rate fails at import, not at the first request
    who = Key(key)
    counted = None if methods is None else _methods([methods] if isinstance(methods, str) else methods)

    @cache
    def limit(called: str) -> Throttle:
        return Throttle(called, found or None, strategy=strategy, on_failure=on_failure, using=using)

    def decorate(view: View) -> View:
        if getattr(view, "__module__", "") == "django.utils.decorators":
            return view  # a stand-in, of which method_decorator only copies the attributes
        guard = _Guard(given or limit(name or _path(view)), who, counted)
        guarded: Any = _aguarded(view, guard) if _is_async(view) else _guarded(view, guard)
        return guarded  # type: ignore[no-any-return]

    return decorate


class _Guard(NamedTuple):
    """What stands before a view."""

    limit: Throttle
    who: Key
    methods: frozenset[str] | None

    def counts(self, request: HttpRequest) -> bool:
        if not hasattr(request, "META"):
            raise TypeError(f"The throttle {self.limit.name!r} got no request: on methods, use method_decorator.")
        return self.methods is None or request.method in self.methods

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say whose key it was that failed."""
        try:
            yield
        except Exception as error:
            error.add_note(f"While looking for the identity behind a request, for the throttle {self.limit.name!r}.")
            raise


def _guarded(view: Callable[..., Any], guard: _Guard) -> Callable[..., Any]:
    @wraps(view)
    def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
        if not guard.counts(request):
            return view(request, *args, **kwargs)
        with guard.named():
            identity = guard.who.of(request)
        request.throttle = decision = guard.limit.hit(identity)
        response = view(request, *args, **kwargs) if decision else refusal(request, guard.limit, decision)
        if isawaitable(response):  # a view that does not say that it is async, such as a partial
            return _headed(response, guard.limit, decision)
        return add_headers(response, guard.limit, decision)

    return guarded


def _aguarded(view: Callable[..., Any], guard: _Guard) -> Callable[..., Any]:
    @wraps(view)
    async def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
        if not guard.counts(request):
            return await view(request, *args, **kwargs)
        with guard.named():
            identity = await guard.who.aof(request)
        request.throttle = decision = await guard.limit.ahit(identity)
        response = (await view(request, *args, **kwargs)) if decision else refusal(request, guard.limit, decision)
        return add_headers(response, guard.limit, decision)

    return guarded


def _methods(given: Iterable[str]) -> frozenset[str]:
    found = frozenset(str(method).upper() for method in given)
    if unknown := sorted(found - METHODS):
        raise InvalidValue(f"methods holds {', '.join(unknown)}; a method is one of {', '.join(sorted(METHODS))}.")
    if not found:
        raise InvalidValue("methods is empty, so that nothing would be limited; leave it out to limit every method.")
    return found


async def _headed(response: Any, *told: Any) -> Any:
    return add_headers(await response, *told)


def _is_async(view: Any) -> bool:
    return iscoroutinefunction(view) or bool(getattr(getattr(_bound(view), "__self__", None), "view_is_async", False))


def _bound(view: Any) -> Any:
    """Return the method of a view class that method_decorator bound to its instance; None for other views."""
    inner = unwrap(view, stop=lambda one: isinstance(one, partial))
    return inner.func if isinstance(inner, partial) and hasattr(inner.func, "__self__") else None


def _path(view: Any) -> str:
    method = _bound(view)
    if method is not None:
        owner = type(method.__self__)
        return f"{owner.__module__}.{owner.__qualname__}.{method.__name__}"
    named = getattr(view, "view_class", view.func if isinstance(view, partial) else view)
    named = named if hasattr(named, "__qualname__") else type(named)
    return f"{named.__module__}.{named.__qualname__}"
