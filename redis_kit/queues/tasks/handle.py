"""What enqueue() returns for a task that stores no result."""

from dataclasses import dataclass, field
from typing import NoReturn

from redis_kit.core.errors import RedisKitError


class NoResult(RedisKitError):
    """A call's result was asked for, and its task stores none."""


@dataclass(frozen=True)
class Handle:
    """What enqueue() returns for a task that stores no result: the job that it added, or adds after the commit.

    ``created`` is False where the unique key of the call was in use, by the job of this id; None until the commit.
    Nothing can be asked about the call: the methods of a result raise NoResult.
    """

    id: str
    queue_name: str
    created: bool | None = field(default=None, compare=False)

    def refresh(self) -> NoReturn:
        """Raise NoResult."""
        self._refuse("refresh()")

    async def arefresh(self) -> NoReturn:
        """See refresh()."""
        self._refuse("arefresh()")

    def wait(self, timeout: float = 0) -> NoReturn:
        """Raise NoResult."""
        self._refuse("wait()")

    async def await_(self, timeout: float = 0) -> NoReturn:
        """See wait()."""
        self._refuse("await_()")

    def cancel(self) -> NoReturn:
        """Raise NoResult."""
        self._refuse("cancel()", f"; Queue({self.queue_name!r}).remove({self.id!r}) removes the job while it waits")

    async def acancel(self) -> NoReturn:
        """See cancel()."""
        self._refuse("acancel()", f"; Queue({self.queue_name!r}).aremove({self.id!r}) removes the job while it waits")

    def _refuse(self, name: str, instead: str = "") -> NoReturn:
        raise NoResult(f"Job {self.id!r} stores no result, since its task has store_result=False: no {name}{instead}.")
