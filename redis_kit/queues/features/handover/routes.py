"""Jobs go to the sinks of their queues, backends or messages, with others that wait if a sink takes several at once."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from random import uniform
from threading import Lock
from time import monotonic
from typing import Any

from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.error_text import described
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine import calls, claim
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.done import ack_of
from redis_kit.queues.engine.feature import Process, ProcessPart, named_sinks
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage, NotTaken
from redis_kit.queues.features.handover.inspection import sinks_of_backends
from redis_kit.queues.settings import QUEUE_OPTIONS, options_of
from redis_kit.queues.tasks import registry, retry
from redis_kit.queues.worker.run.attempt import Attempt, Middleware, WorkerContext
from redis_kit.queues.worker.run.endings import Departure, FailedAttempt, Runner
from redis_kit.queues.worker.run.sink import Answer, Sink
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.failures import guarded
from redis_kit.queues.worker.shared.worker_queue import Done, WorkerQueue

logger = logging.getLogger("redis_kit.worker")
FIRST, LONGEST = 0.5, 30.0  # seconds until another system that does not answer is asked again
SHORTEST, MOST = 1.0, 600.0  # seconds until a job that another system refused is handed over again
TTL_MS = 90 * 86_400_000  # for which the counts of a queue that hands over nothing are stored
COUNT_HANDOVERS = QueueScript("count_handovers", __package__)


class UnusableSink(Sink):
    """Stands for a sink that a wrong setting keeps from working. Jobs stay in their queue until the worker restarts."""

    title = "the sink"

    def __init__(self, error: ConfigurationError) -> None:
        self._error = error

    def hand_over(self, queue: WorkerQueue, job: Job, call: Message) -> float | None:
        """See Sink."""
        raise NotTaken("the sink can't be used") from self._error


class Route:
    """The way of one queue's jobs to a sink: whether the other system answers, and what the dashboard shows of it."""

    def __init__(self, source: WorkerQueue, sink: Sink, name: str) -> None:
        self._source, self._sink, self._name = source, sink, name
        self._lock = Lock()
        self._failures, self._retry_at = 0, 0.0
        self._asking = False  # while it is unavailable, one thread asks after each pause
        self._refusing = False
        self._sent = self._failed = 0
        self._error = ""

    @property
    def batch_size(self) -> int:
        """Return how many jobs may be handed over at once: one alone asks whether a system is back."""
        return 1 if self._failures else self._sink.batch_size

    def hand_over(self, jobs: Sequence[tuple[Job, Message]]) -> list[Answer]:
        """Hand jobs over, and return the answer for each. Those that the other system claims are back in the queue."""
        try:
            self._ask()
        except NotTaken as error:
            return [error] * len(jobs)
        try:
            answers = self._answers(jobs)
            self._note(answers)
        finally:
            self._asking = False
        pairs = zip(jobs, answers, strict=True)
        claimed = [(job, answer) for (job, _), answer in pairs if isinstance(answer, int | float)]
        if claimed:  # one that it began before this is not in our hands any more
            guarded("The return of jobs that were handed over", lambda: self._postpone(claimed, holds=True), None)
        return answers

    def put_off(self, job: Job) -> None:
        """Return a job that the other system refused to its queue, for as long as it is late, and 1 s at least."""
        seconds = min(MOST, max(SHORTEST, job.claimed - job.due)) * uniform(0.75, 1.0)  # noqa: S311
        self._postpone([(job, seconds)], holds=False)

    @property
    def pause(self) -> float:
        """Return the seconds until the other system is asked again; 0 if it answers."""
        return max(FIRST if self._asking else 0.0, self._retry_at - monotonic()) if self._failures else 0.0

    def report(self) -> None:
        """Store what was counted since the last report. One round trip, or none."""
        try:
            for step in self._counts():
                self._source.run_flow(single(step))
        except RedisFailure as error:
            logger.debug("Queue %a: hand-overs could not be counted: %s", self._source.name, error)

    def _counts(self) -> list[ScriptCall]:
        """Return the step that stores what was counted since the last one, if there is anything."""
        with self._lock:
            if not (self._sent or self._failed):
                return []
            sent, failed, self._sent, self._failed = self._sent, self._failed, 0, 0
            return [COUNT_HANDOVERS(self._source.key(""), sent, failed, calls.cut(self._error), self._name, TTL_MS)]

    def _ask(self) -> None:
        """Return if the other system may be asked now. Raises NotTaken."""
        with self._lock:
            if self._failures and (self._asking or monotonic() < self._retry_at):
                raise NotTaken(self._error)
            self._asking = bool(self._failures)

    def _answers(self, jobs: Sequence[tuple[Job, Message]]) -> list[Answer]:
        """Ask the sink. An error that it raises stands for the answers to all jobs."""
        try:
            answers = list(self._sink.hand_over_many(self._source, jobs))
            if len(answers) != len(jobs):
                what = f"{type(self._sink).__name__}.hand_over_many()"
                raise ValueError(f"{what} must return an answer for each job, not {len(answers)} for {len(jobs)} jobs.")
        except Exception as error:
            return [error] * len(jobs)
        return answers

    def _note(self, answers: Sequence[Answer]) -> None:
        """Count what was taken and what was not, and remember whether the other system answers."""
        errors = [answer for answer in answers if isinstance(answer, NotTaken)]
        taken = sum(not isinstance(answer, Exception) for answer in answers)
        details = self._source.name, self._sink.title
        with self._lock:
            self._sent += taken
            self._failed += len(errors)
            was_failing = self._failures or self._refusing
            if errors:
                self._note_error(max(errors, key=lambda error: error.unavailable))
            elif taken:
                self._failures, self._refusing = 0, False
        if was_failing and taken and not errors:
            logger.warning("Queue %a: %s takes jobs again.", *details)
        if errors and not was_failing:
            logger.error("Queue %a: %s does not take jobs; they stay in the queue: %s", *details, self._error)
        if errors:
            guarded("The count of a failure", self.report, None)

    def _note_error(self, error: NotTaken) -> None:
        self._error = described(error.__cause__ or error)
        self._refusing = not error.unavailable
        if self._refusing:
            self._failures = 0
            return
        pause = min(LONGEST, FIRST * 2 ** min(self._failures, 30)) * uniform(0.5, 1.0)  # noqa: S311
        self._failures += 1
        self._retry_at = monotonic() + pause

    def _postpone(self, jobs: Sequence[tuple[Job, float]], *, holds: bool) -> None:
        postponed = self._source.run_flow(claim.postpone(self._source, jobs, holds=holds, more=self._counts()))
        for (job, _), is_here in zip(jobs, postponed, strict=True):
            if not is_here:
                logger.debug("Queue %a: job %a is not claimed here any more.", self._source.name, job.id)


