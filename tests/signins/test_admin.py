"""The actions of SignInAdminMixin."""

from datetime import timedelta

import pytest
from django.contrib import admin, messages
from django.test import RequestFactory

from redis_kit.signins.admin import SignInAdminMixin, export_sign_ins, make_up_yesterday
from redis_kit.signins.days import today
from tests.app.models import Device, User

pytestmark = pytest.mark.django_db


class UserAdmin(SignInAdminMixin, admin.ModelAdmin):
    """The admin of a project."""

    def __init__(self, model=User):
        super().__init__(model, admin.site)
        self.told = []

    def message_user(self, request, message, level=messages.INFO, **kwargs):
        self.told.append((level, str(message)))

    def log_change(self, request, obj, message):
        self.told.append(("log", obj.pk))


@pytest.fixture
def users(kit):
    return [User.objects.create(username=name) for name in ("ann", "ben", "cat")]


def test_actions_need_permissions_of_the_model(kit, django_user_model):
    request = RequestFactory().get("/")
    request.user = django_user_model.objects.create_superuser("root")
    assert {"export_sign_ins", "make_up_yesterday"} <= UserAdmin().get_actions(request).keys()
    request.user = django_user_model.objects.create_user("ann", is_staff=True)
    assert not UserAdmin().get_actions(request)


def test_days_of_chosen_users_are_a_file(users):
    ann, ben, cat = users
    ann.sign_in()
    ben.make_up_sign_in(today() - timedelta(1))
    cat.sign_in()
    response = export_sign_ins(UserAdmin(), None, User.objects.exclude(pk=cat.pk).order_by("pk"))
    lines = response.content.decode().split()
    assert lines == ["id,day,kind", f"{ann.pk},{today()},sign_in", f"{ben.pk},{today() - timedelta(1)},make_up"]
    assert response["Content-Disposition"] == 'attachment; filename="sign-ins.csv"'


def test_key_that_looks_like_a_formula_is_text(kit):
    Device.objects.create(pk="8c1f2c9e-0000-4000-8000-00000000beef").sign_in()
    response = export_sign_ins(UserAdmin(Device), None, Device.objects.all())
    assert len(response.content.decode().split()) == 2


def test_yesterday_is_made_up_and_logged(kit, users):
    ann, ben, cat = users
    ann.sign_in(today() - timedelta(1))
    model_admin = UserAdmin()
    make_up_yesterday(model_admin, None, User.objects.exclude(pk=ben.pk))
    assert model_admin.told[0] == ("log", cat.pk)
    assert model_admin.told[1][1].startswith("Made up for 1; 1 had signed in")
    assert cat.sign_in_streak() == 1
    kit.options(SIGNINS={"MAKE_UPS": 0})
    make_up_yesterday(model_admin, None, User.objects.filter(pk=ben.pk))
    assert model_admin.told[2][1].startswith("Made up for 0; 1 had signed in")


def test_outage_and_too_many_are_told(kit, users, monkeypatch):
    model_admin = UserAdmin()
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert export_sign_ins(model_admin, None, User.objects.all()) is None
    make_up_yesterday(model_admin, None, User.objects.all())
    monkeypatch.setattr("redis_kit.signins.admin.MOST_EXPORTED", 2)
    assert export_sign_ins(model_admin, None, User.objects.all()) is None
    monkeypatch.setattr("redis_kit.signins.admin.MOST_MADE_UP", 2)
    make_up_yesterday(model_admin, None, User.objects.all())
    assert [level for level, _ in model_admin.told] == [messages.ERROR] * 4
    assert [text for _, text in model_admin.told[2:]] == [
        "At most 2 users can be chosen. manage.py rk_signins export takes any number.",
        "At most 2 users can be chosen.",
    ]
