"""The fields about limits in a response: RateLimit and RateLimit-Policy, or the older X-RateLimit-....

The first two are those of draft-ietf-httpapi-ratelimit-headers-10, structured fields of RFC 9651.
"""

import math
from collections.abc import Sequence
from time import time
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from django.http.response import HttpResponseBase
from django.views import View

from redis_kit.core import conf
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision

SILENT = ("exempt", "outage", "local", "shadow", "unasked")  # reasons of decisions that do not tell what remains
LARGEST = 10**15 - 1  # integer of a structured field
_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\%')

AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)


class Verdict(NamedTuple):
    """A throttle and what it decided on a request."""

    throttle: Throttle
    decision: Decision


def add_headers(response: AnyResponse, throttle: Throttle, decision: Decision) -> AnyResponse:
    """Add the fields about one throttle to those that the response has. ``HEADERS`` selects which."""
    return add_fields(response, [Verdict(throttle, decision)])


def add_fields(response: AnyResponse, verdicts: Sequence[Verdict]) -> AnyResponse:
    """Add the fields about the throttles of a request. See add_headers().

    Throttles that counted nothing are omitted: in shadow mode, for an exempt identity, and during an outage.
    """
    which = conf.section(ThrottlingSettings).HEADERS
    for verdict in verdicts:
        if verdict.throttle.shadow or verdict.decision.reason in SILENT or verdict.decision.rate is None:
            continue
        if which in ("draft", "both"):
            _add_draft(response, verdict, verdict.decision.rate)
        if which in ("legacy", "both"):
            _add_legacy(response, verdict)
    return response


def retry_seconds(decision: Decision) -> int | None:
    """Return in how many whole seconds a refused client may retry; None if it never may."""
    return max(1, math.ceil(decision.retry_after)) if math.isfinite(decision.retry_after) else None


def policy_name(verdict: Verdict) -> str:
    """Return the name of the rate that decided: the last part of the throttle's name, with the rate if needed.

    For a method of a view class it is the last two parts, such as "Buy.post".
    """
    rate = verdict.decision.rate
    return _names(verdict, with_rates=False)[rate] if rate else _last_part(verdict.throttle)


def _names(verdict: Verdict, *, with_rates: bool) -> dict[Rate | None, str]:
    # A rate that is not among the throttle's own comes from an override; the other rates of it are unknown here.
    rate, name = verdict.decision.rate, _last_part(verdict.throttle)
    rates = verdict.throttle.rates if rate in verdict.throttle.rates else (rate,)
    return {rate: f"{name} {rate}" if with_rates or len(rates) > 1 else name for rate in rates}


def _last_part(throttle: Throttle) -> str:
    *_, owner, last = ("", *throttle.name.split("."))
    part = f"{owner}.{last}" if owner and last in View.http_method_names else last
    return quote(part or throttle.name, safe=_TEXT)


def _add_draft(response: HttpResponseBase, verdict: Verdict, rate: Rate) -> None:
    present = response.headers.get("RateLimit-Policy", "")
    names = _names(verdict, with_rates=False)
    if any(f'"{name}";' in present for name in names.values()):
        names = _names(verdict, with_rates=True)
    seconds = _seconds(verdict.decision)
    time_left = "" if seconds is None else f";t={_integer(seconds)}"
    for rate_, name in names.items():
        if rate_ is not None:
            _append(response, "RateLimit-Policy", f'"{name}";q={_integer(rate_.limit)}{_window(rate_)}')
    _append(response, "RateLimit", f'"{names[rate]}";r={_integer(verdict.decision.remaining)}{time_left}')


def _append(response: HttpResponseBase, field: str, value: str) -> None:
    response[field] = f"{response[field]}, {value}" if field in response else value


def _add_legacy(response: HttpResponseBase, verdict: Verdict) -> None:
    # These fields have room for one throttle: the one with the least remaining calls.
    decision, seconds = verdict.decision, _seconds(verdict.decision)
    before = response.headers.get("X-RateLimit-Remaining", "")
    if before.isdecimal() and int(before) <= decision.remaining:
        return
    response.headers.pop("X-RateLimit-Reset", None)
    response["X-RateLimit-Limit"] = str(decision.limit)
    response["X-RateLimit-Remaining"] = str(decision.remaining)
    response["X-RateLimit-Used"] = str(decision.limit - decision.remaining)
    response["X-RateLimit-Resource"] = policy_name(verdict)
    if seconds is not None:
        response["X-RateLimit-Reset"] = str(math.ceil(time()) + seconds)


def _seconds(decision: Decision) -> int | None:
    if not decision.allowed:
        return retry_seconds(decision)
    return math.ceil(decision.reset_after) if math.isfinite(decision.reset_after) else None


def _window(rate: Rate) -> str:
    return f";w={_integer(rate.period)}" if rate.period == int(rate.period) else ""  # whole seconds only


def _integer(number: float) -> int:
    return min(int(number), LARGEST)
