"""Unique keys: those that callers choose, those of calls of unique tasks, and how a job gets one."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import NewJob, QueueScript, Turn
from redis_kit.queues.engine.unique import PutResult, UniqueKey, digest
from redis_kit.queues.tasks.options import bound, hint_of_names, parameters

if TYPE_CHECKING:
    from redis_kit.queues.tasks.task import Task

    AnyTask = Task[..., Any]

ENDS = ("done", "queued")
LONGEST = 512  # bytes of UTF-8 in a key
ALLOWED = (
    f"'done', 'queued', or a time of more than 0 and at most {validation.LONGEST_DELAY:,} seconds, as a number or a "
    "timedelta"
)
PUT_UNIQUE = QueueScript("put_unique", __package__)
ADDED, REPLACED = 1, 2


def put(base: str, job: NewJob, key: UniqueKey, turn: Turn, *, own: bool = False) -> ScriptCall:
    """Return the step that adds a job unless its unique key is in use; see engine.calls.put()."""
    name, until, replace = key
    numbers = turn.start, turn.priority
    return PUT_UNIQUE(base, *numbers, *job, name, until, int(replace), int(own), turn.lane, job=name)


def result(reply: Sequence[Any]) -> PutResult:
    """Return which job there is now, given the reply to put()."""
    answer, id = reply
    return PutResult(id.decode("utf-8", "surrogateescape"), answer == ADDED, answer == REPLACED)


def chosen(key: Any, until: Any, replace: Any) -> UniqueKey | None:
    """Return the unique key that a caller of put() chose; None without one. Raises InvalidValue."""
    if not isinstance(replace, bool) or (replace and key is None):
        raise InvalidValue(f"replace must be True or False, and True needs a unique key, not {shortened(replace)}.")
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "replace")) <= LONGEST:
        raise InvalidValue(f"unique must be text of 1 to {LONGEST} bytes, not {shortened(key)}.")
    return UniqueKey(digest("key", key), end("unique_until", until), replace)


def end(name: str, until: Any, allowed: str = ALLOWED) -> str:
    """Return until when a key is in use, as the script expects it. Raises InvalidValue naming what is allowed."""
    if isinstance(until, str) and until in ENDS:
        return until
    is_time = isinstance(until, (int, float, timedelta)) and not isinstance(until, bool)
    if is_time:
        with suppress(InvalidValue):
            return str(validation.milliseconds(until, name, positive=True))
    raise InvalidValue(f"{name} must be {allowed}, not {shortened(until)}.")


def key_of_call(task: "AnyTask", args: Any, kwargs: Any) -> UniqueKey | None:
    """Return the unique key of a call; None if the task is not unique. Raises InvalidValue, NotSerializable."""
    if task.unique is False:
        return None
    until = end("unique", "done" if task.unique is True else task.unique)
    return UniqueKey(digest(task.module_path, _identity(task, args, kwargs)), until, task.replace)


def check(task: "AnyTask") -> None:
    """Raise InvalidValue if ``unique``, ``unique_by`` or ``replace`` of a task is wrong."""
    if not isinstance(task.unique, bool):
        end("unique", task.unique, f"True, False, {ALLOWED}")
    if not isinstance(task.replace, bool):
        raise InvalidValue(f"replace must be True or False, not {shortened(task.replace)}.")
    for name, given in (("unique_by", task.unique_by is not None), ("replace", task.replace)):
        if given and task.unique is False:
            raise InvalidValue(f"{name} needs unique: True, {ALLOWED}.")
    if task.unique_by is not None and not callable(task.unique_by):
        _check_names(task)


def _check_names(task: "AnyTask") -> None:
    names = parameters(task)
    if not isinstance(task.unique_by, tuple) or not task.unique_by or not set(task.unique_by) <= set(names):
        wrong = (
            f"unique_by must be None, a function of the task's arguments that returns text, or a tuple of names among "
            f"{', '.join(names) or '(the task has no parameter)'}, not {shortened(task.unique_by)}."
        )
        raise InvalidValue(f"{wrong} {hint_of_names(task.unique_by, names)}".strip())


def _identity(task: "AnyTask", args: Any, kwargs: Any) -> str:
    """Return a text that is equal for calls that count as the same one."""
    if callable(task.unique_by):
        text = task.unique_by(*args, **kwargs)
        if not isinstance(text, str):
            raise InvalidValue(f"unique_by of {task.module_path} must return text, not {shortened(text)}.")
        return text
    call = bound(task, args, kwargs)
    call.apply_defaults()  # it does not matter how they were passed
    names = parameters(task) if task.unique_by is None else task.unique_by
    values = {name: call.arguments[name] for name in names}
    return json.dumps(payload.plain(values, "arguments"), sort_keys=True)
