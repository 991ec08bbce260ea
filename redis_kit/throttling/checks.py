"""System checks of throttles, apart from the values of their settings."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import Error as DatabaseError

from redis_kit.core import conf
from redis_kit.core.client.addresses import aliases
from redis_kit.core.client.connection_options import alias_missing
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling.discovery import class_throttles, loaded_views, route_throttles
from redis_kit.throttling.http.policies import policies
from redis_kit.throttling.http.views import guards_of
from redis_kit.throttling.identity import load, paths
from redis_kit.throttling.settings import SETTING, ThrottlingSettings
from redis_kit.throttling.throttles import registered

LOGINS = "redis_kit.throttling.logins.ThrottledLogins"
COMPAT = "redis_kit.throttling.compat"
MIDDLEWARE = "redis_kit.throttling.middleware.ThrottleMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
ADDRESSES = (
    "which takes addresses from REDIS_KIT['TRUSTED_PROXIES']",
    "Set TRUSTED_PROXIES, and FORWARDED_HEADER if your proxy uses another header, and remove the old setting.",
)
# Settings of django-ratelimit: what applies instead, and what to do.
UNREAD = {
    "RATELIMIT_IP_META_KEY": ADDRESSES,
    "RATELIMIT_IPV4_MASK": ADDRESSES,
    "RATELIMIT_IPV6_MASK": ADDRESSES,
    "RATELIMIT_USE_CACHE": (
        "which counts on REDIS_KIT['CONNECTIONS']['default']",
        "Point that connection to the server of the cache, such as {'CACHE': 'default'}, and remove the old setting.",
    ),
    "RATELIMIT_CACHE_PREFIX": (
        "whose keys begin with REDIS_KIT['PREFIX']",
        "Set PREFIX if keys of several projects share a server, and remove the old setting.",
    ),
    "RATELIMIT_HASH_ALGORITHM": ("whose hashes are keyed by REDIS_KIT['HASH_KEY']", "Remove the old setting."),
    "RATELIMIT_VIEW": (
        "which raises Ratelimited",
        f"Set handler403 = '{COMPAT}.handler403' in the root URLconf for 429, and remove the old setting.",
    ),
}


def messages() -> Iterator[CheckMessage]:
    """Yield all messages. Imports the routes of the project, since views build their throttles at import."""
    yield from _keys()
    yield from _logins()
    yield from _old_settings()
    yield from _policies()
    for problem in (*_class_problems(), *_same_name_problems(), *_connection_problems()):
        yield problem.check_message


def _keys() -> Iterator[CheckMessage]:
    with suppress(Exception):  # Django's own check reports what is wrong with the routes
        import_module(settings.ROOT_URLCONF)
    for path in paths():
        try:
            load(path)
        except ConfigurationError as error:
            yield Error(str(error), id="redis_kit.E014")


def _logins() -> Iterator[CheckMessage]:
    backends = list(settings.AUTHENTICATION_BACKENDS)
    if LOGINS in backends[1:]:
        yield Warning(
            f"{LOGINS} comes after {backends[0]!r}, which checks passwords without asking it.",
            hint="Put it first in AUTHENTICATION_BACKENDS.",
            id="redis_kit.W016",
        )
    elif backends == [LOGINS]:
        yield Warning(
            f"{LOGINS} authenticates nobody, and AUTHENTICATION_BACKENDS has no other backend, so nobody can log in.",
            hint="Add 'django.contrib.auth.backends.ModelBackend' after it, or the backend that the project had.",
            id="redis_kit.W016",
        )


def _old_settings() -> Iterator[CheckMessage]:
    for name, (instead, hint) in UNREAD.items() if COMPAT in sys.modules else ():
        if hasattr(settings, name):
            yield Warning(f"{name} is not read by {COMPAT}, {instead}.", hint=hint, id="redis_kit.W017")


def _policies() -> Iterator[CheckMessage]:
    options = conf.valid_options(ThrottlingSettings)
    policies = {name: entry for name, entry in options.POLICIES.items() if isinstance(entry, Mapping)}
    for setting, path in _functions(options.HANDLER, policies):
        if not conf.is_function(path):
            yield Error(f"{setting} is {path!r}, which is not a function.", id="redis_kit.E015")
    if MIDDLEWARE in settings.MIDDLEWARE:
        yield from _without_users(policies)
    elif any(entry.get("PATHS") for entry in policies.values()):
        yield Warning(
            f"{SETTING} has PATHS, but nothing in MIDDLEWARE applies them.",
            hint=f"Add '{MIDDLEWARE}'.",
            id="redis_kit.W018",
        )


def _functions(handler: str, policies: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the dotted paths of the settings, each with its setting."""
    if handler:
        yield "REDIS_KIT['THROTTLING']['HANDLER']", handler
    for name, entry in policies.items():
        for option in ("EXEMPT", "COUNT_WHEN"):
            path = entry.get(option)
            if isinstance(path, str):
                yield f"{SETTING}[{name!r}][{option!r}]", path


def _without_users(policies: Mapping[str, Any]) -> Iterator[CheckMessage]:
    before = settings.MIDDLEWARE[: settings.MIDDLEWARE.index(MIDDLEWARE)]
    if any(path.endswith(".AuthenticationMiddleware") for path in before):
        return
    for name, entry in policies.items():
        if entry.get("PATHS") in ([], ()):
            continue  # the middleware never applies it
        given = entry.get("KEY", "user_or_ip")
        keys = given if isinstance(given, (list, tuple)) else [given]
        key = next((name for name in ("user", "user_or_ip") if name in keys), "")
        if key:
            kind, code = (Error, "E016") if key == "user" else (Warning, "W019")
            yield kind(
                f"{SETTING}[{name!r}] has the key {key!r}, but no AuthenticationMiddleware comes before "
                "ThrottleMiddleware, so it sees no user.",
                hint=f"Put '{AUTHENTICATION}' before it, or use the key 'ip'.",
                id=f"redis_kit.{code}",
            )


def _class_problems() -> Iterator[Problem]:
    """Yield the rates of classes that can't be used. One that the class reads from a database is left out."""
    for place, built in class_throttles():
        if isinstance(built, Exception) and not isinstance(built, DatabaseError):
            yield Problem("E006", f"{place}: {built}")


def _same_name_problems() -> Iterator[Problem]:
    """Yield a problem for each name that throttles of different rates share."""
    throttles = [guard.throttle for view in loaded_views() for guard in guards_of(view)]
    with suppress(ConfigurationError):  # the check of settings reports it
        throttles = [*(policy.throttle for policy in policies()), *throttles]
    rates: dict[tuple[str, str], dict[str, None]] = {}
    for throttle in throttles:
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


def _connection_problems() -> Iterator[Problem]:
    """Yield a problem for each throttle on a connection that is missing. The check of settings covers ``default``."""
    built = registered.keys() | {(throttle.using, throttle.name) for throttle in route_throttles()}
    for using, name in sorted(built):
        for problem in alias_missing(using, aliases()) if using != "default" else ():
            yield problem._replace(message=f"The throttle {name!r}: {problem.message}")
