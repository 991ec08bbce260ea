"""How one connection to an address is made, with the timeouts of a profile and without the client's own retries."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from redis_kit.core.addresses import Address

# Of a project's options only those of the connection itself count: the policy is the kit's own.
KEPT = ("db", "username", "password", "credential_provider", "client_name", "socket_keepalive", "health_check_interval")


class Source(NamedTuple):
    """What makes a connection, and the clients of Sentinels that it asks for the primary's address."""

    make: Callable[[], Any]
    sentinels: Sequence[Any] = ()


def source(address: Address, timeouts: Mapping[str, float]) -> Source:
    """Return what makes a connection of redis-py. Nothing is connected yet."""
    options = _options(address, timeouts) | {"retry": Retry(NoBackoff(), 0)}
    if address.sentinels:
        sentinel = Sentinel(address.sentinels, sentinel_kwargs=_sentinel_options(options), **options)
        return Source(sentinel.master_for(address.service).connection_pool.make_connection, sentinel.sentinels)
    return Source(redis.ConnectionPool.from_url(address.url, **options).make_connection)


def async_source(address: Address, timeouts: Mapping[str, float]) -> Source:
    """See source(); for the running event loop."""
    options = _options(address, timeouts) | {"retry": AsyncRetry(NoBackoff(), 0)}
    if address.sentinels:
        sentinel = AsyncSentinel(address.sentinels, sentinel_kwargs=_sentinel_options(options), **options)
        return Source(sentinel.master_for(address.service).connection_pool.make_connection, sentinel.sentinels)
    return Source(redis.asyncio.ConnectionPool.from_url(address.url, **options).make_connection)


def node(address: Address, host: str, port: int) -> Address:
    """Return one node of a Cluster as an address, with the Cluster's credentials."""
    parts = urlsplit(address.url)
    credentials, at, _ = parts.netloc.rpartition("@")
    return Address(
        url=urlunsplit(parts._replace(netloc=f"{credentials}{at}{_bracketed(host)}:{port}")), options=address.options
    )


def _options(address: Address, timeouts: Mapping[str, float]) -> dict[str, Any]:
    kept = {name: value for name, value in address.options.items() if name in KEPT or name.startswith("ssl")}
    return kept | dict(timeouts) | {"protocol": 2, "decode_responses": False}


def _sentinel_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name.startswith("socket") or name == "retry"}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
