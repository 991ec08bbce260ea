"""The response to a refused request, and the fields about limits in every response.

``RateLimit`` and ``RateLimit-Policy`` are as in draft-ietf-httpapi-ratelimit-headers-10, structured fields of RFC 9651.
"""

import math
from collections.abc import Sequence
from time import time
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views import View

from redis_kit.core import conf
from redis_kit.core.text import shortened
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Decision

SILENT = ("exempt", "outage", "local", "shadow", "unasked")  # reasons of decisions that do not tell what remains
LARGEST = 10**15 - 1  # integer of a structured field
_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\%')

AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)


class Verdict(NamedTuple):
    """A throttle and what it decided on a request."""

    throttle: Throttle
    decision: Decision


def add_fields(response: AnyResponse, verdicts: Sequence[Verdict]) -> AnyResponse:
    """Add the fields about throttles to those that the response has. ``HEADERS`` selects which.

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


TEMPLATE = "redis_kit/throttling/429.html"
PROBLEM = "application/problem+json"
PROBLEMS = "https://iana.org/assignments/http-problem-types#"
KINDS = {"outage": "temporary-reduced-capacity", "banned": "abnormal-usage-detected"}  # else quota-exceeded


def refuse(request: HttpRequest, verdicts: Sequence[Verdict]) -> Any:
    """Return the response to a request that some throttles refused: that of ``HANDLER``, or else refusal()."""
    chosen = decisive(verdicts)
    handler = conf.section(ThrottlingSettings).HANDLER
    if handler:
        return import_string(handler)(request, *chosen)
    others = [verdict for verdict in verdicts if not verdict.decision.allowed and verdict is not chosen]
    return refusal(request, *chosen, others=others)


def refusal(
    request: HttpRequest, throttle: Throttle, decision: Decision, *, others: Sequence[Verdict] = ()
) -> HttpResponse:
    """Return a response with ``Retry-After`` and the status 429, or 503 if the failure policy refused.

    It is problem+json for clients that prefer JSON, else a small page. For clients that take anything, views of Django
    REST framework answer with JSON. ``others`` are further throttles that refused.
    """
    status, seconds = 503 if decision.reason == "outage" else 429, retry_seconds(decision)
    title, message = _words(status, seconds)
    if _prefers_json(request):
        kind = KINDS.get(decision.reason, "quota-exceeded")
        body = {"type": PROBLEMS + kind, "title": title, "status": status, "detail": message}
        names = [policy_name(verdict) for verdict in (Verdict(throttle, decision), *others) if verdict.decision.rate]
        response: HttpResponse = JsonResponse(
            body | ({"violated-policies": names} if names else {}), status=status, content_type=PROBLEM
        )
    else:
        context = {"request": request, "retry_after": seconds, "status": status, "title": title, "message": message}
        response = HttpResponse(_page(context), status=status)
    if seconds is not None:
        response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, ["Accept"])
    return response


def with_fields(response: Any, verdicts: Sequence[Verdict]) -> Any:
    """Add the fields about limits to a refusal. Raises TypeError if ``HANDLER`` returned no response."""
    if not isinstance(response, HttpResponseBase):
        setting = f"REDIS_KIT['THROTTLING']['HANDLER'] is {conf.section(ThrottlingSettings).HANDLER!r}"
        raise TypeError(f"{setting}, which must return a response, not {shortened(response)}.")
    return add_fields(response, verdicts)


def decisive(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the refusal that lasts longest; if all are allowed, the one with the fewest remaining calls."""
    refusals = [verdict for verdict in verdicts if not verdict.decision.allowed]
    if refusals:
        return max(refusals, key=lambda verdict: verdict.decision.retry_after)
    return min(verdicts, key=lambda verdict: (verdict.decision.rate is None, verdict.decision.remaining))


def _prefers_json(request: HttpRequest) -> bool:
    # One vendor type of JSON is enough: the list of accepted types is sorted, and can be long.
    vendor = next(
        (f"{kind.main_type}/{kind.sub_type}" for kind in request.accepted_types if kind.sub_type.endswith("+json")),
        PROBLEM,
    )
    types = ["application/json", PROBLEM, vendor]  # the client's order counts, and this one if it takes anything
    preferred = request.get_preferred_type([*types, "text/html"] if _is_api(request) else ["text/html", *types])
    return preferred not in (None, "text/html")


def _is_api(request: HttpRequest) -> bool:
    """Return whether the route leads to a view of Django REST framework."""
    match = getattr(request, "resolver_match", None)
    return match is not None and hasattr(getattr(match.func, "cls", None), "renderer_classes")


def _page(context: dict[str, Any]) -> str:
    try:
        return render_to_string(TEMPLATE, context)
    except TemplateDoesNotExist:  # no engine, or one that does not look into apps
        return f"<!doctype html><title>{escape(context['title'])}</title><p>{escape(context['message'])}</p>"


def _words(status: int, seconds: int | None) -> tuple[str, str]:
    if status == 503:
        text = ngettext(
            "This does not work at the moment. Try again in %(seconds)d second.",
            "This does not work at the moment. Try again in %(seconds)d seconds.",
            seconds or 1,
        )
        return _("Temporarily unavailable"), text % {"seconds": seconds or 1}
    if seconds is None:
        return _("Too many requests"), _("This is not allowed.")
    text = ngettext(
        "There were too many requests. Try again in %(seconds)d second.",
        "There were too many requests. Try again in %(seconds)d seconds.",
        seconds,
    )
    return _("Too many requests"), text % {"seconds": seconds}
