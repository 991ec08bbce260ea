"""The fields about limits, read by a parser of structured fields (RFC 9651)."""

import math
import time

import http_sf
import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from redis_kit.throttling import Decision, Rate, Throttle, throttle
from redis_kit.throttling.http.responses import Verdict, add_fields

LOGIN = Throttle("login", "5/m; 50/h burst 9")
API = Throttle("api", "60/m")
ALLOWED = Decision(True, 9, 3, 0.0, 400.2, Rate(50, 3600, 9))
REFUSED = Decision(False, 5, 0, 7.2, 55.5, Rate(5, 60))
API_LEFT = Decision(True, 60, 12, 0.0, 48.0, Rate(60, 60))


def policies(response):
    """Return the policies that a response states, checked by the grammar of the draft."""
    found = http_sf.parse(response["RateLimit-Policy"].encode(), tltype="list")
    for name, parameters in found:
        assert type(name) is str
        assert set(parameters) <= {"q", "w"}
        assert type(parameters["q"]) is int
        assert parameters["q"] >= 0
        assert type(parameters.get("w", 1)) is int
        assert parameters.get("w", 1) > 0
    return dict(found)


def limits(response):
    """Return what a response says is left of its policies, checked by the grammar of the draft."""
    found = http_sf.parse(response["RateLimit"].encode(), tltype="list")
    for name, parameters in found:
        assert name in policies(response)
        assert set(parameters) <= {"r", "t"}
        assert all(type(value) is int and value >= 0 for value in parameters.values())
        assert "r" in parameters
    return dict(found)


def told(*pairs):
    return add_fields(HttpResponse(), [Verdict(*pair) for pair in pairs])


def test_fields_of_an_answer_that_was_allowed():
    response = told((LOGIN, ALLOWED))
    assert policies(response) == {"login 5/m": {"q": 5, "w": 60}, "login 50/h burst 9": {"q": 50, "w": 3600}}
    assert limits(response) == {"login 50/h burst 9": {"r": 3, "t": 401}}


def test_field_of_a_refusal_names_the_same_moment_as_retry_after():
    assert limits(told((LOGIN, REFUSED))) == {"login 5/m": {"r": 0, "t": 8}}


def test_who_never_may_is_told_no_time():
    never = Throttle("never", "0/s")
    response = told((never, Decision(False, 0, 0, math.inf, math.inf, never.rates[0])))
    assert policies(response) == {"never": {"q": 0, "w": 1}}
    assert limits(response) == {"never": {"r": 0}}


def test_each_of_several_throttles_has_its_fields():
    response = told((API, API_LEFT), (LOGIN, ALLOWED))
    assert list(policies(response)) == ["api", "login 5/m", "login 50/h burst 9"]
    assert limits(response) == {"api": {"r": 12, "t": 48}, "login 50/h burst 9": {"r": 3, "t": 401}}


def test_those_added_later_are_told_too():
    response = add_fields(told((API, API_LEFT)), [Verdict(LOGIN, REFUSED)])
    assert limits(response) == {"api": {"r": 12, "t": 48}, "login 5/m": {"r": 0, "t": 8}}


def test_rate_that_holds_instead_is_the_policy():
    other = Rate(200, 3600)
    response = told((LOGIN, Decision(True, 200, 150, 0.0, 900.0, other)))
    assert policies(response) == {"login": {"q": 200, "w": 3600}}
    assert limits(response) == {"login": {"r": 150, "t": 900}}


def test_fields_of_a_banned_client_have_no_room_and_the_end_of_the_ban():
    assert limits(told((API, API.answer(False, "banned", 3000.5)))) == {"api": {"r": 0, "t": 3001}}


@pytest.mark.parametrize("reason", ["exempt", "outage", "local", "shadow", "unasked"])
@pytest.mark.parametrize("which", ["draft", "both"])
def test_answer_that_counted_nothing_makes_no_claims(kit, reason, which):
    kit.options(THROTTLING={"HEADERS": which})
    for decision in (API.answer(True, reason), API_LEFT._replace(reason=reason), REFUSED._replace(reason=reason)):
        assert not any("Rate" in name for name in told((API, decision)).headers)


def test_shadow_makes_no_claims_while_there_is_room_either():
    assert "RateLimit" not in told((Throttle("shy", "60/m", shadow=True), API_LEFT))


