from types import ModuleType

import pytest
from django.urls import include, path
from django.views import View

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.pageviews import page
from redis_kit.pageviews.component import PageViews, PageViewSettings
from redis_kit.pageviews.middleware import PageViewMiddleware

MIDDLEWARE = "redis_kit.pageviews.middleware.PageViewMiddleware"
SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"


CACHE = "django.middleware.cache.UpdateCacheMiddleware"


class Ours(PageViewMiddleware):
    """A middleware of the project."""


OF_PROJECT = f"{__name__}.Ours"


@pytest.fixture
def found(settings):
    """Return the checks' messages for a MIDDLEWARE, some views or a URL configuration."""

    def run(middleware, *views, urls="", **options):
        urls = urls or ModuleType("urls")
        if views:
            urls.urlpatterns = [path("shop/", include([path(f"{place}/", view) for place, view in enumerate(views)]))]
        settings.MIDDLEWARE, settings.ROOT_URLCONF, settings.REDIS_KIT = middleware, urls, {"PAGEVIEWS": options}
        return list(PageViews().checks())

    return run


@pytest.mark.parametrize(
    ("middleware", "options", "warnings"),
    [
        ([], {"VISITOR": "user"}, 0),
        ([MIDDLEWARE], {}, 0),
        ([MIDDLEWARE], {"VISITOR": "session"}, 1),
        ([OF_PROJECT], {"VISITOR": "session"}, 1),
        ([MIDDLEWARE], {"VISITOR": "user"}, 1),
        ([MIDDLEWARE], {"EXCLUDE_STAFF": True}, 1),
        ([MIDDLEWARE], {"VISITOR": "session", "EXCLUDE_STAFF": True}, 2),
        ([MIDDLEWARE, SESSIONS, USERS], {"VISITOR": "session", "EXCLUDE_STAFF": True}, 0),
    ],
)
def test_missing_middleware_gives_a_warning(found, middleware, options, warnings):
    assert [message.id for message in found(middleware, **options)] == ["redis_kit.W020"] * warnings


def test_beacon_needs_the_user_too(found):
    assert [message.id for message in found([], urls="tests.pageviews.urls", VISITOR="user")] == ["redis_kit.W020"]


def test_middleware_comes_before_those_whose_answers_it_must_see(found):
    conditional = "django.middleware.http.ConditionalGetMiddleware"
    assert found([MIDDLEWARE, CACHE, SESSIONS]) == found([SESSIONS, conditional, MIDDLEWARE]) == []
    (message,) = found([CACHE, SESSIONS, OF_PROJECT])
    assert (message.id, "comes after UpdateCacheMiddleware" in message.msg) == ("redis_kit.W024", True)


def test_pages_that_nothing_counts_give_a_warning(found):
    def view(request): ...

    page(None)(view)
    assert found([], view) == found([]) == []
    page("shop")(view)
    assert found([]) == []
    (message,) = found([], view)
    assert (message.id, f"{__name__}.test_pages" in message.msg) == ("redis_kit.W023", True)
    assert MIDDLEWARE in message.hint
    assert found([MIDDLEWARE], view) == found([OF_PROJECT], view) == []
    assert found([], urls="no.such.module") == []


def test_pages_of_the_beacon_need_its_url(found):
    views = [page("shop", beacon=True)(type(f"View{number}", (View,), {})).as_view() for number in range(5)]
    (message,) = found([MIDDLEWARE], *views)
    assert message.id == "redis_kit.W025"
    assert message.msg.startswith(f"The beacon counts the views of {__name__}.View0, {__name__}.View1, ")
    assert "and 2 more, but no URL leads to it." in message.msg
    assert "include('redis_kit.pageviews.urls')" in message.hint
    assert found([MIDDLEWARE], urls="tests.pageviews.urls") == []


@pytest.mark.parametrize(
    "options",
    [
        {"VISITOR": "ip"},
        {"MAX_PAGES": 0},
        {"WRITE": "async"},
        {"RETENTION": 1},
        {"SALT": 1},
        {"BEACON_ORIGINS": ["shop.example"]},
        {"BEACON_ORIGINS": ["https://shop.example/"]},
        {"BEACON_ORIGINS": ["https://shop.example:443"]},
        {"BEACON_ORIGINS": ["http://[::1]:80"]},
        {"BEACON_ORIGINS": "https://shop.example"},
    ],
)
def test_wrong_options_are_refused(settings, options):
    settings.REDIS_KIT = {"PAGEVIEWS": options}
    with pytest.raises(ConfigurationError, match="PAGEVIEWS"):
        conf.section(PageViewSettings)


def test_ports_that_are_not_the_default_are_allowed(settings):
    origins = ["https://shop.example:80", "http://shop.example:443", "https://[::1]:8443", "https://shop.example"]
    settings.REDIS_KIT = {"PAGEVIEWS": {"BEACON_ORIGINS": origins}}
    assert origins == conf.section(PageViewSettings).BEACON_ORIGINS
