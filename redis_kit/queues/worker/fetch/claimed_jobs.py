"""Claimed jobs that no thread has begun, and the threads that wait for one."""

from collections import deque
from collections.abc import Iterable
from itertools import chain, repeat
from threading import Condition, Lock
from time import monotonic

from redis_kit.queues.engine.job import Job

ClaimedJob = tuple[int, Job]  # the number of its queue comes first


class ClaimedJobs:
    """A claimed job waits here, is in the hand of one thread, or is being returned to its queue.

    All of it needs the lock, which is the fetcher's. One idle thread is woken at a time, and wakes the next one while
    there is more to do: threads that can't run yet only cost time.
    """

    def __init__(self, lock: Lock, threads: int) -> None:
        self.threads, self.idle = threads, 0
        self.thread_is_free = Condition(lock)
        self.jobs: deque[ClaimedJob] = deque()
        self.since = 0.0  # when the last jobs came, on the monotonic clock
        self.in_hand: dict[int, list[ClaimedJob]] = {}  # by thread, until that asks for the next job
        self.quiet = self.stopped = False
        self._work = Condition(lock)
        self._waking = False

    @property
    def closed(self) -> bool:
        """Tell whether no more jobs are wanted."""
        return self.quiet or self.stopped

    @property
    def free(self) -> bool:
        """Tell whether a thread waits for a job."""
        return self.idle > 0 and not self.closed

    def take(self, slot: int) -> ClaimedJob | None:
        """Return the next job for a thread, None if there is none."""
        if self.jobs:
            job = self.jobs.popleft()
            self.in_hand[slot] = [job]
            return job
        self.in_hand.pop(slot, None)
        return None

    def wait(self) -> None:
        """Wait as an idle thread until there may be something to do."""
        self.idle += 1
        self.thread_is_free.notify_all()
        self._work.wait()
        self.idle -= 1
        self._waking = False

    def wake(self) -> None:
        """Wake an idle thread, unless one is about to wake."""
        if self.idle and not self._waking:
            self._waking = True
            self._work.notify()

    def add(self, number: int, jobs: Iterable[Job], *, delay: float = 0.0) -> None:
        """Add jobs of a queue. They count as waiting from ``delay`` seconds on."""
        self.jobs.extend(zip(repeat(number), jobs))
        self.since = monotonic() + delay
        self.wake()

    def take_all(self, queue: int | None) -> list[ClaimedJob]:
        """Remove and return all jobs, or those of one queue, that no thread has begun."""
        jobs = [job for job in self.jobs if queue in (None, job[0])]
        if jobs:
            left = [job for job in self.jobs if queue not in (None, job[0])]
            self.jobs.clear()
            self.jobs.extend(left)
        return jobs

    def held(self) -> list[Job]:
        """Return the jobs that wait or that threads have in hand."""
        return [job for _, job in (*self.jobs, *chain.from_iterable(self.in_hand.values()))]

    def stop(self) -> None:
        """Let all threads end once no job is left."""
        self.stopped = True
        self._work.notify_all()
        self.thread_is_free.notify_all()
