"""The part of the system checks about Django's settings that name a class of the kit by its dotted path."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from redis_kit.core.conf import Problem
from redis_kit.core.text import similar

# The classes that each of these settings, or an option inside it, may name. The check of the queues reads TASKS.
CLASSES = {
    ("MIDDLEWARE",): (
        "redis_kit.pageviews.middleware.PageViewMiddleware",
        "redis_kit.throttling.middleware.ThrottleMiddleware",
    ),
    ("AUTHENTICATION_BACKENDS",): ("redis_kit.throttling.logins.ThrottledLogins",),
    ("TEST_RUNNER",): ("redis_kit.testing.runner.RedisKitRunner",),
    ("REST_FRAMEWORK", "DEFAULT_THROTTLE_CLASSES"): (
        "redis_kit.throttling.drf.AnonRateThrottle",
        "redis_kit.throttling.drf.UserRateThrottle",
        "redis_kit.throttling.drf.ScopedRateThrottle",
        "redis_kit.throttling.drf.BurstSustainedThrottle",
    ),
}


def problems() -> Iterator[Problem]:
    """Yield the dotted paths of the kit that can't be imported. Imports none of the paths that are right."""
    for setting, right in CLASSES.items():
        given = _value(*setting)
        for path in [given] if isinstance(given, str) else given or ():
            if isinstance(path, str) and path.startswith("redis_kit.") and path not in right:
                yield from _missing(setting, path)


def _value(name: str, *options: str) -> Any:
    given = getattr(settings, name, None)
    for option in options:
        given = given.get(option) if isinstance(given, Mapping) else None
    return given


def _missing(setting: tuple[str, ...], path: str) -> Iterator[Problem]:
    try:
        import_string(path)
    except ImportError as error:
        place = setting[0] + "".join(f"[{option!r}]" for option in setting[1:])
        wrong = f"{place} has {path!r}, which can't be imported: {str(error).rstrip('.')}."
        yield Problem("E002", wrong, _hint(setting, path))


def _hint(setting: tuple[str, ...], path: str) -> str:
    """Return the class that was probably meant. Names are compared first: the modules are what a project forgets."""
    by_name = {right.rpartition(".")[2]: right for right in CLASSES[setting]}
    if near := similar(path.rpartition(".")[2], by_name):
        return f"Did you mean {by_name[near[0]]!r}?"
    return f"Write {' or '.join(map(repr, by_name.values()))}."
