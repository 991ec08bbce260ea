"""The check for throttles of different rates that share a name."""

import sys
from types import ModuleType

import pytest
from django.http import HttpResponse
from django.urls import include, path
from django.views.decorators.cache import never_cache

from redis_kit.core.errors import InvalidName
from redis_kit.throttling import Throttle, throttle
from redis_kit.throttling.component import Throttling

POLICY = {"THROTTLING": {"POLICIES": {"a": {"RATES": "9/m"}}}}


def view(request):
    return HttpResponse()


@pytest.fixture
def warnings(kit, settings, monkeypatch):
    """A function that returns the warnings about these routes."""

    def warnings(*urlpatterns):
        module = ModuleType(f"routes_{kit.prefix}")
        module.urlpatterns = list(urlpatterns)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        settings.ROOT_URLCONF = module.__name__
        return [message for message in Throttling().checks() if message.id == "redis_kit.W021"]

    return warnings


def test_rates_of_one_name_that_differ_are_a_warning(kit, warnings):
    both = throttle("5/m", name="a")(throttle("10/h", name="a")(view))
    (message,) = warnings(path("deep/", include([path("", never_cache(both))])))
    assert message.msg == "Throttles with different rates have the name 'a': '5/m', '10/h'."
    assert "'5/m; 100/h'" in message.hint


def test_policy_of_the_same_name_is_named_too(kit, warnings):
    kit.options(**POLICY)
    (message,) = warnings(path("", throttle("5/m", name="a")(view)))
    assert "'9/m', '5/m'" in message.msg


def test_equal_rates_and_other_names_are_no_warning(kit, warnings):
    shared = Throttle("c", "1/m")
    views = [throttle("5/m", name="a")(view), throttle("5/m", name="a")(view), throttle("6/m", name="b")(view)]
    views += [throttle(shared)(view), throttle(shared)(throttle("5/m", name="d", using="other")(view))]
    assert warnings(*[path(f"{number}/", each) for number, each in enumerate(views)]) == []


def test_empty_name_is_refused():
    with pytest.raises(InvalidName):
        throttle("5/m", name="")
