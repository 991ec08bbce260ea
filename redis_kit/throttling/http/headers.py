"""The fields that tell a client about its limits: RateLimit and RateLimit-Policy, or the older X-RateLimit-....

The first two are those of draft-ietf-httpapi-ratelimit-headers-10, structured fields of RFC 9651.
"""

import math
from collections.abc import Sequence
from time import time
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from django.http.response import HttpResponseBase

from redis_kit.core import conf
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision
from redis_kit.throttling.values.rates import Rate

SILENT = ("exempt", "outage", "local", "shadow", "unasked")  # reasons of decisions that say nothing about what is left
LARGEST = 10**15 - 1  # integer of a structured field
_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\%')

AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)


class Told(NamedTuple):
    """A throttle and what it decided on a request."""

    throttle: Throttle
    decision: Decision


def add_headers(response: AnyResponse, throttle: Throttle, decision: Decision) -> AnyResponse:
    """Add the fields about one throttle, as the option ``HEADERS`` says, to those about others."""
    return add_fields(response, [Told(throttle, decision)])


def add_fields(response: AnyResponse, told: Sequence[Told]) -> AnyResponse:
    """Add the fields about the throttles of a request. See add_headers().

    Left out are those that counted nothing: in shadow mode, for a caller who is exempt, and during an outage.
    """
    which = conf.section(ThrottleSettings).HEADERS
    for one in told:
        if one.throttle.shadow or one.decision.reason in SILENT or one.decision.rate is None:
            continue
        if which in ("draft", "both"):
            _add_draft(response, one, one.decision.rate)
        if which in ("legacy", "both"):
            _add_legacy(response, one)
    return response


def wait(decision: Decision) -> int | None:
    """Return the whole seconds after which a refused client may come again; None when it never may."""
    return max(1, math.ceil(decision.retry_after)) if math.isfinite(decision.retry_after) else None


def policy_name(one: Told) -> str:
    """Return what the rate that decided is called: the last part of the throttle's name, or that and the rate."""
    return _names(one, apart=False)[one.decision.rate] if one.decision.rate else _label(one.throttle)


def _names(one: Told, *, apart: bool) -> dict[Rate | None, str]:
    # A rate that is none of the throttle's own was put in their place, and is all that is known of those that hold.
    rate, label = one.decision.rate, _label(one.throttle)
    rates = one.throttle.rates if rate in one.throttle.rates else (rate,)
    return {rate: f"{label} {rate}" if apart or len(rates) > 1 else label for rate in rates}


def _label(throttle: Throttle) -> str:
    return quote(throttle.name.rpartition(".")[2] or throttle.name, safe=_TEXT)


def _add_draft(response: HttpResponseBase, one: Told, rate: Rate) -> None:
    taken = response.headers.get("RateLimit-Policy", "")
    names = _names(one, apart=False)
    if any(f'"{name}";' in taken for name in names.values()):
        names = _names(one, apart=True)
    seconds = _seconds(one.decision)
    time_left = "" if seconds is None else f";t={_integer(seconds)}"
    for rate_, name in names.items():
        if rate_ is not None:
            _append(response, "RateLimit-Policy", f'"{name}";q={_integer(rate_.limit)}{_window(rate_)}')
    _append(response, "RateLimit", f'"{names[rate]}";r={_integer(one.decision.remaining)}{time_left}')


def _append(response: HttpResponseBase, field: str, value: str) -> None:
    response[field] = f"{response[field]}, {value}" if field in response else value


def _add_legacy(response: HttpResponseBase, one: Told) -> None:
    # Room for one: the throttle that has least left.
    decision, seconds = one.decision, _seconds(one.decision)
    before = response.headers.get("X-RateLimit-Remaining", "")
    if before.isdecimal() and int(before) <= decision.remaining:
        return
    response.headers.pop("X-RateLimit-Reset", None)
    response["X-RateLimit-Limit"] = str(decision.limit)
    response["X-RateLimit-Remaining"] = str(decision.remaining)
    response["X-RateLimit-Used"] = str(decision.limit - decision.remaining)
    response["X-RateLimit-Resource"] = policy_name(one)
    if seconds is not None:
        response["X-RateLimit-Reset"] = str(math.ceil(time()) + seconds)


def _seconds(decision: Decision) -> int | None:
    if not decision.allowed:
        return wait(decision)
    return math.ceil(decision.reset_after) if math.isfinite(decision.reset_after) else None


def _window(rate: Rate) -> str:
    return f";w={_integer(rate.period)}" if rate.period == int(rate.period) else ""  # whole seconds only


def _integer(number: float) -> int:
    return min(int(number), LARGEST)
