"""Limits of tasks: how many of their jobs run at once, and how many start in a time."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.queues.engine import lane
from redis_kit.queues.engine.lane import Lane, NamedLimit
from redis_kit.queues.settings import options_of


@dataclass(frozen=True, kw_only=True)
class Limit:
    """At most ``concurrency`` jobs of a task at once, and starts at a ``rate``, such as "10/s" or "100/m".

    With ``by``, a tuple of names of arguments, each value of these has the limit for itself.
    """

    concurrency: int | None = None
    rate: str | None = None
    by: tuple[str, ...] = ()


class LimitOptions(Protocol):
    """The part of a task that is read here."""

    @property
    def module_path(self) -> str: ...
    @property
    def queue_name(self) -> str: ...
    @property
    def signature(self) -> inspect.Signature: ...
    @property
    def takes_context(self) -> bool: ...
    @property
    def group(self) -> str | None: ...
    @property
    def concurrency(self) -> int | None: ...
    @property
    def rate(self) -> str | None: ...
    @property
    def limits(self) -> tuple[Limit, ...]: ...


def check(task: LimitOptions) -> None:
    """Raise InvalidValue or InvalidRate if ``group``, ``concurrency``, ``rate`` or ``limits`` of a task is wrong."""
    if task.group is not None:
        lane.group_name(task.group)
    if not isinstance(task.limits, tuple) or not all(isinstance(limit, Limit) for limit in task.limits):
        raise InvalidValue(f"limits must be a list of redis_kit.queues.Limit, not {shortened(task.limits)}.")
    seen = set()
    for limit in _limits(task):
        if lane.allowed(limit.concurrency, limit.rate) == lane.NOTHING:
            raise InvalidValue("A Limit needs concurrency, a number of jobs, or a rate, such as '10/s'.")
        names = list(task.signature.parameters)[1 if task.takes_context else 0 :]
        if not isinstance(limit.by, tuple) or not set(limit.by) <= set(names):
            raise InvalidValue(f"{_wrong_by(limit.by, names)}")
        if limit.by in seen:
            raise InvalidValue(f"Two limits of a task have the same arguments: {limit.by!r}. Write them as one Limit.")
        seen.add(limit.by)


def declared_names(queue: str, tasks: Iterable[LimitOptions]) -> list[str]:
    """Return the names of the limits that the settings and these tasks declare for a queue, with a * for each value."""
    of_tasks = [
        lane.task_limit(task.module_path, dict.fromkeys(limit.by, ""), "").declared
        for task in tasks
        if task.queue_name == queue
        for limit in _limits(task)
    ]
    return [*of_tasks, *(limit.name for limit in lane.of_queue(options_of(queue)))]


def named_arguments(task: LimitOptions) -> set[str]:
    """Return the names of the arguments by which a task has limits."""
    return {name for limit in task.limits for name in limit.by}


def lane_of_call(task: LimitOptions, args: Any, kwargs: Any) -> Lane | None:
    """Return the lane of a call: that of its group, and of the limits of its task and queue. None without any."""
    return lane.lane_of(task.queue_name, task.group, _named(task, args, kwargs))


def _named(task: LimitOptions, args: Any, kwargs: Any) -> Iterator[NamedLimit]:
    if task.concurrency is None and task.rate is None and not task.limits:
        return
    # A job waits first for that which few others have.
    limits = sorted(_limits(task), key=lambda limit: -len(limit.by))
    values: Mapping[str, Any] = {}
    if any(limit.by for limit in limits):
        bound = task.signature.bind(*((None, *args) if task.takes_context else args), **kwargs)
        bound.apply_defaults()
        values = bound.arguments
    for limit in limits:
        chosen = {name: values[name] for name in limit.by}
        allowed = lane.allowed(limit.concurrency, limit.rate)
        yield lane.task_limit(task.module_path, chosen, allowed)


def _limits(task: LimitOptions) -> list[Limit]:
    if task.concurrency is None and task.rate is None:
        return list(task.limits)
    return [Limit(concurrency=task.concurrency, rate=task.rate), *task.limits]


def _wrong_by(by: Any, names: list[str]) -> str:
    among = ", ".join(names) or "(the task has no parameter)"
    wrong = f"by must be a tuple of names among {among}, not {shortened(by)}."
    given = (by,) if isinstance(by, str) else by if isinstance(by, tuple) else ()
    for name in given:
        if name not in names:
            return f"{wrong} {did_you_mean(name, names)}".strip()
    return f"{wrong} Write {given!r}." if given else wrong
