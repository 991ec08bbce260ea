"""Claimed jobs that no thread has begun, and the threads that wait for one."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from threading import Condition, Lock
from time import monotonic

from redis_kit.queues.jobs.job import Job

ClaimedJob = tuple[int, Job]  # the number of its queue comes first


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
        self.jobs.extend([(number, job) for job in jobs])
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
