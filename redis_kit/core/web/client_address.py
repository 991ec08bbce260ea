"""The address of the client of a request, read from forwarded headers only behind trusted proxies."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from django.http import HttpRequest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError

Address = IPv4Address | IPv6Address
MOST_HOPS = 32
INVALID = "invalid"  # one identity for all whose address can't be read
_FOR = re.compile(r"(?:^|;)\s*for=([^;]*)", re.IGNORECASE)  # in one element of Forwarded (RFC 7239)


def client_address(request: HttpRequest) -> str:
    """Return the client's address as text; an IPv6 client is its /64 network, since it owns all of that.

    Without ``TRUSTED_PROXIES`` this is ``REMOTE_ADDR`` and no header is read. With a number of hops, or with
    networks, the header is walked from the right over trusted hops only: what stands left of them is the client's
    own claim. A ``REMOTE_ADDR`` that is no address gives ``invalid``. Raises ConfigurationError when there is none (a
    Unix socket) and no proxy is trusted.
    """
    options = conf.section(conf.KitSettings)
    given = request.META.get("REMOTE_ADDR") or ""
    remote = parse(given)
    if options.TRUSTED_PROXIES:
        remote = _forwarded(request, remote, options)
    if remote is None and given:
        return INVALID  # a server in front that believed a forged header: no fault of the site's own settings
    if remote is None:
        raise ConfigurationError(
            "The request has no REMOTE_ADDR (a server behind a Unix socket gives none). "
            "Set REDIS_KIT['TRUSTED_PROXIES'] to the number of proxies in front, so that the forwarded header counts."
        )
    return grouped(remote)


def grouped(address: Address) -> str:
    """Return an address as one identity: IPv4 as it is, IPv6 as its /64."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def parse(text: str) -> Address | None:
    """Return the address in one hop of a header, with or without a port, brackets or a zone; None for anything else."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _forwarded(request: HttpRequest, remote: Address | None, options: conf.KitSettings) -> Address | None:
    meta = "HTTP_" + options.FORWARDED_HEADER.upper().replace("-", "_")
    hops = request.META.get(meta, "").rsplit(",", MOST_HOPS)[-MOST_HOPS:] if request.META.get(meta) else []
    if meta == "HTTP_FORWARDED":
        hops = [element[1] if (element := _FOR.search(hop)) else "" for hop in hops]
    trusted = options.TRUSTED_PROXIES
    if isinstance(trusted, int):
        return (parse(hops[-trusted]) if len(hops) >= trusted else None) or remote
    networks = _networks(tuple(trusted))
    for hop in reversed(hops):
        if remote is not None and not any(remote in network for network in networks):
            break
        found = parse(hop)
        if found is None:
            break
        remote = found
    return remote


@lru_cache(maxsize=8)
def _networks(texts: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


def proxy_problems(trusted: int | Sequence[str]) -> Iterator[conf.Problem]:
    """Yield what is wrong with ``TRUSTED_PROXIES``."""
    place = "REDIS_KIT['TRUSTED_PROXIES']"
    if isinstance(trusted, int):
        if not 0 <= trusted <= MOST_HOPS:
            yield conf.Problem("E008", f"{place} is {trusted}; a number of proxies is 0 to {MOST_HOPS}.")
        return
    for text in trusted:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            yield conf.Problem("E008", f"{place} holds {text!r}, which is no network.", "Write it as '10.0.0.0/8'.")
        else:
            if network.prefixlen == 0:
                yield conf.Problem(
                    "W013", f"{place} holds {text!r}: every client is trusted, so every client can choose its address."
                )
