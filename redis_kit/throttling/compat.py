"""The arguments of django-ratelimit on the kit's throttles, for projects that come from there."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from inspect import isawaitable, iscoroutine
from time import time
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.views.defaults import permission_denied

from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.throttling.http.decorator import _is_async, _path
from redis_kit.throttling.http.responses import Told, add_fields, refused
from redis_kit.throttling.strategies.base import OVERRUN
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values import identity as identities
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.identity import Key
from redis_kit.throttling.values.rates import Rate, parse

ALL = (None,)
UNSAFE = ["DELETE", "PATCH", "POST", "PUT"]
POLICIES = {True: "open", False: "closed"}  # what RATELIMIT_FAIL_OPEN says, where it is set

View = TypeVar("View", bound=Callable[..., Any])


class Ratelimited(PermissionDenied):
    """A view was called too often. Django answers 403; with this module's ``handler403`` it is 429."""

    throttle: Throttle | None = None
    decision: Decision | None = None


class _Asked(NamedTuple):
    throttle: Throttle
    decision: Decision
    counted: bool

    @property
    def over(self) -> bool:
        """Say whether more was tried than the limit allows; all of it used up is not yet more."""
        decision = self.decision
        refused = ("banned", "local", "outage") if self.counted else ("banned", "local")
        tried = decision.remaining < 0 or decision.limit == 0 or decision.reason in refused
        return not decision and tried

    @property
    def usage(self) -> dict[str, Any] | None:
        """Return it as get_usage() does."""
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
    """Limit calls of a view, sync or async: ``request.limited`` says so, and ``block`` raises Ratelimited.

    ``key`` is ip, user, user_or_ip, get:x, post:x, header:x-y, a callable of group and request, or its dotted path;
    ``rate`` a text or tuple, None for no limit, a callable of group and request, or its dotted path; in async views
    both may be coroutine functions. One round trip.
    """
    if isinstance(key, str):
        _known(key)
    if not (callable(rate) or _is_dotted(rate)):
        parse(rate)

    def decorate(view: View) -> View:
        arguments = (group, view, key, rate, method, True)

        @wraps(view)
        def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
            _tell(request, _ask(request, *arguments), block)
            return view(request, *args, **kwargs)

        @wraps(view)
        async def alimited(request: Any, *args: Any, **kwargs: Any) -> Any:
            _tell(request, await _aask(request, *arguments), block)
            return await view(request, *args, **kwargs)

        return alimited if _is_async(view) else limited  # type: ignore[return-value]

    return decorate


