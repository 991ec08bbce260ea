"""The throttles of ``DEFAULT_THROTTLE_CLASSES``, which Django REST framework would build at the first request."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

from redis_kit.core.conf import Problem
from redis_kit.core.text import shortened
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.throttles.throttle import Throttle

RATES = "REST_FRAMEWORK['DEFAULT_THROTTLE_RATES']"


class Default(NamedTuple):
    """Where the settings have the rates of a throttle, and the function that builds its class."""

    place: str
    build: Callable[[], Any]

    def throttle(self) -> Throttle | None:
        """Return the throttle; None if it has no limit. Raises what the class raises for a wrong rate."""
        built = self.build()
        throttle: Throttle | None = built.throttle() if built.rate is not None else None
        return throttle


def throttles() -> list[Throttle]:
    """Return the throttles of the default classes that are ours, without those whose rates are wrong."""
    built = []
    for default in _defaults():
        with suppress(Exception):  # problems() names it
            built.append(default.throttle())
    return [throttle for throttle in built if throttle]


def problems() -> Iterator[Problem]:
    """Yield the rates of the default classes that can't be used."""
    for default in _defaults():
        try:
            default.throttle()
        except Exception as error:  # a class of the project may raise anything
            yield Problem("E006", f"{default.place}: {error}")


def _defaults() -> Iterator[Default]:
    classes, scopes = _classes(), set()
    for kind in classes:
        if not hasattr(kind, "scope_attr"):
            scopes |= {kind.scope, *getattr(kind, "scopes", ())}
            in_settings = not getattr(kind, "rate", None) and not hasattr(kind, "scopes")
            place = f"{RATES}[{kind.scope!r}]" if in_settings else f"{kind.__module__}.{kind.__qualname__}"
            yield Default(place, kind)
    for kind in classes:
        if hasattr(kind, "scope_attr"):  # views choose among the other scopes
            for scope in kind.THROTTLE_RATES:
                if scope not in scopes:
                    yield Default(f"{RATES}[{shortened(scope)}]", partial(of_scope, kind, scope))


def _classes() -> list[Any]:
    options = getattr(settings, "REST_FRAMEWORK", None)
    given = options.get("DEFAULT_THROTTLE_CLASSES") if isinstance(options, Mapping) else None
    if not isinstance(given, (list, tuple)) or find_spec("rest_framework") is None:
        return []
    classes = []
    for path in given:
        with suppress(Exception):  # the framework reports it at the first request
            classes.append(import_string(path) if isinstance(path, str) else path)
    return [kind for kind in classes if isinstance(kind, type) and issubclass(kind, RateThrottle)]


def of_scope(kind: Any, scope: str) -> Any:
    """Return an instance of a class whose views choose the scope, with one of them."""
    built = kind()
    built.scope = scope
    built.rate = built.get_rate()
    built.num_requests, built.duration = built.parse_rate(built.rate)
    return built
