"""The leases that were acquired through a lock object, by owner: each thread or task finds its own."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary, ref

from redis_kit.locks.leases.group import LeaseGroup
from redis_kit.locks.leases.lease import Lease

LeaseT = TypeVar("LeaseT", Lease, LeaseGroup)


class _Entry(NamedTuple):
    lease: Any
    owner: "ref[Any]"


class OwnedLeases(Generic[LeaseT]):
    """The leases that were acquired through one lock object and not released."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, lease: LeaseT) -> None:
        """Remember a lease of the current thread or task."""
        owner = current_owner()
        if self._entries:
            self._remove_ended(owner)
        self._entries.append(_Entry(lease, ref(owner)))

    def latest(self) -> LeaseT | None:
        """Return the last lease that the current thread or task acquired and did not release, even if it is lost."""
        if not self._entries:
            return None
        owner = current_owner()
        for entry in self._entries[::-1]:
            if entry.owner() is owner and (entry.lease.lost or not entry.lease.over):
                lease: LeaseT = entry.lease
                return lease
        return None

    def remove(self, lease: LeaseT) -> None:
        """Forget a lease."""
        for entry in self._entries[:]:
            if entry.lease is lease:
                self._remove(entry)

    def _remove_ended(self, owner: Any) -> None:
        for entry in self._entries[:]:
            lease, owned_by = entry.lease, entry.owner()
            if lease.over or (not lease.held and (owned_by is owner or owned_by is None)):
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):  # another thread has removed it
            self._entries.remove(entry)


_by_name: WeakValueDictionary[Hashable, OwnedLeases[Lease]] = WeakValueDictionary()


def owned_by_name(name: Hashable) -> OwnedLeases[Lease]:
    """Return the leases that were acquired through any of this process's objects with a name."""
    return _by_name.setdefault(name, OwnedLeases())


def forget() -> None:
    """Let no lock object that is made from now on know of leases acquired through others. Only for tests."""
    _by_name.clear()


def current_owner() -> Any:
    """Return the running asyncio task, else the current thread. A task inherits nothing from the one that made it."""
    loop = asyncio._get_running_loop()
    return (asyncio.current_task(loop) if loop else None) or threading.current_thread()


os.register_at_fork(after_in_child=_by_name.clear)
