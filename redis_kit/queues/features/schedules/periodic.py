"""@periodic, and the schedules that it has declared. Imports no Redis client, because modules of tasks import it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from django.utils.module_loading import import_string

from redis_kit.core.text import shortened
from redis_kit.queues import framework
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import definition
from redis_kit.queues.features.schedules.definition import Definition, Kind
from redis_kit.queues.tasks.registry import mismatch_of, signature_of

AnyTask = TypeVar("AnyTask")
LENGTH = 12  # characters of a version
_declared: dict[str, tuple[Definition, Any]] = {}  # by name, each with the function of its task


def periodic(
    task: None = None,
    /,
    *,
    every: float | timedelta | None = None,
    cron: str | None = None,
    timezone: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    overlap: Literal["skip", "queue_one", "allow"] | None = None,
    catch_up: Literal["none", "last"] | int = "last",
    jitter: float | timedelta = 0,
    enabled: bool = True,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Callable[[AnyTask], AnyTask]:
    """Have workers enqueue a task periodically: ``@periodic(every=5)`` above ``@task``, once or several times.

    ``every`` is an interval of 0.1 s to 366 days, in seconds or as a timedelta. ``cron`` is an expression of five
    fields, such as ``0 4 * * *``, in a time zone, by default ``TIME_ZONE``; it needs the extra ``cron``. Each tick
    calls the task with ``args`` and ``kwargs``. The name is that of the task unless given.

    If a job of the schedule is ready or runs at a tick, ``overlap`` says what happens: "skip", the default, adds
    none; "queue_one" adds one when the running job has ended; "allow" always adds one. With the first two, a job that
    waits for its retry starts that at the tick. Tasks of Celery and of other backends allow "allow" only, as their end
    is not known. ``catch_up`` says how many missed ticks run when workers are back: "none", the "last" one, or the last
    n. ``jitter`` delays each tick by a random time of at most that, which is shorter than the time between two ticks.
    ``start`` and ``end`` limit the times; with ``every``, the first tick is at ``start``.

    Raises InvalidSchedule, and ConfigurationError without the package of ``cron``.
    """
    if task is not None:
        raise InvalidSchedule("@periodic needs a time: write @periodic(every=5), in seconds, above @task.")
    times = {"every": every, "cron": cron, "timezone": timezone, "jitter": jitter, "start": start, "end": end}
    others = {"args": args, "kwargs": kwargs, "overlap": overlap, "catch_up": catch_up, "enabled": enabled}

    def declared(task: AnyTask) -> AnyTask:
        path, kind, function = _described(task)
        schedule_name = name if name is not None else path
        if name is None and path in _declared and _declared[path][1] is function:
            schedule_name = f"{path} {f'every {every}' if every is not None else cron}"
        schedule = definition.made(name=schedule_name, task=path, kind=kind, **times, **others)
        if kind == "task":
            if overlap:
                definition.check_overlap(overlap, is_ours=runs_here(task), task=path)
            positional = (None, *schedule.args) if getattr(task, "takes_context", False) else schedule.args
            if wrong := mismatch_of(function, positional, schedule.kwargs):
                wrong = f"{path}{signature_of(function)} can't be called like that: {wrong}."
                raise InvalidSchedule(wrong, "args")
        _add(schedule, function)
        return task

    return declared


def all_declared() -> dict[str, str]:
    """Return the schedules that the code of this process declares, as they are stored, by name."""
    return {name: _declared[name][0].stored() for name in sorted(_declared)}


def version(definitions: dict[str, str]) -> str:
    """Return what tells these schedules from those of another release of the code; "" without any."""
    if not definitions:
        return ""
    return hashlib.sha256(json.dumps(definitions).encode()).hexdigest()[:LENGTH]


def runs_here(task: Any) -> bool:
    """Return whether workers of the kit run a task of ``django.tasks``, so that its end is known."""
    return isinstance(task.get_backend(), import_string(framework.BACKEND))


def _described(task: Any) -> tuple[str, Kind, Any]:
    """Return the name of a task, whose it is, and its function. Raises InvalidSchedule for anything else."""
    if framework.FOUND and isinstance(task, framework.Task):
        return task.module_path, "task", task.func
    if callable(getattr(task, "apply_async", None)) and isinstance(getattr(task, "name", None), str):
        return task.name, "celery", getattr(task, "run", task)
    what = getattr(task, "__qualname__", type(task).__name__)
    raise InvalidSchedule(f"{what} is not a task. Write @periodic(...) above @task, which makes the function one.")


def _add(schedule: Definition, function: Any) -> None:
    """Register a schedule. One of a module that is loaded again replaces the old one."""
    name, path = schedule.name, _path(function)
    for other, (_, declared) in list(_declared.items()):
        if declared is not function and _path(declared) == path:
            del _declared[other]
    if name in _declared:
        wrong = f"The name {shortened(name)} is that of another schedule, of {_declared[name][0].task}."
        raise InvalidSchedule(f"{wrong} Give this one another name=.", "name")
    _declared[name] = schedule, function


def _path(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
