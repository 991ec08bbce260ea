import pytest
from django.core.checks import run_checks

from redis_kit.signins import checks
from redis_kit.signins.settings import REMEDY
from tests.app.models import Device, User


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ("usernam", "app.User has no attribute 'usernam'.", "Did you mean 'username'?"),
        ("profile.timezone", "app.User has no attribute 'profile'.", REMEDY),
        ("groups.nam", "auth.Group has no attribute 'nam'.", "Did you mean 'name'?"),
    ],
)
def test_attribute_that_no_model_has_is_a_warning(settings, monkeypatch, given, words, hint):
    monkeypatch.setattr(checks, "models", lambda: [User])
    settings.REDIS_KIT = {**settings.REDIS_KIT, "SIGNINS": {"TIMEZONE": given}}
    (message,) = run_checks(tags=["redis_kit"])
    assert (message.id, message.hint) == ("redis_kit.W030", hint)
    assert message.msg == f"REDIS_KIT['SIGNINS']['TIMEZONE'] is {given!r}, but {words}"


@pytest.mark.parametrize(
    "given", ["username", "groups.name", "is_anonymous", "is_anonymous.zone", "username.zone", str]
)
def test_attribute_that_may_exist_passes(settings, given):
    assert {User, Device} <= set(checks.models())  # a device has no user name: one of the models is enough
    settings.REDIS_KIT = {**settings.REDIS_KIT, "SIGNINS": {"TIMEZONE": given}}
    assert run_checks(tags=["redis_kit"]) == []
