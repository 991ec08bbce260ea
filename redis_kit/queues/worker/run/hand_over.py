"""Hands jobs over to the sinks of their routes, with others that wait if a sink takes several at once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

from redis_kit.queues.errors import NotTaken
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs.ack import ack_of
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.message import Message
from redis_kit.queues.tasks import expiry, registry
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed
from redis_kit.queues.worker.run.recorder import ResultRecorder, recorder_of
from redis_kit.queues.worker.run.sink import Answer, Route, Routes
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done
from redis_kit.queues.worker.shared.logs import guarded
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


class WaitingJobs(Protocol):
    """The jobs that the worker has claimed and that no thread has begun."""

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """Give a thread that has a job the next ones too, if they are of this queue."""

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """Take jobs back that take_more() gave last."""


class NoJobs:
    """No jobs wait: those of a thread that claims each of its jobs by itself."""

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """See WaitingJobs."""
        return []

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """See WaitingJobs."""


class RoutedJob(NamedTuple):
    """A job that goes to another system."""

    job: Job
    call: Message
    recorder: ResultRecorder | None
    route: Route


class HandOver:
    """Hands jobs over; shared by all threads of the worker."""

    def __init__(
        self,
        sources: Sequence[WorkerQueue],
        routes: Routes,
        *,
        waiting: WaitingJobs,
        put_off: Callable[[int, Sequence[Job], float], None],
        backends: dict[str, Any],
        record: Callable[[FailedAttempt], None],
    ) -> None:
        self._sources, self._routes, self._waiting, self._put_off = sources, routes, waiting, put_off
        self._backends, self._record = backends, record

    def route_of(self, number: int, job: Job, call: Message, recorder: ResultRecorder | None) -> Route | None:
        """Return the route of a job; None if it runs or ends here. Raises UnknownTask, and CorruptMessage."""
        if call.step or not (call.sink or self._routes.used) or expiry.expired(job, call):
            return None
        route = self._routes.of(number, call, recorder.alias if recorder else None)
        if route or recorder:
            return route
        return self._routes.of(number, call, registry.find_for(call).backend)

    def run(self, slot: int, number: int, first: RoutedJob) -> list[Done]:
        """Hand a job over, with others that go the same way. Return those that are done here."""
        others = self._others(slot, number, first.route)
        batch = [first, *others]
        try:
            answers = first.route.hand_over([(each.job, each.call) for each in batch])
        except BaseException:
            self._waiting.put_back(slot, number, [each.job for each in others])
            raise
        if any(answer is None for answer in answers):
            failpoints.reach("handed_over")
        return self._settled(number, first.route, list(zip(batch, answers, strict=True)))

    def _others(self, slot: int, number: int, route: Route) -> list[RoutedJob]:
        """Take jobs that wait, up to the first one that does not go this way."""
        others: list[RoutedJob] = []
        if (limit := route.batch_size - 1) and (jobs := self._waiting.take_more(slot, number, limit)):
            for job in jobs:
                routed = self._routed(number, job)
                if not routed or routed.route is not route:
                    break
                others.append(routed)
            self._waiting.put_back(slot, number, jobs[len(others) :])
        return others

    def _routed(self, number: int, job: Job) -> RoutedJob | None:
        with suppress(Exception):  # it is recorded when a thread begins the job
            recorder = recorder_of(self._sources[number], job, self._backends)
            call = message.loads(job.body)
            if route := self.route_of(number, job, call, recorder):
                return RoutedJob(job, call, recorder, route)
        return None

    def _settled(self, number: int, route: Route, answers: Sequence[tuple[RoutedJob, Answer]]) -> list[Done]:
        done, unavailable = [], []
        for (job, _, recorder, _), answer in answers:
            if answer is None:
                done.append(Done(job, ack_of(job, source=number), route.report))
            elif isinstance(answer, NotTaken) and answer.unavailable:
                unavailable.append(job)
            elif isinstance(answer, NotTaken):
                guarded("The return of a refused job", partial(route.put_off, job), None)
            elif isinstance(answer, Exception):
                self._record(failed(self._sources[number], job, answer, recorder=recorder))
        if unavailable:
            self._put_off(number, unavailable, route.pause)
        return done
