import pytest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.pageviews.component import PageViews, PageViewSettings

MIDDLEWARE = "redis_kit.pageviews.middleware.PageViewMiddleware"
SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"


@pytest.mark.parametrize(
    ("middleware", "options", "warnings"),
    [
        ([], {"VISITOR": "user"}, 0),
        ([MIDDLEWARE], {}, 0),
        ([MIDDLEWARE], {"VISITOR": "session"}, 1),
        ([MIDDLEWARE], {"VISITOR": "user"}, 1),
        ([MIDDLEWARE], {"EXCLUDE_STAFF": True}, 1),
        ([MIDDLEWARE], {"VISITOR": "session", "EXCLUDE_STAFF": True}, 2),
        ([MIDDLEWARE, SESSIONS, USERS], {"VISITOR": "session", "EXCLUDE_STAFF": True}, 0),
    ],
)
def test_missing_middleware_gives_a_warning(settings, middleware, options, warnings):
    settings.MIDDLEWARE, settings.REDIS_KIT = middleware, {"PAGEVIEWS": options}
    assert [found.id for found in PageViews().checks()] == ["redis_kit.W020"] * warnings


@pytest.mark.parametrize(
    "options", [{"VISITOR": "ip"}, {"MAX_PAGES": 0}, {"WRITE": "async"}, {"RETENTION": 1}, {"SALT": 1}]
)
def test_wrong_options_are_refused(settings, options):
    settings.REDIS_KIT = {"PAGEVIEWS": options}
    with pytest.raises(ConfigurationError, match="PAGEVIEWS"):
        conf.section(PageViewSettings)
