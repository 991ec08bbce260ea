"""The decorator ``throttle`` for views."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from typing import Any, NamedTuple, Never, TypeVar

from django.http import HttpRequest
from django.views import View as ViewClass

from redis_kit.core.awaitables import is_async
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened, unexpected
from redis_kit.core.values.rates import parse
from redis_kit.throttling.http.guards import Guard, aanswer, answer, check_functions
from redis_kit.throttling.http.views import loaded_views, method_path, view_path
from redis_kit.throttling.policy_settings import methods_of
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.identity import IdentityKey, Spec

MARK = "redis_kit_throttled"
METHOD = "redis_kit_throttle_"  # how attributes of methods of view classes begin that build a throttle
# The arguments that only a new Throttle takes, not a shared one, and their defaults.
OF_THROTTLE = {"name": None, "strategy": "gcra", "on_failure": None, "shadow": False, "ban": None, "using": "default"}
# Names of arguments in django-ratelimit and other libraries, with ours.
HINTS = {
    **dict.fromkeys(
        ("rate", "limit", "limits", "quota"), "The first argument is the rates: @throttle('5/m', key='ip')."
    ),
    "method": "Write methods=.",
    "group": "Write name=: views with the same name share their limit.",
    "block": "Refused requests are always answered by 429; shadow=True refuses none.",
    "identity": "Write key=.",
}
View = TypeVar("View", bound=Callable[..., Any])


class Stack(NamedTuple):
    """A view, its guards, and the function that wraps both. A decorator around that function copies the stack too."""

    function: Callable[..., Any]
    guards: tuple[Guard, ...]
    view: Callable[..., Any]


def throttle(
    rates: Any = ...,
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
    **unknown: Never,
) -> Callable[[View], View]:
    """Limit how often a client may call a view; further calls are answered by 429 with ``Retry-After``.

    Accepts sync and async views, and methods of view classes through ``method_decorator``. If ``rates`` is a Throttle,
    it is shared, with its name, strategy and policies. The other arguments:

    - ``methods``: only requests with one of these are counted; without it all are. GET includes HEAD.
    - ``exempt``: a request for which this function returns true is not counted.
    - ``cost``: how many calls a request counts for; may be a function of the request.
    - ``count_when``: only responses for which this function returns true are counted.
    - ``name``: what the dashboard calls the throttle; the path of the view by default.

    Sets ``request.throttle`` to the Decision. Takes one round trip before the view runs, for all decorators of this
    kind that directly follow each other, and another one afterwards if ``count_when`` returns false.
    """
    if unknown:
        raise unexpected("throttle", throttle, unknown, HINTS)
    shared = rates if isinstance(rates, Throttle) else None
    if rates is ... or (callable(rates) and not shared):  # the latter is a view, of a decorator without parentheses
        raise TypeError("throttle() needs the rates first: @throttle('5/m').")
    if shared:
        _check_shared(name=name, strategy=strategy, on_failure=on_failure, shadow=shadow, ban=ban, using=using)
    check_functions(exempt=exempt, count_when=count_when)
    parsed = parse(None if shared else rates)  # a wrong rate fails at import, not at the first request
    identity_key, counted_methods = IdentityKey(key), methods_of(methods)

    @cache
    def build(called: str) -> Throttle:
        return Throttle(
            called, parsed or None, strategy=strategy, on_failure=on_failure, shadow=shadow, ban=ban, using=using
        )

    # Built now, so that the dashboard lists it before the first request.
    early = shared or (None if name is None else build(name))
    _check_cost(cost, early)

    def throttle_of(path: str) -> Throttle:
        chosen = early or build(path)
        _check_cost(cost, chosen)
        chosen.identity_shapes[identity_key.shape] = None
        return chosen

    def decorate(view: View) -> View:
        if isinstance(view, type):
            raise TypeError(
                f"throttle() decorates functions, not the class {view.__qualname__}: use "
                "method_decorator(throttle(...), name='dispatch'), or ThrottleMixin."
            )
        if hasattr(type(view), "enqueue"):
            raise TypeError("throttle() decorates views, not tasks: call acquire() of a Throttle in the task.")
        if getattr(view, "__module__", "") == "django.utils.decorators":
            setattr(view, f"{METHOD}{id(throttle_of)}", throttle_of)
            return view  # a stand-in whose attributes method_decorator copies
        chosen = throttle_of(view_path(view))
        guarded: Any = _guarded(view, Guard(chosen, identity_key, counted_methods, cost, exempt, count_when))
        return guarded  # type: ignore[no-any-return]

    return decorate


def guards_of(view: Any) -> Iterator[Guard]:
    """Yield the guards of all decorators of a view."""
    while stack := getattr(view, MARK, None):
        yield from stack.guards
        view = stack.view


def method_throttles() -> Iterator[Throttle]:
    """Yield the throttles of methods of view classes with a route, which the first request would build."""
    for view in loaded_views():
        if isinstance(owner := getattr(view, "view_class", None), type):
            actions = getattr(view, "actions", None) or {}  # of a view set of Django REST framework
            for name in ("dispatch", *ViewClass.http_method_names, *actions.values()):
                for attribute, throttle_of in getattr(getattr(owner, name, None), "__dict__", {}).items():
                    if attribute.startswith(METHOD):
                        yield throttle_of(method_path(owner, name))


def _check_shared(**given: Any) -> None:
    for argument, value in given.items():
        if value != OF_THROTTLE[argument]:
            raise InvalidValue(f"{argument} belongs to the Throttle: pass it to the Throttle, not to the decorator.")


def _check_cost(cost: Any, throttle: Throttle | None) -> None:
    if callable(cost):
        return
    if type(cost) is not int:
        raise InvalidValue(f"cost must be a whole number or a callable, not {shortened(cost)}.")
    if throttle:
        throttle.check_cost(cost)


def _guarded(view: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    stack = _stack(view, guard)

    if is_async(view):

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
    """Return the guards of a view with this one before them, if one script can ask them all."""
    inner: Stack | None = getattr(view, MARK, None)
    if inner is None or inner.function is not view or _source(inner.guards[0]) != _source(guard):
        return Stack(view, (guard,), view)
    return Stack(view, (guard, *inner.guards), inner.view)


def _source(guard: Guard) -> tuple[Any, ...]:
    return guard.throttle.using, guard.throttle.clock
