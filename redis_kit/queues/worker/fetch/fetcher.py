"""Gets work for all threads: the one that finds no job asks the server, and tells it in the same call what is done."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Event, Lock
from time import monotonic

from redis_kit.core.errors import RedisFailure
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.errors import LeaseLost
from redis_kit.queues.worker.fetch.claimed_jobs import LIMIT, NEVER, NOW, ClaimedJob, ClaimedJobs, Watchdog
from redis_kit.queues.worker.fetch.exchange import Exchanger, Reply, Rotation
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.logs import counted, guarded
from redis_kit.queues.worker.shared.reconnect import pause
from redis_kit.queues.worker.shared.status_board import StatusBoard
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")
RETRY = 1.0  # seconds until a call that failed is made again


AHEAD = 0.01  # seconds of work that is claimed beyond the free threads
MOST = 100  # jobs: the server must not be held for long
GROWTH = 4


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
