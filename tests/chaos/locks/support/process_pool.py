"""The processes of a run of chaos: every other one comes through the proxy, and a killed one is replaced."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from tests.chaos.locks.support.processes import Arena, Process


class Crowd:
    """Processes that compete until a moment of the monotonic clock."""

    def __init__(
        self, arena: Arena, *, urls: Sequence[str], size: int, end: float, options: Callable[[int], Sequence[str]]
    ) -> None:
        self.arena, self.urls, self.size, self.end, self.options = arena, urls, size, end, options
        self._started = 0
        self._members = [self._start() for _ in range(size)]

    def _start(self) -> Process:
        self._started += 1
        seconds = ("--seconds", str(max(self.end - time.monotonic(), 0.01)))
        return self.arena.start(
            str(self._started), *seconds, *self.options(self._started), url=self.urls[self._started % 2]
        )

    def replace(self, place: int) -> None:
        """Kill one and start another one."""
        self._members[place].kill()
        self._members[place] = self._start()

    @contextlib.contextmanager
    def paused(self, place: int) -> Iterator[None]:
        """Pause one for the length of a block."""
        self._members[place].pause()
        try:
            yield
        finally:
            self._members[place].go_on()

    def is_whole(self) -> bool:
        """Tell whether none has ended by an error of its own."""
        return not any(member.ended for member in self._members)

    def wait(self) -> list[str]:
        """Wait for all to end; return who did not end well."""
        codes = {member.who: member.wait() for member in self._members}
        return [f"process {who} ended with {code}" for who, code in codes.items() if code]
