"""The tasks of this process by name, the calls that it can run, and the backends of tasks by alias.

A message names a task and never imports it. This imports no Redis client.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from inspect import Parameter
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import framework
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import UnfitArguments, UnknownBackend, UnknownTask
from redis_kit.queues.tasks import discovery

_tasks: dict[str, Any] = {}
_backends: dict[str, Any] = {}  # RedisTaskBackend, by alias: all threads may share them
sinks: dict[str, str] = {}  # by queue, of jobs that say where they go; workers serve it like the queues of tasks


def register(task: Any) -> None:
    """Register a task under its name. It replaces an older one, as when a module is loaded again."""
    _tasks[task.module_path] = task


def notice(task: Any) -> None:
    """Register a task unless its function is registered: another queue or priority does not make a new task."""
    registered = _tasks.get(task.module_path)
    if registered is None or registered.func is not task.func:
        register(task)


def find(name: str) -> Any:
    """Return a task, of the kit or of django.tasks. Raises UnknownTask."""
    task = _tasks.get(name) or _defined(name)
    if task is None:
        raise UnknownTask(f"unknown task {name[:200]!a}: no imported module defines it; see QUEUES['IMPORTS']")
    return task


def find_for(call: Message) -> Any:
    """Return the task of a call. Raises UnknownTask, or UnfitArguments if its function can't be called like that."""
    task = _tasks.get(call.task) or find(call.task)
    args = [None, *call.args] if task.takes_context else call.args
    if mismatch := mismatch_of(task.func, args, call.kwargs):
        raise UnfitArguments(f"arguments do not fit {call.task}{signature_of(task.func)}: {mismatch}")
    return task


def is_registered(name: str) -> bool:
    """Return whether find() finds a task of this name, whatever arguments it takes."""
    try:
        find(name)
    except UnknownTask:
        return False
    return True


def discovered(name: str) -> Any:
    """Return a task as find() does, and import the modules of tasks if none has that name."""
    if not is_registered(name):
        discovery.discover()
    return find(name)


def all_tasks() -> list[Any]:
    """Return the registered tasks."""
    return list(_tasks.values())


def queue_names() -> list[str]:
    """Return the queues of the registered tasks, those with a sink, and those that ``TASKS`` names, sorted."""
    names = {*sinks, *(task.queue_name for task in _tasks.values())}
    if framework.FOUND:
        kind = import_string(framework.BACKEND)
        names.update(*(backend.queues for backend in framework.task_backends.all() if isinstance(backend, kind)))
    return sorted(names)


def _defined(name: str) -> Any:
    """Return a task that was made for another backend, if a loaded module holds it under this name."""
    module, _, attribute = name.rpartition(".")
    value = getattr(sys.modules.get(module), "__dict__", {}).get(attribute)
    if framework.FOUND and isinstance(value, framework.Task) and value.module_path == name:
        return value
    return None


def backend_of(alias: str) -> Any:
    """Return the task backend of an alias, RedisTaskBackend in a project without the setting ``TASKS``."""
    backend = _backends.get(alias)
    if backend is not None:
        return backend
    kind = import_string(framework.BACKEND)  # that of a project without the setting TASKS
    if settings.configured and settings.is_overridden("TASKS"):  # type: ignore[misc]
        for problem in framework.tasks_problems():
            raise _noted(ConfigurationError(problem.text))
        try:
            backend = framework.task_backends[alias]
        except framework.InvalidTaskBackend as error:
            for problem in framework.missing_backend(alias):
                raise _noted(UnknownBackend(problem.text)) from error
            raise
    else:
        backend = kind(alias, {"QUEUES": []})
    if settings.configured and type(backend) is kind:
        _backends[alias] = backend
    return backend


def _noted(error: ConfigurationError) -> ConfigurationError:
    # The URLs may import tasks: then manage.py check ends with this error in place of its list.
    error.add_note("'manage.py check --tag redis_kit' lists the problems of these settings without loading the URLs.")
    return error


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function."""
    return inspect.signature(function)


@cache
def is_coroutine(function: Callable[..., Any]) -> bool:
    """Return whether a function is a coroutine function."""
    return inspect.iscoroutinefunction(function)


def mismatch_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why a function can't be called with these arguments; "" where it can."""
    if not kwargs and len(args) in counts(function):  # a tenth of the time that bind() takes
        return ""
    if kwargs and kwargs.keys() <= _names(function):
        return _mismatch(function, len(args), tuple(kwargs))
    try:
        signature_of(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _mismatch(function: Callable[..., Any], count: int, names: tuple[str, ...]) -> str:
    """Return the same, given the number of positional arguments and the names of the others."""
    try:
        signature_of(function).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return ""


@cache
def _names(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(signature_of(function).parameters)


@cache
def counts(function: Callable[..., Any]) -> range:
    """Return the numbers of positional arguments that a call without keyword arguments may have."""
    parameters = list(signature_of(function).parameters.values())
    needed = {parameter.kind for parameter in parameters if parameter.default is Parameter.empty}
    if Parameter.KEYWORD_ONLY in needed:
        return range(0)
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    positional = [parameter for parameter in parameters if parameter.kind in kinds]
    most = sys.maxsize if Parameter.VAR_POSITIONAL in needed else len(positional) + 1
    return range(sum(parameter.default is Parameter.empty for parameter in positional), most)


conf.on_change(_backends.clear, "TASKS")
