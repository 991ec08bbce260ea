"""Clients of the servers, one per process or event loop, with the kit's own policy on every connection.

The *request* profile gives up after 0.25 s, never repeats a command (one that timed out may have been carried out) and
has a circuit breaker. The *worker* profile waits for 2 s and has none: the loops that use it come back by themselves.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import urlsplit

from django.core.signals import setting_changed

from redis_kit.core import conf
from redis_kit.core.client import connection_factory, event_loops
from redis_kit.core.client.addresses import Address, address
from redis_kit.core.client.breaker import Breaker
from redis_kit.core.client.cluster import AsyncClusterClient, ClusterClient
from redis_kit.core.client.pools import Limits
from redis_kit.core.client.single import AsyncClient, Client, Server, probe
from redis_kit.core.settings import KitSettings

Profile = Literal["request", "worker"]
WORKER = 2.0  # seconds to connect, and to read beyond the time that a blocking command may take
WORKER_WAIT = 30.0  # seconds for a free connection: a worker's thread has time, and would only ask again

_lock = threading.RLock()
_clients: dict[tuple[str, Profile], Any] = {}
_breakers: dict[tuple[str, str], Breaker] = {}
_least = 1  # connections that each pool may have, where MAX_CONNECTIONS is lower


def client(using: str = "default", profile: Profile = "request") -> Any:
    """Return this process's client of a connection. Opens nothing until its first call."""
    found = _clients.get((using, profile))
    if found is None:
        with _lock:
            if (using, profile) not in _clients:
                _clients[using, profile] = _build(using, profile, Client, ClusterClient, connection_factory.source)
            found = _clients[using, profile]
    return found


def aclient(using: str = "default", profile: Profile = "request") -> Any:
    """Return the running event loop's client of a connection. Opens nothing until its first call."""
    clients = event_loops.clients()
    found = clients.get((using, profile))
    if found is None:
        found = clients[using, profile] = _build(
            using, profile, AsyncClient, AsyncClusterClient, connection_factory.async_source
        )
    return found


def provide(connections: int) -> None:
    """Let each pool of this process have so many connections, whatever ``MAX_CONNECTIONS`` says."""
    global _least
    _least = connections


def close() -> None:
    """Drop every client of this process; the next call connects anew. Event loops close theirs when they run next."""
    with _lock:
        for breaker in _breakers.values():
            breaker.retire()
        for one in _clients.values():
            one.close()
        for kept in (_clients, _breakers):
            kept.clear()
    event_loops.close()


def _build(
    using: str, profile: Profile, plain: Any, cluster: Any, source: Callable[..., connection_factory.Source]
) -> Any:
    found = address(using)
    if not found.cluster:
        return plain(_server(using, profile, found, source))

    def connect(node: tuple[str, int]) -> Any:
        return plain(_server(using, profile, connection_factory.node(found, *node), source))

    parts = urlsplit(found.url)
    return cluster((parts.hostname or "localhost", parts.port or 6379), connect)


def _server(using: str, profile: Profile, found: Address, source: Callable[..., connection_factory.Source]) -> Server:
    options = conf.section(KitSettings)
    connect, read = (options.CONNECT_TIMEOUT, options.READ_TIMEOUT) if profile == "request" else (WORKER, WORKER)
    timeouts = {"socket_connect_timeout": connect, "socket_timeout": read}
    breaker = _breaker(using, found, timeouts) if profile == "request" else None
    wait = options.POOL_TIMEOUT if breaker else WORKER_WAIT
    limits = Limits(max(options.MAX_CONNECTIONS, _least), wait, connect, read)
    return Server(str(found), source(found, timeouts), limits, read, breaker)


def _breaker(using: str, found: Address, timeouts: dict[str, float]) -> Breaker:
    with _lock:
        if (using, str(found)) not in _breakers:
            source = connection_factory.source(found, timeouts)
            _breakers[using, str(found)] = Breaker(using, lambda: probe(source.make))
        return _breakers[using, str(found)]


def _forget_after_fork() -> None:
    # The parent's sockets are only let go of: to shut them down would end the parent's own sessions.
    global _lock
    _lock = threading.RLock()
    for kept in (_clients, _breakers):
        kept.clear()
    event_loops.forget()


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in ("REDIS_KIT", "CACHES"):
        close()


os.register_at_fork(after_in_child=_forget_after_fork)
setting_changed.connect(_forget, dispatch_uid="redis_kit.connections")
