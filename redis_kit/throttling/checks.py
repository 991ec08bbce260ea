"""What ``manage.py check`` says about throttles beyond their settings."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling.values import identity

LOGINS = "redis_kit.throttling.logins.ThrottledLogins"
COMPAT = "redis_kit.throttling.compat"
ADDRESSES = (
    "which has its addresses from REDIS_KIT['TRUSTED_PROXIES']",
    "Set TRUSTED_PROXIES, and FORWARDED_HEADER where it is another, and remove the old setting.",
)
# Settings of django-ratelimit: what holds in their place, and what to do.
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
    """Yield them. Imports the routes of the project, since views build their throttles at import."""
    with suppress(Exception):  # what is wrong with the routes, Django's own check says
        import_module(settings.ROOT_URLCONF)
    for path in identity.paths():
        try:
            identity.load(path)
        except ConfigurationError as error:
            yield Error(str(error), id="redis_kit.E014")
    backends = list(settings.AUTHENTICATION_BACKENDS)
    if LOGINS in backends[1:]:
        yield Warning(
            f"{LOGINS} stands behind {backends[0]!r}, which looks at passwords without asking it.",
            hint="Put it first into AUTHENTICATION_BACKENDS.",
            id="redis_kit.W016",
        )
    for name, (instead, hint) in UNREAD.items() if COMPAT in sys.modules else ():
        if hasattr(settings, name):
            yield Warning(f"{name} is not read by {COMPAT}, {instead}.", hint=hint, id="redis_kit.W017")
