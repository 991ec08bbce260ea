"""Gets work for all threads: the one that finds no job asks the server, and tells it in the same call what is done.

Each exchange with the server acknowledges what is done and claims more jobs, one queue after the other.
"""

import logging
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, count, repeat
from math import inf
from threading import Condition, Event, Lock
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import counted
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.claim import MOST_ACKS, Claimed, lost
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import UNAVAILABLE, guarded, pause
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Claims, Done, WorkerQueue

ClaimedJob = tuple[int, Job]  # the number of its queue comes first
logger = logging.getLogger("redis_kit.worker")
NOW, NEVER = 0.0, inf  # moments on the monotonic clock
LIMIT = 0.03  # seconds: how long a claimed job, an acknowledgement or a wake-up may wait
RECENT = 0.1  # seconds after a claim in which the watch wakes every LIMIT
RETRY = 1.0  # seconds until a call that failed is made again
AHEAD = 0.01  # seconds of work that is claimed beyond the free threads
MOST = 100  # jobs: the server must not be held for long
GROWTH = 4
STAY = 0.1  # seconds for which a shard comes first: one call acknowledges its jobs and claims others there


class Rotation:
    """Strict: the first queue that has jobs. By weight: each queue comes first as often as its weight says.

    ``shards`` is how many each queue has. One of them, chosen at random, comes first for a tenth of a second.
    """

    def __init__(self, shards: Sequence[int], weights: Sequence[int] | None = None) -> None:
        self._weights = weights
        self._queues = range(len(shards))
        self._shards = [range(end - count, end) for end, count in zip(accumulate(shards), shards, strict=True)]
        self._is_sharded = max(shards) > 1
        self._first, self._until = 0.0, 0.0

    def numbers(self) -> Sequence[int]:
        """Return the numbers of all shards, in the order of this time. Those of a queue follow each other."""
        queues = self._ordered()
        if not self._is_sharded:
            return queues
        if monotonic() > self._until:
            self._first, self._until = random.random(), monotonic() + STAY  # noqa: S311 -- spreads load
        turned = []
        for shards in map(self._shards.__getitem__, queues):
            at = int(self._first * len(shards))
            turned += [*shards[at:], *shards[:at]]
        return turned

    def _ordered(self) -> Sequence[int]:
        if self._weights is None:
            return self._queues
        # Each queue has a random wait, shorter for heavier queues, and the shortest comes first: Efraimidis and
        # Spirakis, "Weighted random sampling with a reservoir" (2006).
        waits = [random.expovariate(weight) for weight in self._weights]
        return sorted(self._queues, key=waits.__getitem__)


class QueueState:
    """What the fetcher knows of one queue. Moments are on the monotonic clock."""

    def __init__(self, queue: WorkerQueue) -> None:
        self.queue = queue
        self.done: list[Done] = []  # what the server has not recorded yet
        self.failures = 0  # of the last calls, one after the other
        self.retry_at = NOW  # until then it is left alone
        self.closed_until = NOW  # no jobs are claimed before: the system that runs them is unavailable
        self.wanted_at = NEVER  # when it is to be asked, as far as only this worker may know

    @property
    def closed(self) -> bool:
        """Tell whether its jobs are left where they are."""
        return self.closed_until > monotonic()


class ClaimedJobs:
    """A claimed job waits here, is in the hand of one thread, or is being returned to its queue.

    All of it needs the lock, which is the fetcher's. One idle thread is woken at a time, and wakes the next one while
    there is more to do: threads that can't run yet only cost time.
    """

    def __init__(self, lock: Lock, threads: int) -> None:
        self.threads, self.idle = threads, 0
        self.thread_is_free = Condition(lock)
        self.jobs: deque[ClaimedJob] = deque()  # that no thread has begun
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

    def take_all(self, queue: int) -> list[Job]:
        """Remove and return all jobs of a queue that no thread has begun."""
        jobs = [job for number, job in self.jobs if number == queue]
        if jobs:
            self.jobs = deque(item for item in self.jobs if item[0] != queue)
        return jobs

    def stop(self) -> None:
        """Let all threads end once no job is left."""
        self.stopped = True
        self._work.notify_all()
        self.thread_is_free.notify_all()


