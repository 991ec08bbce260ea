"""The state of a worker process in shared memory: its supervisor reads it even after a SIGKILL.

The layout is in 8-byte words, each written at once: jobs done, which half of the log is in use, how full each half is,
for how many microseconds jobs ran, and when the process last gave a sign of life. Then come the slots, one per thread,
and the halves of the log. Data is written before the word that says it is there.
"""

import math
import mmap
import struct
from threading import Lock
from time import monotonic
from typing import NamedTuple

DONE, HALF, USED, RAN, ALIVE = 0, 1, 2, 4, 5  # words; USED is followed by that of the other half
HEAD = 6 * 8
SLOT = 1024
MILLION = 1_000_000
IDLE, WRITING, BUSY = 0, 1, 2  # the lower bits of a slot's word; the others count changes
_RUNNING = struct.Struct("<dHHH")  # deadline, source, lengths of token and id
_LENGTH = struct.Struct("<I")
(_NO_DEADLINE,) = struct.unpack("=Q", struct.pack("<d", math.nan))
_TEXT = SLOT - 8 - _RUNNING.size


class Running(NamedTuple):
    """A job that a child runs. ``deadline`` is its hard end on the monotonic clock, None if it has none."""

    source: int
    token: str
    id: str
    deadline: float | None

    def member(self) -> bytes:
        """Return the server's name for it among the running jobs."""
        return f"{self.token}/{self.id}".encode("utf-8", "surrogateescape")


class StatusBoard:
    """Made by the supervisor, written by the child, each slot by one thread of it, read by the supervisor."""

    def __init__(self, slots: int, *, room: int = 1 << 20) -> None:
        self._slots, self._half = slots, room // 2
        self._log = HEAD + slots * SLOT
        self._memory = mmap.mmap(-1, self._log + 2 * self._half)
        whole = memoryview(self._memory)
        self._words = whole[: self._log].cast("Q")
        whole.release()
        self._lock = Lock()
        self.note_alive()

    def note_alive(self) -> None:
        """Give a sign of life: the code of this process runs."""
        self._words[ALIVE] = round(monotonic() * MILLION)

    @property
    def silence(self) -> float:
        """Return for how many seconds the process has given no sign of life."""
        return monotonic() - self._words[ALIVE] / MILLION

    def begin(self, slot: int, source: int, token: str, id: str, deadline: float | None) -> None:
        """Note that a slot's thread runs a job from now on. If the names are too long, only its deadline is stored."""
        at = HEAD + slot * SLOT
        words, word = self._words, at // 8
        first, second = token.encode("utf-8", "surrogateescape"), id.encode("utf-8", "surrogateescape")
        if len(first) + len(second) > _TEXT:
            first = second = b""
        change = (words[word] >> 2) + 1 << 2
        words[word] = change | WRITING
        end = math.nan if deadline is None else deadline
        packed = _RUNNING.pack(end, source, len(first), len(second)) + first + second
        self._memory[at + 8 : at + 8 + len(packed)] = packed
        words[word] = change | BUSY

    def lift(self, slot: int) -> None:
        """Note that the job of a slot has no deadline any more: its task has ended, and it waits for the server."""
        self._words[(HEAD + slot * SLOT) // 8 + 1] = _NO_DEADLINE

    def end(self, slot: int, count: int = 0, seconds: float = 0.0) -> None:
        """Note that the slot's thread runs no job, how many have ended there, and the seconds for which they ran."""
        words, word = self._words, (HEAD + slot * SLOT) // 8
        words[word] = words[word] >> 2 << 2
        with self._lock:
            words[DONE] += count
            words[RAN] += round(seconds * MILLION)

    def note(self, entry: bytes) -> bool:
        """Add to the log of outcomes not yet sent. False if there is no room."""
        with self._lock:
            return self._append(self._words[HALF], entry)

    def turn(self) -> None:
        """Start a batch: what was noted so far is about to be sent. Later entries go to the other half."""
        with self._lock:
            now = self._words[HALF]
            if not self._words[USED + 1 - now]:
                self._words[HALF] = 1 - now
            elif all(self._append(1 - now, entry) for entry in self._entries(now)):
                # The server did not answer the last time. Both batches are sent now; repeats do no harm.
                self._words[USED + now] = 0

    def forget(self) -> None:
        """Remove what was noted before the last turn(): the server has answered."""
        with self._lock:
            self._words[USED + 1 - self._words[HALF]] = 0

    @property
    def done(self) -> int:
        """Return how many jobs have ended since the fork."""
        return self._words[DONE]

    @property
    def ran(self) -> float:
        """Return for how many seconds jobs have run since the fork, those of all threads added up."""
        return self._words[RAN] / MILLION

    def running(self) -> list[Running]:
        """Return what runs now."""
        return [job for slot in range(self._slots) if (job := self._read(slot))]

    def noted(self) -> list[bytes]:
        """Return the entries that were noted and not removed, oldest first."""
        now = self._words[HALF]
        return list(dict.fromkeys([*self._entries(1 - now), *self._entries(now)]))

    def close(self) -> None:
        """Release the memory."""
        self._words.release()
        self._memory.close()

    def _append(self, half: int, entry: bytes) -> bool:
        used, size = self._words[USED + half], _LENGTH.size + len(entry)
        if used + size > self._half:
            return False
        at = self._log + half * self._half + used
        self._memory[at : at + size] = _LENGTH.pack(len(entry)) + entry
        self._words[USED + half] = used + size
        return True

    def _entries(self, half: int) -> list[bytes]:
        at = self._log + half * self._half
        end, entries = at + self._words[USED + half], []
        while at < end:
            (length,) = _LENGTH.unpack_from(self._memory, at)
            entries.append(self._memory[at + _LENGTH.size : at + _LENGTH.size + length])
            at += _LENGTH.size + length
        return entries

    def _read(self, slot: int) -> Running | None:
        at, word = HEAD + slot * SLOT, (HEAD + slot * SLOT) // 8
        for _ in range(10):
            before = self._words[word]
            if before & 3 != BUSY:
                return None
            packed = self._memory[at + 8 : at + SLOT]
            if self._words[word] == before:
                return _running(packed)
        return None  # its jobs are so short that none is worth a look


def _running(packed: bytes) -> Running:
    deadline, source, *lengths = _RUNNING.unpack_from(packed)
    token, id = (lengths[0], lengths[0] + lengths[1])
    text = packed[_RUNNING.size :]
    first, second = (part.decode("utf-8", "surrogateescape") for part in (text[:token], text[token:id]))
    return Running(source, first, second, None if math.isnan(deadline) else deadline)
