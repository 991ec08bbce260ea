"""The reliable queue: a job stays until it is acknowledged, and a worker's death returns its jobs."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import Primitive, with_own_init
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import several
from redis_kit.queues import signals, validation
from redis_kit.queues.engine import claim, enqueue, liveness
from redis_kit.queues.engine.feature import provided
from redis_kit.queues.engine.job import Job, JobInfo, PauseInfo, QueueCounts, State, summed
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import UniqueKey, Until
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import ANY, JobFilter
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.validation import Delay

Result = TypeVar("Result")


@with_own_init
class Queue(Primitive):
    """Jobs in order of priority, first in first out within one, delivered at least once.

    A claimed job belongs to a worker: by default this process, else ``worker=``. Each claim, acknowledgement and
    heartbeat of the worker renews its lease. After ``WORKER_TIMEOUT`` seconds without any of them, other workers get
    its jobs. After chapter 6.4 of "Redis in Action" (Carlson, 2013), with claims in place of pops.
    """

    component, settings = "queues", QueueSettings
    spread: ClassVar[bool] = True  # False for one part of a queue

    @operation
    def put(
        self,
        payload: Any,
        *,
        delay: Delay = 0,
        priority: int = 0,
        id: str | None = None,
        unique: str | None = None,
        unique_until: Until = "done",
        replace: bool = False,
        group: str | None = None,
    ) -> Flow[str]:
        """Add a job and return its id. It starts no sooner than after ``delay`` seconds on the server's clock.

        The payload is JSON of at most 256 KiB, with datetime, date, Decimal, UUID and bytes beside JSON's types. The
        priority is -100 to 100, higher first. With an ``id`` of your own (1 to 128 of ``A-Z a-z 0-9 _ . -``) a job that
        is in the queue under that id is left as it is. One that is done is forgotten: a repeat adds it again. A repeat
        that must never do so, as after a lost answer, needs ``unique_until`` with a time.

        A ``unique`` key (1 to 512 bytes) has one job: while the job waits or runs, with ``unique_until="queued"`` until
        it is claimed, with seconds or a timedelta for this time, even if the job ends. A further put() returns the id
        of that job; with ``replace`` it also gives a job that waits the new payload, priority and time.

        Jobs of one ``group``, such as "tenant:7" (1 to 200 bytes), start in their order; of several groups with jobs of
        the same priority, each starts one job in turn.

        Raises NotSerializable, PayloadTooLarge, InvalidValue. One round trip, and another for a process's first job.
        """
        key, turn = _key(unique, unique_until, replace), enqueue.turn_of(self, delay, priority, group)
        placed = yield from enqueue.put_payload(self, payload, id, key, turn)
        yield from signals.announcement(Queue, self.name, [placed.id] if placed.created else [])
        return placed.id

    @operation
    def put_many(
        self, payloads: Iterable[Any], *, delay: Delay = 0, priority: int = 0, group: str | None = None
    ) -> Flow[list[str]]:
        """Add a job for each payload, in their order, and return the ids. One round trip for 500 jobs or 1 MiB.

        Payloads are taken as they are sent; an error leaves those sent before in the queue.
        """
        ids: list[str] = []
        turn = enqueue.turn_of(self, delay, priority, group)
        for jobs in enqueue.new_jobs(payloads):
            added = yield from enqueue.put_many(self, jobs, turn)
            yield from signals.announcement(Queue, self.name, added)
            ids += added
        return ids

    @operation
    def claim(self, limit: int = 1, *, done: Sequence[Job] = (), worker: str | None = None) -> Flow[list[Job]]:
        """Claim up to ``limit`` (1 to 1000) ready jobs, with scheduled jobs that are due. One round trip; no waiting.

        Jobs that are ``done``, at most 250, are acknowledged in the same call. Raises LeaseLost if another worker has
        one of them; then nothing is claimed. If the answer to a claim is lost, the worker's next claim returns the same
        jobs. A job that ran in a process that died comes alone, whatever the limit. The first claim or ack of a process
        from a queue with unique keys, groups or limits takes another round trip.
        """
        claimed = yield from spread().claim(self, limit, worker, done)
        if claimed.lost:
            raise claim.lost(self, [done[at] for at in claimed.lost])
        return claimed.jobs

    @operation
    def ack(self, *jobs: Job) -> Flow[None]:
        """Acknowledge jobs that are done. One round trip for 250 of one worker; a repeat is safe.

        Raises LeaseLost if another worker has one of them; the others are acknowledged.
        """
        if lost := (yield from spread().ack(self, jobs)):
            raise claim.lost(self, lost)

    @operation
    def nack(self, job: Job, *, delay: Delay = 0, error: str = "", max_attempts: int | None = None) -> Flow[State]:
        """Record a failed attempt and return the new state: ready, scheduled (with a delay), or dead.

        A job is dead after ``max_attempts``, by default the option ``MAX_ATTEMPTS``; ``error`` then is its reason. One
        that was cancelled while it ran is deleted in place of another attempt. One round trip, three for such a job; a
        repeat is safe. Raises LeaseLost if another worker has the job.
        """
        return claim.nack(spread().of_job(self, job), job, delay, error, max_attempts)

    @operation
    def heartbeat(self, *, worker: str | None = None) -> Flow[int]:
        """Report that the worker is alive, and return how many jobs of dead workers were returned, at most 100.

        Needed if a job takes longer than ``WORKER_TIMEOUT``; ``rk_worker`` sends heartbeats by itself. One round trip,
        and one for each worker that died since the last one.
        """
        replies = yield from spread().each(self, partial(liveness.heartbeat, worker=worker))
        return sum(reply.returned for reply in replies)

    @operation
    def sign_off(self, *, worker: str | None = None) -> Flow[int]:
        """Return all jobs of the worker to the queue and remove it; return their number. One round trip for 100."""
        return sum((yield from spread().each(self, partial(liveness.sign_off, worker=worker))))

    @operation
    def counts(self) -> Flow[QueueCounts]:
        """Return how many jobs are in each state, at one moment. One round trip."""
        return summed((yield from spread().each(self, manage.counts)))

    @operation
    def requeue(
        self,
        ids: Iterable[str] | None = None,
        *,
        task: str | None = None,
        error: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> Flow[int]:
        """Make dead jobs ready as if they were new, and return how many: by ``ids``, by cause, or the oldest.

        With ``task``, ``error`` or ``tag`` it takes the jobs that match these, or the oldest ``limit`` of them; else
        the oldest ``limit`` jobs, 1000 at most and by default. Raises InvalidValue for ids together with others. One
        round trip for 500 ids or 1000 of the oldest; by cause or tag, one more for each 1000 dead jobs.
        """
        wanted = JobFilter(task, error, tag)
        if ids is not None:
            if wanted != ANY or limit is not None:
                raise InvalidValue("requeue() takes either ids, or task, error, tag and limit.")
            names = [validation.identifier("id", id) for id in several(ids, "ids")]
            return sum((yield from spread().each(self, partial(manage.requeue, ids=names))))
        if wanted == ANY:
            limit = whole_number("limit", validation.LIMIT[1] if limit is None else limit, validation.LIMIT)
        return (yield from spread().until(self, limit, partial(manage.requeue_oldest, wanted=wanted)))

    @operation
    def peek(self, limit: int = 100, *, state: State = "ready") -> Flow[list[JobInfo]]:
        """Return jobs of a state, at most 1000, and fewer than ``limit`` if they have over 16 MiB. One round trip.

        Ready jobs come in the order of claims, scheduled jobs by due time, running jobs by worker, and dead jobs from
        the latest. Nothing is claimed.
        """
        whole_number("limit", limit, validation.LIMIT)
        validation.one_of("state", state, manage.STATES)
        pages = yield from spread().each(self, partial(manage.read, state=state, limit=limit, cut=manage.UNCUT))
        return manage.merged(state, [page.jobs for page in pages], limit)

    @operation
    def get(self, id: str) -> Flow[JobInfo | None]:
        """Return a job and its state; None if the queue has no job of this id, as when it is done. One round trip."""
        return spread().of_id(self, id, partial(manage.get, id=id))

    @operation
    def delete(self, id: str) -> Flow[bool]:
        """Delete a job; False if the queue has no job of this id, or it is running. One round trip."""
        return bool((yield from manage.change(self, id, manage.delete_step)))

    @operation
    def cancel(self, id: str) -> Flow[bool]:
        """Cancel a job; False if it neither waits nor runs. One round trip.

        A job that waits is deleted, and its result, if it stores one, is the error Cancelled. A running task is stopped
        at the next heartbeat of its worker; it may end before.
        """
        return bool((yield from manage.cancel(self, id)))

    @operation
    def run_now(self, id: str) -> Flow[bool]:
        """Make a scheduled job ready before its time; False if no job of this id is scheduled. One round trip."""
        return bool((yield from manage.change(self, id, partial(manage.requeue_step, state="scheduled"))))

    @operation
    def purge(self, state: State) -> Flow[int]:
        """Delete as many ready, scheduled or dead jobs as there are now, and return how many. One round trip for 500.

        Running jobs are never deleted. Jobs that are added during the call may be deleted in place of others.
        """
        validation.one_of("state", state, manage.PURGED)
        return sum((yield from spread().each(self, partial(manage.purge, state=state))))

    @operation
    def pause(self, seconds: Delay | None = None) -> Flow[None]:
        """Pause the queue for ``seconds``, by default until resume(). One round trip.

        A paused queue accepts jobs and gives out none; running jobs end as usual, and workers sleep. If the queue is
        paused already, this changes the end of the pause.
        """
        yield from provided("pausing").pause(self, seconds)

    @operation
    def resume(self) -> Flow[bool]:
        """End the pause at once; False if the queue was not paused. One round trip."""
        return bool((yield from provided("pausing").resume(self)))

    @operation
    def paused(self) -> Flow[PauseInfo | None]:
        """Return when the queue was paused and when the pause ends; None if it is not paused. One round trip."""
        info: PauseInfo | None = yield from provided("pausing").paused(self)
        return info

    aput = twin(put)
    aput_many = twin(put_many)
    aclaim = twin(claim)
    aack = twin(ack)
    anack = twin(nack)
    aheartbeat = twin(heartbeat)
    asign_off = twin(sign_off)
    acounts = twin(counts)
    arequeue = twin(requeue)
    apeek = twin(peek)
    aget = twin(get)
    adelete = twin(delete)
    acancel = twin(cancel)
    arun_now = twin(run_now)
    apurge = twin(purge)
    apause = twin(pause)
    aresume = twin(resume)
    apaused = twin(paused)


def over(using: str) -> Queue:
    """Return what runs flows over several queues: a queue runs those of any others."""
    return Queue("all", using=using)


def _key(unique: str | None, until: Until, replace: bool) -> UniqueKey | None:
    if unique is None and replace is False:
        return None
    key: UniqueKey | None = provided("unique_keys").chosen(unique, until, replace)
    return key
