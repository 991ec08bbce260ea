"""Calls that workers returned as they can't run them: their shapes, and how a queue lists them."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine.calls import lease
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import NewerMessage

LONGEST = 1000  # characters of a name or shape
SHOWN = 5  # arguments


def shape(call: Message | NewerMessage) -> str:
    """Return the shape of a call as JSON."""
    if isinstance(call, NewerMessage):
        return json.dumps([None, call.version])
    text = json.dumps([call.task, len(call.args), *sorted(call.kwargs)])
    return text if len(text) <= LONGEST else json.dumps([call.task[:LONGEST]])


def digest(shape: str) -> str:
    """Return a short name of a shape, for keys."""
    return sha256(shape.encode()).hexdigest()[:16]


@lru_cache(maxsize=256)
def parts(shape: str) -> tuple[Any, ...]:
    """Return task, number of arguments and names; None and a version for a newer message; () for any other text."""
    try:
        values = json.loads(shape)
    except (ValueError, RecursionError):
        return ()
    names = values[2:] if isinstance(values, list) else [None]
    return tuple(values) if all(isinstance(name, str) for name in names) else ()


def described(shape: str) -> tuple[str, str, int | None]:
    """Return the task, the call, such as ``shop.tasks.send(_, html=)``, and the version of a newer message, else None.

    The task is "" for a message that does not name one.
    """
    match parts(shape):
        case (None, int(version)):
            return "", f"(a message of version {version})", version
        case (str(task), int(count), *names):
            given = ["_"] * min(count, SHOWN) + [f"{name}=" for name in names]
            more = ", ..." if count + len(names) > SHOWN else ""
            return _printable(task), _printable(f"{task}({', '.join(given[:SHOWN])}{more})"), None
        case (str(task), *_):
            return _printable(task), _printable(task), None
    return "", "", None


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


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
    task, call, version = described(shape.decode("utf-8", "replace"))
    is_known = 0 <= could_run <= lease()
    return UnknownCalls(task, call, jobs, max(0, age) / 1000, is_known, version)
