"""Jobs go to the sinks of their routes, with others that wait if a sink takes several at once."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.errors import NotTaken
from redis_kit.queues.features.handover.routes import Route, Routes
from redis_kit.queues.tasks import expiry
from redis_kit.queues.worker.run.attempt import Attempt, Middleware, WorkerContext
from redis_kit.queues.worker.run.endings import Departure, FailedAttempt, Runner
from redis_kit.queues.worker.run.sink import Answer
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import guarded
from redis_kit.queues.worker.shared.worker_queue import Done


class HandOver(Middleware):
    """Ends the attempts of jobs that another system runs."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware. A message of a feature, and one of a newer release, is for workers of the kit."""
        routes: Any = self.worker.parts["handover"]
        call = attempt.call
        route = route_of(routes, attempt) if call.task and not call.extra else None
        return HandedOver(route, routes) if route else self.call_next(attempt)

    @classmethod
    def usage(cls, worker: WorkerContext) -> "attrgetter[Any] | None":
        """See Middleware. Without a queue or backend that has a sink, only messages that name one leave."""
        routes: Any = worker.parts.get("handover")
        if routes is None:
            return None
        return cls.is_used if routes.used else attrgetter("call.sink")


def route_of(routes: Routes, attempt: Attempt) -> Route | None:
    """Return the route of a job; None if it runs here. Raises CorruptMessage."""
    call, number = attempt.call, attempt.number
    if attempt.recorder:
        return routes.of(number, call, attempt.recorder.alias)
    return routes.of(number, call, None if attempt.unknown else attempt.task.backend)


class HandedOver(Departure):
    """The ending of an attempt whose job goes to another system. It is not noted as begun: a kill is not its fault."""

    def __init__(self, route: Route, routes: Routes) -> None:
        self._route, self._routes = route, routes

    def carry_out(self, attempt: Attempt, runner: Runner) -> list[Done]:
        """Hand a job over, with others that go the same way. Return those that are done here."""
        slot, number, route = attempt.slot, attempt.number, self._route
        others = self._others(attempt, runner)
        batch = [attempt, *others]
        try:
            answers = route.hand_over([(each.job, each.call) for each in batch])
        except BaseException:
            runner.claims.put_back(slot, number, [each.job for each in others])
            raise
        if any(answer is None for answer in answers):
            failpoints.reach("handed_over")
        return self._settled(number, list(zip(batch, answers, strict=True)), runner)

    def _others(self, first: Attempt, runner: Runner) -> list[Attempt]:
        """Take jobs that wait, up to the first one that does not go this way."""
        slot, number, limit = first.slot, first.number, self._route.batch_size - 1
        jobs = runner.claims.take_more(slot, number, limit) if limit else []
        others: list[Attempt] = []
        for job in jobs:
            attempt = Attempt(slot, number, first.source, job)
            if not self._goes(attempt, runner):
                break
            others.append(attempt)
        runner.claims.put_back(slot, number, jobs[len(others) :])
        return others

    def _goes(self, attempt: Attempt, runner: Runner) -> bool:
        with suppress(Exception):  # it is recorded when a thread begins the job
            attempt.load(runner.recorder_of)
            call = attempt.call
            if call.extra or not call.task or expiry.expired(attempt.job, call):
                return False
            return route_of(self._routes, attempt) is self._route
        return False

    def _settled(self, number: int, answers: Sequence[tuple[Attempt, Answer]], runner: Runner) -> list[Done]:
        done, unavailable, route = [], [], self._route
        for attempt, answer in answers:
            job = attempt.job
            if answer is None:
                done.append(Done(job, ack_of(job, source=number), route.report))
            elif isinstance(answer, NotTaken) and answer.unavailable:
                unavailable.append(job)
            elif isinstance(answer, NotTaken):
                guarded("The return of a refused job", partial(route.put_off, job), None)
            elif isinstance(answer, Exception):
                runner.record(FailedAttempt(attempt.source, job, answer, recorder=attempt.recorder))
        if unavailable:
            runner.claims.put_off(number, unavailable, route.pause)
        return done
