"""Gets work: whoever needs a job and finds none claims for all, and tells in the same call what was done."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from threading import Condition, Lock
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.jobs.job import Job, member
from redis_kit.queues.store.claim import Claimed
from redis_kit.queues.worker.fetch.exchange import Exchanger
from redis_kit.queues.worker.fetch.prefetch import Prefetch
from redis_kit.queues.worker.fetch.reconciliation import Reconciler
from redis_kit.queues.worker.fetch.returns import Returns
from redis_kit.queues.worker.fetch.rotation import Rotation
from redis_kit.queues.worker.fetch.watchdog import Duties
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done
from redis_kit.queues.worker.shared.logs import guarded
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

LATER = 1.0  # seconds
RECENT = 0.1  # seconds after a claim for which the watch looks every STALE seconds
STALE = 0.03  # seconds that a claimed job waits for a thread, a done one to be told, and a queue to be asked, at most


class Fetcher:
    """The claimed and the done jobs of all threads. A thread that finds no job asks the server for all of them."""

    def __init__(
        self, sources: Sequence[WorkerQueue], *, board: StatusBoard, order: Rotation, on_empty: Callable[[], None]
    ) -> None:
        self._sources, self._board, self._on_empty = sources, board, on_empty
        self._duties = Duties(len(sources))
        self._exchanger = Exchanger(sources, order, self._duties, self._take_in, self._keep, self.wake)
        self._returns = Returns(sources, keep=self._keep_claimed, later=self.later)
        self.recent = self._exchanger.recent
        self._reconciler = Reconciler(sources, self.recent, self._held)
        lock = Lock()
        self._work, self._free, self._tick, self._fetched = (Condition(lock) for _ in range(4))
        self._inbox: deque[tuple[int, Job]] = deque()
        self._hands: dict[int, tuple[int, Job] | None] = {}  # by thread, until that asks for the next one
        self._done: list[list[Done]] = [[] for _ in sources]
        self._pace, self._filled, self._rings, self._untold = Prefetch(), 0.0, inf, inf
        self._alarm, self._waiting, self.threads = 0.0, 0, 0
        self._fetching = self._roused = self._quiet = self._stopped = self._empty = False
        self._later: list[Callable[[], None]] = []

    def next(self, slot: int = 0) -> tuple[int, Job] | None:
        """Return a job and the number of its source, waiting for one; None when the worker stops."""
        while True:
            with self._work:
                self._hands[slot] = None
                while not self._inbox:
                    if self._may_fetch():
                        self._fetching = True
                        break
                    if self._stopped:
                        return None
                    self._wait()
                else:
                    found = self._hands[slot] = self._inbox.popleft()
                    if self._inbox or not self._alarm:
                        self._rouse()
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

    def heard(self, number: int) -> bool:
        """Take in a sign that a queue has work; False where no thread is free, and the sign another worker's."""
        with self._work:
            if not self.free:
                return False
            self._duties.take(number, monotonic())
            self._ring(0.0)
            if self._inbox:
                self._tick.notify()  # who is free may be for these
            return True

    def wait_free(self) -> bool:
        """Return when a thread has nothing to do and knows of nothing; False when the worker stops."""
        with self._free:
            self._free.wait_for(lambda: self._stopped or (self.free and self._alarm and not self._fetching))
            return not self._stopped

    @property
    def free(self) -> bool:
        """Tell whether a thread waits for a job."""
        return self._waiting > 0 and not (self._quiet or self._stopped)

    def quiet(self) -> None:
        """Claim no more, and give back what was not begun."""
        with self._work:
            self._quiet = True
            self._tick.notify()  # others are to do what it has heard of
        self.give_back()

    def work(self) -> None:
        """Claim again after quiet()."""
        with self._work:
            self._quiet = False
            self._ring(monotonic())
            self._free.notify_all()

    def stop(self) -> None:
        """Claim no more, give back what was not begun, and end the threads when they are done."""
        with self._work:
            self._stopped = True
            for condition in (self._work, self._free, self._tick):
                condition.notify_all()
        self.give_back()

    def watch(self) -> None:
        """Ring when a job is due, and give back or leave to others what waits for too long, until the worker stops."""
        while not self._stopped:
            with self._tick:
                self._tick.wait(self._until())
                now = monotonic()
                if self._alarm <= now and self._waiting:
                    self._work.notify()
                stale = bool(self._inbox) and now - self._filled > STALE
                late = self._untold <= now
                neglected = self._duties.neglected(now - STALE)
            for number in neglected:
                with suppress(RedisFailure):
                    self._sources[number].pass_on()
            if stale:
                self._pace.slow_down()
                self.give_back()
                self.wake()
            if stale or late:
                self.flush()

    def give_back(self) -> None:
        """Give back the jobs that no thread has begun."""
        with self._work:
            waiting, self._inbox = list(self._inbox), deque()
        self._returns.give_back(waiting)

    def reconcile(self, number: int, members: Sequence[str]) -> None:
        """Settle those of these claims that nobody here knows of."""
        with self._work:
            self._reconciler.ask(number, members)
            self._remind(0.0)

    def _held(self) -> set[bytes]:
        with self._work:
            jobs = [job for _, job in (*self._inbox, *filter(None, self._hands.values()))]
            return {member(job) for job in (*jobs, *(one.job for its in self._done for one in its))}

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
            self._reconciler.run()
            if not self._exchanger.failing:
                self._board.forget()
        finally:
            with self._work:
                self._fetching = False
                self._fetched.notify()
                self._rouse()
                if self._alarm:
                    self._free.notify_all()
                if self._duties.first() + STALE < self._rings:
                    self._tick.notify()
                unwanted = bool(self._inbox) and (self._quiet or self._stopped)
        if unwanted:
            self.give_back()
        for call in [*(done.told for done in told if done.told), *later]:
            guarded("What follows a call to the server", call, None)

    def _may_fetch(self) -> bool:
        now = monotonic()
        if self._fetching:
            return False
        if any(done and shut <= now for done, shut in zip(self._done, self._exchanger.shut, strict=True)):
            return True
        return self._alarm <= now and not (self._quiet or self._stopped)

    def _wait(self) -> None:
        self._waiting += 1
        if self._empty and self._waiting == self.threads and self._alarm > monotonic():
            self._on_empty()
        self._free.notify_all()
        self._work.wait()
        self._waiting -= 1
        self._roused = False

    def _rouse(self) -> None:
        """Wake a thread, unless one is about to wake: that one wakes the next. Threads that can't run yet only cost."""
        if self._waiting and not self._roused:
            self._roused = True
            self._work.notify()

    def _ring(self, at: float) -> None:
        if at <= monotonic():
            self._alarm = 0.0
            return self._rouse()
        self._alarm = min(self._alarm, at)
        if at < self._rings:
            self._tick.notify()

    def _remind(self, seconds: float) -> None:
        self._untold = min(self._untold, monotonic() + seconds)
        if self._untold < self._rings:
            self._tick.notify()

    def _until(self) -> float | None:
        """Return for how long nothing has to be watched; None: until somebody says so."""
        now = monotonic()
        ends = [self._filled + STALE] if self._inbox else []
        if now - self._filled < RECENT:
            ends.append(now + STALE)  # saves a wake-up of this thread with each batch
        if now < self._alarm < inf:
            ends.append(self._alarm)
        self._rings = min([*ends, self._untold, self._duties.first() + STALE])
        return None if self._rings == inf else max(0.0, self._rings - now) + 0.0002

    def _exchange(self, taken: list[list[Done]], room: int) -> list[Done]:
        told, claimed = self._exchanger.exchange(taken, room)
        if claimed:
            self._pace.claimed(claimed, monotonic())
        if room:
            self._empty = not (claimed or self._exchanger.failing or self._returns.under_way)
        return told

    def _take_in(self, number: int, found: Claimed, room: int) -> None:
        with self._work:
            if found.jobs:
                self._inbox.extend((number, job) for job in found.jobs)
                self._filled = monotonic()
                if len(self._inbox) > self._waiting + 1 and self._rings > self._filled + STALE:
                    self._tick.notify()
                self._rouse()
            if found.next is not None and room:
                at = monotonic() + found.next
                if found.next and len(found.jobs) < room:
                    self._duties.take(number, at)  # else the server has left a sign for others
                self._ring(at)

    def _keep_claimed(self, number: int, jobs: list[Job]) -> None:
        with self._work:
            self._inbox.extend((number, job) for job in jobs if not self._stopped)
            self._filled = monotonic() + LATER  # else the next try would follow at once
            self._rouse()

    def _keep(self, number: int, done: list[Done], until: float) -> None:
        with self._work:
            self._done[number][:0] = done
            self._ring(until)
            if done:
                self._remind(until - monotonic() + STALE)
