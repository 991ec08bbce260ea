"""Finding the throttles of a project: those of its settings, of its routes, and those that its code has built."""

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string
from django.views import View

from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.logs.error_text import described
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.throttling import logins
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.http.rate_throttle import RateThrottle
from redis_kit.throttling.http.views import METHOD, method_path
from redis_kit.throttling.throttles import Throttle, registered

DEFAULT = "default"  # the connection that titles omit
NAMES = 20  # that a message lists
RATES = "REST_FRAMEWORK['DEFAULT_THROTTLE_RATES']"

ThrottleClass = tuple[str, Any, Any]  # where its rates are stated, the class, and the scope if views choose it


def built_throttles() -> list[Throttle]:
    """Return the throttles that this process has built, with those of the settings and routes, sorted by name.

    The routes are looked at if ROOT_URLCONF is imported already, as it is in a request.
    Raises ConfigurationError if the settings are wrong.
    """
    of_settings = [*logins.throttles(), *(policy.throttle for policy in policies())]
    throttles = [*route_throttles(), *registered.copy().values(), *of_settings]
    last = {(throttle.name, throttle.using): throttle for throttle in throttles}
    return [last[key] for key in sorted(last)]


def project_throttles() -> list[Throttle]:
    """Import the views behind ROOT_URLCONF, and return built_throttles().

    Raises ConfigurationError if the settings are wrong or the views can't be imported.
    """
    routes = getattr(settings, "ROOT_URLCONF", None)
    try:
        if routes:
            import_module(routes)
    except Exception as error:  # a module of a view may raise anything
        text = f"The throttles of ROOT_URLCONF {routes!r} can't be found; {described(error)}"
        raise ConfigurationError(text) from error
    return built_throttles()


def title(name: str, using: str) -> str:
    """Return the name of a throttle, with its connection unless that is the default."""
    return name if using == DEFAULT else f"{name} ({using})"


