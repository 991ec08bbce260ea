"""The decorator ``throttle`` for views, and ``ThrottleMixin`` for class-based views."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial, wraps
from typing import Any, NamedTuple, Never, TypeVar

from django.http import HttpRequest
from django.views import View as ViewClass

from redis_kit.core import conf
from redis_kit.core.awaitables import bound_method, is_async
from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.core.text import shortened, unexpected
from redis_kit.core.values.rates import parse
from redis_kit.throttling.http.guards import Guard, aanswer, answer
from redis_kit.throttling.identity import IdentityKey, Spec
from redis_kit.throttling.settings import methods_of
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Ban

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
PREFIX = "throttle_"  # how the attributes of ThrottleMixin begin
FOREIGN = frozenset({"throttle_classes", "throttle_scope"})  # of Django REST framework
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
    options: dict[str, Any] = {
        "strategy": strategy,
        "on_failure": on_failure,
        "shadow": shadow,
        "ban": ban,
        "using": using,
    }
    if rates is ... or (callable(rates) and not shared):  # the latter is a view, of a decorator without parentheses
        raise TypeError("throttle() needs the rates first: @throttle('5/m').")
    if shared:
        for argument, value in {"name": name, **options}.items():
            if value != OF_THROTTLE[argument]:
                raise InvalidValue(
                    f"{argument} belongs to the Throttle: pass it to the Throttle, not to the decorator."
                )
    _check_functions(exempt=exempt, count_when=count_when)
    parsed = parse(None if shared else rates)  # a wrong rate fails at import, not at the first request
    identity_key, counted_methods = IdentityKey(key), methods_of(methods)

    @cache
    def build(called: str) -> Throttle:
        return Throttle(called, parsed or None, **options)

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


def view_path(view: Any) -> str:
    """Return the dotted path of a view: of the function, the view class, or its method other than ``dispatch``."""
    method = bound_method(view)
    if method is not None:
        return method_path(type(method.__self__), method.__name__)
    named = getattr(view, "view_class", view.func if isinstance(view, partial) else view)
    named = named if hasattr(named, "__qualname__") else type(named)
    # @api_view of Django REST framework makes a class of each function, and gives it the function's name only.
    is_renamed = not named.__qualname__.endswith(named.__name__)
    return f"{named.__module__}.{named.__name__ if is_renamed else named.__qualname__}"


def method_path(owner: type, name: str) -> str:
    """Return the dotted path of a method of a view class, that of the class for ``dispatch``."""
    path = f"{owner.__module__}.{owner.__qualname__}"
    return path if name == "dispatch" else f"{path}.{name}"


def guards_of(view: Any) -> Iterator[Guard]:
    """Yield the guards of all decorators of a view."""
    while stack := getattr(view, MARK, None):
        yield from stack.guards
        view = stack.view


def _check_functions(**given: Any) -> None:
    """Raise InvalidValue for an argument that is neither a callable nor None."""
    for argument, value in given.items():
        if value is not None and not callable(value):
            raise InvalidValue(f"{argument} must be a callable or None, not {shortened(value)}.")


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


class ThrottleMixin:
    """Limit how often a client may call a class-based view, sync or async. Put it before ``View`` among the bases.

    The attributes are the arguments of the decorator ``throttle``; ``as_view()`` accepts them too. Functions are
    methods, which take ``self`` before the request.
    """

    throttle_rates: Any = ""
    throttle_key: Any = "user_or_ip"
    throttle_methods: str | Iterable[str] | None = None
    throttle_name: str | None = None
    throttle_strategy: str = "gcra"
    throttle_on_failure: str | None = None
    throttle_shadow: bool = False
    throttle_ban: Ban | None = None
    throttle_cost: Any = 1
    throttle_exempt: Any = None
    throttle_count_when: Any = None
    throttle_using: str = "default"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError if the view class comes before the mixin, since nothing would be limited."""
        super().__init_subclass__(**kwargs)
        bases = cls.__mro__
        if ViewClass in bases and bases.index(ViewClass) < bases.index(ThrottleMixin):
            raise TypeError(
                f"{cls.__qualname__} limits nothing: put ThrottleMixin before the view class among its bases."
            )

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        """Return the view. Raises InvalidValue for wrong attributes, before the first request."""
        view: Callable[..., Any] = super().as_view(**initkwargs)  # type: ignore[misc]
        cls._check_names()
        built = cls(**initkwargs)
        _check_functions(throttle_exempt=built.throttle_exempt, throttle_count_when=built.throttle_count_when)
        guard = built.get_throttle_guard()
        guard.throttle.identity_shapes[guard.key.shape] = None
        return view

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer the request if the throttle allows it."""
        view = super().dispatch  # type: ignore[misc]
        respond = aanswer if self.view_is_async else answer  # type: ignore[attr-defined]
        return respond([self.get_throttle_guard()], request, view, *args, **kwargs)

    def get_throttle_guard(self) -> Guard:
        """Return the guard of the view."""
        throttle, key, methods = self._throttle(), IdentityKey(self.throttle_key), methods_of(self.throttle_methods)
        if not callable(self.throttle_cost):
            throttle.check_cost(self.throttle_cost)
        return Guard(throttle, key, methods, self.throttle_cost, self.throttle_exempt, self.throttle_count_when)

    @classmethod
    def _check_names(cls) -> None:
        attributes = [name for name in vars(ThrottleMixin) if name.startswith(PREFIX)]
        for name in dir(cls):
            if name.startswith(PREFIX) and name not in FOREIGN and name not in attributes:
                problem = conf.unknown(cls.__qualname__, name, attributes)
                raise InvalidValue(problem.text)

    def _throttle(self) -> Throttle:
        if isinstance(self.throttle_rates, Throttle):
            return self.throttle_rates
        if self.throttle_rates == "":
            raise InvalidRate(
                f"{type(self).__qualname__} has no rates: set its attribute throttle_rates, for example to '60/m', "
                "or to None for no limit."
            )
        return _shared_throttle(
            self.throttle_name or f"{type(self).__module__}.{type(self).__qualname__}",
            parse(self.throttle_rates) or None,
            **{option: getattr(self, f"{PREFIX}{option}") for option in OF_THROTTLE if option != "name"},
        )


_shared_throttle = cache(Throttle)
