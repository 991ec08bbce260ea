"""What a task is where neither Django's task framework nor its backport is installed: the same fields, no results."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async


class InvalidTask(Exception):
    """A function can't be a task."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A function that a worker can run."""

    func: Callable[..., Any]
    priority: int = 0
    backend: str = "default"
    queue_name: str = "default"
    run_after: datetime | None = None
    takes_context: bool = False

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return self.func.__name__

    @property
    def module_path(self) -> str:
        """Return the name of the function with that of its module before it."""
        return f"{self.func.__module__}.{self.func.__qualname__}"

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run it in this process and return what it returns; a coroutine function in an event loop."""
        return (async_to_sync(self.func) if inspect.iscoroutinefunction(self.func) else self.func)(*args, **kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """See call()."""
        return await (self.func if inspect.iscoroutinefunction(self.func) else sync_to_async(self.func))(
            *args, **kwargs
        )
