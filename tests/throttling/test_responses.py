"""What clients are told."""

import json
import math
import re

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import translation

from redis_kit.throttling import Decision, Rate, Throttle
from redis_kit.throttling.responses import add_headers, refusal

LOGIN = Throttle("login", "5/m; 50/h burst 9")
REFUSED = Decision(False, 5, 0, 7.2, 55.5, Rate(5, 60))
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

# RFC 9651: a list of strings with parameters that are integers.
FIELD = re.compile(r'"[ !#-\[\]-~]*"(;[a-z]+=\d{1,15})+(, "[ !#-\[\]-~]*"(;[a-z]+=\d{1,15})+)*')


def refused(accept=None, decision=REFUSED, throttle=LOGIN):
    headers = {} if accept is None else {"Accept": accept}
    return refusal(RequestFactory().get("/", headers=headers), throttle, decision)


@pytest.mark.parametrize(
    "accept", [None, "*/*", BROWSER, "text/html", "image/png", "application/json;q=0.1, text/html", "rubbish"]
)
def test_browsers_and_those_that_take_anything_get_a_page(accept):
    response = refused(accept)
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
    response = refused(accept)
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
    response = refused()
    assert response["Retry-After"] == "8"
    assert response["Cache-Control"] == "no-store"
    assert response["Vary"] == "Accept"


@pytest.mark.parametrize(("seconds", "told"), [(0.0001, "1"), (1, "1"), (1.001, "2"), (3599.5, "3600")])
def test_time_to_come_again_is_never_too_early(seconds, told):
    assert refused(decision=REFUSED._replace(retry_after=seconds))["Retry-After"] == told


def test_who_never_may_is_not_told_when():
    never = Throttle("never", "0/s")
    decision = Decision(False, 0, 0, math.inf, math.inf, never.rates[0])
    response = add_headers(refused(decision=decision, throttle=never), never, decision)
    assert "Retry-After" not in response
    assert response["RateLimit"] == '"never";r=0'
    assert response["RateLimit-Policy"] == '"never";q=0;w=1'


def test_fields_of_an_answer_that_was_allowed():
    decision = Decision(True, 9, 3, 0.0, 400.2, Rate(50, 3600, 9))
    response = add_headers(HttpResponse(), LOGIN, decision)
    assert response["RateLimit-Policy"] == '"login 5/m";q=5;w=60, "login 50/h burst 9";q=50;w=3600'
    assert response["RateLimit"] == '"login 50/h burst 9";r=3;t=401'


def test_field_of_a_refusal_names_the_same_moment_as_retry_after():
    assert add_headers(refused(), LOGIN, REFUSED)["RateLimit"] == '"login 5/m";r=0;t=8'


def test_period_that_is_no_whole_second_is_left_out():
    quick = Throttle("quick", Rate(5, 0.5))
    decision = Decision(True, 5, 4, 0.0, 0.1, quick.rates[0])
    assert add_headers(HttpResponse(), quick, decision)["RateLimit-Policy"] == '"quick";q=5'


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "naïve", "用户", "a\r\nSet-Cookie: x=1", "\0", "a.b.", "%", "shop.views.login"]
)
def test_any_name_makes_a_valid_field(name):
    one = Throttle(name, "5/m")
    response = add_headers(HttpResponse(), one, REFUSED._replace(rate=one.rates[0]))
    assert FIELD.fullmatch(response["RateLimit-Policy"])
    assert FIELD.fullmatch(response["RateLimit"])
    assert "Set-Cookie" not in response


def test_path_of_a_view_is_not_told():
    one = Throttle("shop.views.login", "5/m")
    assert add_headers(HttpResponse(), one, REFUSED._replace(rate=one.rates[0]))["RateLimit"] == '"login";r=0;t=8'


def test_answer_of_a_policy_makes_no_claims(kit):
    response = add_headers(HttpResponse(), LOGIN, Decision(True, 5, 5, 0.0, 0.0))
    assert "RateLimit" not in response
    assert "RateLimit-Policy" not in response


def test_page_is_served_where_no_template_engine_looks_into_apps(settings):
    settings.TEMPLATES = []
    response = refused()
    assert response.status_code == 429
    assert b"Try again in 8 seconds." in response.content


def test_page_has_the_language_of_the_request():
    with translation.override("ar"):
        assert 'lang="ar" dir="rtl"' in refused().content.decode()