def is_ratelimited(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> bool:
    """Say whether the limit is passed, counting this call or only looking. See ratelimit(); fn stands for a group.

    While the server is away and ``RATELIMIT_FAIL_OPEN`` is False, a call that is counted passes the limit; a look does
    not, as in django-ratelimit.
    """
    found = _ask(request, group, fn, key, rate, method, increment)
    return found is not None and found.over


async def ais_ratelimited(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> bool:
    """See is_ratelimited()."""
    found = await _aask(request, group, fn, key, rate, method, increment)
    return found is not None and found.over


def get_usage(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> dict[str, Any] | None:
    """Return ``count``, ``limit``, ``should_limit`` and ``time_left`` in seconds; None where nothing limits the call.

    A count ends at one above the limit. See is_ratelimited().
    """
    found = _ask(request, group, fn, key, rate, method, increment)
    return found and found.usage


async def aget_usage(
    request: HttpRequest,
    group: str | None = None,
    fn: Any = None,
    key: Any = None,
    rate: Any = None,
    method: Any = ALL,
    increment: bool = False,
) -> dict[str, Any] | None:
    """See get_usage()."""
    found = await _aask(request, group, fn, key, rate, method, increment)
    return found and found.usage


def handler403(request: HttpRequest, exception: Exception | None = None) -> Any:
    """Answer Ratelimited by 429 with ``Retry-After``, and any other PermissionDenied as Django does.

    Name it in the root URLconf: ``handler403 = "redis_kit.throttling.compat.handler403"``.
    """
    if isinstance(exception, Ratelimited) and exception.throttle and exception.decision is not None:
        told = [Told(exception.throttle, exception.decision)]
        return add_fields(refused(request, told), told)
    return permission_denied(request, exception)  # type: ignore[arg-type]


ratelimit.ALL = is_ratelimited.ALL = get_usage.ALL = ALL  # type: ignore[attr-defined]
ratelimit.UNSAFE = is_ratelimited.UNSAFE = get_usage.UNSAFE = UNSAFE  # type: ignore[attr-defined]


def _ask(
    request: HttpRequest, group: str | None, fn: Any, key: Any, rate: Any, method: Any, increment: bool
) -> _Asked | None:
    called, methods = _named(group, fn), _methods(method)
    if not _applies(request, methods):
        return None
    given = _at_once(_called(rate, called, request) if callable(rate) or _is_dotted(rate) else rate)
    if given is None:
        return None
    throttle = _throttle(called, methods, parse(given), _policy())
    found = _known(key)
    identity = found.of(request) if isinstance(found, Key) else _valued(_at_once(_called(key, called, request)))
    return _Asked(throttle, throttle.hit(identity) if increment else throttle.peek(identity), increment)


async def _aask(
    request: HttpRequest, group: str | None, fn: Any, key: Any, rate: Any, method: Any, increment: bool
) -> _Asked | None:
    called, methods = _named(group, fn), _methods(method)
    if not _applies(request, methods):
        return None
    given = await _in_time(_called(rate, called, request) if callable(rate) or _is_dotted(rate) else rate)
    if given is None:
        return None
    throttle = _throttle(called, methods, parse(given), _policy())
    found = _known(key)
    identity = (
        await found.aof(request) if isinstance(found, Key) else _valued(await _in_time(_called(key, called, request)))
    )
    decision = await (throttle.ahit(identity) if increment else throttle.apeek(identity))
    return _Asked(throttle, decision, increment)


def _named(group: str | None, fn: Any) -> str:
    if group is None and fn is None:
        raise ConfigurationError("is_ratelimited() and get_usage() need a group, or the view as fn.")
    return _path(fn) if group is None else group


def _methods(method: Any) -> tuple[str, ...]:
    """Return the methods that count, none for all."""
    if method == ALL:
        return ()
    return tuple(sorted(one.upper() for one in ([method] if isinstance(method, str) else method)))


def _applies(request: HttpRequest, methods: Sequence[str]) -> bool:
    return getattr(settings, "RATELIMIT_ENABLE", True) and (not methods or request.method in methods)


def _is_dotted(value: Any) -> bool:
    return isinstance(value, str) and "." in value and ":" not in value


def _called(function: Any, group: str, request: HttpRequest) -> Any:
    return (import_string(function) if isinstance(function, str) else function)(group, request)


@lru_cache(maxsize=1000)
def _throttle(group: str, methods: tuple[str, ...], rates: tuple[Rate, ...], on_failure: str | None) -> Throttle:
    name = " ".join([group, *methods])
    return Throttle(name, rates or None, strategy=OVERRUN, on_failure=on_failure)


def _policy() -> str | None:
    return POLICIES.get(getattr(settings, "RATELIMIT_FAIL_OPEN", None))  # type: ignore[arg-type]


@lru_cache(maxsize=1000)
def _known(key: Any) -> Key | None:
    """Return one of the kit's keys; None for a function of group and request. Raises ConfigurationError."""
    if not key:
        raise ConfigurationError(f"A rate limit needs a key. {identities.GRAMMAR}")
    if callable(key):
        return None
    if _is_dotted(key):
        identities.note(key)
        return None
    try:
        return Key(key)
    except InvalidValue as error:
        raise ConfigurationError(str(error)) from error


def _valued(value: Any) -> str:
    if value is None or not isinstance(value, (str, int)):
        raise InvalidName(f"The key of a rate limit must return text, not {shortened(value)}.")
    return f"key:{value}"


def _at_once(found: Any) -> Any:
    if isawaitable(found):
        if iscoroutine(found):
            found.close()
        raise TypeError("A key or rate is a coroutine function, and the view is not one.")
    return found


async def _in_time(found: Any) -> Any:
    return await found if isawaitable(found) else found


def _tell(request: Any, found: _Asked | None, block: bool) -> None:
    over = found is not None and found.over
    request.limited = over or getattr(request, "limited", False)
    if found is None or not over or not block:
        return
    given = getattr(settings, "RATELIMIT_EXCEPTION_CLASS", Ratelimited)
    error = (import_string(given) if isinstance(given, str) else given)()
    request.throttle = error.decision = found.decision._replace(remaining=0)
    error.throttle = found.throttle
    raise error
