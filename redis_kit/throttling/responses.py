"""What a client is told: the limits on every response, and 429 with the time to come again on a refusal.

The fields follow draft-ietf-httpapi-ratelimit-headers-10, the body for API clients RFC 9457.
"""

import math
from typing import Any, TypeVar
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.throttling.decision import Decision
from redis_kit.throttling.rates import Rate
from redis_kit.throttling.throttles import Throttle

TEMPLATE = "redis_kit/throttling/429.html"
PROBLEM = "application/problem+json"
EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in '"\\%')

AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)


def refusal(request: HttpRequest, throttle: Throttle, decision: Decision) -> HttpResponse:
    """Return the answer 429: problem+json where the client asks for JSON, else a small page."""
    seconds = wait(decision)
    message = _message(seconds)
    if request.get_preferred_type(["text/html", "application/json", PROBLEM]) in ("application/json", PROBLEM):
        response: HttpResponse = _problem(throttle, decision, message)
    else:
        response = HttpResponse(_page(request, seconds, message), status=429)
    if seconds is not None:
        response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, ["Accept"])
    return response


def add_headers(response: AnyResponse, throttle: Throttle, decision: Decision) -> AnyResponse:
    """Add RateLimit and RateLimit-Policy; to those of another throttle of the same view, if there is one."""
    if decision.rate is None:
        return response
    policies = ", ".join(f"{policy(throttle, rate)};q={rate.limit}{_window(rate)}" for rate in throttle.rates)
    seconds = math.ceil(decision.reset_after) if decision.allowed else wait(decision)
    time = "" if seconds is None else f";t={seconds}"
    for name, value in (
        ("RateLimit-Policy", policies),
        ("RateLimit", f"{policy(throttle, decision.rate)};r={decision.remaining}{time}"),
    ):
        response[name] = f"{response[name]}, {value}" if name in response else value
    return response


def wait(decision: Decision) -> int | None:
    """Return the whole seconds after which a refused client may come again; None when it never may."""
    return max(1, math.ceil(decision.retry_after)) if math.isfinite(decision.retry_after) else None


def policy(throttle: Throttle, rate: Rate) -> str:
    """Return what a rate is called in the fields: the last part of the throttle's name, and the rate if it has more."""
    label = throttle.name.rpartition(".")[2] or throttle.name
    text = label if len(throttle.rates) == 1 else f"{label} {rate}"
    return f'"{quote(text, safe=_TEXT)}"'


def _window(rate: Rate) -> str:
    return f";w={int(rate.period)}" if rate.period == int(rate.period) else ""  # the draft knows whole seconds only


def _problem(throttle: Throttle, decision: Decision, message: str) -> JsonResponse:
    body: dict[str, Any] = {"type": EXCEEDED, "title": _("Too many requests"), "status": 429, "detail": message}
    if decision.rate is not None:
        body["violated-policies"] = [policy(throttle, decision.rate).strip('"')]
    return JsonResponse(body, status=429, content_type=PROBLEM)


def _page(request: HttpRequest, seconds: int | None, message: str) -> str:
    try:
        return render_to_string(TEMPLATE, {"request": request, "retry_after": seconds, "message": message})
    except TemplateDoesNotExist:  # no engine, or one that does not look into apps
        return f"<!doctype html><title>429</title><p>{message}</p>"


def _message(seconds: int | None) -> str:
    if seconds is None:
        return _("This is not allowed.")
    text = ngettext(
        "There were too many requests. Try again in %(seconds)d second.",
        "There were too many requests. Try again in %(seconds)d seconds.",
        seconds,
    )
    return text % {"seconds": seconds}
