"""Finding the throttles of a project: those that its settings name, and those that its code has built."""

from importlib import import_module

from django.conf import settings

from redis_kit.core.errors import ConfigurationError, InvalidName
from redis_kit.core.logs.error_text import described
from redis_kit.core.text import did_you_mean
from redis_kit.throttling import logins
from redis_kit.throttling.http import decorator, default_classes
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.throttles.throttle import Throttle, registered

NAMES = 20  # that a message lists


def built_throttles() -> list[Throttle]:
    """Return the throttles that this process has built, with those of the settings and routes, sorted by name.

    The routes are looked at if ROOT_URLCONF is imported already, as it is in a request.
    Raises ConfigurationError if the settings are wrong.
    """
    of_settings = [*logins.throttles(), *(policy.throttle for policy in policies())]
    throttles = [*default_classes.throttles(), *decorator.method_throttles(), *registered.copy().values(), *of_settings]
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


def find(throttles: list[Throttle], name: str, using: str | None) -> Throttle:
    """Return the throttle with this name, and this connection if it is not None. Raises InvalidName.

    The last parts of a dotted name suffice, such as ``buy`` for ``shop.views.buy``, if no other name ends with them.
    """
    name = _full_name([throttle.name for throttle in throttles], name)
    matching = [throttle for throttle in throttles if throttle.name == name and using in (None, throttle.using)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        connections = ", ".join(throttle.using for throttle in matching)
        raise InvalidName(f"Several throttles have the name {name}. Choose one with --using: {connections}.")
    where = f" on the connection {using}" if using else ""
    if elsewhere := [throttle.using for throttle in throttles if throttle.name == name]:
        raise InvalidName(f"There is no throttle {name}{where}, but there is on {', '.join(elsewhere)}.")
    names = list(dict.fromkeys(throttle.name for throttle in throttles if using in (None, throttle.using)))
    raise InvalidName(f"There is no throttle {name}{where}. {hint(name, names)}")


def _full_name(names: list[str], name: str) -> str:
    """Return the one name that ends with these parts; ``name`` itself if it is a name, or nothing ends with it."""
    longer = list(dict.fromkeys(each for each in names if each.endswith(f".{name}")))
    if name in names or not longer:
        return name
    if len(longer) > 1:
        raise InvalidName(f"Several throttles end with {name}: {', '.join(longer[:NAMES])}.")
    return longer[0]


def hint(name: str, names: list[str]) -> str:
    """Return what to say about a name that is not among the names."""
    if not names:
        return (
            "A throttle is found if a policy of the settings names it, if DEFAULT_THROTTLE_CLASSES or a view with a "
            "route has its class, or if importing ROOT_URLCONF builds it."
        )
    more = "" if len(names) <= NAMES else f" and {len(names) - NAMES:,} more"
    return did_you_mean(name, names, f"The throttles are: {', '.join(names[:NAMES])}{more}.")
