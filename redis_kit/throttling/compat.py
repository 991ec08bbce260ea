"""The API of django-ratelimit on top of Throttle, for projects that migrate from it."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from time import time
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.views.defaults import permission_denied

from redis_kit.core import flow
from redis_kit.core.awaitables import Result, is_async
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.flow import Flow, twin
from redis_kit.core.text import shortened
from redis_kit.core.values.rates import Rate, parse
from redis_kit.throttling.engine.base import asking
from redis_kit.throttling.http.responses import Verdict, refuse, with_fields
from redis_kit.throttling.http.views import view_path
from redis_kit.throttling.identity import GRAMMAR, IdentityKey, is_path, note
from redis_kit.throttling.settings import methods_of
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Decision

NOT_ASYNC = "The key or rate is a coroutine function, but the view is sync."
ALL = (None,)
UNSAFE = ["DELETE", "PATCH", "POST", "PUT"]
OVERRUN = "redis_kit.throttling.strategies.Overrun"
POLICIES = {True: "open", False: "closed"}  # the failure policy by RATELIMIT_FAIL_OPEN

View = TypeVar("View", bound=Callable[..., Any])


class Ratelimited(PermissionDenied):
    """A view was called too often. Django answers 403; with this module's ``handler403`` it is 429."""

    throttle: Throttle | None = None
    decision: Decision | None = None


class _Usage(NamedTuple):
    throttle: Throttle
    decision: Decision
    counted: bool

    @property
    def over(self) -> bool:
        """Return whether there were more calls than the limit allows; exactly the limit is not yet too many."""
        decision = self.decision
        refused = ("banned", "local", "outage") if self.counted else ("banned", "local")
        tried = decision.remaining < 0 or decision.limit == 0 or decision.reason in refused
        return not decision and tried

    @property
    def figures(self) -> dict[str, Any] | None:
        """Return the dict of get_usage()."""
        decision = self.decision
        if decision.rate is None:
            return None
        unknown = not decision and decision.reason == "outage"
        if unknown and self.counted:
            return {"count": 0, "limit": 0, "should_limit": True, "time_left": -1}
        left, period = decision.reset_after, decision.rate.period
        count = decision.limit + 1 if self.over else decision.limit - decision.remaining
        return {
            "count": 0 if unknown else count,
            "limit": decision.limit,
            "should_limit": self.over,
            "time_left": math.ceil(left if math.isfinite(left) and not unknown else period - time() % period),
        }


def ratelimit(
    group: str | None = None, key: Any = None, rate: Any = None, method: Any = ALL, block: bool = True
) -> Callable[[View], View]:
    """Limit calls of a view, sync or async. Sets ``request.limited``; with ``block`` it raises Ratelimited.

    ``key`` is ip, user, user_or_ip, get:x, post:x, header:x-y, a callable of group and request, or its dotted path.
    ``rate`` is text, a tuple, None for no limit, a callable of group and request, or its dotted path. In async views
    both may be coroutine functions. One round trip.
    """
    if isinstance(key, str):
        _key(key)
    if not (callable(rate) or is_path(rate)):
        parse(rate)
    _methods(method)

    def decorate(view: View) -> View:
        arguments = (group, view, key, rate, method, True)

        @wraps(view)
        def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
            _annotate(request, flow.run(_ask(request, *arguments), None), block)
            return view(request, *args, **kwargs)

        @wraps(view)
        async def alimited(request: Any, *args: Any, **kwargs: Any) -> Any:
            _annotate(request, await flow.arun(_ask(request, *arguments), None), block)
            return await view(request, *args, **kwargs)

        return alimited if is_async(view) else limited  # type: ignore[return-value]

    return decorate


