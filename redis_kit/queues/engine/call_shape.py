"""The shape of a call: task, number of arguments, names of keyword arguments. It decides which process can run it."""

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

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


def task_of(shape: str) -> str:
    """Return the name of the task; "" for a message that does not name one."""
    values = parts(shape)
    return _printable(values[0]) if values and isinstance(values[0], str) else ""


def version_of(shape: str) -> int | None:
    """Return the version of a newer message; None for a call."""
    match parts(shape):
        case (None, int(version)):
            return version
    return None


def described(shape: str) -> str:
    """Return a shape as a call, such as ``shop.tasks.send(_, html=)``."""
    match parts(shape):
        case (None, version):
            return f"(a message of version {version})"
        case (str(name), int(count), *names):
            given = ["_"] * min(count, SHOWN) + [f"{name}=" for name in names]
            more = ", ..." if count + len(names) > SHOWN else ""
            return _printable(f"{name}({', '.join(given[:SHOWN])}{more})")
    return task_of(shape)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
