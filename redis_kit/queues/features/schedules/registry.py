"""The schedules that the code of this process declares, by name."""

import hashlib
import json
from typing import Any

from redis_kit.core.text import shortened
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules.definition import Definition

LENGTH = 12  # characters of a version


_declared: dict[str, tuple[Definition, Any]] = {}  # each with the function of its task


def add(definition: Definition, function: Any) -> None:
    """Register a schedule. One of a module that is loaded again replaces the old one.

    Raises InvalidSchedule if another task, or another schedule of this one, has the name.
    """
    name, path = definition.name, _path(function)
    for other, (_, declared) in list(_declared.items()):
        if declared is not function and _path(declared) == path:
            del _declared[other]
    if name in _declared:
        wrong = f"The name {shortened(name)} is that of another schedule, of {_declared[name][0].task}."
        raise InvalidSchedule(f"{wrong} Give this one another name=.", "name")
    _declared[name] = definition, function


def is_taken(name: str, function: Any) -> bool:
    """Return whether a schedule of this very function has the name."""
    return name in _declared and _declared[name][1] is function


def all_declared() -> dict[str, str]:
    """Return the schedules as they are stored, by name."""
    return {name: _declared[name][0].stored() for name in sorted(_declared)}


def version(definitions: dict[str, str]) -> str:
    """Return what tells these schedules from those of another release of the code; "" without any."""
    if not definitions:
        return ""
    return hashlib.sha256(json.dumps(definitions).encode()).hexdigest()[:LENGTH]


def _path(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
