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

from redis_kit.core.client.addresses import Address
from redis_kit.core.logs.error_text import described

_driver: dict[str, Any] = {}  # the name of their library, which all connections tell the server


class ConnectionFactory(NamedTuple):
    """A function that makes a connection, and the clients of the Sentinels that it asks for the primary's address."""

    make: Callable[[], Any]
    sentinels: Sequence[Any] = ()
    pool: Any = None  # the library's, of the Sentinels' service

    @property
    def primary(self) -> str:
        """Return the address of the primary that the Sentinels named last, "" without one."""
        address = getattr(self.pool, "master_address", None)
        return f"{_bracketed(address[0])}:{address[1]}" if address else ""


class _NoAnswer(redis.ConnectionError):
    """A Sentinel did not answer. The library shows its errors' ``repr()``, which has no text otherwise."""

    def __repr__(self) -> str:
        return str(self)


class _Watcher(redis.Redis):
    """A client of one Sentinel, which errors name by its address."""

    def __repr__(self) -> str:
        return _named(self)

    def sentinel_masters(self) -> Any:
        """Return the services that the Sentinel watches."""
        try:
            return super().sentinel_masters()
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _NoAnswer(described(error)) from error


class _AsyncWatcher(redis.asyncio.Redis):
    """See _Watcher."""

    def __repr__(self) -> str:
        return _named(self)

    async def sentinel_masters(self) -> Any:
        """Return the services that the Sentinel watches."""
        try:
            return await super().sentinel_masters()
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise _NoAnswer(described(error)) from error


def factory(address: Address, timeouts: Mapping[str, float]) -> ConnectionFactory:
    """Return a factory of connections of redis-py. Nothing is connected yet."""
    options = _options(address, timeouts, Retry(NoBackoff(), 0))
    if address.sentinels:
        return _of_service(Sentinel, _Watcher, address, options)
    return ConnectionFactory(_maker(redis.ConnectionPool.from_url(address.url, **options)))


def async_factory(address: Address, timeouts: Mapping[str, float]) -> ConnectionFactory:
    """See factory(); for the running event loop."""
    options = _options(address, timeouts, AsyncRetry(NoBackoff(), 0))
    untimed = dict.fromkeys(timeouts)  # redis_kit puts limits around every await
    if address.sentinels:
        return _of_service(AsyncSentinel, _AsyncWatcher, address, options, **untimed)
    return ConnectionFactory(_maker(redis.asyncio.ConnectionPool.from_url(address.url, **options | untimed)))


def _of_service(kind: Any, watcher: Any, address: Address, options: dict[str, Any], **more: Any) -> ConnectionFactory:
    """Return a factory of connections to the primary that Sentinels name. They have the options but for these more."""
    shared = {name: value for name, value in options.items() if name.startswith("socket") or name == "retry"}
    of_sentinels = {**shared, **address.sentinel_options}
    sentinel = kind((), sentinel_kwargs=of_sentinels, **options | more)
    sentinel.sentinels = [watcher(host=host, port=port, **of_sentinels) for host, port in address.sentinels]
    pool = sentinel.master_for(address.service).connection_pool
    return ConnectionFactory(_maker(pool), sentinel.sentinels, pool)


def node(address: Address, host: str, port: int) -> Address:
    """Return one node of a Cluster as an address, with the Cluster's credentials."""
    parts = urlsplit(address.url)
    credentials, at, _ = parts.netloc.rpartition("@")
    return Address(
        url=urlunsplit(parts._replace(netloc=f"{credentials}{at}{_bracketed(host)}:{port}")), options=address.options
    )


def _maker(pool: Any) -> Callable[[], Any]:
    # Not by the library's pool, which counts every connection that it ever made and ends at its limit.
    def make() -> Any:
        connection = pool.connection_class(**pool.connection_kwargs | _driver)
        if hasattr(connection, "driver_info"):
            _driver["driver_info"] = connection.driver_info  # found in the library's metadata, in a millisecond
        return connection

    return make


def _options(address: Address, timeouts: Mapping[str, float], retry: Any) -> dict[str, Any]:
    return {**address.options, **timeouts, "protocol": 2, "decode_responses": False, "retry": retry}


def _named(client: Any) -> str:
    options = client.connection_pool.connection_kwargs
    return f"{_bracketed(options['host'])}:{options['port']}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
