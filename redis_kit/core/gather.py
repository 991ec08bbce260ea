"""Several flows at once: what each of them asks next goes to the server in one round trip."""

from collections.abc import Sequence
from typing import Any, TypeVar

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch

Result = TypeVar("Result")


class Each(Batch):
    """A batch whose replies stand for themselves: an error among them is returned, not raised."""

    def result(self, replies: list[Any]) -> list[Any]:
        """Return them as they are."""
        return replies


def together(flows: Sequence[Flow[Result]]) -> Flow[list[Result | Exception]]:
    """Carry out flows side by side; return what each returned or raised.

    All they may yield are script calls. What interrupts them is raised in each, so that each can clean up, and again at
    the end.
    """
    results: list[Any] = [None] * len(flows)
    replies: list[Any] = [None] * len(flows)
    going = list(range(len(flows)))
    interrupted: BaseException | None = None
    while True:
        steps = {place: step for place in going if (step := _next(flows[place], place, replies, results)) is not None}
        if not steps:
            break
        going = list(steps)
        try:
            found = yield Each(list(steps.values()))
        except BaseException as error:
            interrupted = interrupted or (None if isinstance(error, Exception) else error)
            found = [error] * len(steps)
        for place, reply in zip(going, found, strict=True):
            replies[place] = reply
    if interrupted:
        raise interrupted
    return results


def _next(flow: Flow[Any], place: int, replies: list[Any], results: list[Any]) -> Any:
    reply = replies[place]
    try:
        return flow.throw(reply) if isinstance(reply, BaseException) else flow.send(reply)
    except StopIteration as stop:
        results[place] = stop.value
    except Exception as error:
        results[place] = error
    except BaseException:
        results[place] = None  # raised again for all of them
    return None
