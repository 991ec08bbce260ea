"""Middleware of the kit in Django's settings."""

import pytest

from redis_kit.core.checks.configuration import check_settings

PAGES = "redis_kit.pageviews.middleware.PageViewMiddleware"


@pytest.mark.parametrize("path", [PAGES, "redis_kit.signins.middleware.SignInMiddleware"])
def test_middleware_that_stands_twice_is_a_warning(settings, path):
    settings.MIDDLEWARE = [path, *settings.MIDDLEWARE, *settings.MIDDLEWARE, path]
    (message,) = check_settings()
    assert message.id == "redis_kit.W031"
    assert message.msg == f"MIDDLEWARE has {path!r} 2 times, so it handles each request as often."


def test_right_middleware_and_that_of_other_packages_passes(settings):
    settings.MIDDLEWARE = [PAGES, "shop.middleware.Missing", None]
    assert check_settings() == []


def test_repeated_middleware_does_not_hide_a_wrong_redis_kit(settings):
    settings.MIDDLEWARE, settings.REDIS_KIT = [PAGES, PAGES], []
    assert len(check_settings()) == 2