@asking
def is_ratelimited(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> Flow[bool]:
    """Return whether the limit is exceeded. ``increment`` counts this call; ``fn`` stands for a group. See ratelimit().

    If the server is unavailable and ``RATELIMIT_FAIL_OPEN`` is False, a call that is counted exceeds the limit, and one
    that is not counted does not, as in django-ratelimit.
    """
    usage = yield from _ask(request, group, fn, key, rate, method, increment)
    return usage is not None and usage.over


@asking
def get_usage(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> Flow[dict[str, Any] | None]:
    """Return ``count``, ``limit``, ``should_limit`` and ``time_left`` in seconds; None if nothing limits the call.

    The count stops at one above the limit. See is_ratelimited().
    """
    usage = yield from _ask(request, group, fn, key, rate, method, increment)
    return usage and usage.figures


ais_ratelimited = twin(is_ratelimited)
aget_usage = twin(get_usage)


def handler403(request: HttpRequest, exception: Exception | None = None) -> Any:
    """Answer Ratelimited with status 429 and ``Retry-After``, and any other PermissionDenied as Django does.

    Name it in the root URLconf: ``handler403 = "redis_kit.throttling.compat.handler403"``.
    """
    if isinstance(exception, Ratelimited) and exception.throttle and exception.decision is not None:
        verdicts = [Verdict(exception.throttle, exception.decision)]
        return with_fields(refuse(request, verdicts), verdicts)
    return permission_denied(request, exception)  # type: ignore[arg-type]


ratelimit.ALL = is_ratelimited.ALL = get_usage.ALL = ALL  # type: ignore[attr-defined]
ratelimit.UNSAFE = is_ratelimited.UNSAFE = get_usage.UNSAFE = UNSAFE  # type: ignore[attr-defined]


def _ask(
    request: HttpRequest, group: str | None, fn: Any, key: Any, rate: Any, method: Any, increment: bool
) -> Flow[_Usage | None]:
    name, methods = _group_of(group, fn), _methods(method)
    if not _applies(request, methods):
        return None
    if callable(rate) or is_path(rate):
        rate = yield Result(_call(rate, name, request), NOT_ASYNC)
    if rate is None:
        return None
    throttle = _throttle(name, methods, parse(rate), _policy())
    if identity_key := _key(key):
        identity = yield from identity_key.find(request)
    else:
        identity = _identity((yield Result(_call(key, name, request), NOT_ASYNC)))
    asked = yield from throttle.reserve_flow(identity) if increment else throttle.peek_flow(identity)
    return _Usage(throttle, asked.decision, increment)


def _group_of(group: str | None, fn: Any) -> str:
    if group is None and fn is None:
        raise ConfigurationError("is_ratelimited() and get_usage() need a group, or the view as fn.")
    return view_path(fn) if group is None else group


def _methods(method: Any) -> tuple[str, ...]:
    """Return the methods that are counted; an empty tuple for all."""
    if method == ALL:
        return ()
    names = tuple(sorted(name.upper() for name in ([method] if isinstance(method, str) else method)))
    methods_of(names or None)  # refuses unknown ones
    return names


def _applies(request: HttpRequest, methods: Sequence[str]) -> bool:
    is_get = request.method == "HEAD" and "GET" in methods  # Django runs the same view for both
    return getattr(settings, "RATELIMIT_ENABLE", True) and (not methods or request.method in methods or is_get)


def _call(function: Any, group: str, request: HttpRequest) -> Any:
    return (import_string(function) if isinstance(function, str) else function)(group, request)


@lru_cache(maxsize=1000)
def _throttle(group: str, methods: tuple[str, ...], rates: tuple[Rate, ...], on_failure: str | None) -> Throttle:
    name = " ".join([group, *methods])
    return Throttle(name, rates or None, strategy=OVERRUN, on_failure=on_failure)


def _policy() -> str | None:
    return POLICIES.get(getattr(settings, "RATELIMIT_FAIL_OPEN", None))  # type: ignore[arg-type]


@lru_cache(maxsize=1000)
def _key(key: Any) -> IdentityKey | None:
    """Return the IdentityKey; None for a function of group and request. Raises ConfigurationError."""
    if not key:
        raise ConfigurationError(f"A rate limit needs a key. {GRAMMAR}")
    if callable(key):
        return None
    if is_path(key):
        note(key)
        return None
    try:
        return IdentityKey(key)
    except InvalidValue as error:
        raise ConfigurationError(str(error)) from error


def _identity(value: Any) -> str:
    if value is None or not isinstance(value, (str, int)):
        raise InvalidName(f"The key of a rate limit must return text, not {shortened(value)}.")
    return f"key:{value}"


def _annotate(request: Any, usage: _Usage | None, block: bool) -> None:
    over = usage is not None and usage.over
    request.limited = over or getattr(request, "limited", False)
    if usage is None or not over or not block:
        return
    given = getattr(settings, "RATELIMIT_EXCEPTION_CLASS", Ratelimited)
    error = (import_string(given) if isinstance(given, str) else given)()
    request.throttle = error.decision = usage.decision._replace(remaining=0)
    error.throttle = usage.throttle
    raise error
