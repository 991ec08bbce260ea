"""Jobs of tasks that no module has."""

from redis_kit.queues import Queue
from redis_kit.queues.engine import enqueue, message
from redis_kit.queues.engine.calls import Turn


def put(
    queue: Queue,
    id: str,
    task: str,
    args: object = (),
    kwargs: object = None,
    *,
    priority: int = 0,
    delay: int = 0,
    tags: tuple[str, ...] = (),
) -> None:
    """Put a job that calls a task of this name."""
    job = id, message.dumps(task, args, kwargs or {}, tags=tags)
    queue.run_flow(enqueue.put(queue, [job], Turn(priority=priority, delay=delay)))


def die(queue: Queue, *reasons: str, task: str = "shop.tasks.send", size: int = 0, tags: tuple[str, ...] = ()) -> None:
    """Let a job of a task die of each reason."""
    for reason in reasons:
        put(queue, f"j{sum(queue.counts())}", task, ("x" * size,), tags=tags)
        queue.nack(*queue.claim(), max_attempts=1, error=reason)
