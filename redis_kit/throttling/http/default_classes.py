"""The throttles of ``DEFAULT_THROTTLE_CLASSES`` and of the routes, found without a request, and their problems."""

import sys
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from django.db import Error as DatabaseError
from django.urls import get_resolver
from django.utils.module_loading import import_string

from redis_kit.core.client.addresses import aliases
from redis_kit.core.client.connection_options import alias_missing
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.throttling.http.decorator import guards_of, method_throttles
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.views import loaded_views, routed_views
from redis_kit.throttling.throttles.throttle import Throttle, registered

RATES = "REST_FRAMEWORK['DEFAULT_THROTTLE_RATES']"


class ThrottleClass(NamedTuple):
    """A throttle class, where its rates are stated, and the scope if views choose it."""

    place: str
    kind: Any
    scope: str = ""

    def throttle(self) -> Throttle | None:
        """Return the throttle; None if it has no limit. Raises what the class raises for a wrong rate."""
        built = _of_scope(self.kind, self.scope) if self.scope else self.kind()
        return built.throttle() if built.rate is not None else None


def throttles() -> list[Throttle]:
    """Return the throttles of the default classes and of the views, without those whose rates are wrong.

    The views behind ROOT_URLCONF are not known until that is imported. Views without a route, with their own
    ``get_throttles()`` or behind another URLconf are not found.
    """
    return [built for _, built in _built() if isinstance(built, Throttle)]


def problems() -> Iterator[Problem]:
    """Yield the rates of these throttles that can't be used. One that the class reads from a database is left out."""
    for place, built in _built():
        if isinstance(built, Exception) and not isinstance(built, DatabaseError):
            yield Problem("E006", f"{place}: {built}")


def _built() -> Iterator[tuple[str, Throttle | Exception | None]]:
    for each in _all_classes():
        try:
            built: Throttle | Exception | None = each.throttle()
        except Exception as error:  # a class of the project may raise anything
            built = error
        yield each.place, built


def _all_classes() -> list[ThrottleClass]:
    classes: dict[tuple[Any, Any], ThrottleClass] = {}
    views = loaded_views() if "rest_framework" in sys.modules else ()
    for each in chain(defaults(), *map(_of_view, views)):
        scope = each.scope if isinstance(each.scope, Hashable) else each.place
        classes.setdefault((each.kind, scope), each)
    return list(classes.values())


def defaults() -> Iterator[ThrottleClass]:
    """Yield the default classes that are ours, once for each scope if views choose it."""
    classes, scopes = _classes(), set()
    for kind in classes:
        if not hasattr(kind, "scope_attr"):
            scopes |= {kind.scope, *getattr(kind, "scopes", ())}
            in_settings = not getattr(kind, "rate", None) and not hasattr(kind, "scopes")
            yield ThrottleClass(f"{RATES}[{kind.scope!r}]" if in_settings else path_of(kind), kind)
    for kind in classes:
        if hasattr(kind, "scope_attr"):  # views choose among the other scopes
            for scope in kind.THROTTLE_RATES:
                if scope not in scopes:
                    yield ThrottleClass(f"{RATES}[{shortened(scope)}]", kind, scope)


def path_of(kind: type) -> str:
    """Return the dotted path of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


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


def _of_scope(kind: Any, scope: str) -> Any:
    if not isinstance(scope, Hashable):
        raise InvalidValue(f"{kind.scope_attr} is {shortened(scope)}; it must be one name of {RATES}.")
    built = kind()
    built.scope = scope
    built.rate = built.get_rate()
    built.num_requests, built.duration = built.parse_rate(built.rate)
    return built


def _of_view(view: Any) -> Iterator[ThrottleClass]:
    """Yield the throttle classes of a view, with the scope of those whose view chooses it."""
    if isinstance(kind := getattr(view, "cls", None), type):
        # The routes of a view set's extra actions have options in place of the class's attributes.
        options = {**getattr(view, "initkwargs", {})}
        for throttle in options.get("throttle_classes", getattr(kind, "throttle_classes", None)) or ():
            if not (isinstance(throttle, type) and issubclass(throttle, RateThrottle)):
                continue
            if attribute := getattr(throttle, "scope_attr", ""):
                if scope := options.get(attribute, getattr(kind, attribute, None)):  # without one it has no limit
                    yield ThrottleClass(path_of(kind), throttle, scope)
            else:
                yield ThrottleClass(path_of(throttle), throttle)


def same_name_problems() -> Iterator[Problem]:
    """Yield a problem for each name that throttles of different rates share. Imports ROOT_URLCONF."""
    rates: dict[tuple[str, str], dict[str, None]] = {}
    for throttle in _settings_and_views():
        shown = "; ".join(map(str, throttle.rates)) or "no limit"
        rates.setdefault((throttle.name, throttle.using), {})[shown] = None
    for (name, _), different in rates.items():
        if len(different) > 1:
            yield Problem(
                "W021",
                f"Throttles with different rates have the name {name!r}: {', '.join(map(repr, different))}.",
                "They count apart, but lists show one of them. Give each its own name, "
                "or both rates to one throttle: '5/m; 100/h'.",
            )


def connection_problems() -> Iterator[Problem]:
    """Yield a problem for each throttle on a connection that is missing. The check of settings covers ``default``."""
    built = registered.keys() | {(throttle.using, throttle.name) for throttle in (*throttles(), *method_throttles())}
    for using, name in sorted(built):
        for problem in alias_missing(using, aliases()) if using != "default" else ():
            yield problem._replace(message=f"The throttle {name!r}: {problem.message}")


def _settings_and_views() -> Iterator[Throttle]:
    with suppress(ConfigurationError):  # the check of settings reports it
        yield from (policy.throttle for policy in policies())
    if getattr(settings, "ROOT_URLCONF", None):
        with suppress(Exception):  # Django's own check reports what is wrong with the routes
            for view in routed_views(get_resolver().url_patterns):
                yield from (guard.throttle for guard in guards_of(view))
