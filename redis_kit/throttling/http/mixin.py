"""The mixin ``ThrottleMixin`` for class-based views."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from django.views import View

from redis_kit.core import conf
from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.core.values.rates import parse
from redis_kit.throttling.http.guards import Guard, aanswer, answer, check_functions
from redis_kit.throttling.policy_settings import methods_of
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.identity import IdentityKey

PREFIX = "throttle_"
FOREIGN = frozenset({"throttle_classes", "throttle_scope"})  # of Django REST framework


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
        if View in bases and bases.index(View) < bases.index(ThrottleMixin):
            raise TypeError(
                f"{cls.__qualname__} limits nothing: put ThrottleMixin before the view class among its bases."
            )

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., Any]:
        """Return the view. Raises InvalidValue for wrong attributes, before the first request."""
        view: Callable[..., Any] = super().as_view(**initkwargs)  # type: ignore[misc]
        cls._check_names()
        built = cls(**initkwargs)
        check_functions(throttle_exempt=built.throttle_exempt, throttle_count_when=built.throttle_count_when)
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
        throttle, cost = self._throttle(), self.throttle_cost
        if not callable(cost):
            throttle.check_cost(cost)
        methods = methods_of(self.throttle_methods)
        key = IdentityKey(self.throttle_key)
        return Guard(throttle, key, methods, cost, self.throttle_exempt, self.throttle_count_when)

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
            strategy=self.throttle_strategy,
            on_failure=self.throttle_on_failure,
            shadow=self.throttle_shadow,
            ban=self.throttle_ban,
            using=self.throttle_using,
        )


_shared_throttle = cache(Throttle)
