"""The sink "celery": jobs that are due go to the broker of Celery."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from redis_kit.queues import backend, framework
from redis_kit.queues.engine import history
from redis_kit.queues.engine.claim import version
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.features.celery.broker import Publisher, project_app
from redis_kit.queues.features.celery.stored_message import StoredMessage, TaskCall
from redis_kit.queues.features.celery.tasks import RUN
from redis_kit.queues.settings import options_of
from redis_kit.queues.tasks import registry
from redis_kit.queues.worker.run.sink import Sink
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

BATCH = 25  # messages: more of them hardly cost less each
AGAIN = 3600.0  # seconds after which a job that no Celery worker has begun is handed over once more, at least


class CelerySink(Sink):
    """Sends a job to the broker of Celery, with its id as the id of the task.

    A task of Celery is called by its name. A task of the kit is run by Celery's workers through the task
    ``redis_kit.run``, which claims the job from its queue, so that attempts, results and retries are the kit's.
    """

    title = "the broker of Celery"

    def __init__(self) -> None:
        self._app = project_app()
        self._publisher = Publisher(self._app)
        self.batch_size = BATCH if self._publisher.takes_many else 1
        self._backends = set(backend.sinks()) if framework.FOUND else set()

    def hand_over_many(self, queue: WorkerQueue, jobs: Sequence[tuple[Job, Message]]) -> list[float | Exception | None]:
        """See Sink."""
        calls = [self._call(queue, job, call) for job, call in jobs]
        errors = self._publisher.publish_many([call for call, _ in calls])
        return [error or seconds for error, (_, seconds) in zip(errors, calls, strict=True)]

    def prepare(self) -> None:
        """See Sink."""
        _ = self._app.tasks  # the first look at them imports and makes them all
        self._publisher.prepare()

    def close(self) -> None:
        """See Sink."""
        self._publisher.close()

    def _call(self, queue: WorkerQueue, job: Job, call: Message) -> tuple[TaskCall, float | None]:
        """Return what Celery is to call, and the answer of hand_over() when the broker has that."""
        if "headers" in call.options:  # Celery has made its message
            return StoredMessage.loads(call, job.id), None
        options = _traced(self._options(queue.queue_name, job), call)
        if self._is_ours(job, call):
            claim = [queue.name, job.id, version(job), job.token]
            options["ignore_result"] = True
            return TaskCall(RUN, claim, {}, job.id, options), max(AGAIN, job.claimed - job.due)
        if call.expires:
            options["expires"] = datetime.fromtimestamp(job.due + call.expires / 1000, UTC).isoformat()
        return TaskCall(call.task, call.args, call.kwargs, job.id, options), None

    def _is_ours(self, job: Job, call: Message) -> bool:
        """Return whether a job calls a task of the kit, and not one of Celery."""
        alias = history.backend(job.history) if job.history else None
        if alias in self._backends:
            return True
        if call.task in self._app.tasks:
            return False
        return alias is not None or registry.is_registered(call.task)

    def _options(self, queue: str, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if name := options_of(queue).CELERY_QUEUE:
            options["queue"] = name
        if job.priority:
            options["priority"] = self._priority(job.priority)
        return options

    def _priority(self, priority: int) -> int:
        """Return the priority in Celery, 0 to 9. Redis serves low numbers first, other brokers high ones.

        On Redis a message without a priority has 0, so what is less urgent than that comes after it.
        """
        if self._publisher.kind == "redis":
            return 0 if priority > 0 else 3 + (-priority * 6) // 100
        return 5 + (priority * 4) // 100 if priority > 0 else (100 + priority) * 4 // 100


def _traced(options: Mapping[str, Any], call: Message) -> dict[str, Any]:
    """Return options with the context of the call's span as headers, where Celery's instrumentation looks for it."""
    headers = {"headers": {**call.trace, **(options.get("headers") or {})}} if call.trace else {}
    return {**options, **headers}
