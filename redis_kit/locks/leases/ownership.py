"""The leases that were acquired through a lock object, by owner: each thread or task finds its own."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

from redis_kit.locks.leases.lease import Lease

_first: ContextVar["ref[Any]"] = ContextVar("redis_kit_locks_first")  # the task that first acquired something here


class _Entry(NamedTuple):
    lease: Lease
    owner: "ref[Any]"
    context: "ref[Any] | None"  # of a task: stands for the context that it ran in

    def is_of(self, owner: Any) -> bool:
        if self.owner() is owner:
            return True
        # asyncio.Runner runs task after task in one context: the next task owns what the last one acquired.
        return self.context is not None and _is_done(self.owner) and self.context is _first.get(None)


class OwnedLeases:
    """The leases that were acquired through one lock object and not released."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, lease: Lease) -> None:
        """Remember a lease of the current thread or task."""
        owner = current_owner()
        if self._entries:
            self._remove_ended(owner)
        self._entries.append(_Entry(lease, ref(owner), _context(owner)))

    def latest(self) -> Lease | None:
        """Return the last lease that the current thread or task acquired and did not release, even if it is lost."""
        owner = current_owner()
        for entry in self._entries[::-1]:
            if entry.is_of(owner) and (entry.lease.lost or not entry.lease.over):
                return entry.lease
        return None

    def remove(self, lease: Lease) -> None:
        """Forget a lease."""
        for entry in self._entries[:]:
            if entry.lease is lease:
                self._remove(entry)

    def _remove_ended(self, owner: Any) -> None:
        for entry in self._entries[:]:
            if entry.lease.over or (not entry.lease.held and (entry.is_of(owner) or entry.owner() is None)):
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):  # another thread has removed it
            self._entries.remove(entry)


_by_name: WeakValueDictionary[Hashable, OwnedLeases] = WeakValueDictionary()


def owned_by_name(name: Hashable) -> OwnedLeases:
    """Return the leases that were acquired through any of this process's objects with a name."""
    return _by_name.setdefault(name, OwnedLeases())


def forget() -> None:
    """Let no lock object that is made from now on know of leases acquired through others. Only for tests."""
    _by_name.clear()


def _context(owner: Any) -> "ref[Any] | None":
    if not isinstance(owner, asyncio.Task):
        return None
    first = _first.get(None)
    # A task begins with a copy of its parent's context, which is not its own.
    if first is None or not (first() is owner or _is_done(first)):
        _first.set(first := ref(owner))
    return first


def _is_done(reference: "ref[Any]") -> bool:
    task = reference()
    return task is None or task.done()


def current_owner() -> Any:
    """Return the running asyncio task, else the current thread."""
    loop = asyncio._get_running_loop()
    return (asyncio.current_task(loop) if loop else None) or threading.current_thread()


os.register_at_fork(after_in_child=_by_name.clear)
