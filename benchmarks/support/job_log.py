"""The start times of jobs, in memory that the benchmark shares with workers; less than a microsecond each.

Runs in the environments of peers too, so it imports only the standard library.
"""

import itertools
import mmap
import os
import struct
import threading
import time
from pathlib import Path

FOLDER = "BENCH_MARKS"  # the variable of the environment that names the folder
CAPACITY = 1 << 18  # notes of one process
NOTE = struct.Struct("<qq")  # a number, and the start of its job, ns on a clock of all processes
CHUNK = 4096  # notes

_lock = threading.Lock()
_memory: mmap.mmap | None = None
_places = itertools.count()


def note(number: int) -> None:
    """Note the start of this job. The time, which the reader looks at, is written last."""
    NOTE.pack_into(_memory or _opened(), next(_places) * NOTE.size, number, time.monotonic_ns())


def _opened() -> mmap.mmap:
    global _memory
    with _lock:
        if _memory is None:
            with Path(os.environ[FOLDER], str(os.getpid())).open("w+b") as file:
                file.truncate(CAPACITY * NOTE.size)
                _memory = mmap.mmap(file.fileno(), 0)
        return _memory


def _after_fork() -> None:
    global _lock, _memory, _places
    _lock, _memory, _places = threading.Lock(), None, itertools.count()


os.register_at_fork(after_in_child=_after_fork)


class JobLog:
    """The notes of all processes that use a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[tuple[int, int]] = []
        self._read: dict[Path, tuple[mmap.mmap, int]] = {}

    def collect(self) -> int:
        """Read new notes, and return the number of all notes."""
        for path in self.folder.iterdir():
            if path not in self._read and path.stat().st_size:
                with path.open("r+b") as file:
                    self._read[path] = mmap.mmap(file.fileno(), 0), 0
        for path, (memory, place) in self._read.items():
            self._read[path] = memory, self._continued(memory, place)
        return len(self.notes)

    def _continued(self, memory: mmap.mmap, place: int) -> int:
        while chunk := memory[place * NOTE.size : (place + CHUNK) * NOTE.size]:
            for note in NOTE.iter_unpack(chunk):
                if not note[1]:
                    return place
                self.notes.append(note)
                place += 1
        return place

    def times(self) -> list[int]:
        """Return the start times of jobs, in order."""
        return sorted(when for _, when in self.notes)

    def by_number(self) -> dict[int, int]:
        """Return the last start time of each job."""
        return dict(sorted(self.notes, key=lambda note: note[1]))
