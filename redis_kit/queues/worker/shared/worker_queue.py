"""A queue as its worker sees it, and what is done there: also recent acknowledgements, which a server may lose."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from math import inf
from secrets import token_urlsafe
from threading import Lock
from typing import NamedTuple, TypeVar

from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow, single
from redis_kit.core.steps import Batch, Call, Pop
from redis_kit.queues.engine import calls, claim, done, enqueue
from redis_kit.queues.engine.calls import End
from redis_kit.queues.engine.claim import Claimed
from redis_kit.queues.engine.done import Ack, ack_of
from redis_kit.queues.engine.job import Job, member
from redis_kit.queues.engine.liveness import HeartbeatReply, heartbeat_reply, take_over
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports import workers
from redis_kit.queues.settings import options_of, whole
from redis_kit.queues.worker.options import LoneJob

Result = TypeVar("Result")
PAGE = 100  # running jobs that a heartbeat lists
WORKERS = 100  # that are asked how long they have been there
LISTEN = 4.0  # seconds until a lost wake-up, or a half-open connection, is noticed


class PatientQueue(Queue):
    """A queue whose calls have the longer time limits of a worker."""

    profile = "worker"


class WorkerQueue(Queue):
    """Calls are made in the name of one worker. ``after`` is the job after which the next heartbeat's list begins.

    A worker sees each shard as a queue; ``queue_name`` is the name of the whole queue. With a ``lone_job``, which
    another worker has claimed, it gets that one and no other.
    """

    profile, spread = "worker", False

    def __init__(
        self, name: str, *, worker: str, about: str, using: str = "default", lone_job: LoneJob | None = None
    ) -> None:
        super().__init__(name, using=using)
        self._lone_job = lone_job
        self._lone_claim = token_urlsafe(6) if lone_job else ""  # the same for a repeat
        self.queue_name = whole(name)
        self.worker, self.about, self.after = worker, about, b""

    def exchange(self, limit: int, done: Sequence[Ack] = ()) -> Claimed:
        """End jobs, claim others (0: none) and tell when there may be more. A repeat is safe.

        One round trip; with a lone job one to end it, and one to take it over.
        """
        if not self._lone_claim:
            return self.run_flow(claim.ack_and_claim(self, self.worker, limit, self.about, done))[0]
        claimed = Claimed([], None, [])
        if done:
            claimed = self.run_flow(claim.ack_and_claim(self, self.worker, 0, self.about, done))[0]
        if limit and self._lone_job:
            lone = self._lone_job
            given = {"version": lone.version, "token": lone.token, "about": self.about}
            job = self.run_flow(claim.claim_by_id(self, self.worker, self._lone_claim, lone.id, **given))
            if job:
                claimed.jobs.append(job)
            self._lone_job = None
        return claimed

    def release(self, jobs: Sequence[Job]) -> int:
        """Return claimed jobs that were not begun to the queue, and return their number. One round trip."""
        return self.put_back([member(job) for job in jobs])

    def put_back(self, members: Sequence[bytes]) -> int:
        """Make these claims of running jobs void, and return how many jobs are ready again. One round trip, or none."""
        ends = [End(member, "return") for member in members]
        return sum(answer == 1 for answer in self.run_flow(claim.settle(self, ends))) if ends else 0

    def listen(self) -> bool:
        """Wait for a wake-up. False if none came for 4 s. One round trip."""
        return self.run_flow(single(Pop(self.key("signal"), timeout=LISTEN))) is not None

    def pass_on(self) -> None:
        """Wake another worker: this one has no thread left. One round trip."""
        key = self.key("signal")
        self.run_flow(single(Batch([Call("RPUSH", key, 1), Call("PEXPIRE", key, 10_000)])))

    def note(self) -> bool:
        """Add the queue to the list of queues; False if it was there. One round trip."""
        return self.run_flow(enqueue.register(self))

    def served_since(self) -> float:
        """Return since when the server knows the worker of the queue that it knows longest, in ms. One round trip."""
        reply, _ = self.run_flow(single(workers.LIST_WORKERS(self.key(""), WORKERS, 0)))
        since = [information.partition(b" ")[0] for information in reply[2 :: workers.FIELDS]]
        return min([float(number) for number in since if number.isdigit()], default=inf)


def send_heartbeats(sources: Sequence[WorkerQueue]) -> list[HeartbeatReply | RedisFailure]:
    """Keep workers alive on their queues, as far as these let them, and list a page of the running jobs of each.

    One round trip, on a Cluster one per node.
    """
    return sources[0].run_flow(_send_heartbeats(sources))


def _send_heartbeats(sources: Sequence[WorkerQueue]) -> Flow[list[HeartbeatReply | RedisFailure]]:
    steps = [
        calls.heartbeat(queue.key(""), queue.worker, queue.about, after=queue.after, page=PAGE) for queue in sources
    ]
    replies = yield Batch(steps, lenient=True)
    beats = [reply if isinstance(reply, RedisFailure) else heartbeat_reply(reply) for reply in replies]
    for at, reply in enumerate(beats):
        if isinstance(reply, RedisFailure):
            continue
        try:
            beats[at] = yield from take_over(sources[at], reply)
        except RedisUnavailable:
            raise
        except RedisFailure as error:
            beats[at] = reply._replace(error=error)  # its command was taken off the queue
    return beats


RECENT = 20_000  # acknowledgements
RECENT_BYTES = 4 * 1024 * 1024  # of results and errors


class RecordedEnd(NamedTuple):
    """The end of a failed attempt, or one that a feature records. The body is not kept.

    ``record`` records it, and may be repeated.
    """

    token: bytes
    id: bytes
    value: bytes
    record: Callable[[], object]


class Done(NamedTuple):
    """A job that is done: its acknowledgement, and a call to make when the server has recorded that.

    ``again`` records more than the acknowledgement again, for a server that lost it; None if that is all.
    """

    job: Job
    ended: Ack
    announce: Callable[[], None] | None = None
    again: RecordedEnd | None = None


def done_of(job: Job, value: bytes, ttl_ms: int, *, source: Queue, number: int, seconds: float | None) -> Done:
    """Return a job of the queue with this number as done, with its result, if any, and for how long its task ran."""
    about = done.line(job, seconds) if options_of(source.name).DONE_LIMIT else b""
    return Done(job, ack_of(job, value, ttl_ms, source=number, about=about))


class RecentAcks:
    """Remembers the last 20,000 acknowledgements, with at most 4 MiB of results and errors, whatever their age.

    A server that was down for an hour has lost the seconds before that hour, so no time limit would fit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._batches: deque[tuple[Sequence[Ack | RecordedEnd], int]] = deque()
        self._count = self._bytes = 0

    def add(self, batch: Sequence[Ack | RecordedEnd]) -> None:
        """Remember acknowledgements that were recorded together."""
        size = sum([len(ack.value) for ack in batch])
        with self._lock:
            self._batches.append((batch, size))
            self._count += len(batch)
            self._bytes += size
            while self._count > RECENT or self._bytes > RECENT_BYTES:
                oldest, size = self._batches.popleft()
                self._count -= len(oldest)
                self._bytes -= size

    def find(self, members: Collection[bytes]) -> dict[bytes, Ack | RecordedEnd]:
        """Return the acknowledgements of these claims that are remembered. A claim is named ``<token>/<id>``."""
        with self._lock:
            batches = list(self._batches)
        ends = {b"%b/%b" % (ack.token, ack.id): ack for batch, _ in batches for ack in batch}
        return {member: ends[member] for member in members if member in ends}


class Claims:
    """What a runner asks of that which claims its jobs. ``recent`` remembers which ends of jobs were recorded.

    This one is for a thread that claims each job by itself. Its methods do nothing, as no others wait: a claim whose
    end can't be recorded ends with its lease.
    """

    def __init__(self) -> None:
        self.recent = RecentAcks()

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """Give a thread that has a job the next ones too, if they are of this queue."""
        return []

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """Take jobs back that take_more() gave last."""

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """Return jobs to their queue, and claim none there for some seconds."""

    def retry_later(self, call: Callable[[], object]) -> None:
        """Make a call that failed again, later."""
