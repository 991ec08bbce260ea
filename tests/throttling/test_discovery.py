"""The throttles that the dashboard and the command find."""

import pytest
from django.core.management import call_command

from redis_kit.throttling import Throttle
from redis_kit.throttling.checks import LOGINS
from redis_kit.throttling.discovery import built_throttles, find
from redis_kit.throttling.throttles.throttle import registry

pytestmark = pytest.mark.usefixtures("none_registered")


def test_throttles_of_policies_of_log_ins_and_of_the_code_are_known(kit, settings):
    settings.AUTHENTICATION_BACKENDS = [LOGINS, "django.contrib.auth.backends.ModelBackend"]
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "60/m"}}, "LOGIN_RATES": "2/h"})
    Throttle("own", "1/m")
    assert [(one.name, str(one.rates[0])) for one in built_throttles()] == [
        ("api", "60/m"),
        ("logins.address", "30/15m"),
        ("logins.name", "2/h"),
        ("own", "1/m"),
    ]


def test_log_ins_are_known_only_where_their_backend_is_in_use(kit):
    assert built_throttles() == []


def test_system_checks_put_nothing_in_the_place_of_a_throttle(kit):
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "60/m", "STRATEGY": "sliding_log"}}})
    call_command("check")
    found = find(built_throttles(), "api", None)
    assert isinstance(found, Throttle)
    assert found.peek("joe").remaining == 60
    assert all(isinstance(one, Throttle) for one in registry.throttles())