def test_answer_of_a_policy_makes_no_claims():
    response = told((LOGIN, Decision(True, 5, 5, 0.0, 0.0)))
    assert "RateLimit" not in response
    assert "RateLimit-Policy" not in response


def test_period_that_is_no_whole_second_is_left_out():
    quick = Throttle("quick", Rate(5, 0.5))
    assert policies(told((quick, Decision(True, 5, 4, 0.0, 0.1, quick.rates[0])))) == {"quick": {"q": 5}}


@pytest.mark.parametrize("period", [1, 1.5, 0.000001, 31_536_000 * 100])
@pytest.mark.parametrize("limit", [1, 10**6, 10**9])
def test_numbers_are_those_that_a_field_can_hold(limit, period):
    rate = Rate(limit, period, 1)
    decision = Decision(True, limit, limit, 0.0, 1e17, rate)
    assert limits(told((Throttle("huge", rate), decision)))["huge"]["r"] <= 10**15 - 1


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", "naïve", "用户", "a\r\nSet-Cookie: x=1", "\0", "a.b.", "%", "shop.views.login", "a, b;q=1"]
)
def test_any_name_makes_a_valid_field(name):
    one = Throttle(name, "5/m")
    response = told((one, REFUSED._replace(rate=one.rates[0])))
    assert list(policies(response)) == list(limits(response))
    assert "Set-Cookie" not in response


def test_path_of_a_view_is_not_in_the_fields():
    assert limits(told((Throttle("shop.views.api", "60/m"), API_LEFT))) == {"api": {"r": 12, "t": 48}}


def test_policies_of_the_same_name_are_distinguished():
    other = Throttle("shop.api", "9/h")
    response = told((API, API_LEFT), (other, Decision(True, 9, 8, 0.0, 400.0, other.rates[0])))
    assert limits(response) == {"api": {"r": 12, "t": 48}, "api 9/h": {"r": 8, "t": 400}}


def test_fields_of_a_view_are_valid_on_the_way_down_and_after(kit):
    view = throttle("3/h; 50/d", name="view", key="ip")(lambda request: HttpResponse())
    seen = [limits(view(RequestFactory().get("/"))) for _ in range(4)]
    assert [one["view 3/h"]["r"] for one in seen] == [2, 1, 0, 0]


def test_older_fields_are_sent_on_request(kit):
    kit.options(THROTTLING={"HEADERS": "legacy"})
    response = told((LOGIN, ALLOWED))
    assert "RateLimit" not in response
    assert int(response["X-RateLimit-Reset"]) - time.time() == pytest.approx(401, abs=2)
    del response["X-RateLimit-Reset"], response["Content-Type"]
    assert dict(response.items()) == {
        "X-RateLimit-Limit": "9",
        "X-RateLimit-Remaining": "3",
        "X-RateLimit-Used": "6",
        "X-RateLimit-Resource": "login 50/h burst 9",
    }


def test_older_fields_are_those_of_the_throttle_with_least_left(kit):
    kit.options(THROTTLING={"HEADERS": "both"})
    for pairs in ([(API, API_LEFT), (LOGIN, ALLOWED)], [(LOGIN, ALLOWED), (API, API_LEFT)]):
        response = told(*pairs)
        assert response["X-RateLimit-Resource"] == "login 50/h burst 9"
        assert response["X-RateLimit-Remaining"] == "3"
        assert set(limits(response)) == {"api", "login 50/h burst 9"}


def test_legacy_fields_have_no_time_if_the_client_may_never_retry(kit):
    kit.options(THROTTLING={"HEADERS": "legacy"})
    never = Throttle("never", "0/s")
    response = told((API, API_LEFT), (never, Decision(False, 0, 0, math.inf, math.inf, never.rates[0])))
    assert (response["X-RateLimit-Limit"], response["X-RateLimit-Remaining"]) == ("0", "0")
    assert "X-RateLimit-Reset" not in response


def test_no_fields_are_sent_where_none_are_wanted(kit):
    kit.options(THROTTLING={"HEADERS": "none"})
    view = throttle("1/h", key="ip")(lambda request: HttpResponse())
    responses = [view(RequestFactory().get("/")) for _ in range(2)]
    assert [response.status_code for response in responses] == [200, 429]
    assert not any("RateLimit" in name for response in responses for name in response.headers)
    assert int(responses[1]["Retry-After"]) > 3500
