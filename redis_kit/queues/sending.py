"""How a task's call gets into its queue."""

from datetime import datetime, timedelta
from typing import Any

from redis_kit.core.flow import Flow
from redis_kit.queues import arguments, flows
from redis_kit.queues.queue import Queue

When = datetime | timedelta | None


def send(queue_name: str, job: tuple[str, bytes], when: When, priority: int) -> None:
    """Add a job of which id and body are known. One round trip."""
    queue = Queue(queue_name)
    queue._announce(queue._run(_put(queue, job, when, priority)))


async def asend(queue_name: str, job: tuple[str, bytes], when: When, priority: int) -> None:
    """See send()."""
    queue = Queue(queue_name)
    await queue._aannounce(await queue._arun(_put(queue, job, when, priority)))


def _put(queue: Queue, job: tuple[str, bytes], when: When, priority: int) -> Flow[Any]:
    if isinstance(when, datetime):
        return flows.put(queue, [job], due=arguments.moment(when), priority=priority)
    return flows.put(queue, [job], delay=when or 0, priority=priority)