class Routes(ProcessPart):
    """The routes of a worker process."""

    def __init__(self, process: Process) -> None:
        sources = self._sources = process.sources
        self._by_backend = sinks_of_backends()
        self._lock = Lock()
        self._sinks: dict[str, Sink] = {}
        self._routes: dict[tuple[int, str], Route] = {}
        of_queues = {options_of(source.name).SINK for source in sources} - {""}
        of_messages = {registry.sinks[source.queue_name] for source in sources if source.queue_name in registry.sinks}
        self._named = of_queues | of_messages
        self.used = bool(self._by_backend or of_queues)

    def run(self) -> None:
        """Let the sinks connect."""
        for name in self._named | set(self._by_backend.values()):
            try:
                self._sink(name).prepare()
            except Exception as error:
                logger.debug("%s is not ready: %s", name, described(error))

    def of(self, attempt: Attempt) -> Route | None:
        """Return the route of a job; None if it runs here. Raises CorruptMessage.

        A message of a feature, and one of a newer release, is for workers of the kit.
        """
        call, number, recorder = attempt.call, attempt.number, attempt.recorder
        if call.extra or not call.task:
            return None
        name = call.sink
        if name and name not in named_sinks():  # a message never makes a worker import a module
            raise CorruptMessage(f"a message for the unknown sink {name[:100]!a}")
        if self.used and not name:
            alias = recorder.alias if recorder else "" if attempt.unknown else attempt.task.backend
            name = options_of(self._sources[number].name).SINK or self._by_backend.get(alias, "")
        return self._route(number, name) if name else None

    def close(self) -> None:
        """Report what was counted, and end all connections."""
        for route in list(self._routes.values()):
            guarded("The count of hand-overs", route.report, None)
        for sink in list(self._sinks.values()):
            guarded("The end of a sink", sink.close, None)

    def _route(self, number: int, name: str) -> Route:
        if (number, name) not in self._routes:
            sink = self._sink(name)
            with self._lock:
                self._routes.setdefault((number, name), Route(self._sources[number], sink, name))
        return self._routes[number, name]

    def _sink(self, name: str) -> Sink:
        with self._lock:
            if name not in self._sinks:
                try:
                    self._sinks[name] = load(name)()
                except ConfigurationError as error:
                    self._sinks[name] = UnusableSink(error)
            return self._sinks[name]


def load(name: str) -> type[Sink]:
    """Return the class of a sink, by its word or dotted path. Raises ConfigurationError."""
    try:
        kind: Any = import_string(named_sinks().get(name, name))
    except ImportError as error:
        if name in named_sinks():
            wrong = f"The sink {name!r} needs the package {name}: pip install 'django-redis-kit[{name}]'"
            raise ConfigurationError(f"{wrong} ({error}).") from error
        raise ConfigurationError(f"The sink {name!r} of {QUEUE_OPTIONS} can't be imported: {error}.") from error
    if not (isinstance(kind, type) and issubclass(kind, Sink)):
        raise ConfigurationError(f"The sink {name!r} of {QUEUE_OPTIONS} is not a subclass of redis_kit.queues.Sink.")
    return kind


class HandOver(Middleware):
    """Ends the attempts of jobs that another system runs."""

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        routes: Any = self.worker.parts["handover"]
        route = routes.of(attempt)
        return HandedOver(route, routes) if route else self.call_next(attempt)

    @classmethod
    def usage(cls, worker: WorkerContext) -> "attrgetter[Any] | None":
        """See Middleware. Without a queue or backend that has a sink, only messages that name one leave."""
        routes: Any = worker.parts.get("handover")
        if routes is None:
            return None
        return cls.is_used if routes.used else attrgetter("call.sink")


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
            return not retry.expired(attempt.job, attempt.call) and self._routes.of(attempt) is self._route
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
