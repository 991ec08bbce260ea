"""The middleware of the project, ``MIDDLEWARE``: around each attempt of a job, and where a call is enqueued.

It imports no Redis client.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import iscoroutinefunction
from typing import Any

from django.core.exceptions import MiddlewareNotUsed
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.logs.error_text import described
from redis_kit.core.text import did_you_mean, shortened, similar
from redis_kit.queues.errors import InvalidMiddleware
from redis_kit.queues.settings import QueueSettings

OPTION = "REDIS_KIT['QUEUES']['MIDDLEWARE']"
HOOK = "process_enqueue"
ALIKE = 0.9  # the likeness of a misspelt name; process_request(), of Django, has 0.8
Factory = Callable[[Callable[..., Any]], Any]


class OutgoingCall:
    """A call on its way to the queue, as ``process_enqueue()`` of a middleware gets it.

    It may change the values of ``args`` and ``kwargs``, but not their number and names, and put JSON into ``headers``.
    """

    def __init__(self, task: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        self.task, self.args, self.kwargs = task, list(args), dict(kwargs)
        self.headers: dict[str, Any] = {}


def outgoing(task: Any, args: Any, kwargs: Mapping[str, Any]) -> OutgoingCall | None:
    """Return a call as the middleware leaves it; None if none looks at calls. Raises what the middleware raises."""
    if not hooks():
        return None
    call = OutgoingCall(task, args, kwargs)
    for hook in hooks():
        hook(call)
    if len(call.args) != len(args) or call.kwargs.keys() != kwargs.keys():
        raise InvalidMiddleware(
            f"{listed()} changed the number or the names of the arguments of {task.module_path}. Workers look at these "
            "before they run it, so change values only, and put the rest into headers."
        )
    if not isinstance(call.headers, dict):
        raise InvalidMiddleware(f"{listed()} put {shortened(call.headers)} in place of headers. They are a dict.")
    return call


def factories() -> list[Factory]:
    """Return what ``MIDDLEWARE`` names, the outermost first. Raises ConfigurationError."""
    return [_imported(path) for path in conf.section(QueueSettings).MIDDLEWARE]


def made(factory: Factory, call_next: Callable[..., Any]) -> Callable[..., Any]:
    """Return the middleware of a factory around the next one; that one itself if it raises MiddlewareNotUsed."""
    name = f"{factory.__module__}.{getattr(factory, '__qualname__', factory)} in {OPTION}"
    try:
        middleware = factory(call_next)
    except MiddlewareNotUsed:
        return call_next
    except Exception as error:
        raise ConfigurationError(f"{name} can't be called with call_next: {described(error)}.") from error
    if not callable(middleware):
        must = "It must return a callable that takes an attempt."
        raise ConfigurationError(f"{name} returned {shortened(middleware)}. {must}")
    if _is_coroutine(middleware) and not getattr(factory, "async_capable", False):
        raise ConfigurationError(f"{name} is asynchronous. Set async_capable = True, as for a middleware of Django.")
    names = [each for each in dir(middleware) if not each.startswith("_")]
    if HOOK not in names and (near := similar(HOOK, names, ALIKE)):
        raise ConfigurationError(f"{name} has {near[0]}(), which nothing calls. Did you mean {HOOK}()?")
    if iscoroutinefunction(getattr(middleware, HOOK, None)):
        raise ConfigurationError(f"{name} has an asynchronous process_enqueue(). Write def in place of async def.")
    return middleware  # type: ignore[no-any-return]


def _is_coroutine(middleware: Any) -> bool:
    return iscoroutinefunction(middleware) or iscoroutinefunction(getattr(middleware, "__call__", None))  # noqa: B004


def listed() -> str:
    """Return how a message names the middleware of the project: which one it was is not known."""
    paths = [repr(path) for path in conf.section(QueueSettings).MIDDLEWARE]
    return f"The middleware {paths[0]}" if len(paths) == 1 else f"One of the middleware {', '.join(paths)}"


def problems() -> Iterator[Problem]:
    """Yield a problem for each path that can't be imported, or whose middleware can't be made. Makes all of them."""
    for path in conf.valid_options(QueueSettings).MIDDLEWARE:
        if "." not in path:
            continue  # the settings report it
        try:
            made(_imported(path), _refuse)
        except ConfigurationError as error:
            yield Problem("E017", str(error))


def _imported(path: str) -> Factory:
    try:
        factory: Any = import_string(path)
    except ImportError as error:
        module, _, name = path.rpartition(".")
        try:
            known = vars(__import__(module, fromlist=[name])) if module else {}
        except ImportError:
            known = {}
        hint = did_you_mean(name, known, "Write it as in an import, such as 'shop.middleware.TenantMiddleware'.")
        wrong = f"{OPTION} holds {path!r}, which can't be imported: {str(error).rstrip('.')}."
        raise ConfigurationError(f"{wrong} {hint}") from error
    except Exception as error:
        wrong = f"{OPTION} holds {path!r}, whose module can't be imported: {described(error)}."
        raise ConfigurationError(wrong) from error
    if not callable(factory):
        raise ConfigurationError(f"{OPTION} holds {path!r}, which is {shortened(factory)} and not a class or function.")
    if not (getattr(factory, "sync_capable", True) or getattr(factory, "async_capable", False)):
        raise ConfigurationError(
            f"{OPTION} holds {path!r}, whose sync_capable and async_capable are both False. Set one of them to True."
        )
    return factory  # type: ignore[no-any-return]


@cache
def hooks() -> list[Callable[[OutgoingCall], None]]:
    """Return the hooks, the innermost first: what the outermost one did last is what it undoes first in a worker.

    Raises ConfigurationError for a middleware that can't be made.
    """
    every = [getattr(made(factory, _refuse), HOOK, None) for factory in factories()]
    return [hook for hook in reversed(every) if hook]


def _refuse(attempt: Any) -> Any:
    raise InvalidMiddleware("A middleware calls call_next() in a worker only, with the attempt that it got.")


conf.on_change(hooks.cache_clear)
