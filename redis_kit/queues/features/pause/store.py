"""Pauses of a queue, as flows."""

from redis_kit.core.flow import Flow, single
from redis_kit.core.primitive import Primitive
from redis_kit.queues import validation
from redis_kit.queues.engine import job
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.job import PauseInfo
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.validation import Delay

PAUSE, GET_PAUSE = (QueueScript(name, __package__) for name in ("pause", "get_pause"))
RESUME = -1  # in place of a time


def pause(queue: Primitive, seconds: Delay | None) -> Flow[None]:
    """Pause the queue."""
    time = 0 if seconds is None else validation.milliseconds(seconds, "seconds", positive=True)
    yield from spread().each(queue, lambda part: single(PAUSE(part.key(""), time)))


def resume(queue: Primitive) -> Flow[bool]:
    """End the pause of the queue."""
    return any((yield from spread().each(queue, lambda part: single(PAUSE(part.key(""), RESUME)))))


def paused(queue: Primitive) -> Flow[PauseInfo | None]:
    """Return the pause of the queue, if it is paused."""
    return next(filter(None, (yield from spread().each(queue, _paused))), None)


def _paused(queue: Primitive) -> Flow[PauseInfo | None]:
    reply = yield GET_PAUSE(queue.key(""))
    return job.pause(*reply) if reply else None
