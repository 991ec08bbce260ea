"""Hands jobs over to the sinks of their routes, with others that wait if a sink takes several at once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from redis_kit.queues.engine.ack import ack_of
from redis_kit.queues.engine.job import Job
from redis_kit.queues.errors import NotTaken
from redis_kit.queues.tasks import expiry
from redis_kit.queues.worker.run.attempt import Attempt
from redis_kit.queues.worker.run.middleware import Middleware, WorkerContext
from redis_kit.queues.worker.run.outcome import FailedAttempt, failed
from redis_kit.queues.worker.run.sink import Answer, Route, Routes
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done, RecentAcks
from redis_kit.queues.worker.shared.logs import guarded


class Claims(Protocol):
    """The part of the fetcher that a runner needs. ``recent`` remembers which ends of jobs were recorded."""

    recent: RecentAcks

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """Give a thread that has a job the next ones too, if they are of this queue."""

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """Take jobs back that take_more() gave last."""

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """Return jobs to their queue, and claim none there for some seconds."""

    def retry_later(self, call: Callable[[], None]) -> None:
        """Make a call that failed again, later."""


class NoClaims:
    """The claims of a thread that claims each of its jobs by itself: no others wait."""

    def __init__(self) -> None:
        self.recent = RecentAcks()

    def take_more(self, slot: int, number: int, limit: int) -> list[Job]:
        """See Claims."""
        return []

    def put_back(self, slot: int, number: int, jobs: Sequence[Job]) -> None:
        """See Claims."""

    def put_off(self, number: int, jobs: Sequence[Job], seconds: float) -> None:
        """See Claims."""

    def retry_later(self, call: Callable[[], None]) -> None:
        """See Claims. Nothing is done: the claim ends with its lease."""


class HandedOver(NamedTuple):
    """The ending of an attempt whose job goes to another system."""

    route: Route


class HandOver(Middleware):
    """Ends the attempts of jobs that another system runs."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        route = None if attempt.call.extra else route_of(self.worker.routes, attempt)
        return HandedOver(route) if route else self.call_next(attempt)

    @classmethod
    def usage(cls, worker: WorkerContext) -> "attrgetter[Any]":
        """See Middleware. Without a queue or backend that has a sink, only messages that name one leave."""
        return cls.is_used if worker.routes.used else attrgetter("call.sink")


def route_of(routes: Routes, attempt: Attempt) -> Route | None:
    """Return the route of a job; None if it runs here. Raises CorruptMessage."""
    call, number = attempt.call, attempt.number
    if attempt.recorder:
        return routes.of(number, call, attempt.recorder.alias)
    return routes.of(number, call, None if attempt.unknown else attempt.task.backend)


class HandOvers:
    """Hands jobs over; shared by all threads of the worker. ``load`` reads the call of an attempt."""

    def __init__(
        self,
        worker: WorkerContext,
        claims: Claims,
        *,
        load: Callable[[Attempt], None],
        record: Callable[[FailedAttempt], None],
    ) -> None:
        self._worker, self._claims, self._load, self._record = worker, claims, load, record

    def run(self, first: Attempt, route: Route) -> list[Done]:
        """Hand a job over, with others that go the same way. Return those that are done here."""
        slot, number = first.slot, first.number
        others = self._others(first, route)
        batch = [first, *others]
        try:
            answers = route.hand_over([(each.job, each.call) for each in batch])
        except BaseException:
            self._claims.put_back(slot, number, [each.job for each in others])
            raise
        if any(answer is None for answer in answers):
            failpoints.reach("handed_over")
        return self._settled(number, route, list(zip(batch, answers, strict=True)))

    def _others(self, first: Attempt, route: Route) -> list[Attempt]:
        """Take jobs that wait, up to the first one that does not go this way."""
        slot, number, limit = first.slot, first.number, route.batch_size - 1
        jobs = self._claims.take_more(slot, number, limit) if limit else []
        others: list[Attempt] = []
        for job in jobs:
            attempt = Attempt(slot, number, first.source, job)
            if not self._goes(attempt, route):
                break
            others.append(attempt)
        self._claims.put_back(slot, number, jobs[len(others) :])
        return others

    def _goes(self, attempt: Attempt, route: Route) -> bool:
        with suppress(Exception):  # it is recorded when a thread begins the job
            self._load(attempt)
            if attempt.call.extra or expiry.expired(attempt.job, attempt.call):
                return False
            return route_of(self._worker.routes, attempt) is route
        return False

    def _settled(self, number: int, route: Route, answers: Sequence[tuple[Attempt, Answer]]) -> list[Done]:
        done, unavailable = [], []
        for attempt, answer in answers:
            job = attempt.job
            if answer is None:
                done.append(Done(job, ack_of(job, source=number), route.report))
            elif isinstance(answer, NotTaken) and answer.unavailable:
                unavailable.append(job)
            elif isinstance(answer, NotTaken):
                guarded("The return of a refused job", partial(route.put_off, job), None)
            elif isinstance(answer, Exception):
                self._record(failed(attempt.source, job, answer, recorder=attempt.recorder))
        if unavailable:
            self._claims.put_off(number, unavailable, route.pause)
        return done
