"""The reliable queue: a job stays until it is acknowledged, and a worker's death returns its jobs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive, with_own_init
from redis_kit.queues import signals
from redis_kit.queues.engine import claim, enqueue, liveness
from redis_kit.queues.engine.claim import Claimed
from redis_kit.queues.engine.feature import lane_of, pausing, unique_keys
from redis_kit.queues.engine.job import Job, JobInfo, PauseInfo, QueueCounts, State
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.engine.unique import PutResult, UniqueKey, Until
from redis_kit.queues.management import manage
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
    ) -> str:
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
        key, lane = _key(unique, unique_until, replace), lane_of(self.name, group)
        steps = enqueue.put_payload(self, payload, id, key, delay=delay, priority=priority, lane=lane)
        return self._placed(self.run_flow(steps))

    async def aput(
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
    ) -> str:
        """See put()."""
        key, lane = _key(unique, unique_until, replace), lane_of(self.name, group)
        steps = enqueue.put_payload(self, payload, id, key, delay=delay, priority=priority, lane=lane)
        return await self._aplaced(await self.arun_flow(steps))

    def put_many(
        self, payloads: Iterable[Any], *, delay: Delay = 0, priority: int = 0, group: str | None = None
    ) -> list[str]:
        """Add a job for each payload, in their order, and return the ids. One round trip for 500 jobs or 1 MiB.

        Payloads are taken as they are sent; an error leaves those sent before in the queue.
        """
        ids, lane = [], lane_of(self.name, group)
        for jobs in enqueue.new_jobs(payloads):
            steps = enqueue.put_many(self, jobs, delay=delay, priority=priority, lane=lane)
            ids += signals.announce(Queue, self.name, self.run_flow(steps))
        return ids

    async def aput_many(
        self, payloads: Iterable[Any], *, delay: Delay = 0, priority: int = 0, group: str | None = None
    ) -> list[str]:
        """See put_many()."""
        ids, lane = [], lane_of(self.name, group)
        for jobs in enqueue.new_jobs(payloads):
            steps = enqueue.put_many(self, jobs, delay=delay, priority=priority, lane=lane)
            ids += await signals.aannounce(Queue, self.name, await self.arun_flow(steps))
        return ids

    def claim(self, limit: int = 1, *, done: Sequence[Job] = (), worker: str | None = None) -> list[Job]:
        """Claim up to ``limit`` (1 to 1000) ready jobs, with scheduled jobs that are due. One round trip; no waiting.

        Jobs that are ``done``, at most 250, are acknowledged in the same call. Raises LeaseLost if another worker has
        one of them; then nothing is claimed. If the answer to a claim is lost, the worker's next claim returns the same
        jobs. A job that ran in a process that died comes alone, whatever the limit. The first claim or ack of a process
        from a queue with unique keys, groups or limits takes another round trip.
        """
        return self._jobs_of(self.run_flow(spread().claim(self, limit, worker, done)), done)

    async def aclaim(self, limit: int = 1, *, done: Sequence[Job] = (), worker: str | None = None) -> list[Job]:
        """See claim()."""
        return self._jobs_of(await self.arun_flow(spread().claim(self, limit, worker, done)), done)

    def ack(self, *jobs: Job) -> None:
        """Acknowledge jobs that are done. One round trip for 250 of one worker; a repeat is safe.

        Raises LeaseLost if another worker has one of them; the others are acknowledged.
        """
        self._ended(self.run_flow(spread().ack(self, jobs)))

    async def aack(self, *jobs: Job) -> None:
        """See ack()."""
        self._ended(await self.arun_flow(spread().ack(self, jobs)))

    def nack(self, job: Job, *, delay: Delay = 0, error: str = "", max_attempts: int | None = None) -> State:
        """Record a failed attempt and return the new state: ready, scheduled (with a delay), or dead.

        A job is dead after ``max_attempts``, by default the option ``MAX_ATTEMPTS``; ``error`` then is its reason. One
        that was cancelled while it ran is deleted in place of another attempt. One round trip, three for such a job; a
        repeat is safe. Raises LeaseLost if another worker has the job.
        """
        return self.run_flow(claim.nack(spread().of_job(self, job), job, delay, error, max_attempts))

    async def anack(self, job: Job, *, delay: Delay = 0, error: str = "", max_attempts: int | None = None) -> State:
        """See nack()."""
        return await self.arun_flow(claim.nack(spread().of_job(self, job), job, delay, error, max_attempts))

    def heartbeat(self, *, worker: str | None = None) -> int:
        """Report that the worker is alive, and return how many jobs of dead workers were returned, at most 100.

        Needed if a job takes longer than ``WORKER_TIMEOUT``; ``rk_worker`` sends heartbeats by itself. One round trip,
        and one for each worker that died since the last one.
        """
        return sum(reply.returned for reply in self.run_flow(self._each(liveness.heartbeat, worker)))

    async def aheartbeat(self, *, worker: str | None = None) -> int:
        """See heartbeat()."""
        return sum(reply.returned for reply in await self.arun_flow(self._each(liveness.heartbeat, worker)))

    def sign_off(self, *, worker: str | None = None) -> int:
        """Return all jobs of the worker to the queue and remove it; return their number. One round trip for 100."""
        return sum(self.run_flow(self._each(liveness.sign_off, worker)))

    async def asign_off(self, *, worker: str | None = None) -> int:
        """See sign_off()."""
        return sum(await self.arun_flow(self._each(liveness.sign_off, worker)))

    def counts(self) -> QueueCounts:
        """Return how many jobs are in each state, at one moment. One round trip."""
        return self.run_flow(manage.counts(self))

    async def acounts(self) -> QueueCounts:
        """See counts()."""
        return await self.arun_flow(manage.counts(self))

    def requeue(
        self,
        ids: Iterable[str] | None = None,
        *,
        task: str | None = None,
        error: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Make dead jobs ready as if they were new, and return how many: by ``ids``, by cause, or the oldest.

        With ``task``, ``error`` or ``tag`` it takes the jobs that match these, or the oldest ``limit`` of them; else
        the oldest ``limit`` jobs, 1000 at most and by default. Raises InvalidValue for ids together with others. One
        round trip for 500 ids or 1000 of the oldest; by cause or tag, one more for each 1000 dead jobs.
        """
        return self.run_flow(manage.requeue(self, ids, task=task, error=error, tag=tag, limit=limit))

    async def arequeue(
        self,
        ids: Iterable[str] | None = None,
        *,
        task: str | None = None,
        error: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> int:
        """See requeue()."""
        return await self.arun_flow(manage.requeue(self, ids, task=task, error=error, tag=tag, limit=limit))

    def peek(self, limit: int = 100, *, state: State = "ready") -> list[JobInfo]:
        """Return jobs of a state, at most 1000, and fewer than ``limit`` if they have over 16 MiB. One round trip.

        Ready jobs come in the order of claims, scheduled jobs by due time, running jobs by worker, and dead jobs from
        the latest. Nothing is claimed.
        """
        return self.run_flow(manage.peek(self, limit, state))

    async def apeek(self, limit: int = 100, *, state: State = "ready") -> list[JobInfo]:
        """See peek()."""
        return await self.arun_flow(manage.peek(self, limit, state))

    def get(self, id: str) -> JobInfo | None:
        """Return a job and its state; None if the queue has no job of this id, as when it is done. One round trip."""
        return self.run_flow(manage.get(self, id))

    async def aget(self, id: str) -> JobInfo | None:
        """See get()."""
        return await self.arun_flow(manage.get(self, id))

    def delete(self, id: str) -> bool:
        """Delete a job; False if the queue has no job of this id, or it is running. One round trip."""
        return self.run_flow(manage.delete(self, id))

    async def adelete(self, id: str) -> bool:
        """See delete()."""
        return await self.arun_flow(manage.delete(self, id))

    def cancel(self, id: str) -> bool:
        """Cancel a job; False if it neither waits nor runs. One round trip.

        A job that waits is deleted, and its result, if it stores one, is the error Cancelled. A running task is stopped
        at the next heartbeat of its worker; it may end before.
        """
        return bool(self.run_flow(manage.cancel(self, id)))

    async def acancel(self, id: str) -> bool:
        """See cancel()."""
        return bool(await self.arun_flow(manage.cancel(self, id)))

    def run_now(self, id: str) -> bool:
        """Make a scheduled job ready before its time; False if no job of this id is scheduled. One round trip."""
        return self.run_flow(manage.run_now(self, id))

    async def arun_now(self, id: str) -> bool:
        """See run_now()."""
        return await self.arun_flow(manage.run_now(self, id))

    def purge(self, state: State) -> int:
        """Delete as many ready, scheduled or dead jobs as there are now, and return how many. One round trip for 500.

        Running jobs are never deleted. Jobs that are added during the call may be deleted in place of others.
        """
        return self.run_flow(manage.purge(self, state))

    async def apurge(self, state: State) -> int:
        """See purge()."""
        return await self.arun_flow(manage.purge(self, state))

    def pause(self, seconds: Delay | None = None) -> None:
        """Pause the queue for ``seconds``, by default until resume(). One round trip.

        A paused queue accepts jobs and gives out none; running jobs end as usual, and workers sleep. If the queue is
        paused already, this changes the end of the pause.
        """
        self.run_flow(pausing().pause(self, seconds))

    async def apause(self, seconds: Delay | None = None) -> None:
        """See pause()."""
        await self.arun_flow(pausing().pause(self, seconds))

    def resume(self) -> bool:
        """End the pause at once; False if the queue was not paused. One round trip."""
        return self.run_flow(pausing().resume(self))

    async def aresume(self) -> bool:
        """See resume()."""
        return await self.arun_flow(pausing().resume(self))

    def paused(self) -> PauseInfo | None:
        """Return when the queue was paused and when the pause ends; None if it is not paused. One round trip."""
        return self.run_flow(pausing().paused(self))

    async def apaused(self) -> PauseInfo | None:
        """See paused()."""
        return await self.arun_flow(pausing().paused(self))

    def _each(self, flow: Callable[..., Flow[Result]], worker: str | None) -> Flow[list[Result]]:
        return spread().each(self, partial(flow, worker=worker))

    def _jobs_of(self, claimed: Claimed, done: Sequence[Job]) -> list[Job]:
        if claimed.lost:
            raise claim.lost(self, [done[at] for at in claimed.lost])
        return claimed.jobs

    def _ended(self, lost: list[Job]) -> None:
        if lost:
            raise claim.lost(self, lost)

    def _placed(self, placed: PutResult) -> str:
        signals.announce(Queue, self.name, [placed.id] if placed.created else [])
        return placed.id

    async def _aplaced(self, placed: PutResult) -> str:
        await signals.aannounce(Queue, self.name, [placed.id] if placed.created else [])
        return placed.id


def _key(unique: str | None, until: Until, replace: bool) -> UniqueKey | None:
    if unique is None and replace is False:
        return None
    key: UniqueKey | None = unique_keys().chosen(unique, until, replace)
    return key
