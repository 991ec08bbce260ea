"""The response to a refused request: a page or a problem (RFC 9457), and when to retry."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.html import escape
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core import conf
from redis_kit.core.text import shortened
from redis_kit.throttling.http.headers import Verdict, add_fields, policy_name, retry_seconds
from redis_kit.throttling.settings import ThrottlingSettings
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.decision import Decision

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
