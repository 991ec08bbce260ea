"""Gets work for all threads: the one that finds no job asks the server, and tells it in the same call what is done.

Each exchange with the server acknowledges what is done and claims more jobs, one queue after the other.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, count
from threading import Event, Lock
from time import monotonic
from typing import NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.claim import MOST_ACKS, Claimed, lost
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.worker.fetch.claimed_jobs import LIMIT, NEVER, NOW, ClaimedJob, ClaimedJobs, Watchdog
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import counted, guarded
from redis_kit.queues.worker.shared.reconnect import UNAVAILABLE, pause
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import Done, RecentAcks, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
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
        return [number for queue in queues for number in self._turned(self._shards[queue])]

    def _ordered(self) -> Sequence[int]:
        if self._weights is None:
            return self._queues
        # Each queue has a random wait, shorter for heavier queues, and the shortest comes first: Efraimidis and
        # Spirakis, "Weighted random sampling with a reservoir" (2006).
        waits = [random.expovariate(weight) for weight in self._weights]
        return sorted(self._queues, key=waits.__getitem__)

    def _turned(self, shards: range) -> list[int]:
        at = int(self._first * len(shards))
        return [*shards[at:], *shards[:at]]


class Reply(NamedTuple):
    """The answer of one queue.

    ``claimed`` is its answer to a claim of ``room`` jobs. It is None if the queue was left alone or did not answer:
    then ``unsent`` is what it has yet to be told, and it is to be asked again at ``retry_at``.
    """

    number: int
    room: int = 0
    claimed: Claimed | None = None
    recorded: Sequence[Done] = ()
    unsent: Sequence[Done] = ()
    retry_at: float = NOW


class Exchanger:
    """At most one exchange at a time: the thread that makes it holds ``turn``.

    A queue that failed is left alone for a while: ``retry_at`` of its number. No jobs are claimed from a queue before
    ``closed_until``: the system that runs them is unavailable. ``recent`` has what was acknowledged.
    """

    def __init__(self, queues: Sequence[WorkerQueue], rotation: Rotation, watchdog: Watchdog) -> None:
        self._queues, self._rotation, self._watchdog = queues, rotation, watchdog
        self._failures: Counter[int] = Counter()
        self._log_limit = LogRateLimit()
        self.turn = Lock()
        self.recent = RecentAcks()
        self.retry_at = [NOW] * len(queues)
        self.closed_until = [NOW] * len(queues)

    @property
    def failing(self) -> bool:
        """Tell whether a queue did not answer the last time."""
        return bool(+self._failures)

    @property
    def closed(self) -> bool:
        """Tell whether jobs of a queue are left where they are."""
        return max(self.closed_until) > monotonic()

    def exchange(self, done: list[list[Done]], room: int) -> Iterator[Reply]:
        """Send what is done, and claim as many jobs as there is room for. Yields each answer as it comes."""
        claims = room > 0
        for number in self._rotation.numbers():
            if self.retry_at[number] > monotonic():
                yield Reply(number, unsent=done[number], retry_at=self.retry_at[number])
            elif self.closed_until[number] > monotonic():
                yield from self._leave(number, done[number])
            elif room or done[number]:
                for reply in self._ask(number, room, done[number]):
                    room -= len(reply.claimed.jobs) if reply.claimed else 0
                    yield reply
            elif claims:
                yield Reply(number)  # its turn comes when there is room again

    def _leave(self, number: int, done: list[Done]) -> Iterator[Reply]:
        """Acknowledge jobs of a queue, and claim none there until later."""
        self._watchdog.asks(number)  # it is not neglected
        if done:
            yield from self._ask(number, 0, done)
        yield Reply(number, retry_at=self.closed_until[number])

    def _ask(self, number: int, room: int, done: list[Done]) -> Iterator[Reply]:
        queue = self._queues[number]
        for start in range(0, max(1, len(done)), MOST_ACKS):
            batch = done[start : start + MOST_ACKS]
            if room:
                self._watchdog.asks(number)
            try:
                claimed = queue.exchange(room, [item.ended for item in batch])
            except BaseException as error:  # what is done is kept, whatever it was
                self._put_off(number, error)
                yield Reply(number, unsent=done[start:], retry_at=self.retry_at[number])
                return
            if claimed.jobs:
                failpoints.reach("claimed")
            self._failures[number] = 0
            recorded = [item for at, item in enumerate(batch) if at not in claimed.lost] if claimed.lost else batch
            if recorded:
                self.recent.add([item.again or item.ended for item in recorded])
            yield Reply(number, room, claimed, recorded)
            for at in claimed.lost:
                logger.warning("An outcome could not be recorded: %s", lost(queue, [batch[at].job]))
            room = 0

    def _put_off(self, number: int, error: BaseException) -> None:
        name = self._queues[number].name
        self.retry_at[number] = monotonic() + pause(self._failures[number])
        self._failures[number] += 1
        if not isinstance(error, UNAVAILABLE) and self._log_limit.allows(name):
            unforeseen = None if isinstance(error, RedisFailure) else error
            logger.error("Queue %a can't be read: %s", name, error, exc_info=unforeseen)


class Reconciler:
    """Reconciles jobs that the supervisor asks about. ``held`` returns those in hand or not yet acknowledged."""

    def __init__(self, sources: Sequence[WorkerQueue], recent: RecentAcks, held: Callable[[], set[bytes]]) -> None:
        self._sources, self._recent, self._held = sources, recent, held
        self._asked: list[tuple[int, list[bytes]]] = []

    def ask(self, number: int, members: Sequence[str]) -> None:
        """Check these with the next exchange. Nothing depends on it: the next heartbeat asks again."""
        self._asked.append((number, [member.encode("utf-8", "surrogateescape") for member in members]))

    def run(self) -> None:
        """Record or return what no thread has. Called during an exchange, so no other claim is on its way."""
        asked, self._asked = self._asked, []
        for number, members in asked:
            source, held = self._sources[number], self._held()
            claims = claim.unanswered(source, source.worker)
            unknown = [member for member in members if member not in held and _claim(member) not in claims]
            try:
                _settle(source, self._recent, unknown)
            except RedisFailure as error:
                logger.debug("Queue %a: jobs held as running could not be reconciled: %s", source.name, error)
            except Exception:
                logger.exception("Queue %a: jobs held as running could not be reconciled.", source.name)


def _settle(source: WorkerQueue, recent: RecentAcks, unknown: list[bytes]) -> None:
    remembered = recent.find(unknown)
    if ended := [ack for ack in remembered.values() if isinstance(ack, Ack)]:
        source.end(ended)
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


class DoneJobs:
    """A job that is done is on the status board until the server knows: a supervisor finds it there after a SIGKILL.

    Calls that failed and are to be made again lie here too. The lock keeps the lists and the board in step.
    """

    def __init__(self, queues: int, board: StatusBoard) -> None:
        self._board, self._lock = board, Lock()
        self.done: list[list[Done]] = [[] for _ in range(queues)]  # by the number of the queue
        self.calls: list[Callable[[], None]] = []

    def add(self, done: Done) -> bool:
        """Add a job that is done. False if the board is full: then the server must be told first."""
        with self._lock:
            self.done[done.ended.source].append(done)
            noted = self._board.note(done.ended.pack())
            failpoints.reach("noted")
        return noted

    def add_call(self, call: Callable[[], None]) -> None:
        """Add a call that is to be made after the next exchange."""
        with self._lock:
            self.calls.append(call)

    def put_back(self, number: int, done: list[Done]) -> None:
        """Add what the server did not record, before what came since."""
        with self._lock:
            self.done[number][:0] = done

    def take(self) -> tuple[list[list[Done]], list[Callable[[], None]]]:
        """Return what is to be sent and called now. It stays on the board until confirm()."""
        with self._lock:
            done, self.done = self.done, [[] for _ in self.done]
            calls, self.calls = self.calls, []
            self._board.turn()
        return done, calls

    def confirm(self) -> None:
        """Remove from the board what was last taken: the server has recorded it."""
        self._board.forget()

    def jobs(self) -> list[Job]:
        """Return the jobs that are done and not sent."""
        with self._lock:
            return [item.job for done in self.done for item in done]


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


class Fetcher:
    """Composes claimed jobs and idle threads, what is done, the timer of wake-ups, and exchanges.

    Locks are taken in this order: that of the claimed jobs, then that of the watchdog or of the done jobs.
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
        self._queues, self._on_empty = queues, on_empty
        self._claimed = ClaimedJobs(threads)
        self.take_more, self.put_back = self._claimed.take_more, self._claimed.put_back
        self._done, self._watchdog = DoneJobs(len(queues), board), Watchdog(len(queues))
        self._exchanger = Exchanger(queues, rotation, self._watchdog)
        self._reconciler = Reconciler(queues, self._exchanger.recent, self._held)
        self._prefetch, self._empty = Prefetch(), False
        self.recent = self._exchanger.recent

    def next(self, slot: int = 0) -> ClaimedJob | None:
        """Return a job and the number of its queue, waiting for one; None when the worker stops."""
        claimed, watchdog = self._claimed, self._watchdog
        while True:
            with claimed.lock:
                while not (job := claimed.take(slot)):
                    if self._exchange_is_due() and self._exchanger.turn.acquire(blocking=False):
                        break
                    if claimed.stopped:
                        return None
                    if self._on_empty and claimed.idle + 1 == claimed.threads and watchdog.claim_at > monotonic():
                        if self._empty:
                            self._on_empty()
                        elif watchdog.claim_at == NEVER and watchdog.claim_by(NOW):  # the last outcomes went alone
                            continue
                    if claimed.closed:
                        self._plan_flush()
                    claimed.wait()
                else:
                    if claimed.jobs or watchdog.claim_at == NOW:
                        claimed.wake()
                    if not claimed.jobs and any(self._done.done):
                        watchdog.flush_by(monotonic() + LIMIT)  # it may be long until a thread asks again
                    return job
            self._exchange(claim=True)

    def add_done(self, done: Done) -> None:
        """Take in a job that is done. The server is told soon, with the next claim."""
        if not self._done.add(done):
            self.flush()

    def retry_later(self, call: Callable[[], None]) -> None:
        """Make a call that failed again, in a second or after the next exchange."""
        self._done.add_call(call)
        if self._claimed.closed:
            self._watchdog.flush_by(monotonic() + RETRY)
        else:
            self._claim_by(monotonic() + RETRY)

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """Return jobs, and others of their queue that no thread has begun, and claim none there for some seconds."""
        self._exchanger.closed_until[number] = at = monotonic() + seconds
        self._return(number, list(jobs))
        self.give_back(number)
        self._claim_by(at)

    def flush(self) -> None:
        """Tell the server what is done. One round trip for each queue."""
        self._exchanger.turn.acquire()
        self._exchange(claim=False)

    def flush_all(self) -> set[int]:
        """Do the same, also for queues that are left alone after a failure. Return those that are still to be told."""
        self._exchanger.turn.acquire()
        self._exchanger.retry_at[:] = [NOW] * len(self._queues)
        self._exchange(claim=False)
        return {number for number, done in enumerate(self._done.done) if done}

    def wake(self, seconds: float = 0.0) -> None:
        """Ask the server after this time at the latest."""
        self._claim_by(monotonic() + seconds)

    def take_wake_up(self, number: int) -> bool:
        """Act on a queue's wake-up. False if no thread is free: then it is for another worker."""
        with self._claimed.lock:
            if not self._claimed.free:
                return False
            now = monotonic()
            self._watchdog.want(number, now)
            self._watchdog.claim_by(now)
            self._claimed.wake()
            if self._claimed.jobs:
                self._watchdog.look()  # the free thread may be for these
            return True

    def wait_free(self) -> bool:
        """Return when a thread has nothing to do and knows of nothing; False when the worker stops."""
        with self._claimed.lock:
            self._claimed.thread_is_free.wait_for(self._may_listen)
            return not self._claimed.stopped

    @property
    def free(self) -> bool:
        """Tell whether a thread waits for a job."""
        return self._claimed.free

    def quiet(self) -> None:
        """Claim no more, and return what was not begun to its queues."""
        with self._claimed.lock:
            self._claimed.quiet = True
        if self._done.calls:
            self._watchdog.flush_by(monotonic() + RETRY)  # they waited for the next claim
        self._watchdog.look()  # wake-ups are passed on to other workers
        self.give_back()

    def resume(self) -> None:
        """Claim jobs after quiet()."""
        with self._claimed.lock:
            self._claimed.quiet = False
            self._watchdog.claim_by(NOW)
            self._claimed.wake()
            self._claimed.thread_is_free.notify_all()

    def stop(self) -> None:
        """Claim no more, return what was not begun to its queues, and end the threads when they are done."""
        self._claimed.stop()
        self._watchdog.look()
        self.give_back()

    def watch(self) -> None:
        """See to what waits for too long until the worker stops: claims that are due, jobs, wake-ups, what is done."""
        while not self._claimed.stopped:
            due = self._watchdog.wait(self._claimed)
            if due.claim:
                self._claimed.wake_another()
            for number in due.neglected:
                with suppress(RedisFailure):
                    self._queues[number].pass_on()
            if due.stale:
                self._prefetch.slow_down()
                self.give_back()
                self.wake()
            if due.stale or due.flush:
                self.flush()

    def give_back(self, queue: int | None = None) -> None:
        """Return the jobs that no thread has begun, or those of one queue. One round trip for each queue."""
        waiting = self._claimed.take_all(queue)
        try:
            for number in range(len(self._queues)):
                if jobs := [job for index, job in waiting if index == number]:
                    self._return(number, jobs)
        finally:
            self._claimed.returned()

    def reconcile(self, number: int, members: Sequence[str]) -> None:
        """Reconcile these claims with the jobs of this process, in the next exchange."""
        self._reconciler.ask(number, members)
        self._watchdog.flush_by(NOW)

    def _exchange_is_due(self) -> bool:
        now = monotonic()
        if self._watchdog.claim_at <= now and not self._claimed.closed:
            return True
        return any(done and at <= now for done, at in zip(self._done.done, self._exchanger.retry_at, strict=True))

    def _plan_flush(self) -> None:
        """Have what is done sent as soon as its queue may be asked. No claim will do that."""
        times = [at for done, at in zip(self._done.done, self._exchanger.retry_at, strict=True) if done]
        if times:
            self._watchdog.flush_by(min(times) + LIMIT)

    def _may_listen(self) -> bool:
        if self._claimed.stopped:
            return True
        return self._claimed.free and self._watchdog.claim_at != NOW and not self._exchanger.turn.locked()

    def _claim_by(self, at: float) -> None:
        if self._watchdog.claim_by(at):
            with self._claimed.lock:
                self._claimed.wake()

    def _exchange(self, *, claim: bool) -> None:
        """Make an exchange. This thread holds the turn for it, which ends here."""
        recorded: list[Done] = []
        calls: list[Callable[[], None]] = []
        try:
            claim = claim and not self._claimed.closed
            self._watchdog.begins(claim=claim)  # before the rest: what is added after that needs another exchange
            done, calls = self._done.take()
            if any(done):
                failpoints.reach("before_exchange")
            recorded = self._ask(done, self._prefetch.room(self._claimed.idle + 1, monotonic()) if claim else 0)
            if recorded:
                failpoints.reach("exchanged")
            self._reconciler.run()
            if not self._exchanger.failing:
                self._done.confirm()
        finally:
            self._exchanger.turn.release()
            unwanted = self._after_exchange()
        if unwanted:
            self.give_back()
        for call in [*(item.announce for item in recorded if item.announce), *calls]:
            guarded("A call after an exchange", call, None)

    def _after_exchange(self) -> bool:
        """Wake a thread. True if jobs came that are not wanted any more."""
        with self._claimed.lock:
            self._claimed.wake()
            if self._watchdog.claim_at != NOW:
                self._claimed.thread_is_free.notify_all()
            unwanted = bool(self._claimed.jobs) and self._claimed.closed
        self._watchdog.ended()
        return unwanted

    def _ask(self, done: list[list[Done]], room: int) -> list[Done]:
        """Return what the server has recorded of what is done, and take in the jobs that it gave."""
        recorded: list[Done] = []
        count = 0
        for reply in self._exchanger.exchange(done, room):
            if reply.claimed:
                recorded += reply.recorded
                count += len(reply.claimed.jobs)
                self._take_in(reply)
            else:
                self._put_off(reply)
        if count:
            self._prefetch.claimed(count, monotonic())
        if room:
            self._empty = not (count or self._exchanger.failing or self._exchanger.closed or self._claimed.returning)
        return recorded

    def _take_in(self, reply: Reply) -> None:
        number, (jobs, seconds, _) = reply.number, reply.claimed or ([], None, [])
        if jobs:
            with self._claimed.lock:
                self._claimed.add(number, jobs)
                more = len(self._claimed.jobs) > self._claimed.idle + 1
            if more:
                self._watchdog.came(self._claimed.since)
        if seconds is not None and reply.room:
            at = monotonic() + seconds
            if seconds and len(jobs) < reply.room:
                self._watchdog.want(number, at)  # else the server has left a wake-up for others
            self._claim_by(at)

    def _put_off(self, reply: Reply) -> None:
        self._done.put_back(reply.number, list(reply.unsent))
        self._claim_by(reply.retry_at)
        if reply.unsent:
            self._watchdog.flush_by(reply.retry_at + LIMIT)

    def _return(self, number: int, jobs: list[Job], *, certain: bool = True) -> None:
        """Return jobs to their queue. After a lost answer they may be another worker's: then only a repeat is safe."""
        try:
            self._queues[number].release(jobs)
        except RedisFailure as error:
            logger.debug("Queue %a: %d jobs could not be returned: %s", self._queues[number].name, len(jobs), error)
            if not certain or getattr(error, "indeterminate", False):
                self.retry_later(partial(self._return, number, jobs, certain=False))
                return
            with self._claimed.lock:
                if not self._claimed.stopped:
                    self._claimed.add(number, jobs, delay=RETRY)  # else the next try would follow at once
                    self._watchdog.came(self._claimed.since)

    def _held(self) -> set[bytes]:
        jobs = self._claimed.held()  # first: a job is among the done ones before it leaves a thread's hand
        return set(map(member, [*jobs, *self._done.jobs()]))


class Listener:
    """Listens to one queue while a thread is free. A busy worker must not take wake-ups from idle ones."""

    def __init__(self, number: int, source: WorkerQueue, fetcher: Fetcher, *, stopping: Event) -> None:
        self._number, self._source, self._fetcher, self._stopping = number, source, fetcher, stopping

    def run(self) -> None:
        """Listen until the worker stops."""
        failures = count()
        while self._fetcher.wait_free():
            try:
                self._listen()
                failures = count()
            except RedisFailure:
                self._stopping.wait(pause(next(failures)))

    def _listen(self) -> None:
        if self._source.listen() and not self._fetcher.take_wake_up(self._number):
            self._source.pass_on()
