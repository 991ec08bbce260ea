"""Time limits in an event loop that tell a silent server from a loop that is late itself."""

import asyncio
from types import TracebackType

ROUNDS = 10  # of the loop, to read what came in before the limit
LATE = 0.02  # seconds; a loop that needs longer for these rounds was not at work when the reply came
MORE = 2  # limits that a late loop gets on top


class Deadline:
    """Limit the time of its block: raise TimeoutError after some seconds, as asyncio.timeout() does.

    When the time is over, the loop first reads what has come in. If the loop was blocked or overloaded at that moment,
    it gets the same time again, twice at most: the server may have answered, and nobody looked.
    """

    __slots__ = ("_before", "_due", "_expired", "_handle", "_loop", "_more", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds, self._more, self._expired = seconds, MORE, False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A connection can be used in a task only.")
        self._task, self._before, self._loop = task, task.cancelling(), asyncio.get_running_loop()
        self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._expired and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError(f"no answer within {self._seconds:g} s") from error

    def _start(self) -> None:
        self._due = self._loop.time() + self._seconds
        self._handle: asyncio.Handle = self._loop.call_at(self._due, self._look, ROUNDS)

    def _look(self, rounds: int) -> None:
        if rounds:
            self._handle = self._loop.call_soon(self._look, rounds - 1)
        elif self._more and self._loop.time() - self._due > LATE:
            self._more -= 1
            self._start()
        else:
            self._expired = True
            self._task.cancel()
