"""Responses to refused requests."""

import asyncio
import json
import math
import re

import pytest
from django.http import JsonResponse
from django.test import AsyncRequestFactory, RequestFactory
from django.utils import translation

from redis_kit.throttling import Decision, Rate, Throttle, throttle
from redis_kit.throttling.http.responses import Verdict, refusal, refuse

LOGIN = Throttle("login", "5/m; 50/h burst 9")
REFUSED = Decision(False, 5, 0, 7.2, 55.5, Rate(5, 60))
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


def answered(accept=None, decision=REFUSED, limit=LOGIN):
    headers = {} if accept is None else {"Accept": accept}
    return refusal(RequestFactory().get("/", headers=headers), limit, decision)


@pytest.mark.parametrize(
    "accept", [None, "*/*", BROWSER, "text/html", "image/png", "application/json;q=0.1, text/html", "rubbish"]
)
def test_browsers_and_those_that_take_anything_get_a_page(accept):
    response = answered(accept)
    assert response.status_code == 429
    assert response["Content-Type"].startswith("text/html")
    text = response.content.decode()
    assert text.startswith("<!doctype html>")
    assert "Try again in 8 seconds." in text
    assert not re.search(r"<script|<style|style=|http", text)
    assert len(text) < 1000


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/problem+json",
        "application/json, text/plain, */*",
        "application/*",
        "text/html;q=0.1, application/json",
    ],
)
def test_api_clients_get_a_problem(accept):
    response = answered(accept)
    assert response.status_code == 429
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content) == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too many requests",
        "status": 429,
        "detail": "There were too many requests. Try again in 8 seconds.",
        "violated-policies": ["login 5/m"],
    }


def test_refusal_says_when_to_come_again_and_is_not_cached():
    response = answered()
    assert response["Retry-After"] == "8"
    assert response["Cache-Control"] == "no-store"
    assert response["Vary"] == "Accept"


@pytest.mark.parametrize(("seconds", "told"), [(0.0001, "1"), (1, "1"), (1.001, "2"), (3599.5, "3600")])
def test_time_to_come_again_is_never_too_early(seconds, told):
    assert answered(decision=REFUSED._replace(retry_after=seconds))["Retry-After"] == told


def test_who_never_may_is_not_told_when():
    never = Throttle("never", "0/s")
    assert "Retry-After" not in answered(decision=Decision(False, 0, 0, math.inf, math.inf, never.rates[0]))


def test_page_is_served_where_no_template_engine_looks_into_apps(settings):
    settings.TEMPLATES = []
    response = answered()
    assert response.status_code == 429
    assert b"Try again in 8 seconds." in response.content


def test_page_has_the_language_of_the_request():
    with translation.override("ar"):
        assert 'lang="ar" dir="rtl"' in answered().content.decode()


@pytest.mark.parametrize(
    "accept", ["application/vnd.api+json", "application/hal+json;q=0.9, text/html;q=0.8", "application/json;q=0.5"]
)
def test_other_kinds_of_json_are_answered_by_a_problem_too(accept):
    assert answered(accept)["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("accept", ["application/vnd.api+json;q=0.5, text/html", "application/xhtml+xml", "text/*"])
def test_clients_that_prefer_html_get_a_page(accept):
    assert answered(accept)["Content-Type"].startswith("text/html")


def test_banned_client_gets_a_response_that_says_so():
    response = answered("application/json", REFUSED._replace(reason="banned", retry_after=86000.0))
    assert (response.status_code, response["Retry-After"]) == (429, "86000")
    problem = json.loads(response.content)
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
    assert problem["status"] == 429


def test_refusal_of_an_outage_is_503():
    decision = REFUSED._replace(reason="outage", retry_after=1.0)
    page, problem = answered(decision=decision), answered("application/json", decision)
    assert {one.status_code for one in (page, problem)} == {503}
    assert {one["Retry-After"] for one in (page, problem)} == {"1"}
    assert "<h1>Temporarily unavailable</h1>" in page.content.decode()
    assert json.loads(problem.content) == {
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Temporarily unavailable",
        "status": 503,
        "detail": "This does not work at the moment. Try again in 1 second.",
        "violated-policies": ["login 5/m"],
    }


def test_problem_names_all_policies_that_were_violated():
    told = [Verdict(Throttle(name, "5/m"), REFUSED._replace(allowed=name == "c")) for name in "abcd"]
    told[1] = Verdict(told[1].throttle, REFUSED._replace(retry_after=50.0))
    response = refuse(RequestFactory().get("/", headers={"Accept": "application/json"}), told)
    assert json.loads(response.content)["violated-policies"] == ["b", "a", "d"]
    assert response["Retry-After"] == "50"


def handler(request, throttle, decision):
    return JsonResponse({"path": request.path, "name": throttle.name, "wait": decision.retry_after}, status=420)


def test_handler_of_the_settings_answers_instead(kit):
    kit.options(THROTTLING={"HANDLER": f"{__name__}.handler"})
    view = throttle(Throttle("login", "0/s"), key="ip")(lambda request: None)
    response = view(RequestFactory().get("/page"))
    assert response.status_code == 420
    assert json.loads(response.content) == {"path": "/page", "name": "login", "wait": math.inf}
    assert response["RateLimit"] == '"login";r=0'


def forgetful_handler(request, throttle, decision):
    pass


def test_handler_that_returns_no_response_is_named(kit):
    kit.options(THROTTLING={"HANDLER": f"{__name__}.forgetful_handler"})
    view = throttle("0/s", key="ip")(lambda request: None)
    with pytest.raises(TypeError, match=r"\['HANDLER'\] is '.*forgetful_handler', which must return a response, n"):
        view(RequestFactory().get("/"))


async def async_handler(request, throttle, decision):
    return JsonResponse({}, status=420)


def test_handler_of_async_views_may_be_a_coroutine_function(kit):
    async def view(request):
        raise AssertionError

    kit.options(THROTTLING={"HANDLER": f"{__name__}.async_handler"})
    limited = throttle("0/s", key="ip")(view)
    assert asyncio.run(limited(AsyncRequestFactory().get("/"))).status_code == 420
