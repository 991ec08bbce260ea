"""The page with metrics: who may see it, and that it answers in an outage."""

from time import monotonic

import pytest
from django.test import Client
from django.urls import path

from redis_kit.core import connections
from redis_kit.core.checks.configuration import check_settings
from redis_kit.operations.prometheus import metrics

TOKEN = "a-token-of-the-scraper"
urlpatterns = [path("metrics", metrics)]
pytestmark = pytest.mark.urls(__name__)


def get(token=TOKEN, scheme="Bearer", **headers):
    return Client().get("/metrics", headers={"Authorization": f"{scheme} {token}", **headers})


@pytest.fixture
def guarded(kit):
    """The kit with a token."""
    kit.options(OPERATIONS={"METRICS_TOKEN": TOKEN})
    return kit


def test_token_opens_the_page(guarded, db):
    answer = get()
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert b'redis_kit_up{connection="default"} 1.0' in answer.content
    assert get(scheme="bearer").status_code == 200


def test_scraper_may_ask_for_openmetrics(guarded, db):
    answer = get(Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.content.endswith(b"# EOF\n")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "тайна"])
def test_wrong_token_is_refused(guarded, db, token):
    answer = get(token)
    assert answer.status_code == 401
    assert b"METRICS_TOKEN" in answer.content
    assert b"redis_kit_up" not in answer.content


def test_no_token_in_the_settings_opens_nothing(kit, db):
    assert get("").status_code == 401


def test_permission_opens_the_page(kit, signed_in):
    assert signed_in("view_server", staff=False).get("/metrics").status_code == 200
    assert signed_in("view_dashboard").get("/metrics").status_code == 401


def test_page_changes_nothing(guarded, db):
    assert Client().post("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_page_answers_within_a_second_in_an_outage(own_kit, db, how):
    own_kit.options(OPERATIONS={"METRICS_TOKEN": TOKEN})
    getattr(own_kit.server, how)()
    connections.close()
    began = monotonic()
    try:
        answer = get()
    finally:
        own_kit.server.thaw() if how == "freeze" else None
    assert monotonic() - began < 1
    assert b'redis_kit_up{connection="default"} 0.0' in answer.content


@pytest.mark.parametrize("token", ["short", " " * 20, "x" * 20 + "\n", "x" * 20 + "\ud800", "ä" * 20])
def test_token_that_can_be_guessed_or_not_be_sent_is_an_error(kit, token):
    kit.options(OPERATIONS={"METRICS_TOKEN": token})
    assert [message.id for message in check_settings()] == ["redis_kit.E030"]
