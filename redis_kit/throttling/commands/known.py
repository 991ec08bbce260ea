"""The throttles that a command can know: those that its process has built."""

import difflib
from importlib import import_module

from django.conf import settings

from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling import known as site
from redis_kit.throttling.throttles import Throttle

SHOWN = 20  # names


def known() -> dict[str, Throttle]:
    """Return the throttles by name: those of the policies, of the views behind ROOT_URLCONF, and of the apps.

    Raises ConfigurationError where the settings or the views can't be read.
    """
    routes = getattr(settings, "ROOT_URLCONF", None)
    try:
        if routes:
            import_module(routes)
    except Exception as error:  # a view's module may raise anything
        what = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"The throttles of ROOT_URLCONF {routes!r} can't be known; {what}") from error
    return {throttle.name: throttle for throttle in site.known()}


def hint(name: str, names: list[str]) -> str:
    """Return what to say of a name that none of them is."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]}?"
    if names:
        more = "" if len(names) <= SHOWN else f" and {len(names) - SHOWN:,} more"
        return f"Known are: {', '.join(names[:SHOWN])}{more}."
    return "A throttle is known when a policy of the settings names it, or importing ROOT_URLCONF builds it."
