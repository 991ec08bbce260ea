"""Clients of the servers, one per process or event loop, with the same policy on every connection.

The *request* profile gives up after 0.25 s, never repeats a command (one that timed out may have been carried out) and
has a circuit breaker. The *worker* profile waits for 2 s and has none: the loops that use it retry by themselves.

The clients of an event loop are held by it, so they are gone when it is, however it ended. Their connections are closed
when the loop closes its asynchronous generators, as asyncio.run() and async_to_sync() make it do; those of a loop that
was closed without, when the next loop of this process asks for a client.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, Literal
from weakref import WeakSet

from redis_kit.core import conf
from redis_kit.core.client import connection_factory
from redis_kit.core.client.addresses import Address, address
from redis_kit.core.client.breaker import Breaker
from redis_kit.core.client.cluster import AsyncClusterClient, ClusterClient
from redis_kit.core.client.pools import Server
from redis_kit.core.client.single import AsyncClient, Client, probe
from redis_kit.core.settings import KitSettings

Profile = Literal["request", "worker"]
WORKER = 2.0  # seconds to connect, and to read beyond the time that a blocking command may take
WORKER_WAIT = 30.0  # seconds for a free connection: a worker's thread has time, and would only ask again

LOOP_CLIENTS = "_redis_kit"  # the loop's attribute; a mapping from loops would keep them: connections refer to theirs

_lock = threading.RLock()
_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
_clients: dict[tuple[str, Profile], Any] = {}
_breakers: dict[tuple[str, str], Breaker] = {}
_least = 1  # connections that each pool may have, if MAX_CONNECTIONS is lower


class _LoopClients:
    """The clients of one loop. To be made while that loop runs."""

    def __init__(self) -> None:
        self.clients: dict[Any, Any] = {}
        # A loop that ends closes its asynchronous generators: the one moment at which its sockets can still be closed.
        self._generator = self._until_the_end()
        with suppress(StopIteration):
            self._generator.__anext__().send(None)

    def close(self) -> None:
        """Drop the clients; connections in use are closed when they are returned."""
        clients = list(self.clients.values())
        self.clients.clear()
        for client in clients:
            client.close()

    def end(self) -> None:
        """Close every connection: the loop does not run any more."""
        for client in self.clients.values():
            client.end()
        self.clients.clear()

    async def _until_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self.end()


def client(using: str = "default", profile: Profile = "request") -> Any:
    """Return this process's client of a connection. Opens nothing until its first call."""
    existing = _clients.get((using, profile))
    if existing is None:
        with _lock:
            if (using, profile) not in _clients:
                _clients[using, profile] = _build(using, profile, Client, ClusterClient, connection_factory.factory)
            existing = _clients[using, profile]
    return existing


def aclient(using: str = "default", profile: Profile = "request") -> Any:
    """Return the running event loop's client of a connection. Opens nothing until its first call."""
    clients = _clients_of_loop()
    existing = clients.get((using, profile))
    if existing is None:
        existing = clients[using, profile] = _build(
            using, profile, AsyncClient, AsyncClusterClient, connection_factory.async_factory
        )
    return existing


def provide(connections: int) -> None:
    """Let each pool of this process have at least this many connections, also if ``MAX_CONNECTIONS`` is lower."""
    global _least
    _least = connections


def close() -> None:
    """Drop every client of this process; the next call connects again. Event loops close their clients themselves."""
    with _lock:
        for breaker in _breakers.values():
            breaker.retire()
        for each in _clients.values():
            each.close()
        _clients.clear()
        _breakers.clear()
    _end_closed()
    for loop in list(_loops):
        with suppress(RuntimeError):  # it was closed just now
            loop.call_soon_threadsafe(getattr(loop, LOOP_CLIENTS).close)


def _clients_of_loop() -> dict[Any, Any]:
    """Return the clients of the running loop, by alias and profile."""
    loop = asyncio.get_running_loop()
    held: _LoopClients | None = getattr(loop, LOOP_CLIENTS, None)
    if held is None:
        _end_closed()
        held = _LoopClients()
        setattr(loop, LOOP_CLIENTS, held)
        with _lock:
            _loops.add(loop)
    return held.clients


def _end_closed() -> None:
    """Close the connections of loops that were closed without closing their asynchronous generators."""
    with _lock:
        closed = [loop for loop in _loops if loop.is_closed()]
        _loops.difference_update(closed)
    for loop in closed:
        getattr(loop, LOOP_CLIENTS).end()


def _build(
    using: str, profile: Profile, plain: Any, cluster: Any, factory: Callable[..., connection_factory.ConnectionFactory]
) -> Any:
    server = address(using)
    if not server.cluster:
        return plain(_server(using, profile, server, factory))

    def connect(node: tuple[str, int]) -> Any:
        return plain(_server(using, profile, connection_factory.node(server, *node), factory, in_cluster=True))

    return cluster(server.cluster, connect)


def _server(
    using: str,
    profile: Profile,
    server: Address,
    factory: Callable[..., connection_factory.ConnectionFactory],
    *,
    in_cluster: bool = False,
) -> Server:
    options = conf.section(KitSettings)
    connect, read = (options.CONNECT_TIMEOUT, options.READ_TIMEOUT) if profile == "request" else (WORKER, WORKER)
    timeouts = {"socket_connect_timeout": connect, "socket_timeout": read}
    breaker = _breaker(using, server, timeouts) if profile == "request" else None
    wait = options.POOL_TIMEOUT if breaker else WORKER_WAIT
    most = max(options.MAX_CONNECTIONS, _least)
    return Server(str(server), factory(server, timeouts), most, wait, connect, read, breaker, in_cluster)


def _breaker(using: str, server: Address, timeouts: dict[str, float]) -> Breaker:
    with _lock:
        if (using, str(server)) not in _breakers:
            factory, key = connection_factory.factory(server, timeouts), f"{conf.section(KitSettings).PREFIX}:probe"
            _breakers[using, str(server)] = Breaker(using, lambda: probe(factory.make, key))
        return _breakers[using, str(server)]


def _forget_after_fork() -> None:
    # The parent's sockets are only forgotten: to shut them down would end the parent's sessions.
    global _lock
    _lock = threading.RLock()
    _clients.clear()
    _breakers.clear()
    _loops.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
conf.on_change(close, "REDIS_KIT", "CACHES")
