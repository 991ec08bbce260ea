"""When a child wants to be replaced."""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.channel import Channel
from redis_kit.queues.worker.shared.status_board import StatusBoard


def resident() -> float:
    """Return how much memory this process has, in MiB; where the system doesn't tell, the most that it ever had."""
    if (found := resident_of("self")) is not None:
        return found
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def resident_of(pid: int | str) -> float | None:
    """Return how much memory another process has, in MiB; None where the system doesn't tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return None


class RecyclingLimits:
    """Asks the supervisor for a replacement, once, when the process has run enough jobs or has grown too large."""

    def __init__(self, options: Options, board: StatusBoard, line: Channel) -> None:
        self._options, self._board, self._line = options, board, line
        self.reached = False

    def check(self) -> bool:
        """Look, after a job; say whether the child is to claim no more."""
        if not self.reached:
            most, size = self._options.max_tasks, self._options.max_rss
            if (most and self._board.done >= most) or (size and resident() > size):
                self.reached = True
                self._line.say("recycle")
        return self.reached
