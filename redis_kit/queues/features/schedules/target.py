"""The job that a tick of a schedule adds, and the task of ticks that are passed on, to Celery or another backend.

Workers' supervisors add jobs to Redis only: a broker or database that hangs must not keep them from their heartbeats.
A thread of a worker passes such a tick on.
"""

import hashlib
from base64 import urlsafe_b64encode
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.utils import timezone

from redis_kit.core.errors import ConfigurationError
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine import feature, history, ids, message
from redis_kit.queues.engine.feature import lane_of
from redis_kit.queues.engine.message import Message
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.errors import GiveUp
from redis_kit.queues.features.schedules import store
from redis_kit.queues.features.schedules.definition import Definition
from redis_kit.queues.features.schedules.periodic import runs_here
from redis_kit.queues.queue import Queue
from redis_kit.queues.tasks import current_job, enqueue, registry
from redis_kit.queues.tasks.enqueue import PackedCall
from redis_kit.queues.tasks.options import copy
from redis_kit.queues.tasks.task import Task, extended


class ScheduledCall(NamedTuple):
    """The call of a schedule, and the queue of its jobs. ``backend`` is "" if no result is stored."""

    definition: Definition
    queue: str
    packed: PackedCall
    priority: int = 0
    backend: str = ""

    @property
    def shard(self) -> str:
        """Return the queue, or the shard of it, that gets the jobs of the schedule."""
        place = spread().place(self.queue, lane=self.packed.lane, key=self.packed.key, id=self.definition.name)
        return place or self.queue

    def step(self, tick: int) -> ScriptCall:
        """Return the step that adds the job of a tick; 0 for a run that somebody asked for."""
        name, queue = self.definition.name, self.shard
        id = job_id(queue, name, tick) if tick else ids.new_call(queue)
        about = history.line(timezone.now(), None, self.backend) if self.backend else b""
        body, unique, lane = self.packed
        key, until = (unique.key, unique.until) if unique else ("", "")
        job = (self.priority, id, about + body, key, until, lane)
        return store.PUT_TICK(Queue(queue).key(""), name, tick, self.definition.overlap, *job, job=key or "-")


def job_id(queue: str, name: str, tick: int) -> str:
    """Return the id of the job of a tick."""
    digest = hashlib.sha256(f"{name}\0{tick}".encode("utf-8", "surrogatepass")).digest()
    return ids.of_queue(f"S{urlsafe_b64encode(digest)[:13].decode()}", queue)


def call_of(definition: Definition, relay_queue: str) -> ScheduledCall:
    """Return the call of a schedule. Tasks of other backends are passed on by a job in ``relay_queue``.

    Raises UnknownTask if this process lacks the task, and what enqueue() raises for its arguments.
    """
    name, args, kwargs = definition.task, definition.args, definition.kwargs
    if definition.kind == "task":
        task = registry.find_for(Message(name, args, kwargs))
        if runs_here(task):
            task = extended(task)
            if definition.queue:
                task = task.using(queue_name=definition.queue)
            packed = enqueue.packed(task, args, kwargs)
            backend = task.backend if task.store_result else ""
            return ScheduledCall(definition, task.queue_name, packed, task.priority, backend)
    body = message.dumps(NAME, [definition.kind, name, definition.queue, args, kwargs], {})
    return ScheduledCall(definition, relay_queue, PackedCall(body, None, lane_of(relay_queue)))


def send(kind: str, name: str, queue: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Pass a call on. One of Celery has the id of this job, which is the same in each attempt."""
    if kind == "celery":
        id = current_job.get().job.id  # type: ignore[union-attr]  # it runs as a job
        try:
            celery_send()(name, args, kwargs, id=id, queue=queue)
        except ConfigurationError as error:
            raise GiveUp(str(error)) from error
        return
    task = registry.find(name)
    (task.using(queue_name=queue) if queue else task).enqueue(*args, **kwargs)


def celery_send() -> Any:
    """Return the function that sends a call to Celery. Raises GiveUp without Celery."""
    try:
        return feature.provided("celery_sender")
    except (ImportError, ConfigurationError) as error:
        raise GiveUp(f"A schedule of a Celery task needs Celery: {error}") from error


# Not made by @task, which would check it against the backends of the project: no project enqueues it.
send: Task[..., Any] = copy(  # type: ignore[no-redef]
    SimpleNamespace(func=send, queue_name="default", backend="default", priority=0), Task
)
NAME = f"{__name__}.send"
