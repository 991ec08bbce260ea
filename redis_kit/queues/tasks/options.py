"""The options of a task: checked when it is defined, and copied.

Apart from tasks, which need a framework of tasks: queues without one have limits and unique keys, too.
"""

import inspect
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import Any, Literal, get_args

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import seconds, whole_number
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.feature import option_class, provided
from redis_kit.queues.errors import InvalidTask
from redis_kit.queues.settings import QueueSettings, check_name
from redis_kit.queues.tasks import retry

TAGS, LONGEST_TAG = 5, 40  # of a job, and bytes of each: the pages of jobs read the beginning of each message
TIMEOUT = (0.001, 604_800.0)  # seconds
OPTIONS_OF_A_CALL = "Options of a call belong in using(...)."
OnCancel = Literal["raise", "flag"]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """At most ``concurrency`` jobs of a task at once, and starts at a ``rate``, such as "10/s" or "100/m".

    With ``by``, a tuple of names of arguments, each value of these has the limit for itself.
    """

    concurrency: int | None = None
    rate: str | None = None
    by: tuple[str, ...] = ()


def parameters(task: Any) -> list[str]:
    """Return the names of the arguments that callers pass."""
    return list(task.signature.parameters)[1 if task.takes_context else 0 :]


def bound(task: Any, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """Return the arguments of a call by name, and None for the context of the task, if it takes one."""
    signature: inspect.Signature = task.signature
    return signature.bind(*((None, *args) if task.takes_context else args), **kwargs)


def hint_of_names(given: Any, names: list[str]) -> str:
    """Return the tuple that a name or a list stands for, or the name that was probably meant; "" without either."""
    chosen = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given
    if not isinstance(chosen, tuple) or not chosen:
        return ""
    for name in chosen:
        if name not in names:
            return did_you_mean(name, names)
    return f"Write {chosen!r}."


def expires_ms(expires: Any) -> int:
    """Return for how many ms a call may wait, given the option of its task; 0 for ever. Raises InvalidValue."""
    return 0 if expires is None else validation.milliseconds(expires, "expires", positive=True)


def outbox_of(task: Any) -> str:
    """Return the database through which the calls of a task are sent; "" if they go to Redis directly."""
    given = getattr(task, "outbox", None)
    if given is None:
        return conf.section(QueueSettings).OUTBOX if getattr(task, "enqueue_on_commit", True) else ""
    if isinstance(given, bool):
        return (conf.section(QueueSettings).OUTBOX or DEFAULT_DB_ALIAS) if given else ""
    return str(given)


def copy(task: Any, kind: type[Any] | None = None, **changes: Any) -> Any:
    """Return a copy of a task without checking it again: other settings may have applied when it was made."""
    made: Any = kind or type(task)
    copied = object.__new__(made)
    for name, default in _fields(made):
        object.__setattr__(copied, name, changes[name] if name in changes else getattr(task, name, default))
    return copied


@cache
def _fields(kind: type[Any]) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in fields(kind)]


def check_function(function: Any) -> None:
    """Raise InvalidTask if no worker could find the function by its name."""
    module, name = getattr(function, "__module__", "?"), getattr(function, "__qualname__", shortened(function))
    if not inspect.isfunction(function) or not name.isidentifier():
        raise InvalidTask(f"{module}.{name} can't be a task: it must be a function at the top of a module.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTask(f"{module}.{name} can't be a task: it has a yield, so that a call would run none of it.")
    if module == "__main__":
        raise InvalidTask(f"{module}.{name} can't be a task: no worker can import the program that was started.")


def of_features(given: Mapping[str, object], others: Iterable[str], of_calls: Container[str]) -> Any:
    """Return the options that features bring, None if all have their defaults.

    Raises InvalidTask for an option that no feature has; ``others`` are those that need none, ``of_calls`` those of
    using().
    """
    if not given:
        return None
    kind = option_class()
    names = [field.name for field in fields(kind)]
    for name in given:
        if name not in names:
            hint = OPTIONS_OF_A_CALL if name in of_calls else did_you_mean(name, [*others, *names])
            raise InvalidTask(f"task() has no option {name!r}. {hint}".strip())
    options = kind(**given)
    return None if options == kind() else options


def check_options(task: Any) -> None:
    """Raise InvalidName or InvalidValue if an option of a task is wrong."""
    check_name(task.queue_name)
    if len(ids.of_queue("", task.queue_name)) > ids.LONGEST_SUFFIX:
        allowed = f"{ids.LONGEST_SUFFIX - 1} of the characters A-Z a-z 0-9 _ -, of which others count for 3 to 12"
        raise InvalidName(f"queue_name is {shortened(task.queue_name)}; for the ids of its jobs it may have {allowed}.")
    whole_number("priority", task.priority, validation.PRIORITY)
    if task.max_attempts is not None:
        whole_number("max_attempts", task.max_attempts, validation.LIMIT)
    if task.timeout is not None:
        seconds("timeout", task.timeout, TIMEOUT)
    if task.run_in is not None:
        validation.milliseconds(task.run_in, "run_after")
    if isinstance(task.run_after, datetime):
        validation.moment(task.run_after)
    elif task.run_after is not None:
        raise InvalidValue(f"run_after must be a datetime or a timedelta, not {task.run_after!r}.")
    for name in ("store_result", "enqueue_on_commit"):
        if not isinstance(value := getattr(task, name), bool):
            raise InvalidValue(f"{name} must be True or False, not {shortened(value)}.")
    validation.one_of("on_cancel", task.on_cancel, get_args(OnCancel))
    if task.outbox and not task.enqueue_on_commit:
        raise InvalidValue("outbox needs enqueue_on_commit=True: what it stores is sent after the commit.")
    if not (task.outbox is None or isinstance(task.outbox, bool) or (isinstance(task.outbox, str) and task.outbox)):
        wrong = shortened(task.outbox)
        raise InvalidValue(f"outbox must be True, False, None or the alias of a database, not {wrong}.")
    if isinstance(task.outbox, str) and settings.configured and task.outbox not in settings.DATABASES:
        hint = did_you_mean(task.outbox, settings.DATABASES, f"It has {', '.join(map(repr, settings.DATABASES))}.")
        raise InvalidValue(f"outbox is {shortened(task.outbox)}, but DATABASES has no alias of that name. {hint}")
    expires_ms(task.expires)
    if task.limits != () or not task.group is task.concurrency is task.rate is None:
        provided("lanes").check(task)
    check_tags(task.tags)
    retry.check(task.backoff)
    if task.unique is not False or task.unique_by is not None or task.replace is not False:
        provided("unique_keys").check(task)


def check_tags(tags: Any) -> None:
    """Raise InvalidValue unless these are at most five printable texts of 1 to 40 bytes."""
    if isinstance(tags, str):
        raise InvalidValue(f"tags must be a list or tuple of texts. Write tags=[{shortened(tags)}].")
    if not isinstance(tags, (list, tuple)) or len(tags) > TAGS:
        raise InvalidValue(f"tags must be a list or tuple of at most {TAGS} texts, not {shortened(tags)}.")
    for tag in tags:
        if not (isinstance(tag, str) and tag.isprintable() and 1 <= len(tag.encode()) <= LONGEST_TAG):
            wrong = f"tags holds {shortened(tag)}; a tag is printable text of 1 to {LONGEST_TAG} bytes."
            raise InvalidValue(f"{wrong} Put longer values into the arguments.")
