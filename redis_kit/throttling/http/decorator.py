"""The decorator ``throttle`` for views."""

from collections.abc import Callable, Iterable
from functools import cache, partial, wraps
from inspect import unwrap
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.throttling.http.guards import Guard, aanswer, answer, check_functions, methods_of
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.identity import Key, Spec
from redis_kit.throttling.values.rates import parse

MARK = "redis_kit_throttled"
# What only a Throttle of the decorator's own takes, and its defaults.
OWN = {"name": None, "strategy": "gcra", "on_failure": None, "shadow": False, "ban": None, "using": "default"}
View = TypeVar("View", bound=Callable[..., Any])


class Stack(NamedTuple):
    """A view and its guards, and the function that stands for both; a decorator that wraps that copies this too."""

    function: Callable[..., Any]
    guards: tuple[Guard, ...]
    view: Callable[..., Any]


def throttle(
    rates: Any,
    *,
    key: Spec = "user_or_ip",
    methods: str | Iterable[str] | None = None,
    name: str | None = None,
    strategy: str = "gcra",
    on_failure: str | None = None,
    shadow: bool = False,
    ban: Ban | None = None,
    cost: int | Callable[[HttpRequest], Any] = 1,
    exempt: Callable[[HttpRequest], Any] | None = None,
    count_when: Callable[[HttpRequest, Any], Any] | None = None,
    using: str = "default",
) -> Callable[[View], View]:
    """Limit how often a client may call a view; more is answered by 429 with ``Retry-After``.

    Takes sync and async views, and methods of view classes through ``method_decorator``. ``rates`` may be a Throttle,
    which then is shared, and with it its name, strategy and policies. Only requests with one of ``methods`` count, all
    without, and none for which ``exempt`` returns true. ``cost`` may be a function of the request. With ``count_when``
    only those responses count for which it returns true. The name, under which the dashboard shows it, is the view's
    path unless given. ``request.throttle`` is the Decision. One round trip before the view runs, for all decorators of
    this kind that stand directly on each other; one more afterwards where ``count_when`` returns false.
    """
    given = rates if isinstance(rates, Throttle) else None
    if given:
        _check_shared(name=name, strategy=strategy, on_failure=on_failure, shadow=shadow, ban=ban, using=using)
    check_functions(exempt=exempt, count_when=count_when)
    found = parse(None if given else rates)  # a wrong rate fails at import, not at the first request
    who, counted = Key(key), methods_of(methods)

    @cache
    def limit(called: str) -> Throttle:
        return Throttle(
            called, found or None, strategy=strategy, on_failure=on_failure, shadow=shadow, ban=ban, using=using
        )

    known = given or (limit(name) if name else None)  # lists name it before the first request
    _check_cost(cost, known)

    def decorate(view: View) -> View:
        if isinstance(view, type):
            raise TypeError(
                f"throttle() decorates functions, not the class {view.__qualname__}: use "
                "method_decorator(throttle(...), name='dispatch'), or ThrottleMixin."
            )
        if getattr(view, "__module__", "") == "django.utils.decorators":
            return view  # a stand-in, of which method_decorator only copies the attributes
        chosen = known or limit(_path(view))
        _check_cost(cost, chosen)
        guarded: Any = _guarded(view, Guard(chosen, who, counted, cost, exempt, count_when))
        return guarded  # type: ignore[no-any-return]

    return decorate


def _check_shared(**given: Any) -> None:
    for argument, value in given.items():
        if value != OWN[argument]:
            raise InvalidValue(f"{argument} is the Throttle's own: give it to the Throttle, not to the decorator.")


def _check_cost(cost: Any, limit: Throttle | None) -> None:
    if callable(cost):
        return
    if type(cost) is not int:
        raise InvalidValue(f"cost must be a whole number or a callable, not {shortened(cost)}.")
    if limit:
        limit.checked("anybody", cost)


def _guarded(view: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    stack = _stack(view, guard)

    if _is_async(view):

        @wraps(view)
        async def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
            return await aanswer(stack.guards, request, stack.view, *args, **kwargs)
    else:

        @wraps(view)
        def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(stack.guards, request, stack.view, *args, **kwargs)

    setattr(guarded, MARK, stack._replace(function=guarded))
    return guarded


def _stack(view: Callable[..., Any], guard: Guard) -> Stack:
    """Return the guards of a view with this one before them, where they can be asked by one script."""
    inner: Stack | None = getattr(view, MARK, None)
    if inner is None or inner.function is not view or _where(inner.guards[0]) != _where(guard):
        return Stack(view, (guard,), view)
    return Stack(view, (guard, *inner.guards), inner.view)


def _where(guard: Guard) -> tuple[Any, ...]:
    return guard.throttle.using, guard.throttle.clock


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
