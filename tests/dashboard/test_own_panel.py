"""A project adds a page of its own in one file: this one."""

from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.component import Component
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.panels import Bars, Downloads, Figure, Panel, Table, action
from tests.app.models import Account, User
from tests.dashboard.support.html import page, said
from tests.fixtures.dashboard import ADMIN

PAGE = f"{ADMIN}accounts/"
FAILURES: list[Exception] = []


class AccountsPanel(Panel):
    """The accounts without money."""

    slug = "accounts"
    title = "Accounts"
    permission = "app.view_account"

    def content(self):
        low = Account.objects.filter(balance__lt=5).order_by("pk")[:100]
        rows = [(each.name, each.balance) for each in low]
        yield Figure("Without money", len(rows), alarm=bool(rows))
        yield Table("Accounts", ("Account", "Balance"), rows, actions=("fill",))
        yield Bars("Balances", rows)
        yield Downloads(self.slug, [("All accounts", "accounts")], {"of": "a&b"})

    def file(self, name):
        return self._rows() if name == "accounts" else None

    def _rows(self):
        yield "account", "balance"
        if FAILURES:
            raise FAILURES.pop()
        yield from Account.objects.values_list("name", "balance")

    @action("Fill", permission="app.change_account", asks=None)
    def fill(self, name):
        Account.objects.filter(name=name).update(balance=100)
        return f"{name} has 100."


class Accounts(Component):
    panels: ClassVar[tuple[str, ...]] = (f"{__name__}.AccountsPanel",)


class Wrong(Component):
    panels: ClassVar[tuple[str, ...]] = (
        f"{__name__}.AccountPanel",
        f"{__name__}.Accounts",
        "redis_kit.core.panels.Panel",
        "redis_kit.queues.dashboard.queues_page.QueuesPanel",
    )


class Text(Component):
    panels: Any = f"{__name__}.AccountsPanel"


@pytest.fixture
def viewer(kit, db):
    """A function that returns the client of a user with these permissions; there is one account."""
    kit.options(EXTRA_COMPONENTS=[f"{__name__}.Accounts"])
    Account.objects.create(name="Ann", balance=3)

    def sign_in(*codenames):
        user = User.objects.create_user("viewer", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=["view_dashboard", *codenames]))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


def test_page_has_its_table_chart_and_button_and_the_button_works(viewer):
    client = viewer("view_account", "change_account")
    found = page(client.get(PAGE))
    assert [one.words for one in found.find("td")][:2] == ["3", "Fill"]
    assert found.find("svg")
    assert said(client.post(f"{PAGE}do/fill/", {"row": "Ann"})) == ["Ann has 100."]
    assert Account.objects.get().balance == 100
    assert PAGE in client.get(ADMIN).content.decode()


def test_page_and_button_need_the_permissions_of_the_project(viewer):
    client = viewer("view_account")
    assert "do/fill" not in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}do/fill/", {"row": "Ann"}).status_code == 403
    client.force_login(User.objects.create_user("other", is_staff=True))
    assert client.get(PAGE).status_code == 403
    assert Account.objects.get().balance == 3


def test_file_of_a_page_is_csv_without_formulas(viewer):
    client = viewer("view_account")
    Account.objects.create(name="=1+1", balance=-4)
    (link,) = [one for one in page(client.get(PAGE)).find("a") if one.words == "All accounts"]
    response = client.get(ADMIN + link.attributes["href"].removeprefix(ADMIN))
    assert link.attributes["href"].endswith("accounts/accounts.csv?of=a%26b")
    assert (response["Content-Type"], response["Content-Disposition"]) == (
        "text/csv; charset=utf-8",
        'attachment; filename="accounts.csv"',
    )
    assert response.content.decode() == "account,balance\r\nAnn,3\r\n'=1+1,-4\r\n"


def test_file_has_at_most_ten_thousand_rows(viewer):
    Account.objects.bulk_create(Account(name=f"account {number}") for number in range(10_100))
    assert viewer("view_account").get(f"{PAGE}accounts.csv").content.count(b"\n") == 10_000


def test_file_needs_the_permission_of_the_page_and_its_name(viewer):
    client = viewer("view_account")
    assert client.get(f"{PAGE}others.csv").status_code == 404
    assert client.post(f"{PAGE}accounts.csv").status_code == 405
    client.force_login(User.objects.create_user("other", is_staff=True))
    assert client.get(f"{PAGE}accounts.csv").status_code == 403


def test_file_that_fails_leads_back_to_the_page_with_the_reason(viewer):
    client = viewer("view_account")
    FAILURES.append(RedisUnavailable("Redis can't be reached (mail:6379): timed out"))
    response = client.get(f"{PAGE}accounts.csv")
    assert (response.status_code, response.url) == (302, PAGE)
    assert "timed out" in said(client.get(PAGE))[0]


def test_page_of_a_project_passes_the_checks(viewer):
    assert check_settings() == []


def test_wrong_panels_are_named_by_the_checks(kit):
    kit.options(EXTRA_COMPONENTS=[f"{__name__}.{name}" for name in ("Wrong", "Text")])
    messages = check_settings()
    assert {message.id for message in messages} == {"redis_kit.E032"}
    assert [message.msg.rpartition(": ")[2] for message in messages[:4]] == [
        f'Module "{__name__}" does not define a "AccountPanel" attribute/class.',
        "it is not a Panel class.",
        "it has no slug and no title.",
        "its slug 'queues' is that of the panel 'Queues'.",
    ]
    assert messages[4].hint == f"Write panels = ('{__name__}.AccountsPanel',) with a comma."
