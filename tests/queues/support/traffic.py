"""Calls that go on while something is wrong, and what their caller was told."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.engine import ids
from tests.fixtures.process import wait_for
from tests.queues.support.journal import Journal
from tests.queues.support.tasks import note

SOON = timedelta(seconds=0.2)
MOST = 10.0  # seconds after the end of a fault: liveness, on a machine that does other things too


class Traffic:
    """A thread that enqueues about 50 jobs a second, each fifth for a moment later.

    ``sure`` has the names of those that enqueue() returned for and when, ``shards`` their shards; ``unsure`` those of
    which it could not say whether they are there; ``errors`` what it raised.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.sure: dict[str, float] = {}
        self.shards: dict[str, str] = {}
        self.unsure: list[str] = []
        self.errors: list[RedisFailure] = []
        self.failed_at: float | None = None
        self.forgotten: set[str] = set()
        self._calls = threading.Lock()  # held from a call to the note of its outcome
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._read, self._ended = 0, Counter[str]()

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            name = f"job{number}"
            task: Any = note.using(run_after=SOON) if number % 5 == 0 else note
            with self._calls:
                try:
                    self.shards[name] = ids.queue_of(task.enqueue(name).id)
                    self.sure[name] = time.monotonic()
                except RedisFailure as error:
                    self.failed_at = self.failed_at or time.monotonic()
                    self.errors.append(error)
                    if getattr(error, "indeterminate", False):
                        self.unsure.append(name)
            if self._over.wait(0.02):
                return

    def ended(self) -> Counter[str]:
        """Return how often each job has ended."""
        if self.journal.path.exists():
            with self.journal.path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            lines = text[: text.rfind(b"\n") + 1]
            self._read += len(lines)
            self._ended.update(line.split()[0] for line in lines.decode().splitlines() if line.split()[1] == "end")
        return self._ended

    def back(self, *, within: float = MOST, shards: Collection[str] = ()) -> float:
        """Return the seconds until a job is done that was enqueued after this moment, in one of some shards."""
        began, before = time.monotonic(), len(self.sure)
        wait_for(lambda: any(name in self.ended() for name in self._after(before, shards)), timeout=within)
        return time.monotonic() - began

    def _after(self, place: int, shards: Collection[str]) -> list[str]:
        return [name for name in list(self.sure)[place:] if not shards or self.shards[name] in shards]

    def stands(self) -> bool:
        """Say whether no job ends for the better part of a second, as it should be while the server does not serve."""
        time.sleep(0.1)
        for _ in range(3):  # what was on its way may arrive, on a busy machine even later
            before = self.ended().total()
            time.sleep(0.6)
            if self.ended().total() == before:
                return True
        return False

    def forget(self, seconds: float = 1e9, *, shards: Collection[str] = ()) -> None:
        """Expect nothing of the jobs enqueued in these seconds before the first error, or before now, and since then.

        The server has lost what it knew of them: of all, or of those in some shards.
        """
        since = (self.failed_at or time.monotonic()) - seconds
        with self._calls:
            lost = [name for name in self._after(0, shards) if self.sure[name] > since]
            self.forgotten.update(lost, self.unsure)

    def settle(self, *, within: float = MOST, beside: Collection[str] = ()) -> None:
        """End the calls; each job that was promised is done, none twice, none that is neither known nor ``beside``."""
        self.__exit__()
        promised = self.sure.keys() - self.forgotten
        try:
            wait_for(lambda: promised <= self.ended().keys(), timeout=within)
        except AssertionError as error:
            since = self.failed_at or 0.0
            missing = {name: round(self.sure[name] - since, 3) for name in promised - self.ended().keys()}
            error.add_note(f"Jobs that did not end, enqueued at these seconds from the first error: {missing}")
            raise
        assert {name for name, times in self.ended().items() if times > 1} <= self.forgotten
        assert self.ended().keys() <= {*self.sure, *self.unsure, *beside}
