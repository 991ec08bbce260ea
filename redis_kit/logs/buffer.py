"""The buffer of a process: log records that wait, and the thread that stores them, in batches."""

import logging
import os
from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from itertools import count
from secrets import token_hex
from time import monotonic, time
from typing import Any

from redis_kit.core import conf, connections, flow, scripts
from redis_kit.core.background import TEMPORARY, BackgroundSender
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.core.text import clean
from redis_kit.core.web.lifespan import on_shutdown
from redis_kit.logs import keys
from redis_kit.logs.keys import DAYS, HOUR, key
from redis_kit.logs.record import Entry, stored
from redis_kit.logs.settings import LogSettings

STORE = scripts.load("redis_kit.logs", "store")
MEMORY = 12 * HOUR  # seconds for which the server recognises a repeated batch
TTLS = (MEMORY * 1000, (keys.RETENTION + 1) * HOUR * 1000, DAYS * 24 * HOUR * 1000)
GROUPS = 30  # of loggers that have a list of their own
SHARE = 10  # a list of a group has a tenth of the records of a level: no other group displaces them


class Buffer(BackgroundSender):
    """A list with a limit. Callers append to it without a lock; one thread, which the first record starts, empties it.

    Steps of a deque and of a count are atomic. Code that a signal interrupts could hold a lock, for which its handler
    would wait for ever.
    """

    name, logger = "redis-kit-logs", logging.getLogger("redis_kit.logs")
    messages = "Can't store log records; up to %d wait: %s", "Log records are stored again."
    BATCH, INTERVAL = 1000, 0.5

    def reset(self) -> None:
        """Forget everything. A forked child must do this: its parent stores the parent's records."""
        super().reset()
        self._entries: deque[Entry] = deque()
        self._batch: tuple[ScriptCall, int, int] | None = None  # with its records, and the drops that it reports
        self._overflow = count()
        self._writer, self._number = token_hex(6), 0
        self.stored = self._refused = self._reported = 0
        self._tried = 0.0  # when the batch may have been stored

    def discard(self) -> None:
        """Forget the records that wait, and the dropped ones that are not reported yet."""
        with self._sending:
            self._entries.clear()
            self._batch = None
            self._reported = self.dropped()

    def add(self, entry: Entry) -> None:
        """Add a record, or drop and count it if 10,000 wait. Never waits."""
        if len(self._entries) >= self.CAPACITY:
            self.drop()
        else:
            self._entries.append(entry)
            self._added()

    def drop(self) -> None:
        """Count a record that is not stored. The thread reports it."""
        next(self._overflow)
        self._added()

    def dropped(self) -> int:
        """Return how many records were dropped since the process started."""
        # Only repr() looks at a count without a step, and another thread may drop a record at the same time.
        return self._refused + int(repr(self._overflow)[len("count(") : -1])

    def waiting(self) -> int:
        """Return how many records wait."""
        return len(self._entries) + (self._batch[1] if self._batch else 0)

    def flush(self, timeout: float | None = None) -> bool:
        """Store all records that wait. False if they go on waiting, or were refused."""
        return super().flush(timeout) and self._error is None

    def _count(self) -> int:
        return len(self._entries)

    def _has_work(self) -> bool:
        return bool(self._entries or self._batch) or self.dropped() != self._reported

    def _next(self) -> bool:
        dropped = self.dropped() - self._reported
        if self._batch is None and (self._entries or dropped):
            entries, hour = list[Entry](), self._entries[0].created // HOUR if self._entries else 0
            while self._entries and len(entries) < self.BATCH and self._entries[0].created // HOUR == hour:
                entries.append(self._entries.popleft())
            try:
                call = _call(entries, dropped, self._writer, self._number + 1)
            except Exception as error:  # such as one of the settings
                self._refused += len(entries)
                self._failed(error)
                return False
            self._batch = call, len(entries), dropped
            self._number += 1
            self._reported += dropped
        return self._batch is not None

    def _send(self) -> bool:
        if self._batch is None:
            return True
        call, records, dropped = self._batch
        try:
            flow.run(flow.single(call), connections.client(conf.section(LogSettings).USING, "worker"))
        except Exception as error:
            self._failed(error)
            if isinstance(error, TEMPORARY) and not (self._tried and monotonic() - self._tried > MEMORY / 2):
                if getattr(error, "indeterminate", False):
                    self._tried = self._tried or monotonic()
                return False
            self._refused += records
            self._reported -= dropped
        else:
            self.stored += records
            self._recovered()
        self._batch = None
        self._tried = 0.0
        return self._error is None


def _call(entries: Sequence[Entry], dropped: int, writer: str, number: int) -> ScriptCall:
    options, now = conf.section(LogSettings), time()
    hour = int(min(max(entries[0].created if entries else now, now - 24 * HOUR), now) // HOUR)
    share = max(1, options.RECENT // SHARE)
    places, kinds, records = dict[str, int](), dict[Any, tuple[Any, ...]](), list[Argument]()
    counts, listed = Counter(entry[1:6] for entry in entries), Counter[int]()
    for entry in reversed(entries):
        kind = kinds[entry[1:6]] = kinds.get(entry[1:6]) or (*_kind(entry, places), counts[entry[1:6]], len(kinds) + 1)
        # Of many records only the last ones of each list are stored, so the others need not be made safe.
        if listed[kind[0]] < options.RECENT or listed[kind[1]] < share or not listed[kind[2]]:
            records += (stored(entry, kind[5]), kind[-1])
        listed.update(kind[:3])
    named = [key(keys.BATCH, writer), key(keys.GROUPS), key(keys.COUNTS, hour), key(keys.LEVELS, hour)]
    args = [number, *TTLS, GROUPS, options.FINGERPRINTS, options.RECENT, share, dropped, len(kinds)]
    args += [value for kind in kinds.values() for value in kind[:-1]]
    return STORE([*named, key(keys.TOTALS), *places], [*args, *reversed(records)])


def _kind(entry: Entry, places: dict[str, int]) -> tuple[Any, ...]:
    """Return the places of the keys of an entry, its level, its group of loggers and its fingerprint."""
    group, fingerprint = clean(entry.logger.partition(".")[0])[:64] or "root", entry.fingerprint
    names = key(keys.RECENT, entry.level), key(keys.RECENT, entry.level, group), key(keys.MESSAGE, fingerprint)
    return (*(places.setdefault(name, len(places) + 1) for name in names), entry.level, group, fingerprint)


buffer = Buffer()
os.register_at_fork(after_in_child=buffer.reset)
on_shutdown(partial(buffer.flush, 2.0))
