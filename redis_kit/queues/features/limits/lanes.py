"""Lanes: jobs with the same limits wait in one, and lanes take turns. Its name is made of the names of its limits.

A job has the limits of its group, of its task, and of its queue.
"""

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values import rates
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues.engine import payload
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.engine.unique import digest
from redis_kit.queues.settings import DEFAULTS, QueueOptions, options_of
from redis_kit.queues.tasks.options import Limit, bound, hint_of_names, parameters

if TYPE_CHECKING:
    from redis_kit.queues.tasks.task import Task

    AnyTask = Task[..., Any]

SET_LIMIT, LIST_LIMITS = (QueueScript(name, __package__) for name in ("set_limit", "list_limits"))
CONCURRENCY = (0, 1_000_000)
LONGEST = 200  # bytes of a group's name
NOTHING = "-"  # in place of what a limit allows: the code says nothing
EVERYTHING = "- -"
NAMES = "'queue', 'group=*', 'group=<name>', 'task=<module.function>' or 'task=<module.function>&<argument>=<value>'"
_SAFE = ":/@,+~"
_VALUE = 64  # characters of an argument in the name of a limit; a longer one has a digest there
_NAME = re.compile(r"group=[!-~]+|queue|task=[\w.]+(&\w+=[!-%'-~]+)*")


