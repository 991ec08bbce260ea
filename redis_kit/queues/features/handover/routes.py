"""The routes of queues to sinks: whether the other system answers, and what the dashboard shows of it."""

import logging
from collections.abc import Mapping, Sequence
from random import uniform
from threading import Lock
from time import monotonic
from typing import Any

from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import single
from redis_kit.core.logs.error_text import described
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues import framework
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.feature import ProcessPart, named_sinks
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage, NotTaken
from redis_kit.queues.features.handover import store
from redis_kit.queues.settings import QUEUE_OPTIONS, options_of
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.run.sink import Answer, Sink
from redis_kit.queues.worker.shared.failures import guarded
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

logger = logging.getLogger("redis_kit.worker")
FIRST, LONGEST = 0.5, 30.0  # seconds until another system that does not answer is asked again
SHORTEST, MOST = 1.0, 600.0  # seconds until a job that another system refused is handed over again


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
            return [store.count(self._source, sent=sent, failed=failed, error=self._error, to=self._name)]

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
    """The routes of a worker process. ``by_backend`` names the sinks of task backends, by alias."""

    def __init__(self, sources: Sequence[WorkerQueue], by_backend: Mapping[str, str]) -> None:
        self._sources, self._by_backend = sources, by_backend
        self._lock = Lock()
        self._sinks: dict[str, Sink] = {}
        self._routes: dict[tuple[int, str], Route] = {}
        of_queues = {options_of(source.name).SINK for source in sources} - {""}
        of_messages = {registry.sinks[source.queue_name] for source in sources if source.queue_name in registry.sinks}
        self._named = of_queues | of_messages
        self.used = bool(by_backend or of_queues)

    def run(self) -> None:
        """Let the sinks connect."""
        for name in self._named | set(self._by_backend.values()):
            try:
                self._sink(name).prepare()
            except Exception as error:
                logger.debug("%s is not ready: %s", name, described(error))

    def of(self, number: int, call: Message, alias: str | None) -> Route | None:
        """Return the route of a call, given the number of its queue and its backend; None if it runs here."""
        name = call.sink
        if name and name not in named_sinks():  # a message never makes a worker import a module
            raise CorruptMessage(f"a message for the unknown sink {name[:100]!a}")
        if self.used and not name:
            name = options_of(self._sources[number].name).SINK or self._by_backend.get(alias or "", "")
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


def sinks_of_backends() -> dict[str, str]:
    """Return the sinks of the task backends that have one, by alias."""
    if not framework.FOUND:
        return {}
    from redis_kit.queues import backend

    return backend.sinks()


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
