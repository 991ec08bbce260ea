"""Claimed jobs that no thread has begun, the threads that wait for one, and the timer of their wake-ups."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from math import inf
from threading import Condition, Lock
from time import monotonic
from typing import NamedTuple

from redis_kit.queues.engine.job import Job

ClaimedJob = tuple[int, Job]  # the number of its queue comes first
LIMIT = 0.03  # seconds: how long a claimed job, an acknowledgement or a wake-up may wait
RECENT = 0.1  # seconds after a claim in which the watch wakes every LIMIT
NOW, NEVER = 0.0, inf  # moments on the monotonic clock


class ClaimedJobs:
    """A claimed job waits here, is in the hand of one thread, or is being returned to its queue.

    ``lock`` guards all of it; methods marked "needs the lock" are called while it is held. One idle thread is woken at
    a time, and wakes the next one while there is more to do: threads that can't run yet only cost time.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.idle = threads, 0
        self.lock = Lock()
        self.thread_is_free = Condition(self.lock)
        self.jobs: deque[ClaimedJob] = deque()
        self.since = 0.0  # when the last jobs came, on the monotonic clock
        self.returning = 0  # calls under way that return jobs to their queues
        self.quiet = self.stopped = False
        self._work = Condition(self.lock)
        self.in_hand: dict[int, list[ClaimedJob]] = {}  # by thread, until that asks for the next job
        self._waking = False

    @property
    def closed(self) -> bool:
        """Tell whether no more jobs are wanted."""
        return self.quiet or self.stopped

    @property
    def free(self) -> bool:
        """Tell whether a thread waits for a job."""
        return self.idle > 0 and not (self.quiet or self.stopped)

    def take(self, slot: int) -> ClaimedJob | None:
        """Return the next job for a thread, None if there is none. Needs the lock."""
        if self.jobs:
            job = self.jobs.popleft()
            self.in_hand[slot] = [job]
            return job
        self.in_hand.pop(slot, None)
        return None

    def wait(self) -> None:
        """Wait as an idle thread until there may be something to do. Needs the lock."""
        self.idle += 1
        self.thread_is_free.notify_all()
        self._work.wait()
        self.idle -= 1
        self._waking = False

    def wake(self) -> None:
        """Wake an idle thread, unless one is about to wake. Needs the lock."""
        if self.idle and not self._waking:
            self._waking = True
            self._work.notify()

    def wake_another(self) -> None:
        """Wake an idle thread, even if one is about to wake."""
        with self.lock:
            self._work.notify()

    def add(self, number: int, jobs: Iterable[Job], *, delay: float = 0.0) -> None:
        """Add jobs of a queue. They count as waiting from ``delay`` seconds on. Needs the lock."""
        self.jobs.extend(zip(repeat(number), jobs))
        self.since = monotonic() + delay
        self.wake()

    def take_all(self, queue: int | None = None) -> list[ClaimedJob]:
        """Remove and return all jobs, or those of one queue, that no thread has begun.

        Until returned() they count as on their way back.
        """
        with self.lock:
            self.returning += 1
            jobs = [job for job in self.jobs if queue in (None, job[0])]
            if jobs:
                left = [job for job in self.jobs if queue not in (None, job[0])]
                self.jobs.clear()
                self.jobs.extend(left)
        return jobs

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """Give a thread that has a job the next ones too, if they are of this queue."""
        jobs: list[Job] = []
        with self.lock:
            while self.jobs and self.jobs[0][0] == number and len(jobs) < limit:
                self.in_hand[slot].append(self.jobs[0])
                jobs.append(self.jobs.popleft()[1])
        return jobs

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """Take jobs back that take_more() gave last. They come first."""
        if jobs:
            with self.lock:
                del self.in_hand[slot][-len(jobs) :]
                self.jobs.extendleft([(number, job) for job in reversed(jobs)])
                self.wake()

    def returned(self) -> None:
        """Note that what take_all() gave is back in its queues."""
        with self.lock:
            self.returning -= 1

    def held(self) -> list[Job]:
        """Return the jobs that wait or that threads have in hand."""
        with self.lock:
            return [job for _, job in (*self.jobs, *chain.from_iterable(self.in_hand.values()))]

    def stop(self) -> None:
        """Let all threads end once no job is left."""
        with self.lock:
            self.stopped = True
            self._work.notify_all()
            self.thread_is_free.notify_all()


