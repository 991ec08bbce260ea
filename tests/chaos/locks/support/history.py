"""What happened: each process writes its own file, and all use the clock that the machine's processes share."""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One line of a history file. Times are ns of CLOCK_MONOTONIC, but for ``server``: µs of the server's clock.

    ``asked``, then ``taken``, ``refused`` or ``failed``; ``extending``, then ``extended``; ``letting`` go, then
    ``let_go``; or ``lost``. ``wrote`` and ``stale`` are answers to a fenced write; ``kept`` is what the database says
    about each one that it carried out, in the order of ``turn``. ``fault`` is what was done to the processes, servers
    and connections from ``at`` to ``until``.
    """

    what: str
    at: int
    worker: str
    turn: int = 0  # counts the attempts of one worker
    name: str = ""
    fence: int = 0
    until: int = 0  # when the holder stops to count on its lease, unless it is extended
    ttl: int = 0  # ns
    weight: int = 1
    limit: int = 1
    server: int = 0  # the server's clock had come at least that far
    offset: int = 0  # ns from the monotonic clock to the wall clock of this machine
    fair: bool = False
    once: bool = False  # asked only once, and did not wait


class HistoryFile:
    """The events of one process. Each is a single write(), so that SIGKILL loses none and cuts none."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, what: str, worker: str, **facts: Any) -> None:
        """Write down what happens now, or happened from ``at`` until now."""
        event = Event(**{"what": what, "at": time.monotonic_ns(), "worker": worker, **facts})
        os.write(self._file, json.dumps(event).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read(folder: Path) -> list[Event]:
    """Return the events of all files in a folder, in the order in which they happened."""
    lines = (line for path in sorted(folder.glob("*.history")) for line in path.read_text().splitlines())
    return sorted((Event(*json.loads(line)) for line in lines), key=lambda event: event.at)
