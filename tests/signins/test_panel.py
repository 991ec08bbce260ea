from datetime import timedelta

from django.apps import apps

from redis_kit.core.panels import Bars, Figure
from redis_kit.signins.days import today
from redis_kit.signins.panel import SignInsPanel
from tests.signins.people import saved


def test_site_without_a_model_is_told_what_to_do(kit, monkeypatch):
    monkeypatch.setattr(apps, "get_models", lambda: [])
    (table,) = SignInsPanel().content()
    assert "Add SignInMixin to the user model: class User(SignInMixin, AbstractUser)." in str(table.empty)


def test_panel_shows_today_yesterday_and_fourteen_days(kit):
    for number in range(3):
        saved(number).sign_in()
    saved(0).sign_in(today() - timedelta(1))
    users = [
        one for one in SignInsPanel().content() if "users" in str(getattr(one, "label", getattr(one, "title", "")))
    ]
    assert [(type(one), getattr(one, "value", None)) for one in users] == [(Figure, 3), (Figure, 1), (Bars, None)]
    assert [value for _, value in users[2].bars] == [0] * 12 + [1, 3]
