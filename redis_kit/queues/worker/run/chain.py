"""The chain around a task: what the kit does with an attempt, in one list."""

from collections.abc import Sequence
from functools import partial
from itertools import compress, repeat
from operator import attrgetter, call
from time import monotonic
from typing import Any

from redis_kit.core.signals import send_safely
from redis_kit.queues import signals
from redis_kit.queues.engine.feature import middleware
from redis_kit.queues.errors import WorkerLost
from redis_kit.queues.tasks import current_job, expiry
from redis_kit.queues.tasks.current_job import CurrentJob
from redis_kit.queues.worker.run.attempt import ISOLATED, SUCCEEDED, Attempt, Failed
from redis_kit.queues.worker.run.call import Call
from redis_kit.queues.worker.run.middleware import Handler, Middleware, WorkerContext
from redis_kit.queues.worker.run.outcome import most_attempts
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.logs import guarded

AFTER = 1.0  # seconds that a task has to end after its timeout was raised inside it, before its process is killed


class Expiry(Middleware):
    """Ends attempts of jobs that were claimed too late."""

    is_used = attrgetter("call.expires")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        late = expiry.expired(attempt.job, attempt.call)
        if late:
            return Failed(late, None if attempt.unknown else attempt.task, final=True)
        return self.call_next(attempt)


class Crashes(Middleware):
    """Has a job whose process died run alone, as long as its task has attempts."""

    is_used = attrgetter("job.crashes")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        if not attempt.unknown and attempt.job.attempt > most_attempts(attempt.task):
            error = WorkerLost("its process died in the last of its attempts")
            return Failed(error, attempt.task, final=True)
        return ISOLATED if self.worker.isolates else self.call_next(attempt)


class Presence(Middleware):
    """Makes known that a job runs: to the supervisor, to receivers of signals, to log lines and to the task itself."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware. From here on, an error is that of the task."""
        if attempt.unknown:
            raise attempt.unknown  # no feature took it
        worker, source, job, task = self.worker, attempt.source, attempt.job, attempt.task
        key, started = (attempt.number, job.id), monotonic()
        hard = None if task.timeout is None else started + task.timeout + AFTER
        worker.board.begin(attempt.slot, attempt.number, job.token, job.id, hard)
        failpoints.reach("begun")
        if signals.job_started.receivers:
            send_safely(signals.job_started, Presence, queue=source.queue_name, job=job, task=task)
        current = CurrentJob(
            source,
            job,
            attempt.recorder.keeps if attempt.recorder else None,
            interruptible=task.on_cancel == "raise",
            stops=worker.stops,
            parts=worker.parts,
            number=attempt.number,
        )
        if attempt.recorder:
            attempt.recorder.begin(attempt.call)
        worker.running[key] = current
        tokens = current_job.begin(current, attempt.call.task)
        attempt.runs = True
        try:
            self.call_next(attempt)
            attempt.runs = False
        finally:
            attempt.seconds = monotonic() - started
            worker.running.pop(key, None)
            current_job.end(tokens)
        if current.ends:
            ends = [partial(end, current) for end in current.ends]
            attempt.announcements += tuple(partial(guarded, "The end of a task", end, None) for end in ends)
        if signals.job_succeeded.receivers:
            said = {"queue": source.queue_name, "job": job, "task": task}
            attempt.announcements += (partial(send_safely, signals.job_succeeded, Presence, **said),)
        return SUCCEEDED


class Chains:
    """The chains of a process, of the kit's middleware and that of features. Call is the end of each.

    From the outside to the task come the links by which a job leaves the worker, those around all that happens once it
    stays, Presence, and those around the task. Inside of Presence links see values and errors, outside of it endings.
    """

    def __init__(self, worker: WorkerContext) -> None:
        self._worker, self._call = worker, Call(worker)
        links: list[type[Middleware]] = [
            *(Expiry, *middleware("route"), Crashes),
            *(*middleware("begin"), Presence, *middleware("task"), *middleware("call")),
        ]
        usage = [(link, is_used) for link in links if (is_used := link.usage(worker))]
        self.links, self._uses = [link for link, _ in usage], [is_used for _, is_used in usage]
        self._chains: dict[tuple[bool, ...], Handler] = {}  # by which links an attempt uses

    def of(self, attempt: Attempt) -> Handler:
        """Return the chain of an attempt: each set of links that attempts use has one."""
        used = tuple(map(bool, map(call, self._uses, repeat(attempt))))
        return self._chains.get(used) or self._chains.setdefault(used, self._made(used))

    def _made(self, used: Sequence[bool]) -> Handler:
        chain: Handler = self._call
        for link in reversed(list(compress(self.links, used))):
            chain = link(chain, self._worker)
        return chain
