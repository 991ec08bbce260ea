"""A queue that signal handlers may put into, for one thread that waits."""

from collections import deque
from contextlib import suppress
from queue import Empty
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


class EventQueue(Generic[Item]):
    """As ``queue.SimpleQueue``, for one reader.

    ``SimpleQueue.get()`` of Python 3.11 and 3.12 waits for ever if a signal interrupts it and its time is over when the
    handler returns, as after a pause of the process. ``Lock.acquire()`` looks at its time again.
    """

    __slots__ = ("_items", "_ready")

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._ready = Lock()
        self._ready.acquire()

    def put(self, item: Item) -> None:
        """Add an item, and wake the reader. May be called by a handler that interrupts put() or get()."""
        self._items.append(item)
        with suppress(RuntimeError):  # the reader was woken before, and has not looked yet
            self._ready.release()

    def get(self, timeout: float | None = None) -> Item:
        """Remove and return the first item. Raises queue.Empty if none comes within some seconds; None waits on."""
        while True:
            if self._items:
                return self._items.popleft()
            if not self._ready.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
                raise Empty

    def empty(self) -> bool:
        """Tell whether there is no item."""
        return not self._items
