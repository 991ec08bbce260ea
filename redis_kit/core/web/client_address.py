"""The address of the client of a request, read from forwarded headers only behind trusted proxies."""

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

from django.http import HttpRequest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.settings import KitSettings
from redis_kit.core.web.proxies import Address, forwarded, ipv4, parse

INVALID = "invalid"  # one identity for all whose address can't be read


def client_address(request: HttpRequest) -> str:
    """Return the client's address as text; an IPv6 client is its /64 network, since it owns all of that.

    Without ``TRUSTED_PROXIES`` this is ``REMOTE_ADDR`` and no header is read. With a number of hops, or with
    networks, the header is read from the right, over trusted hops only: anything left of them is the client's own
    claim. A ``REMOTE_ADDR`` that is not an address gives ``invalid``. Raises ConfigurationError if there is none (a
    Unix socket) and no proxy is trusted.
    """
    options = conf.section(KitSettings)
    given = request.META.get("REMOTE_ADDR") or ""
    if not options.TRUSTED_PROXIES and ipv4(given):
        return given
    remote = parse(given)
    if options.TRUSTED_PROXIES:
        remote = forwarded(request, remote, options.TRUSTED_PROXIES, options.FORWARDED_HEADER)
    if remote is None and given:
        return INVALID  # a server in front believed a forged header, which is not a mistake in the settings
    if remote is None:
        raise ConfigurationError(
            "The request has no REMOTE_ADDR (a server behind a Unix socket gives none). "
            "Set REDIS_KIT['TRUSTED_PROXIES'] to the number of proxies in front, so that the forwarded header counts."
        )
    return grouped(remote)


@lru_cache(maxsize=4096)
def grouped(address: Address) -> str:
    """Return an address as one identity: IPv4 as it is, IPv6 as its /64."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)
