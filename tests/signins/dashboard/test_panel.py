import pytest
from django.apps import apps
from django.test.utils import isolate_apps

from redis_kit.core.panels import Figure
from redis_kit.signins import SignInMixin
from redis_kit.signins.dashboard.panel import SignInsPanel
from tests.app.models import Account, User


def test_site_without_a_model_is_told_what_to_do(kit, monkeypatch):
    monkeypatch.setattr(apps, "get_models", lambda: [])
    (table,) = SignInsPanel().content()
    assert "Add SignInMixin to the user model: class User(SignInMixin, AbstractUser)." in str(table.empty)
    assert "add a proxy model: class Customer(SignInMixin, User) with proxy = True in its Meta." in str(table.empty)


@pytest.fixture
def proxies():
    """Two proxies that sign in, of a model without the mixin, and one of a model with it."""
    with isolate_apps("tests.app"):

        class Customer(SignInMixin, Account):
            class Meta:
                app_label = "app"
                proxy = True

        class Supplier(SignInMixin, Account):
            class Meta:
                app_label = "app"
                proxy = True

        class Staff(User):
            class Meta:
                app_label = "app"
                proxy = True
                verbose_name_plural = "staff"

    return Customer, Supplier, Staff


def figures():
    return {part.label: part.value for part in SignInsPanel().content() if isinstance(part, Figure)}


def test_proxy_with_the_mixin_is_shown(kit, monkeypatch, proxies):
    customer = proxies[0](pk=7)
    customer._state.adding = False
    customer.sign_in()
    monkeypatch.setattr(apps, "get_models", lambda: [Account, proxies[0]])
    assert figures()["Signed in today"] == figures()["In 30 days"] == 1


def test_models_that_share_their_sign_ins_are_shown_once(kit, monkeypatch, proxies):
    customer, supplier, staff = proxies
    monkeypatch.setattr(apps, "get_models", lambda: [customer, supplier, staff, User])
    assert SignInsPanel().search().fields[0].choices == ["app.User", "app.Customer"]
