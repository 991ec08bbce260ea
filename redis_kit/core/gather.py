"""Several flows side by side: the next calls of all of them go to the server in one round trip."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, TolerantBatch

Result = TypeVar("Result")


@overload
def gather(flows: Sequence[Flow[Result]]) -> Flow[list[Result]]: ...
@overload
def gather(flows: Sequence[Flow[Result]], *, return_exceptions: Literal[True]) -> Flow[list[Result | Exception]]: ...


def gather(flows: Sequence[Flow[Any]], *, return_exceptions: bool = False) -> Flow[list[Any]]:
    """Carry out flows side by side and return their results, in as many round trips as the longest of them needs.

    The flows may yield single calls, calls of scripts and batches of these. All of them are carried out to their end.
    Then the first exception among them is raised, or, with ``return_exceptions``, each stands in place of its result.
    An interruption, such as a cancellation, is raised in each flow, so that each can clean up, and again at the end.
    """
    results: list[Any] = [None] * len(flows)
    replies: list[Any] = [None] * len(flows)
    going = list(range(len(flows)))
    interruption: BaseException | None = None
    while True:
        steps: dict[int, Any] = {}
        for place in going:
            if (step := _next(flows[place], replies[place], results, place)) is not None:
                steps[place] = step
        if not steps:
            break
        going = list(steps)
        calls = [call for step in steps.values() for call in _calls(step)]
        try:
            answers = (yield TolerantBatch(calls)) if calls else []
        except BaseException as error:
            interruption = interruption or (None if isinstance(error, Exception) else error)
            answers = [error] * len(calls)
        at = 0
        for place, step in steps.items():
            count = len(_calls(step))
            replies[place] = _reply(step, answers[at : at + count])
            at += count
    if interruption:
        raise interruption
    if not return_exceptions:
        for result in results:
            if isinstance(result, Exception):
                raise result
    return results


def _next(flow: Flow[Any], reply: Any, results: list[Any], place: int) -> Any:
    traceback = reply.__traceback__ if isinstance(reply, BaseException) else None
    try:
        return flow.throw(reply) if isinstance(reply, BaseException) else flow.send(reply)
    except StopIteration as stop:
        results[place] = stop.value
    except Exception as error:
        if error is reply:
            error.__traceback__ = traceback  # one error may pass through many flows, and each adds its frames
        results[place] = error
    except BaseException:
        results[place] = None  # raised again for all of them
    return None


def _calls(step: Any) -> Sequence[Any]:
    return step.calls if isinstance(step, Batch) else (step,)


def _reply(step: Any, replies: list[Any]) -> Any:
    """Return the reply to a step, or the exception to raise in its flow."""
    if not isinstance(step, Batch):
        return replies[0]
    first = next((reply for reply in replies if isinstance(reply, BaseException)), None)
    if first is not None and not isinstance(first, Exception):
        return first
    traceback = first.__traceback__ if first else None
    try:
        return step.result(replies)
    except Exception as error:
        return error.with_traceback(traceback) if error is first else error