def lane_of(queue: str, group: Any = None, limits: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the lane of a job; "" if it has neither a group nor limits. Raises InvalidValue, ConfigurationError.

    ``limits`` are those of its task: what each allows, by name. Scripts expect a line with the names of all limits,
    then two for each: the name under which the code declares it, and what the code allows.
    """
    options = options_of(queue)
    if options is DEFAULTS and group is None and not limits:
        return ""
    of_group = {} if group is None else {group_name(group): allowed(options.GROUP_CONCURRENCY, options.GROUP_RATE)}
    of_job = {**of_group, **limits, **of_queue(options)}
    if not of_job:
        return ""
    lines = [" ".join(of_job)]
    for name, allows in of_job.items():
        lines += (declared_name(name), allows)
    return "\n".join(lines)


def of_queue(options: QueueOptions) -> dict[str, str]:
    """Return the limit that the options of a queue give all its jobs, if they give one."""
    if options.CONCURRENCY is None and not options.RATE:
        return {}
    return {"queue": allowed(options.CONCURRENCY, options.RATE)}


def group_name(group: Any) -> str:
    """Return the name of the limit of a group. Raises InvalidValue naming what is allowed."""
    if not isinstance(group, str) or not 0 < len(group.encode("utf-8", "replace")) <= LONGEST:
        raise InvalidValue(f"group must be text of 1 to {LONGEST} bytes, such as 'tenant:7', not {shortened(group)}.")
    return f"group={quote(group, _SAFE, errors='surrogatepass')}"


def limit_name(name: Any) -> str:
    """Return the name of a limit as it is stored. Raises InvalidValue for any other text."""
    if isinstance(name, str) and name.startswith("group=") and name not in ("group=", "group=*"):
        return group_name(name.removeprefix("group="))
    quoted = quote(name, f"{_SAFE}=&*%.", errors="surrogatepass") if isinstance(name, str) else ""
    if not _NAME.fullmatch(quoted) or len(quoted) > 3 * LONGEST:
        raise InvalidValue(f"The name of a limit is {NAMES}, not {shortened(name)}.")
    return quoted


def shown_name(stored: str) -> str:
    """Return the name of a limit as limit_name() takes it: that of a group is not quoted."""
    return unquote(stored) if stored.startswith("group=") else stored


def declared_name(name: str) -> str:
    """Return the name under which the code declares a limit: with a * for the group or the value of each argument."""
    return re.sub(r"(&[^=]+=)[^&]*", r"\1*", re.sub(r"^group=.*", "group=*", name))


def allowed(concurrency: Any = None, rate: Any = None) -> str:
    """Return what a limit allows as scripts expect it: concurrency, us between two starts, and the rate as it is shown.

    Raises InvalidValue, InvalidRate.
    """
    if concurrency is not None:
        whole_number("concurrency", concurrency, CONCURRENCY)
    several = rates.parse(rate or None)
    if len(several) > 1 or any(only.burst != only.limit for only in several):
        raise InvalidValue(f"A limit has one rate without a burst, such as '10/s', not {shortened(rate)}.")
    most, interval = NOTHING if concurrency is None else str(concurrency), NOTHING
    for only in several:
        if only.limit:
            interval = str(max(1, round(only.period * 1_000_000 / only.limit)))
        else:  # never
            most = "0"
    return NOTHING if most == interval == NOTHING else " ".join((most, interval, *map(str, several)))


def _value(value: Any) -> str:
    plain = payload.plain(value, "arguments")
    text = plain if isinstance(plain, str) else json.dumps(plain, sort_keys=True)
    quoted = quote(text, ":@,+~", errors="surrogatepass") or "%00"
    return quoted if len(quoted) <= _VALUE else digest("limit", text)


def check(task: "AnyTask") -> None:
    """Raise InvalidValue or InvalidRate if ``group``, ``concurrency``, ``rate`` or ``limits`` of a task is wrong."""
    if task.group is not None:
        group_name(task.group)
    if not isinstance(task.limits, tuple) or not all(isinstance(limit, Limit) for limit in task.limits):
        raise InvalidValue(f"limits must be a list of redis_kit.queues.Limit, not {shortened(task.limits)}.")
    seen = set()
    for limit in _limits(task):
        if allowed(limit.concurrency, limit.rate) == NOTHING:
            raise InvalidValue("A Limit needs concurrency, a number of jobs, or a rate, such as '10/s'.")
        names = parameters(task)
        if not isinstance(limit.by, tuple) or not set(limit.by) <= set(names):
            among = ", ".join(names) or "(the task has no parameter)"
            wrong = f"by must be a tuple of names among {among}, not {shortened(limit.by)}."
            raise InvalidValue(f"{wrong} {hint_of_names(limit.by, names)}".strip())
        if limit.by in seen:
            raise InvalidValue(f"Two limits of a task have the same arguments: {limit.by!r}. Write them as one Limit.")
        seen.add(limit.by)


def declared_names(queue: str, tasks: "Iterable[AnyTask]") -> list[str]:
    """Return the names of the limits that the settings and these tasks declare for a queue, with a * for each value."""
    of_tasks = [
        "&".join((f"task={task.module_path}", *(f"{argument}=*" for argument in limit.by)))
        for task in tasks
        if task.queue_name == queue
        for limit in _limits(task)
    ]
    return [*of_tasks, *of_queue(options_of(queue))]


def lane_of_call(task: "AnyTask", args: Any, kwargs: Any) -> str:
    """Return the lane of a call: that of its group, and of the limits of its task and queue. "" without any."""
    return lane_of(task.queue_name, task.group, _named(task, args, kwargs))


def _named(task: "AnyTask", args: Any, kwargs: Any) -> dict[str, str]:
    # A job waits first for that which few others have.
    limits = sorted(_limits(task), key=lambda limit: -len(limit.by))
    values: Mapping[str, Any] = {}
    if any(limit.by for limit in limits):
        call = bound(task, args, kwargs)
        call.apply_defaults()
        values = call.arguments
    named = {}
    for limit in limits:
        name = "&".join((f"task={task.module_path}", *(f"{key}={_value(values[key])}" for key in limit.by)))
        named[name] = allowed(limit.concurrency, limit.rate)
    return named


def _limits(task: "AnyTask") -> list[Limit]:
    if task.concurrency is None and task.rate is None:
        return list(task.limits)
    return [Limit(concurrency=task.concurrency, rate=task.rate), *task.limits]
