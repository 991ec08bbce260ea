"""Gets work: whoever needs a job and finds none claims for all, and tells in the same call what was done."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.queues.claiming import Claimed
from redis_kit.queues.ended import Ended
from redis_kit.queues.flows import MOST_ENDED, lost
from redis_kit.queues.job import Job
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.board import Board
from redis_kit.queues.worker.order import Order
from redis_kit.queues.worker.pace import Pace
from redis_kit.queues.worker.patience import pause
from redis_kit.queues.worker.source import Source

logger = logging.getLogger("redis_kit.worker")
COMPLAIN = 60.0  # seconds between two log lines about the same queue
LATER = 1.0  # seconds
STALE = 0.03  # seconds for which a claimed job waits for a thread before it is given back, and a done one to be told


class Done(NamedTuple):
    """A job that is done: what the server is told, and who is told when that is recorded."""

    job: Job
    ended: Ended
    told: Callable[[], None] | None = None


class Fetcher:
    """What all threads of a worker share: jobs that are claimed, and jobs that are done.

    The thread that finds no claimed job asks the server, for all; the others wait for what it brings. Done jobs lie on
    the board until the server knows of them, so that they are not lost with the process.
    """

    def __init__(self, sources: Sequence[Source], *, board: Board, order: Order, on_empty: Callable[[], None]) -> None:
        self._sources, self._board, self._order = sources, board, order
        self._on_empty = on_empty
        lock = Lock()
        self._work, self._free, self._tick, self._fetched = (Condition(lock) for _ in range(4))
        self._inbox: deque[tuple[int, Job]] = deque()
        self._done: list[list[Done]] = [[] for _ in sources]
        self._pace, self._filled, self._rings, self._untold = Pace(), 0.0, inf, inf
        self._alarm, self._waiting, self.threads = 0.0, 0, 0
        self._fetching = self._quiet = self._stopped = self._empty = False
        self._failures: Counter[int] = Counter()
        self._shut = [0.0] * len(sources)  # until when a queue that failed is left alone
        self._complained: dict[str, float] = {}
        self._later: list[Callable[[], None]] = []

    def next(self) -> tuple[int, Job] | None:
        """Return a job and the number of its source, waiting for one; None when the worker stops."""
        while True:
            with self._work:
                while not self._inbox:
                    if self._may_fetch():
                        self._fetching = True
                        break
                    if self._stopped:
                        return None
                    self._wait()
                else:
                    found = self._inbox.popleft()
                    if not self._inbox and any(self._done):
                        self._remind(STALE)  # it may be long until a thread asks again
                    return found
            self._fetch(claim=True)

    def over(self, done: Done) -> None:
        """Take in a job that is done. The server is told soon: with the next claim."""
        with self._work:
            self._done[done.ended.source].append(done)
            noted = self._board.note(done.ended.pack())
            failpoints.reach("noted")
        if not noted:
            self.flush()

    def later(self, call: Callable[[], None]) -> None:
        """Make a call that did not succeed again, in a second or with the next fetch."""
        with self._work:
            self._later.append(call)
            self._ring(monotonic() + LATER)

    def flush(self) -> None:
        """Tell the server what is done. One round trip for each queue."""
        with self._work:
            while self._fetching:
                self._fetched.wait()
            self._fetching = True
        self._fetch(claim=False)

    def wake(self, seconds: float = 0.0) -> None:
        """Ask the server in so many seconds, unless that is to happen before."""
        with self._work:
            self._ring(monotonic() + seconds)

    def wait_free(self) -> bool:
        """Return when a thread has nothing to do; False when the worker stops."""
        with self._free:
            self._free.wait_for(lambda: self._stopped or self.free)
            return not self._stopped

    @property
    def free(self) -> bool:
        """Tell whether a thread waits for a job."""
        return self._waiting > 0 and not (self._quiet or self._stopped)

    def quiet(self) -> None:
        """Claim no more, and give back what was not begun."""
        self._quiet = True
        self.give_back()

    def stop(self) -> None:
        """Do the same, and end the threads when they are done."""
        with self._work:
            self._stopped = True
            for condition in (self._work, self._free, self._tick):
                condition.notify_all()
        self.give_back()

    def watch(self) -> None:
        """Ring when a scheduled job is due, and give back what waits for too long, until the worker stops."""
        while not self._stopped:
            with self._tick:
                self._tick.wait(self._until())
                now = monotonic()
                if self._alarm <= now and self._waiting:
                    self._work.notify()
                stale = bool(self._inbox) and now - self._filled > STALE
                late = self._untold <= now
            if stale:
                self._pace.slow_down()
                self.wake()
                self.give_back()
            if stale or late:
                self.flush()

    def give_back(self) -> None:
        """Give back the jobs that no thread has begun."""
        with self._work:
            waiting = list(self._inbox)
            self._inbox.clear()
        for number in range(len(self._sources)):
            if jobs := [job for index, job in waiting if index == number]:
                self._return(number, jobs)

    def _return(self, number: int, jobs: list[Job], *, sure: bool = True) -> None:
        """Give jobs back. Where an answer was lost they may be another's by now: only the same call can follow."""
        source = self._sources[number]
        try:
            source.release(jobs)
        except RedisFailure as error:
            logger.debug("Queue %a: %d jobs could not be given back: %s", source.name, len(jobs), error)
            if sure and not getattr(error, "indeterminate", False):
                with self._work:
                    if not self._stopped:
                        self._inbox.extend((number, job) for job in jobs)
            elif not self._stopped:
                self.later(partial(self._return, number, jobs, sure=False))

    def _fetch(self, *, claim: bool) -> None:
        with self._work:
            claim = claim and not (self._quiet or self._stopped)
            taken, self._done = self._done, [[] for _ in self._sources]
            later, self._later = self._later, []
            self._untold = inf
            self._board.turn()
            if claim:
                self._alarm = inf
            room = self._pace.room(self._waiting + 1, monotonic()) if claim else 0
        told: list[Done] = []
        try:
            if any(taken):
                failpoints.reach("before_exchange")
            told = self._exchange(taken, room)
            if told:
                failpoints.reach("exchanged")
            if not +self._failures:
                self._board.forget()
        finally:
            with self._work:
                self._fetching = False
                self._fetched.notify()
                self._work.notify(max(1, len(self._inbox)))
                unwanted = bool(self._inbox) and (self._quiet or self._stopped)
        if unwanted:
            self.give_back()
        for done in told:
            if done.told:
                done.told()
        for call in later:
            call()

    def _may_fetch(self) -> bool:
        if self._fetching:
            return False
        now = monotonic()
        if any(done and shut <= now for done, shut in zip(self._done, self._shut, strict=True)):
            return True
        return self._alarm <= now and not (self._quiet or self._stopped)

    def _wait(self) -> None:
        self._waiting += 1
        if self._empty and self._waiting == self.threads and self._alarm > monotonic():
            self._on_empty()
        self._free.notify_all()
        self._work.wait()
        self._waiting -= 1

    def _ring(self, at: float) -> None:
        self._alarm = min(self._alarm, at)
        if at <= monotonic():
            self._work.notify()
        elif at < self._rings:
            self._tick.notify()

    def _remind(self, seconds: float) -> None:
        self._untold = min(self._untold, monotonic() + seconds)
        if self._untold < self._rings:
            self._tick.notify()

    def _until(self) -> float | None:
        """Return for how long nothing has to be watched; None: until somebody says so."""
        now = monotonic()
        ends = [self._filled + STALE] if self._inbox else []
        if now < self._alarm < inf:
            ends.append(self._alarm)
        self._rings = min([*ends, self._untold])
        return None if self._rings == inf else max(0.0, self._rings - now) + 0.0002

    def _exchange(self, taken: list[list[Done]], room: int) -> list[Done]:
        told, claimed, asked = [], 0, room > 0
        for number in self._order.numbers():
            if self._shut[number] > monotonic():
                self._keep(number, taken[number])
            elif room or taken[number]:
                count, recorded = self._exchange_one(number, room, taken[number])
                told += recorded
                room -= count
                claimed += count
            elif asked:
                self.wake()  # its turn comes when there is room again
        if claimed:
            self._pace.claimed(claimed, monotonic())
        if asked:
            self._empty = not claimed and not +self._failures
        return told

    def _exchange_one(self, number: int, room: int, done: list[Done]) -> tuple[int, list[Done]]:
        """Return how many jobs came from a queue, and which of the done ones it has recorded."""
        source, recorded, came = self._sources[number], [], 0
        for start in range(0, max(1, len(done)), MOST_ENDED):
            batch = done[start : start + MOST_ENDED]
            try:
                found = source.exchange(room, [one.ended for one in batch])
            except Exception as error:
                self._put_off(number, error)
                self._keep(number, done[start:])
                break
            if found.jobs:
                failpoints.reach("claimed")
            self._failures[number] = 0
            self._take_in(number, found, asked=room > 0)
            recorded += [one for at, one in enumerate(batch) if at not in found.lost]
            for at in found.lost:
                logger.warning("An outcome could not be recorded: %s", lost(source, [batch[at].job]))
            came, room = came + len(found.jobs), 0
        return came, recorded

    def _take_in(self, number: int, found: Claimed, *, asked: bool) -> None:
        with self._work:
            if found.jobs:
                self._inbox.extend((number, job) for job in found.jobs)
                self._filled = monotonic()
                if len(self._inbox) > self._waiting + 1 and self._rings > self._filled + STALE:
                    self._tick.notify()
            if found.next is not None and asked:
                self._ring(monotonic() + found.next)

    def _keep(self, number: int, done: list[Done]) -> None:
        with self._work:
            self._done[number][:0] = done
            self._ring(self._shut[number])
            if done:
                self._remind(self._shut[number] - monotonic() + STALE)

    def _put_off(self, number: int, error: Exception) -> None:
        name = self._sources[number].name
        with self._work:
            self._shut[number] = monotonic() + pause(self._failures[number])
        self._failures[number] += 1
        if not isinstance(error, RedisUnavailable) and monotonic() > self._complained.get(name, 0):
            self._complained[name] = monotonic() + COMPLAIN
            unforeseen = None if isinstance(error, RedisFailure) else error
            logger.error("Queue %a can't be read: %s", name, error, exc_info=unforeseen)
