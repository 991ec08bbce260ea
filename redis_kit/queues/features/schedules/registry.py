"""The schedules that the code of this process declares, by name."""

import hashlib
from typing import Any, NamedTuple

from redis_kit.core.text import shortened
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules.definition import Definition

LENGTH = 12  # characters of a version


class Declared(NamedTuple):
    """A schedule, and the function of its task."""

    definition: Definition
    function: Any


_declared: dict[str, Declared] = {}


def add(definition: Definition, function: Any) -> None:
    """Register a schedule. One of a module that is loaded again replaces the old one.

    Raises InvalidSchedule if another task, or another schedule of this one, has the name.
    """
    name, path = definition.name, _path(function)
    for other, declared in list(_declared.items()):
        if declared.function is not function and _path(declared.function) == path:
            del _declared[other]
    if name in _declared:
        wrong = f"The name {shortened(name)} is that of another schedule, of {_declared[name].definition.task}."
        raise InvalidSchedule(f"{wrong} Give this one another name=.", "name")
    _declared[name] = Declared(definition, function)


def is_taken(name: str, function: Any) -> bool:
    """Return whether a schedule of this very function has the name."""
    return name in _declared and _declared[name].function is function


def all_declared() -> dict[str, str]:
    """Return the schedules as they are stored, by name."""
    return {name: declared.definition.stored() for name, declared in sorted(_declared.items())}


def version(definitions: dict[str, str]) -> str:
    """Return what tells these schedules from those of another release of the code; "" without any."""
    if not definitions:
        return ""
    whole = "\n".join(f"{name}\n{stored}" for name, stored in definitions.items())
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def _path(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
