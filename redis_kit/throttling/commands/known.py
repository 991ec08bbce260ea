"""The throttles that a command can know: those that its process has built."""

from importlib import import_module

from django.conf import settings

from redis_kit.core.errors import ConfigurationError, InvalidName
from redis_kit.core.logs.error_text import described
from redis_kit.core.text import did_you_mean
from redis_kit.throttling import discovery as site
from redis_kit.throttling.throttles.throttle import Throttle

SHOWN = 20  # names


def known() -> list[Throttle]:
    """Return the throttles of the policies, of the views behind ROOT_URLCONF, and of the apps, sorted by name.

    Raises ConfigurationError where the settings or the views can't be read.
    """
    routes = getattr(settings, "ROOT_URLCONF", None)
    try:
        if routes:
            import_module(routes)
    except Exception as error:  # a view's module may raise anything
        what = f"The throttles of ROOT_URLCONF {routes!r} can't be known; {described(error)}"
        raise ConfigurationError(what) from error
    return site.known()


def one_of(throttles: list[Throttle], name: str, using: str | None) -> Throttle:
    """Return the one of this name, and of this connection if it is given. Raises InvalidName if that is not one."""
    found = [one for one in throttles if one.name == name and using in (None, one.using)]
    if len(found) == 1:
        return found[0]
    if found:
        connections = ", ".join(one.using for one in found)
        raise InvalidName(f"Several throttles have the name {name}. Choose one with --using: {connections}.")
    where = f" on the connection {using}" if using else ""
    names = list(dict.fromkeys(one.name for one in throttles if using in (None, one.using)))
    raise InvalidName(f"No throttle is known under the name {name}{where}. {hint(name, names)}")


def hint(name: str, names: list[str]) -> str:
    """Return what to say of a name that none of them is."""
    if not names:
        return "A throttle is known when a policy of the settings names it, or importing ROOT_URLCONF builds it."
    more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN:,} more"
    return did_you_mean(name, names, f"Known are: {', '.join(names[:SHOWN])}{more}.")
