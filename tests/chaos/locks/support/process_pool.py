"""The processes of a run: every other one comes through the proxy, and a killed one is replaced."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from tests.chaos.locks.support.processes import Process, Workspace


class ProcessPool:
    """Processes that compete until a moment of the monotonic clock."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        urls: Sequence[str],
        size: int,
        end: float,
        options: Callable[[int], Sequence[str]],
    ) -> None:
        self.workspace, self.urls, self.size, self.end, self.options = workspace, urls, size, end, options
        self._started = 0
        self._processes = [self._start() for _ in range(size)]

    def _start(self) -> Process:
        self._started += 1
        seconds = ("--seconds", str(max(self.end - time.monotonic(), 0.01)))
        return self.workspace.start(
            str(self._started), *seconds, *self.options(self._started), url=self.urls[self._started % 2]
        )

    def replace(self, place: int) -> None:
        """Kill one and start another one."""
        self._processes[place].kill()
        self._processes[place] = self._start()

    @contextlib.contextmanager
    def paused(self, place: int) -> Iterator[None]:
        """Pause one for the length of a block."""
        self._processes[place].pause()
        try:
            yield
        finally:
            self._processes[place].go_on()

    def is_whole(self) -> bool:
        """Tell whether none has ended by an error of its own."""
        return not any(process.ended for process in self._processes)

    def wait(self) -> list[str]:
        """Wait for all to end; return the processes that failed."""
        codes = {process.worker: process.wait() for process in self._processes}
        return [f"process {worker} ended with {code}" for worker, code in codes.items() if code]
