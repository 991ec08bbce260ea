"""The middleware, in a sync and an async stack."""

import asyncio
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import AsyncClient, Client
from django.urls import path

from redis_kit.signins import days
from redis_kit.signins.middleware import DAY
from tests.app.models import User

pytestmark = pytest.mark.django_db(transaction=True)

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "redis_kit.signins.middleware.SignInMiddleware",
]
NOON = datetime(2026, 11, 20, 12, tzinfo=ZoneInfo("UTC"))


async def page(request):
    return HttpResponse("here")


urlpatterns = [path("", page)]


class Site:
    """The routes of this module, by WSGI or ASGI, for one browser."""

    def __init__(self, runner):
        self.runner, self.client = runner, AsyncClient() if runner else Client()

    def get(self):
        response = self.client.get("/")
        return self.runner.run(response) if self.runner else response


@pytest.fixture(params=["sync", "async"])
def site(request, kit, settings):
    settings.ROOT_URLCONF, settings.MIDDLEWARE = __name__, MIDDLEWARE
    if request.param == "sync":
        yield Site(None)
        return
    with asyncio.Runner() as runner:
        yield Site(runner)


@pytest.fixture
def ann(site):
    user = User.objects.create(username="ann")
    site.client.force_login(user)
    return user


@pytest.fixture
def clock(monkeypatch):
    """Set the present time."""

    def set_time(moment):
        monkeypatch.setattr(days, "now", moment.astimezone)

    set_time(NOON)
    return set_time


def test_each_day_of_a_session_counts_and_costs_one_round_trip(kit, site, ann, clock, commands):
    for number in (1, 2):
        clock(NOON + timedelta(number))
        with commands(kit) as sent:
            assert site.get().content == b"here"
        assert len(sent) == 1
        with commands(kit) as sent:
            site.get()
        assert sent == []
        assert ann.sign_in_summary().total == number


def test_day_is_that_of_the_user(kit, site, ann, clock, commands):
    kit.options(SIGNINS={"DAY_START_HOUR": 4, "TIMEZONE": lambda user: "Asia/Tokyo"})
    early = datetime(2026, 11, 20, 3, 59, tzinfo=ZoneInfo("Asia/Tokyo"))
    clock(early)
    site.get()
    with commands(kit) as sent:
        site.get()
    assert sent == []
    clock(early + timedelta(minutes=1))
    site.get()
    assert [ann.signed_in_on(early.date() - timedelta(1)), ann.signed_in_on(early.date())] == [True, True]


def test_session_is_saved_once_a_day(site, ann):
    assert site.get().cookies
    assert not site.get().cookies
    assert site.client.session[DAY] == str(days.today())


def test_visitor_without_a_session_leaves_the_response_as_it_is(kit, site):
    response = site.get()
    assert (response.content, "Vary" in response) == (b"here", False)
    assert kit.keys() == []


def test_session_of_nobody_is_not_counted(kit, site):
    session = site.client.session
    session["basket"] = 1
    session.save()
    kit.options(SIGNINS={"TIMEZONE": "timezone"})
    assert not hasattr(AnonymousUser, "timezone")
    assert site.get().content == b"here"
    assert kit.keys() == []


@pytest.mark.parametrize("zone", ["Mars/Phobos", "UTC+3", " Europe/Berlin"])
def test_wrong_zone_of_a_user_is_logged_once_and_the_page_is_served(kit, site, ann, caplog, zone):
    kit.options(SIGNINS={"TIMEZONE": lambda user: zone})
    assert [site.get().content for _ in range(2)] == [b"here"] * 2
    (line,) = caplog.messages
    assert line.startswith("signins: the day of a session was not counted: The time zone of <User: ann> is ")


def test_page_is_served_while_the_server_takes_no_writes(kit, site, ann, caplog):
    kit.client.config_set("maxmemory", 1)
    try:
        assert [site.get().content for _ in range(2)] == [b"here"] * 2
    finally:
        kit.client.config_set("maxmemory", 0)
    (line,) = caplog.messages
    assert line.startswith("signins: the day of a session was not counted: ")
    site.get()
    assert ann.sign_in_summary().total == 1


def test_page_is_served_without_redis_and_without_a_session(kit, site, ann, settings, caplog):
    connected = kit.settings.REDIS_KIT
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert site.get().content == b"here"
    kit.settings.REDIS_KIT = connected
    settings.MIDDLEWARE = MIDDLEWARE[2:]
    site.client.handler._middleware_chain = None
    assert site.get().content == b"here"
    assert [line.startswith("signins: the day of a session was not counted: ") for line in caplog.messages] == [
        True
    ] * 2
