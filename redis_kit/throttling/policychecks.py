"""What ``manage.py check`` says about policies beyond their values."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.throttling.component import ThrottleSettings

MIDDLEWARE = "redis_kit.throttling.middleware.ThrottleMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"
POLICIES = "REDIS_KIT['THROTTLING']['POLICIES']"


def messages() -> Iterator[CheckMessage]:
    """Yield functions that can't be imported, and policies that the middleware can't apply."""
    options = conf.section(ThrottleSettings)
    for place, path in _functions(options):
        if not _is_function(path):
            yield Error(f"{place} is {path!r}, which is no function.", id="redis_kit.E015")
    if MIDDLEWARE in settings.MIDDLEWARE:
        yield from _without_users(options.POLICIES)
    elif any(entry.get("PATHS") for entry in options.POLICIES.values()):
        yield Warning(
            f"{POLICIES} has PATHS, but nothing in MIDDLEWARE applies them.",
            hint=f"Add '{MIDDLEWARE}'.",
            id="redis_kit.W018",
        )


def _functions(options: ThrottleSettings) -> Iterator[tuple[str, str]]:
    """Yield the dotted paths of the settings, each with its place."""
    if options.HANDLER:
        yield "REDIS_KIT['THROTTLING']['HANDLER']", options.HANDLER
    for name, entry in options.POLICIES.items():
        for option in ("EXEMPT", "COUNT_WHEN"):
            path = entry.get(option)
            if isinstance(path, str):
                yield f"{POLICIES}[{name!r}][{option!r}]", path


def _without_users(policies: Mapping[str, Any]) -> Iterator[CheckMessage]:
    before = settings.MIDDLEWARE[: settings.MIDDLEWARE.index(MIDDLEWARE)]
    if any(path.endswith(".AuthenticationMiddleware") for path in before):
        return
    for name, entry in policies.items():
        given = entry.get("KEY", "user_or_ip")
        keys = given if isinstance(given, (list, tuple)) else [given]
        key = next((one for one in ("user", "user_or_ip") if one in keys), "")
        if key:
            kind, code = (Error, "E016") if key == "user" else (Warning, "W019")
            yield kind(
                f"{POLICIES}[{name!r}] has the key {key!r}, but no AuthenticationMiddleware stands before "
                "ThrottleMiddleware, so that it knows no user.",
                hint=f"Put '{USERS}' before it, or use the key 'ip'.",
                id=f"redis_kit.{code}",
            )


def _is_function(path: str) -> bool:
    try:
        return callable(import_string(path))
    except ImportError:
        return False
