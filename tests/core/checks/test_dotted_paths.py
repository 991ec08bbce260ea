"""Dotted paths of the kit in Django's settings."""

import pytest
from django.utils.module_loading import import_string

from redis_kit.core.checks import configuration
from redis_kit.core.checks.configuration import check_settings

PAGES = "redis_kit.pageviews.middleware.PageViewMiddleware"
LOGINS = "redis_kit.throttling.logins.ThrottledLogins"
RUNNER = "redis_kit.testing.runner.RedisKitRunner"
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.mark.parametrize(
    ("setting", "value", "wrong", "hint"),
    [
        (
            "MIDDLEWARE",
            ["redis_kit.pageviews.PageViewMiddleware", "django.middleware.common.CommonMiddleware"],
            "redis_kit.pageviews.PageViewMiddleware",
            f"Did you mean {PAGES!r}?",
        ),
        ("MIDDLEWARE", ("redis_kit.middleware.PageViewsMiddleware",), "redis_kit.mi", f"Did you mean {PAGES!r}?"),
        ("MIDDLEWARE", ["redis_kit.x"], "redis_kit.x", f"Write {PAGES!r} or 'redis_kit.signins.middleware.Sign"),
        (
            "AUTHENTICATION_BACKENDS",
            ["redis_kit.throttling.ThrottledLogins", MODEL_BACKEND],
            "redis_kit.throttling.ThrottledLogins",
            f"Did you mean {LOGINS!r}?",
        ),
        ("TEST_RUNNER", "redis_kit.testing.RedisKitRunner", "redis_kit.testing.RedisKit", f"Did you mean {RUNNER!r}?"),
    ],
)
def test_path_that_can_not_be_imported_is_an_error_with_the_right_path(settings, setting, value, wrong, hint):
    setattr(settings, setting, value)
    (message,) = check_settings()
    assert message.id == "redis_kit.E002"
    assert message.msg.startswith(f"{setting} has '{wrong}")
    assert "can't be imported" in message.msg
    assert message.hint.startswith(hint)


def test_misspelt_throttle_class_of_django_rest_framework_is_an_error(settings):
    pytest.importorskip("rest_framework")
    wrong = "redis_kit.throttling.drf.AnonThrottle"
    settings.REST_FRAMEWORK = {"DEFAULT_THROTTLE_CLASSES": [wrong, "shop.Throttle"]}
    (message,) = configuration.path_problems()
    assert message.message.startswith(f"REST_FRAMEWORK['DEFAULT_THROTTLE_CLASSES'] has {wrong!r}, which can't be imp")
    assert message.hint == "Did you mean 'redis_kit.throttling.drf.AnonRateThrottle'?"


def test_right_paths_and_those_of_other_packages_pass(settings):
    settings.MIDDLEWARE = [PAGES, "shop.middleware.Missing", None]
    settings.AUTHENTICATION_BACKENDS = [LOGINS, MODEL_BACKEND]
    settings.TEST_RUNNER = RUNNER
    assert list(configuration.path_problems()) == []


def test_a_wrong_path_does_not_hide_a_wrong_redis_kit(settings):
    settings.MIDDLEWARE, settings.REDIS_KIT = ["redis_kit.x"], []
    assert len(check_settings()) == 2


@pytest.mark.parametrize("path", configuration.CLASSES[("MIDDLEWARE",)])
def test_middleware_that_stands_twice_is_a_warning(settings, path):
    settings.MIDDLEWARE = [path, *settings.MIDDLEWARE, *settings.MIDDLEWARE, path]
    (message,) = check_settings()
    assert message.id == "redis_kit.W031"
    assert message.msg == f"MIDDLEWARE has {path!r} 2 times, so it handles each request as often."


@pytest.mark.parametrize("path", [path for paths in configuration.CLASSES.values() for path in paths])
def test_the_right_paths_exist(path):
    if ".drf." in path:
        pytest.importorskip("rest_framework")
    assert isinstance(import_string(path), type)