class Prefetch:
    """Claims, beyond the free threads, as many jobs as were done in 10 ms of the last batch: none if jobs are long."""

    def __init__(self) -> None:
        self._ahead, self._claimed, self._since = 0, 0, 0.0

    def room(self, free: int, now: float) -> int:
        """Return how many jobs to claim for ``free`` threads, when all jobs of the last claim have begun."""
        if self._claimed:
            done = int(self._claimed / max(now - self._since, 1e-6) * AHEAD)
            self._ahead = min(done, MOST, GROWTH * (self._ahead + 1))
        return free + self._ahead

    def claimed(self, count: int, now: float) -> None:
        """Note how many jobs came."""
        self._claimed, self._since = count, now

    def slow_down(self) -> None:
        """Claim for free threads only: jobs had to wait."""
        self._ahead, self._claimed = 0, 0


class Fetcher(Claims):
    """Gets jobs for the threads of a process, and tells the server what is done.

    One lock guards all state; methods marked "needs the lock" are called while it is held. At most one thread makes an
    exchange at a time: it holds ``turn``, and takes the lock for moments. A job that is done is on the status board
    until the server knows: a supervisor finds it there after a SIGKILL. A wake-up is acted on, or passed on to another
    worker, within 30 ms: the watch sees to that.
    """

    def __init__(
        self,
        queues: Sequence[WorkerQueue],
        *,
        threads: int,
        board: StatusBoard,
        rotation: Rotation,
        on_empty: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._queues = [QueueState(queue) for queue in queues]
        self._board, self._rotation, self._on_empty = board, rotation, on_empty
        self._lock, self._turn = Lock(), Lock()
        self._claimed = ClaimedJobs(self._lock, threads)
        self._calls: list[Callable[[], object]] = []  # those that failed and are to be made again
        self._timer = Condition(self._lock)  # for the watch
        self._claim_at = NOW  # when the server is next to be asked for jobs,
        self._flush_at = self._looks_at = NEVER  # when to be told what is done, and when the watch looks next
        self._prefetch = Prefetch()
        self._suspects: list[tuple[WorkerQueue, list[bytes]]] = []  # jobs that the supervisor asks about
        self._empty = False  # the last claim found that no job is ready
        self._returning = 0  # calls under way that return jobs to their queues
        self._log_limit = LogRateLimit()

    def next(self, slot: int = 0) -> ClaimedJob | None:
        """Return a job and the number of its queue, waiting for one; None when the worker stops."""
        claimed = self._claimed
        while True:
            with self._lock:
                while not (job := claimed.take(slot)):
                    if self._exchange_is_due() and self._turn.acquire(blocking=False):
                        break
                    if claimed.stopped:
                        return None
                    if self._on_empty and claimed.idle + 1 == claimed.threads and self._claim_at > monotonic():
                        if self._empty:
                            self._on_empty()
                        elif self._claim_at == NEVER:
                            self._claim_at = NOW  # the last outcomes went alone
                            continue
                    if claimed.closed:
                        self._plan_flush()
                    claimed.wait()
                else:
                    if claimed.jobs or self._claim_at <= monotonic():
                        claimed.wake()
                    if not claimed.jobs and any(state.done for state in self._queues):
                        self._flush_by(monotonic() + LIMIT)  # it may be long until a thread asks again
                    return job
            self._exchange(claim=True)

    def add_done(self, done: Done) -> None:
        """Take in a job that is done. The server is told soon, with the next claim."""
        with self._lock:
            self._queues[done.ended.source].done.append(done)
            noted = self._board.note(done.ended.pack())
            failpoints.reach("noted")
        if not noted:  # the board is full: the server must be told first
            self.flush()

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """See Claims."""
        jobs: list[Job] = []
        with self._lock:
            waiting = self._claimed.jobs
            while waiting and waiting[0][0] == number and len(jobs) < limit:
                self._claimed.in_hand[slot].append(waiting[0])
                jobs.append(waiting.popleft()[1])
        return jobs

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """See Claims. They come first."""
        if jobs:
            with self._lock:
                del self._claimed.in_hand[slot][-len(jobs) :]
                self._claimed.jobs.extendleft([(number, job) for job in reversed(jobs)])
                self._claimed.wake()

    def retry_later(self, call: Callable[[], object]) -> None:
        """See Claims. It is made in a second or after the next exchange."""
        with self._lock:
            self._calls.append(call)
            if self._claimed.closed:
                self._flush_by(monotonic() + RETRY)
            else:
                self._claim_by(monotonic() + RETRY)

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """See Claims. Others of their queue that no thread has begun are returned, too."""
        self._queues[number].closed_until = monotonic() + seconds
        self._return(number, list(jobs))
        self.give_back(number)
        self.wake(seconds)

    def flush(self) -> None:
        """Tell the server what is done. One round trip for each queue."""
        self._turn.acquire()
        self._exchange(claim=False)

    def flush_all(self) -> set[int]:
        """Do the same, also for queues that are left alone after a failure. Return those that are still to be told."""
        self._turn.acquire()
        for state in self._queues:
            state.retry_at = NOW
        self._exchange(claim=False)
        return {number for number, state in enumerate(self._queues) if state.done}

    def wake(self, seconds: float = 0.0) -> None:
        """Ask the server after this time at the latest."""
        with self._lock:
            self._claim_by(monotonic() + seconds)

    def take_wake_up(self, number: int) -> bool:
        """Act on a queue's wake-up. False if no thread is free: then it is for another worker."""
        with self._lock:
            if not self._claimed.free:
                return False
            state, now = self._queues[number], monotonic()
            state.wanted_at = min(state.wanted_at, now)
            self._claim_by(now)
            if self._claimed.jobs:
                self._timer.notify()  # the free thread may be for these
            return True

    def listen(self, number: int, stopping: Event) -> None:
        """Listen to a queue until the worker stops, while a thread is free: wake-ups are for idle workers."""
        queue, failures = self._queues[number].queue, count()
        while self.wait_free():
            try:
                if queue.listen() and not self.take_wake_up(number):
                    queue.pass_on()
                failures = count()
            except RedisFailure:
                stopping.wait(pause(next(failures)))

    def wait_free(self) -> bool:
        """Return when a thread has nothing to do and knows of nothing; False when the worker stops."""
        with self._lock:
            self._claimed.thread_is_free.wait_for(self._may_listen)
            return not self._claimed.stopped

    def quiet(self) -> None:
        """Claim no more, and return what was not begun to its queues."""
        with self._lock:
            self._claimed.quiet = True
            if self._calls:
                self._flush_by(monotonic() + RETRY)  # they waited for the next claim
            self._timer.notify()  # wake-ups are passed on to other workers
        self.give_back()

    def resume(self) -> None:
        """Claim jobs after quiet()."""
        with self._lock:
            self._claimed.quiet = False
            self._claim_by(NOW)
            self._claimed.thread_is_free.notify_all()

    def stop(self) -> None:
        """Claim no more, return what was not begun to its queues, and end the threads when they are done."""
        with self._lock:
            self._claimed.stop()
            self._timer.notify()
        self.give_back()

    def watch(self) -> None:
        """See to what waits for too long until the worker stops: claims that are due, jobs, wake-ups, what is done."""
        while not self._claimed.stopped:
            with self._lock:
                self._timer.wait(self._seconds())
                now = monotonic()
                neglected = [state for state in self._queues if state.wanted_at <= now - LIMIT]
                for state in neglected:
                    state.wanted_at = NEVER
                if self._claim_at <= now:
                    self._claimed.wake()  # before what follows, which may take long
                is_stale = bool(self._claimed.jobs) and now - self._claimed.since > LIMIT
                flush_is_due = self._flush_at <= now
            for state in neglected:
                with suppress(RedisFailure):
                    state.queue.pass_on()
            if is_stale:
                self._prefetch.slow_down()
                self.give_back()
                self.wake()
            if is_stale or flush_is_due:
                self.flush()

    def give_back(self, queue: int | None = None) -> None:
        """Return the jobs that no thread has begun, or those of one queue. One round trip for each queue."""
        numbers = range(len(self._queues)) if queue is None else [queue]
        with self._lock:
            self._returning += 1
            waiting = [(number, self._claimed.take_all(number)) for number in numbers]
        try:
            for number, jobs in waiting:
                if jobs:
                    self._return(number, jobs)
        finally:
            with self._lock:
                self._returning -= 1

    def reconcile(self, number: int, members: Sequence[str]) -> None:
        """Reconcile these claims with the jobs of this process, in the next exchange.

        Nothing depends on it: the next heartbeat asks again.
        """
        suspects = [member.encode("utf-8", "surrogateescape") for member in members]
        with self._lock:
            self._suspects.append((self._queues[number].queue, suspects))
            self._flush_by(NOW)

    def _exchange_is_due(self) -> bool:
        """Needs the lock."""
        now = monotonic()
        if self._claim_at <= now and not self._claimed.closed:
            return True
        return any(state.done and state.retry_at <= now for state in self._queues)

    def _may_listen(self) -> bool:
        """Needs the lock."""
        if self._claimed.stopped:
            return True
        return self._claimed.free and self._claim_at > monotonic() and not self._turn.locked()

    def _claim_by(self, at: float) -> None:
        """Have the server asked at this moment at the latest. Needs the lock."""
        self._claim_at = min(self._claim_at, at)
        if at <= monotonic():
            self._claimed.wake()
        else:
            self._look_by(at)

    def _flush_by(self, at: float) -> None:
        """Have the server told what is done, at this moment at the latest. Needs the lock."""
        self._flush_at = min(self._flush_at, at)
        self._look_by(at)

    def _plan_flush(self) -> None:
        """Have what is done sent as soon as its queue may be asked: no claim will do that. Needs the lock."""
        if times := [state.retry_at for state in self._queues if state.done]:
            self._flush_by(min(times) + LIMIT)

    def _look_by(self, at: float) -> None:
        """Have the watch look at this moment at the latest. Needs the lock."""
        if at < self._looks_at:
            self._timer.notify()

    def _seconds(self) -> float | None:
        """Return the seconds until something can become due; None if nothing is planned. Needs the lock.

        For a claim that is due now it wakes a thread: one that got due while the watch was busy would be forgotten.
        """
        if self._claimed.stopped:
            return 0.0
        now, since = monotonic(), self._claimed.since
        moments = [self._flush_at, *(state.wanted_at + LIMIT for state in self._queues)]
        if self._claimed.jobs:
            moments.append(since + LIMIT)
        if now - since < RECENT:
            moments.append(now + LIMIT)  # saves a wake-up of this thread with each batch
        if self._claim_at > now:
            moments.append(self._claim_at)
        else:
            self._claimed.wake()
        self._looks_at = min(moments)
        return None if self._looks_at == NEVER else max(0.0, self._looks_at - now) + 0.0002

    def _exchange(self, *, claim: bool) -> None:
        """Make an exchange. This thread holds the turn for it, which ends here."""
        recorded: list[Done] = []
        calls: list[Callable[[], object]] = []
        try:
            with self._lock:  # what is added after this needs another exchange
                room = 0
                if claim and not self._claimed.closed:
                    self._claim_at = NEVER
                    room = self._prefetch.room(self._claimed.idle + 1, monotonic())
                self._flush_at = NEVER
                done = [state.done for state in self._queues]
                for state in self._queues:
                    state.done = []
                calls, self._calls = self._calls, []
                self._board.turn()
            if any(done):
                failpoints.reach("before_exchange")
            recorded = self._ask(done, room)
            if recorded:
                failpoints.reach("exchanged")
            self._reconcile()
            if not self._failing:
                self._board.forget()
        finally:
            self._turn.release()
            with self._lock:
                self._claimed.wake()
                if self._claim_at > monotonic():
                    self._claimed.thread_is_free.notify_all()
                unwanted = bool(self._claimed.jobs) and self._claimed.closed
                self._look_by(min(state.wanted_at for state in self._queues) + LIMIT)  # what this left undone
        if unwanted:
            self.give_back()
        for call in [*(item.announce for item in recorded if item.announce), *calls]:
            guarded("A call after an exchange", call, None)

    @property
    def _failing(self) -> bool:
        """Tell whether a queue did not answer the last time."""
        return any(state.failures for state in self._queues)

    def _ask(self, done: Sequence[list[Done]], room: int) -> list[Done]:
        """Tell each queue what is done, and claim as many jobs as there is room for. Return what was recorded."""
        recorded: list[Done] = []
        left = room
        for number in self._rotation.numbers():
            state, closed = self._queues[number], self._queues[number].closed
            if state.retry_at > monotonic():
                self._keep(state, done[number])
                continue
            limit = 0 if closed else left
            if limit or done[number]:
                records, count = self._ask_queue(number, limit, done[number])
                recorded += records
                left -= count
            elif room and not closed:
                self.wake()  # its turn comes when there is room again
            if closed:
                with self._lock:
                    state.wanted_at = NEVER  # it is not neglected
                    self._claim_by(state.closed_until)
        if left < room:
            self._prefetch.claimed(room - left, monotonic())
        if room:
            closed = any(state.closed for state in self._queues)
            self._empty = left == room and not (closed or self._failing or self._returning)
        return recorded

    def _ask_queue(self, number: int, room: int, done: list[Done]) -> tuple[list[Done], int]:
        """Tell a queue what is done, and claim jobs. Return what was recorded, and how many jobs came."""
        state, recorded, count = self._queues[number], [], 0
        for start in range(0, max(1, len(done)), MOST_ACKS):
            batch = done[start : start + MOST_ACKS]
            if room:
                with self._lock:
                    state.wanted_at = NEVER  # its answer says when to ask again
            try:
                claimed = state.queue.exchange(room, [item.ended for item in batch])
            except BaseException as error:  # what is done is kept, whatever it was
                self._note_failure(state, error)
                self._keep(state, done[start:])
                break
            if claimed.jobs:
                failpoints.reach("claimed")
            state.failures = 0
            records = [item for at, item in enumerate(batch) if at not in claimed.lost] if claimed.lost else batch
            if records:
                self.recent.add([item.again or item.ended for item in records])
            recorded += records
            count += len(claimed.jobs)
            self._take_in(number, room, claimed)
            for at in claimed.lost:
                logger.warning("An outcome could not be recorded: %s", lost(state.queue, [batch[at].job]))
            room = 0
        return recorded, count

    def _take_in(self, number: int, room: int, claimed: Claimed) -> None:
        state, (jobs, seconds, _) = self._queues[number], claimed
        with self._lock:
            if jobs:
                self._claimed.add(number, jobs)
                if len(self._claimed.jobs) > self._claimed.idle + 1:
                    self._look_by(self._claimed.since + LIMIT)
            if seconds is not None and room:
                at = monotonic() + seconds
                if seconds and len(jobs) < room:
                    state.wanted_at = min(state.wanted_at, at)  # else the server has left a wake-up for others
                self._claim_by(at)

    def _note_failure(self, state: QueueState, error: BaseException) -> None:
        name = state.queue.name
        state.retry_at = monotonic() + pause(state.failures)
        state.failures += 1
        if not isinstance(error, UNAVAILABLE) and self._log_limit.allows(name):
            unforeseen = None if isinstance(error, RedisFailure) else error
            logger.error("Queue %a can't be read: %s", name, error, exc_info=unforeseen)

    def _keep(self, state: QueueState, done: list[Done]) -> None:
        """Ask a queue later, and tell it then what it has not recorded."""
        with self._lock:
            state.done[:0] = done
            self._claim_by(state.retry_at)
            if done:
                self._flush_by(state.retry_at + LIMIT)

    def _return(self, number: int, jobs: list[Job], *, certain: bool = True) -> None:
        """Return jobs to their queue. After a lost answer they may be another worker's: then only a repeat is safe."""
        queue = self._queues[number].queue
        try:
            queue.release(jobs)
        except RedisFailure as error:
            logger.debug("Queue %a: %d jobs could not be returned: %s", queue.name, len(jobs), error)
            if not certain or getattr(error, "indeterminate", False):
                self.retry_later(partial(self._return, number, jobs, certain=False))
                return
            with self._lock:
                if not self._claimed.stopped:
                    self._claimed.add(number, jobs, delay=RETRY)  # else the next try would follow at once
                    self._look_by(self._claimed.since + LIMIT)

    def _reconcile(self) -> None:
        """Record or return suspects that no thread has. Called during an exchange, so no other claim is on its way."""
        suspects, self._suspects = self._suspects, []
        for source, members in suspects:
            with self._lock:  # those that wait, that threads have in hand, or that are not yet acknowledged
                done = [item.job for state in self._queues for item in state.done]
                claimed = [job for _, job in chain(self._claimed.jobs, *self._claimed.in_hand.values())]
            held = set(map(member, [*claimed, *done]))
            # The next claim repeats one whose answer was lost. A quiet worker makes none.
            claims = set() if self._claimed.closed else claim.unanswered(source, source.worker)
            try:
                self._settle(source, [each for each in members if each not in held and _claim(each) not in claims])
            except RedisFailure as error:
                logger.debug("Queue %a: jobs held as running could not be reconciled: %s", source.name, error)
            except Exception:
                logger.exception("Queue %a: jobs held as running could not be reconciled.", source.name)

    def _settle(self, source: WorkerQueue, unknown: list[bytes]) -> None:
        """Record these jobs as done again, as far as that is remembered, and return the others to their queue."""
        remembered = self.recent.find(unknown)
        if ended := [ack for ack in remembered.values() if isinstance(ack, Ack)]:
            source.run_flow(claim.acknowledge(source, source.worker, ended))
        for ack in remembered.values():
            if not isinstance(ack, Ack):
                with suppress(LeaseLost):
                    ack.record()
        count = source.put_back([member for member in unknown if member not in remembered])
        if remembered:
            text = "Queue %a: the server had lost the outcomes of %s; recorded again."
            logger.warning(text, source.name, counted(len(remembered), "job"))
        if count:
            text = "Queue %a: the server held %s as running that no thread runs; ready again."
            logger.warning(text, source.name, counted(count, "job"))


def _claim(member: bytes) -> str:
    return member.split(b"/")[1].decode("utf-8", "replace") if member.count(b"/") > 1 else ""