def find(throttles: list[Throttle], name: str, using: str | None) -> Throttle:
    """Return the throttle with this name, and this connection if it is not None. Raises InvalidName.

    The last parts of a dotted name suffice, such as ``buy`` for ``shop.views.buy``, if no other name ends with them.
    """
    names = list(dict.fromkeys(throttle.name for throttle in throttles))
    longer = [] if name in names else [each for each in names if each.endswith(f".{name}")]
    if len(longer) > 1:
        raise InvalidName(f"Several throttles end with {name}: {', '.join(longer[:NAMES])}.")
    name = longer[0] if longer else name
    connections = [throttle.using for throttle in throttles if throttle.name == name]
    matching = [throttle for throttle in throttles if throttle.name == name and using in (None, throttle.using)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InvalidName(f"Several throttles have the name {name}. Choose one with --using: {', '.join(connections)}.")
    where = f" on the connection {using}" if using else ""
    if connections:
        raise InvalidName(f"There is no throttle {name}{where}, but there is on {', '.join(connections)}.")
    names = list(dict.fromkeys(throttle.name for throttle in throttles if using in (None, throttle.using)))
    raise InvalidName(f"There is no throttle {name}{where}. {hint(name, names)}")


def hint(name: str, names: list[str]) -> str:
    """Return what to say about a name that is not among the names."""
    if not names:
        return (
            "A throttle is found if a policy of the settings names it, if DEFAULT_THROTTLE_CLASSES or a view with a "
            "route has its class, or if importing ROOT_URLCONF builds it."
        )
    more = "" if len(names) <= NAMES else f" and {len(names) - NAMES:,} more"
    return did_you_mean(name, names, f"The throttles are: {', '.join(names[:NAMES])}{more}.")


def route_throttles() -> Iterator[Throttle]:
    """Yield the throttles of the default classes and of the views, without those whose rates are wrong.

    The views behind ROOT_URLCONF are not known until that is imported. Views without a route, with their own
    ``get_throttles()`` or behind another URLconf are not found.
    """
    yield from (built for _, built in class_throttles() if isinstance(built, Throttle))
    for view in loaded_views():
        if isinstance(owner := getattr(view, "view_class", None), type):
            actions = getattr(view, "actions", None) or {}  # of a view set of Django REST framework
            for name in ("dispatch", *View.http_method_names, *actions.values()):
                for attribute, throttle_of in getattr(getattr(owner, name, None), "__dict__", {}).items():
                    if attribute.startswith(METHOD):  # the first request would build it
                        yield throttle_of(method_path(owner, name))


def class_throttles() -> Iterator[tuple[str, Throttle | Exception]]:
    """Yield the throttles of classes with a limit, or what their classes raise, each with the place of its rates."""
    classes: dict[tuple[Any, Any], ThrottleClass] = {}
    views = loaded_views() if "rest_framework" in sys.modules else ()
    for place, kind, scope in chain(_defaults(), *map(_of_view, views)):
        classes.setdefault((kind, scope if isinstance(scope, Hashable) else place), (place, kind, scope))
    for place, kind, scope in classes.values():
        try:
            built = _of_scope(kind, scope) if scope else kind()
            if built.rate is not None:
                yield place, built.throttle()
        except Exception as error:  # a class of the project may raise anything
            yield place, error


def loaded_views() -> list[Any]:
    """Return the views behind ROOT_URLCONF; none until that is imported, and none if a route is wrong."""
    routes = getattr(settings, "ROOT_URLCONF", None)
    if isinstance(routes, str) and routes in sys.modules:
        with suppress(Exception):  # Django's own check reports what is wrong with the routes
            return list(_views_behind(get_resolver().url_patterns))
    return []


def _views_behind(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[Any]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _views_behind(pattern.url_patterns)
        else:
            yield pattern.callback


def _defaults() -> Iterator[ThrottleClass]:
    """Yield the default classes that are ours, once for each scope if views choose it."""
    options = getattr(settings, "REST_FRAMEWORK", None)
    paths = options.get("DEFAULT_THROTTLE_CLASSES") if isinstance(options, Mapping) else None
    if not isinstance(paths, (list, tuple)) or find_spec("rest_framework") is None:
        return
    classes, scopes = [], set()
    for path in paths:
        with suppress(Exception):  # the framework reports it at the first request
            kind = import_string(path) if isinstance(path, str) else path
            if _is_ours(kind):
                classes.append(kind)
    for kind in classes:
        if not hasattr(kind, "scope_attr"):
            scopes |= {kind.scope, *getattr(kind, "scopes", ())}
            in_settings = not getattr(kind, "rate", None) and not hasattr(kind, "scopes")
            yield f"{RATES}[{kind.scope!r}]" if in_settings else _path(kind), kind, ""
    for kind in classes:
        if hasattr(kind, "scope_attr"):  # views choose among the other scopes
            for scope in kind.THROTTLE_RATES:
                if scope not in scopes:
                    yield f"{RATES}[{shortened(scope)}]", kind, scope


def _of_view(view: Any) -> Iterator[ThrottleClass]:
    """Yield the throttle classes of a view, with the scope of those whose view chooses it."""
    if isinstance(kind := getattr(view, "cls", None), type):
        # The routes of a view set's extra actions have options in place of the class's attributes.
        options = getattr(view, "initkwargs", {})
        classes = options.get("throttle_classes", getattr(kind, "throttle_classes", None)) or ()
        for throttle in filter(_is_ours, classes):
            if not (attribute := getattr(throttle, "scope_attr", "")):
                yield _path(throttle), throttle, ""
            elif scope := options.get(attribute, getattr(kind, attribute, None)):  # without one it has no limit
                yield _path(kind), throttle, scope


def _of_scope(kind: Any, scope: Any) -> Any:
    if not isinstance(scope, Hashable):
        raise InvalidValue(f"{kind.scope_attr} is {shortened(scope)}; it must be one name of {RATES}.")
    built = kind()
    built.scope = scope
    built.rate = built.get_rate()
    built.num_requests, built.duration = built.parse_rate(built.rate)
    return built


def _is_ours(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, RateThrottle)


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
