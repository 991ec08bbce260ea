"""Unique keys: what makes two calls of a task the same one, and for how long."""

import hashlib
import inspect
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.jobs import payload

if TYPE_CHECKING:
    from redis_kit.queues.tasks.task import Task

Until = Literal["done", "queued"] | float | timedelta
By = tuple[str, ...] | Callable[..., str] | None
ENDS = ("done", "queued")
LONGEST = 512  # bytes of UTF-8 in a key
ALLOWED = "'done', 'queued', or a time of more than 0 in seconds or as a timedelta"


class Wish(NamedTuple):
    """The unique key of a new job, ``done``, ``queued`` or the ms for which it lasts, and what a further job does."""

    key: str
    until: str
    replace: bool = False


class Placed(NamedTuple):
    """The id of the job that there is now; whether it is a new one; else, whether it got what the new one was to have.

    ``id`` is that of an older job where the unique key was in use.
    """

    id: str
    created: bool
    replaced: bool = False


def asked(key: Any, until: Any, replace: Any) -> Wish | None:
    """Return what put() was told; None for no key. Raises InvalidValue."""
    if not isinstance(replace, bool) or (replace and key is None):
        raise InvalidValue(f"replace must be True or False, and True needs a unique key, not {shortened(replace)}.")
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "replace")) <= LONGEST:
        raise InvalidValue(f"unique must be text of 1 to {LONGEST} bytes, not {shortened(key)}.")
    return Wish(_hashed("key", key), end("unique_until", until), replace)


def asked_by(task: "Task[..., Any]", args: Any, kwargs: Any) -> Wish | None:
    """Return the wish of a task's call; None where the task is not unique. Raises InvalidValue, NotSerializable."""
    if task.unique is False:
        return None
    until = end("unique", "done" if task.unique is True else task.unique)
    return Wish(_hashed(task.module_path, _same(task, args, kwargs)), until, task.replace)


def end(name: str, until: Any) -> str:
    """Return until when a key is in use, as the script has it. Raises InvalidValue naming what is allowed."""
    if isinstance(until, str) and until in ENDS:
        return until
    is_time = isinstance(until, (int, float, timedelta)) and not isinstance(until, bool)
    if is_time and (time := validation.milliseconds(until, name)):
        return str(time)
    raise InvalidValue(f"{name} must be {ALLOWED}, not {shortened(until)}.")


def check(task: "Task[..., Any]") -> None:
    """Raise InvalidValue where an option of a task about this is wrong."""
    if not isinstance(task.unique, bool):
        end("unique", task.unique)
    if not isinstance(task.replace, bool):
        raise InvalidValue(f"replace must be True or False, not {shortened(task.replace)}.")
    for name, given in (("unique_by", task.unique_by is not None), ("replace", task.replace)):
        if given and task.unique is False:
            raise InvalidValue(f"{name} needs unique: True, {ALLOWED}.")
    if task.unique_by is not None and not callable(task.unique_by):
        _check_names(task)


def _check_names(task: "Task[..., Any]") -> None:
    known = _parameters(task)
    if not isinstance(task.unique_by, tuple) or not task.unique_by or not set(task.unique_by) <= set(known):
        raise InvalidValue(
            f"unique_by must be None, a function of the task's arguments that returns text, or a tuple of names among "
            f"{', '.join(known) or '(the task has no parameter)'}, not {shortened(task.unique_by)}."
        )


def _parameters(task: "Task[..., Any]") -> list[str]:
    return list(task.signature.parameters)[1 if task.takes_context else 0 :]


def _same(task: "Task[..., Any]", args: Any, kwargs: Any) -> str:
    """Return a text that two calls share when they are the same one."""
    if callable(task.unique_by):
        text = task.unique_by(*args, **kwargs)
        if not isinstance(text, str):
            raise InvalidValue(f"unique_by of {task.module_path} must return text, not {shortened(text)}.")
        return text
    values = _bound(task, args, kwargs)
    if task.unique_by is not None:
        values = {name: values[name] for name in task.unique_by}
    return json.dumps(payload.plain(values, "arguments"), sort_keys=True)


def _bound(task: "Task[..., Any]", args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments by their names, defaults among them: it does not matter how they were passed."""
    bound: inspect.BoundArguments = task.signature.bind(*((None, *args) if task.takes_context else args), **kwargs)
    bound.apply_defaults()
    return {name: bound.arguments[name] for name in _parameters(task)}


def _hashed(domain: str, text: str) -> str:
    digest = hashlib.sha256(f"{domain}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return urlsafe_b64encode(digest[:16])[:22].decode()