class Due(NamedTuple):
    """The work that is due: a claim, acknowledgements, jobs that wait too long, queues with a neglected wake-up."""

    claim: bool
    flush: bool
    stale: bool
    neglected: list[int]


class Watchdog:
    """A wake-up is acted on, or passed on to another worker, within 30 ms.

    All moments are guarded by one lock, under which no other one is taken. ``claim_at`` says when the server is next to
    be asked for jobs.
    """

    def __init__(self, queues: int) -> None:
        self._changed = Condition(Lock())
        self.claim_at = NOW
        self._flush_at = self._wakes_at = NEVER
        self._wanted_at = [NEVER] * queues  # when each queue is to be asked, as far as only this worker may know

    def claim_by(self, at: float) -> bool:
        """Have the server asked at this moment at the latest. True if that is now, so a thread must be woken."""
        with self._changed:
            if at <= monotonic():
                self.claim_at = NOW
                return True
            self.claim_at = min(self.claim_at, at)
            self._wake_by(at)
            return False

    def flush_by(self, at: float) -> None:
        """Have the server told what is done, at this moment at the latest."""
        with self._changed:
            self._flush_at = min(self._flush_at, at)
            self._wake_by(at)

    def want(self, number: int, at: float) -> None:
        """Note that a queue is to be asked from this moment on, and that other workers may not know."""
        with self._changed:
            self._wanted_at[number] = min(self._wanted_at[number], at)

    def asks(self, number: int) -> None:
        """Note that a queue is about to be asked: its answer says when to ask again."""
        with self._changed:
            self._wanted_at[number] = NEVER

    def begins(self, *, claim: bool) -> None:
        """Note that an exchange begins. Later requests need another one."""
        with self._changed:
            self._flush_at = NEVER
            if claim:
                self.claim_at = NEVER

    def ended(self) -> None:
        """Note that an exchange has ended: what it left undone is watched from now on."""
        with self._changed:
            self._wake_by(min(self._wanted_at) + LIMIT)

    def came(self, at: float) -> None:
        """Note that jobs which may have to wait for a thread came at this moment."""
        with self._changed:
            self._wake_by(at + LIMIT)

    def look(self) -> None:
        """Look again at what is due."""
        with self._changed:
            self._changed.notify()

    def wait(self, claimed: ClaimedJobs) -> Due:
        """Wait until something is due, or look() is called. A wake-up that is neglected is returned once."""
        with self._changed:
            self._changed.wait(self._seconds(claimed))
            now = monotonic()
            neglected = [number for number, at in enumerate(self._wanted_at) if at <= now - LIMIT]
            for number in neglected:
                self._wanted_at[number] = NEVER
            stale = bool(claimed.jobs) and now - claimed.since > LIMIT
            return Due(self.claim_at <= now, self._flush_at <= now, stale, neglected)

    def _wake_by(self, at: float) -> None:
        if at < self._wakes_at:
            self._changed.notify()

    def _seconds(self, claimed: ClaimedJobs) -> float | None:
        """Return the seconds until something can become due; None if nothing is planned."""
        if claimed.stopped:
            return 0.0
        now = monotonic()
        ends = [claimed.since + LIMIT] if claimed.jobs else []
        if now - claimed.since < RECENT:
            ends.append(now + LIMIT)  # saves a wake-up of this thread with each batch
        if now < self.claim_at < NEVER:
            ends.append(self.claim_at)
        self._wakes_at = min([*ends, self._flush_at, min(self._wanted_at) + LIMIT])
        return None if self._wakes_at == NEVER else max(0.0, self._wakes_at - now) + 0.0002
