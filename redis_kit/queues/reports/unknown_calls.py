"""Calls that workers returned as they can't run them, as a queue lists them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine import call_shape
from redis_kit.queues.engine.calls import lease


class UnknownCalls(NamedTuple):
    """Calls of one shape that workers returned: the task, the shape as a call, and how many jobs wait.

    ``age`` is how many seconds ago the first of them was returned; ``known`` is True if a living worker can run them.
    ``version`` is that of messages of a newer release, which name no task.
    """

    task: str
    call: str
    jobs: int
    age: float
    known: bool
    version: int | None = None


def read(reply: Sequence[Any]) -> tuple[UnknownCalls, ...]:
    """Return the calls in a reply: shape, jobs, and how many ms ago the first job came and a worker could run it."""
    return _sorted(calls_of(*parts) for parts in batched(reply, 4))


def merged(calls: Iterable[UnknownCalls]) -> tuple[UnknownCalls, ...]:
    """Return the calls of several shards: those of one shape become one."""
    by_call: dict[str, UnknownCalls] = {}
    for call in calls:
        other = by_call.get(call.call, call._replace(jobs=0))
        jobs, age = call.jobs + other.jobs, max(call.age, other.age)
        by_call[call.call] = call._replace(jobs=jobs, age=age, known=call.known and other.known)
    return _sorted(by_call.values())


def _sorted(calls: Iterable[UnknownCalls]) -> tuple[UnknownCalls, ...]:
    return tuple(sorted((call for call in calls if call.jobs), key=lambda call: (call.known, -call.jobs, call.call)))


def calls_of(shape: bytes, jobs: int, age: int, could_run: int) -> UnknownCalls:
    """Return calls of one shape, given how many jobs wait, and since how many ms, and a worker could run one."""
    text = shape.decode("utf-8", "replace")
    is_known = 0 <= could_run <= lease()
    task, call, version = call_shape.task_of(text), call_shape.described(text), call_shape.version_of(text)
    return UnknownCalls(task, call, jobs, max(0, age) / 1000, is_known, version)
