"""The throttles of ``DEFAULT_THROTTLE_CLASSES``, before the first request."""

import subprocess
import sys

import pytest

pytest.importorskip("rest_framework")

from redis_kit.throttling import drf
from redis_kit.throttling.component import Throttling
from redis_kit.throttling.discovery import built_throttles, find

pytestmark = pytest.mark.usefixtures("none_registered")
PATH = "redis_kit.throttling.drf"


@pytest.fixture
def rest_framework(kit, settings, monkeypatch):
    """Set the default classes and rates; the framework reads the latter at import."""

    def configure(rates, *classes):
        monkeypatch.setattr(drf.SimpleRateThrottle, "THROTTLE_RATES", rates, raising=False)
        settings.REST_FRAMEWORK = {"DEFAULT_THROTTLE_CLASSES": list(classes), "DEFAULT_THROTTLE_RATES": rates}

    return configure


def shown():
    return [(each.name, str(each.rates[0])) for each in built_throttles()]


def test_default_classes_are_known_before_the_first_request(rest_framework):
    rest_framework({"anon": "3/minute", "user": None}, f"{PATH}.AnonRateThrottle", f"{PATH}.UserRateThrottle")
    assert shown() == [("drf.anon", "3/m")]
    assert list(Throttling().checks()) == []


def test_throttle_is_the_same_that_a_request_hits(rest_framework):
    rest_framework({"anon": "3/minute"}, f"{PATH}.AnonRateThrottle")
    assert find(built_throttles(), "drf.anon", None) is drf.AnonRateThrottle().throttle()


def test_scopes_that_views_choose_are_known(rest_framework):
    rates = {"anon": "3/m", "uploads": "2/h"}
    rest_framework(rates, drf.AnonRateThrottle, f"{PATH}.ScopedRateThrottle")
    assert shown() == [("drf.anon", "3/m"), ("drf.uploads", "2/h")]


def test_classes_of_the_framework_and_missing_ones_are_left_alone(rest_framework):
    rest_framework({"anon": "x"}, "rest_framework.throttling.AnonRateThrottle", "nowhere.Throttle")
    assert shown() == []
    assert list(Throttling().checks()) == []


@pytest.mark.parametrize("wrong", ["3/fortnight", "x", 5])
@pytest.mark.parametrize("scope", ["anon", "uploads"])
def test_check_finds_wrong_rates(rest_framework, scope, wrong):
    rest_framework({"anon": "3/m", "uploads": "2/h", scope: wrong}, drf.AnonRateThrottle, drf.ScopedRateThrottle)
    (message,) = Throttling().checks()
    assert message.id == "redis_kit.E006"
    assert message.msg.startswith(f"REST_FRAMEWORK['DEFAULT_THROTTLE_RATES']['{scope}']: ")
    assert repr(wrong) in message.msg
    assert len(shown()) == 1


def test_check_finds_a_scope_without_a_rate(rest_framework):
    rest_framework({}, drf.AnonRateThrottle)
    (problem,) = Throttling().checks()
    assert "No default throttle rate set for 'anon' scope" in problem.msg
    rest_framework({"burst": "5/m"}, drf.BurstSustainedThrottle)
    (problem,) = Throttling().checks()
    assert "has no 'sustained'" in problem.msg


def test_framework_is_not_imported_unless_the_settings_name_its_classes():
    code = (
        "import django, sys\nfrom django.conf import settings\n"
        "apps = ['django.contrib.contenttypes', 'django.contrib.auth', 'redis_kit']\n"
        "settings.configure(INSTALLED_APPS=apps, SECRET_KEY='x' * 50)\ndjango.setup()\n"
        "from redis_kit.throttling.discovery import built_throttles\nbuilt_throttles()\n"
        "assert 'rest_framework' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
