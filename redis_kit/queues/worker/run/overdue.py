"""A job whose process had to be killed since it ran for too long: a failed attempt, as if the task had raised it."""

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Call
from redis_kit.queues.errors import TaskTimeout
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs.job import Job, LeaseLost, read
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.task import extended
from redis_kit.queues.worker.run.outcome import failed
from redis_kit.queues.worker.run.recorder import recorder_of
from redis_kit.queues.worker.shared.status_board import Running
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue


def fail(source: WorkerQueue, running: Running) -> None:
    """End the attempt of a job that ran in a dead child. Two round trips; a repeat is safe."""
    record = source._run(_record(source, running.id))
    if record is None:
        return
    found = read(record)
    about = found.story if running.id.isascii() else b""
    job = Job(running.id, found.body, running.token, found.attempts, found.crashes, found.priority, found.due, about)
    call = message.loads(job.body)
    task, its = extended(registry.find(call.task)), recorder_of(source, job, {})
    if its:
        its.resume(call)
    error = TaskTimeout(f"{task.module_path} ran for more than {task.timeout} s")
    failure = failed(source, job, error, task=task, keeper=its, killed=True)
    try:
        state = failure.record()
    except LeaseLost:
        return
    failure.announce(state)


def _record(source: WorkerQueue, id: str) -> Flow[bytes | None]:
    found: bytes | None = yield Call("HGET", source.key("jobs"), id.encode("utf-8", "surrogateescape"))
    return found
