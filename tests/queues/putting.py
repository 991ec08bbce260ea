"""Jobs of tasks that no module has."""

from redis_kit.queues import Queue, flows, message


def put(queue: Queue, id: str, task: str, args: object = (), kwargs: object = None, *, priority: int = 0) -> None:
    """Put a job that calls a task of this name."""
    job = id, message.dumps(task, args, kwargs or {})
    queue._run(flows.put(queue, [job], priority=priority))
