"""Which leases were taken through a lock object, and by whom, so that each caller finds its own."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

from redis_kit.locks.leases.lease import Lease

_first: ContextVar["ref[Any]"] = ContextVar("redis_kit_locks_first")  # the task that first took something here


class _Entry(NamedTuple):
    lease: Lease
    taker: "ref[Any]"
    context: "ref[Any] | None"  # of a task: stands for the context that it ran in

    def is_of(self, caller: Any) -> bool:
        if self.taker() is caller:
            return True
        # asyncio.Runner runs task after task in one context: the next one goes on with what the last one took.
        return self.context is not None and _is_over(self.taker) and self.context is _first.get(None)


class Taken:
    """The leases taken through one lock object that were not given back."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, lease: Lease) -> None:
        """Remember a lease of the current thread or task."""
        taker = caller()
        if self._entries:
            self._drop_old(taker)
        self._entries.append(_Entry(lease, ref(taker), _context(taker)))

    def latest(self) -> Lease | None:
        """Return the lease that the current thread or task took last and did not give back, be it lost or not."""
        taker = caller()
        for entry in self._entries[::-1]:
            if entry.is_of(taker) and (entry.lease.lost or not entry.lease.over):
                return entry.lease
        return None

    def drop(self, lease: Lease) -> None:
        """Forget a lease."""
        for entry in self._entries[:]:
            if entry.lease is lease:
                self._remove(entry)

    def _drop_old(self, taker: Any) -> None:
        for entry in self._entries[:]:
            if entry.lease.over or (not entry.lease.held and (entry.is_of(taker) or entry.taker() is None)):
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        with contextlib.suppress(ValueError):  # another thread was quicker
            self._entries.remove(entry)


_shared: WeakValueDictionary[Hashable, Taken] = WeakValueDictionary()


def shared(name: Hashable) -> Taken:
    """Return the leases taken through any of this process's objects of a name."""
    return _shared.setdefault(name, Taken())


def _context(taker: Any) -> "ref[Any] | None":
    if not isinstance(taker, asyncio.Task):
        return None
    first = _first.get(None)
    # A task begins with a copy of its parent's context, which is not its own.
    if first is None or not (first() is taker or _is_over(first)):
        _first.set(first := ref(taker))
    return first


def _is_over(task: "ref[Any]") -> bool:
    found = task()
    return found is None or found.done()


def caller() -> Any:
    """Return the running asyncio task, else the current thread."""
    loop = asyncio._get_running_loop()
    return (asyncio.current_task(loop) if loop else None) or threading.current_thread()


os.register_at_fork(after_in_child=_shared.clear)
