"""Which calls this process can run: those of tasks that it knows, with arguments that fit their functions here."""

import json
from functools import lru_cache
from hashlib import sha256
from typing import Any

from redis_kit.queues.jobs import message
from redis_kit.queues.jobs.message import Message, NewerMessage
from redis_kit.queues.tasks import registry, signature
from redis_kit.queues.tasks.registry import UnknownTask

LONGEST = 1000  # characters of a name or shape
SHOWN = 5  # arguments


class UnfitArguments(UnknownTask):
    """The task is known, and its function here does not take these arguments."""


def find(call: Message) -> Any:
    """Return the task of a call. Raises UnknownTask, or UnfitArguments where its function can't be called like that."""
    task = registry.find(call.task)
    given = [None, *call.args] if task.takes_context else call.args
    if wrong := signature.mismatch(task.func, given, call.kwargs):
        raise UnfitArguments(f"arguments do not fit {call.task}{signature.of(task.func)}: {wrong}")
    return task


def shape(call: Message | NewerMessage) -> str:
    """Return what decides whether a process can run a call: task, number of arguments, names of others, as JSON."""
    if isinstance(call, NewerMessage):
        return json.dumps([None, call.version])
    found = json.dumps([call.task, len(call.args), *sorted(call.kwargs)])
    return found if len(found) <= LONGEST else json.dumps([call.task[:LONGEST]])


def digest(shape: str) -> str:
    """Return a short name of a shape, for keys."""
    return sha256(shape.encode()).hexdigest()[:16]


def can_run(shape: str) -> bool:
    """Say whether this process can run calls of a shape."""
    match _parts(shape):
        case (None, version):
            return isinstance(version, int) and version <= message.VERSION
        case (str(name), int(count), *names):
            try:
                find(Message(name, [None] * count, dict.fromkeys(names)))
            except UnknownTask:
                return False
            return True
    return False


def is_known(task: str) -> bool:
    """Say whether this process knows a task of this name, whatever its function takes."""
    try:
        registry.find(task)
    except UnknownTask:
        return False
    return True


def task_of(shape: str) -> str:
    """Return the name of the task; "" for a message that does not tell it."""
    parts = _parts(shape)
    return _printable(parts[0]) if parts and isinstance(parts[0], str) else ""


def shown(shape: str) -> str:
    """Return a shape as a call, such as ``shop.tasks.send(_, html=)``."""
    match _parts(shape):
        case (None, version):
            return f"(a message of version {version})"
        case (str(name), int(count), *names):
            given = ["_"] * min(count, SHOWN) + [f"{name}=" for name in names]
            more = ", ..." if count + len(names) > SHOWN else ""
            return _printable(f"{name}({', '.join(given[:SHOWN])}{more})")
    return task_of(shape)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=256)
def _parts(shape: str) -> tuple[Any, ...]:
    try:
        found = json.loads(shape)
    except (ValueError, RecursionError):
        return ()
    names = found[2:] if isinstance(found, list) else [None]
    return tuple(found) if all(isinstance(name, str) for name in names) else ()
