"""What ``manage.py check`` says about throttles beyond their settings."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling import identities

LOGINS = "redis_kit.throttling.logins.ThrottledLogins"
COMPAT = "redis_kit.throttling.compat"
UNREAD = ("RATELIMIT_IP_META_KEY", "RATELIMIT_IPV4_MASK", "RATELIMIT_IPV6_MASK")


def messages() -> Iterator[CheckMessage]:
    """Yield them. Imports the routes of the project, since views build their throttles at import."""
    with suppress(Exception):  # what is wrong with the routes, Django's own check says
        import_module(settings.ROOT_URLCONF)
    for path in identities.paths():
        try:
            identities.load(path)
        except ConfigurationError as error:
            yield Error(str(error), id="redis_kit.E014")
    backends = list(settings.AUTHENTICATION_BACKENDS)
    if LOGINS in backends[1:]:
        yield Warning(
            f"{LOGINS} stands behind {backends[0]!r}, which looks at passwords without asking it.",
            hint="Put it first into AUTHENTICATION_BACKENDS.",
            id="redis_kit.W016",
        )
    for name in UNREAD if COMPAT in sys.modules else ():
        if hasattr(settings, name):
            yield Warning(
                f"{name} is not read by {COMPAT}, which has its addresses from REDIS_KIT['TRUSTED_PROXIES'].",
                hint="Set TRUSTED_PROXIES, and FORWARDED_HEADER where it is another, and remove the old setting.",
                id="redis_kit.W017",
            )
