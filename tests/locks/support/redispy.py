"""Locks of redis-py and ours on clients of redis-py, sync and async, for tests that hold for all of them."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.lock
import redis.lock
from redis.sentinel import Sentinel

from redis_kit.locks.compat import AsyncLock, Lock
from tests.fixtures.groups import SERVICE
from tests.fixtures.kit import Kit
from tests.fixtures.process import cluster_client
from tests.fixtures.servers import wait_for

OURS = {"sync": Lock, "async": AsyncLock}
STOCK = {"sync": redis.lock.Lock, "async": redis.asyncio.lock.Lock}


class Client(redis.Redis):
    """A client whose locks are ours, for code that makes its locks with client.lock()."""

    def lock(self, *args: Any, **kwargs: Any) -> Any:
        return super().lock(*args, **{"lock_class": Lock} | kwargs)


def connected(kit: Kit, kind: str = "sync", **options: Any) -> Any:
    """Return a new client of a kit's server with redis-py's defaults."""
    module: Any = redis.asyncio if kind == "async" else redis
    connection = kit.server.connection
    if "CLUSTER" in connection:
        return cluster_client(kit.url, module, **options)
    if "SENTINELS" in connection:
        sentinel = redis.asyncio.Sentinel if kind == "async" else Sentinel
        return sentinel(connection["SENTINELS"]).master_for(SERVICE, **options)
    return module.Redis.from_url(kit.url, **options)


def with_sentinels(client: Any) -> list[Any]:
    """Return a client and those that it has of Sentinels, which its close() leaves open."""
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return [client, *(manager.sentinels if manager else ())]


class Bench:
    """Locks of one class on one kind of client, and the way to call their methods."""

    def __init__(self, kit: Kit, kind: str, lock_class: Any) -> None:
        self.kit, self.kind, self.lock_class = kit, kind, lock_class
        self.look = connected(kit)
        self.runner = asyncio.Runner() if kind == "async" else None
        self._clients: list[Any] = []
        self.client = self.connect()

    def connect(self, **options: Any) -> Any:
        """Return a client of the kind under test."""
        client = connected(self.kit, self.kind, **options)
        self._clients += with_sentinels(client)
        return client

    def key(self, name: str = "a") -> str:
        """Return the name of a key of this test."""
        return f"{self.kit.prefix}:{name}"

    def lock(self, name: str = "a", *, client: Any = None, **options: Any) -> Any:
        """Return a new lock."""
        return (client or self.client).lock(self.key(name), lock_class=self.lock_class, **options)

    def run(self, result: Any) -> Any:
        """Return a result, awaited where that is needed."""
        if self.runner is None or not inspect.isawaitable(result):
            return result

        async def awaited() -> Any:
            return await result

        return self.runner.run(awaited())

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Wait for a condition; the event loop goes on meanwhile."""
        if self.runner is None:
            wait_for(condition)
        else:
            self.run(asyncio.to_thread(wait_for, condition))

    @contextlib.contextmanager
    def inside(self, lock: Any) -> Iterator[Any]:
        """Enter ``with``, or ``async with``."""
        enter, leave = ("__aenter__", "__aexit__") if self.runner else ("__enter__", "__exit__")
        yield self.run(getattr(lock, enter)())
        self.run(getattr(lock, leave)(None, None, None))

    def keys(self) -> list[str]:
        """Return all keys of this test, side keys too."""
        return sorted(key.decode("latin-1") for key in self.look.scan_iter(f"*{self.kit.prefix}:*", count=1000))

    def close(self) -> None:
        """Delete the keys, close the clients and end the event loop."""
        for key in self.keys():
            self.look.delete(key.encode("latin-1"))
        for client in with_sentinels(self.look):
            client.close()
        for client in self._clients:
            self.run(client.aclose() if self.runner else client.close())
        if self.runner:
            self.runner.close()
