"""The view and the admin: what they find, whom they answer, and when they ask the database."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory
from django.urls import path

from redis_kit.autocomplete import AutocompleteView, ModelAutocomplete
from redis_kit.autocomplete.admin import AutocompleteAdminMixin
from redis_kit.autocomplete.index import Autocomplete
from redis_kit.core.indexes import model_index
from tests.app.models import Account, User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def accounts(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelAutocomplete(Account, ["name"])
    Account.objects.create(name="Anna Schmidt")
    Account.objects.create(name="Anton")
    index.rebuild()
    return index


@pytest.fixture
def viewer():
    user = User.objects.create(username="viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_account", "add_user", "change_user"]))
    return user


def answer(view, user, **asked):
    request = RequestFactory().get("/", asked)
    request.user = user
    return view(request)


def results(response):
    import json

    data = json.loads(response.content)
    return [row["text"] for row in data["results"]], data["pagination"]["more"]


def test_view_answers_as_select2_expects(accounts, viewer):
    view = AutocompleteView.as_view(index=accounts)
    response = answer(view, viewer, term="schm")
    row = Account.objects.get(name="Anna Schmidt")
    assert response.content.decode() == (
        f'{{"results": [{{"id": "{row.pk}", "text": "Anna Schmidt"}}], "pagination": {{"more": false}}}}'
    )
    Account.objects.bulk_create(Account(name=f"Bo {number:03}") for number in range(130))
    accounts.rebuild()
    names = [f"Bo {number:03}" for number in range(130)]
    assert results(answer(view, viewer, term="bo")) == (names[:20], True)
    assert results(answer(view, viewer, term="bo", page="2")) == (names[20:40], True)
    assert results(answer(view, viewer, term="bo", page="5")) == (names[80:100], False)
    for page in ("0", "-1", "x", "", "9" * 50, "²"):
        assert results(answer(view, viewer, term="bo", page=page))[0] in (names[:20], names[80:100])


def test_view_refuses_users_without_the_permission(accounts):
    from django.core.exceptions import PermissionDenied

    with pytest.raises(PermissionDenied):
        answer(AutocompleteView.as_view(index=accounts), User.objects.create(username="other"), term="a")


def test_view_asks_the_database_if_the_index_can_not_answer(accounts, viewer):
    accounts.distrust()
    view = AutocompleteView.as_view(index=accounts)
    assert results(answer(view, viewer, term="ann")) == (["Anna Schmidt"], False)
    assert results(answer(view, viewer, term="ann schm")) == (["Anna Schmidt"], False)
    assert results(answer(view, viewer, term="")) == (["Anna Schmidt", "Anton"], False)


def test_view_of_scopes_has_to_name_one(kit, monkeypatch, viewer):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelAutocomplete(Account, ["name"], scope="owner")
    Account.objects.create(name="Anna", owner=viewer)
    Account.objects.create(name="Anders")
    index.rebuild()
    with pytest.raises(ImproperlyConfigured, match="must define get_scope"):
        answer(AutocompleteView.as_view(index=index), viewer, term="a")

    class Own(AutocompleteView):
        def get_scope(self, request):
            return request.user.pk

    assert results(answer(Own.as_view(index=index), viewer, term="a")) == (["Anna"], False)
    index.distrust()
    assert results(answer(Own.as_view(index=index), viewer, term="a")) == (["Anna"], False)
    index.scope = lambda row: row.owner_id
    assert results(answer(Own.as_view(index=index), viewer, term="a")) == ([], False)


class AccountAdmin(AutocompleteAdminMixin, admin.ModelAdmin):
    search_fields = ["name"]
    ordering = ["-name"]

    def get_queryset(self, request):
        return super().get_queryset(request).exclude(name="Hidden")


site = admin.AdminSite(name="own")
urlpatterns = [path("own/", site.urls)]


@pytest.fixture
def ask(accounts, viewer, settings, monkeypatch):
    """Ask the admin's own view of autocomplete."""
    from django.contrib.admin.views.autocomplete import AutocompleteJsonView

    monkeypatch.setattr(site, "_registry", {})
    site.register(Account, AccountAdmin)
    view = AutocompleteJsonView.as_view(admin_site=site)
    field = type("Field", (), {"get_limit_choices_to": staticmethod(lambda: {})})

    def process(self, request):
        return request.GET["term"], site._registry[Account], field, "id"

    monkeypatch.setattr(AutocompleteJsonView, "process_request", process)

    def call(term, user=viewer, limit_choices_to=None, **asked):
        field.get_limit_choices_to = staticmethod(lambda: limit_choices_to or {})
        request = RequestFactory().get("/", {"term": term, **asked})
        request.user = user
        request.resolver_match = type("Match", (), {"url_name": "autocomplete"})
        return results(view(request))

    return call


def test_admin_finds_rows_by_the_index_in_its_own_order(ask, django_assert_max_num_queries):
    assert ask("an") == (["Anton", "Anna Schmidt"], False)
    assert ask("nna") == ([], False)  # the database would find Anna
    assert ask("an", limit_choices_to={"name": "Anton"}) == (["Anton"], False)
    Account.objects.create(name="Hidden")
    assert ask("hid") == ([], False)
    assert ask("") == (["Anton", "Anna Schmidt"], False)


def test_admin_asks_the_database_if_the_index_can_not_answer(ask, accounts):
    accounts.distrust()
    assert ask("nna") == (["Anna Schmidt"], False)


def test_admin_asks_the_database_if_restrictions_leave_out_some_of_100(ask, accounts):
    Account.objects.bulk_create(Account(name=f"Bo {number:03}") for number in range(130))
    accounts.rebuild()
    assert ask("bo", page="5")[1] is False
    assert len(ask("bo", page="5")[0]) == 20
    assert ask("bo", limit_choices_to={"name": "Bo 129"}) == (["Bo 129"], False)


def test_admin_asks_the_database_for_an_index_with_scopes(ask, accounts, monkeypatch):
    accounts.scope = "owner"
    assert ask("nna") == (["Anna Schmidt"], False)
    monkeypatch.setattr(AccountAdmin, "get_autocomplete_scope", lambda self, request: 9, raising=False)
    assert ask("nna") == ([], False)


def test_list_of_rows_searches_the_database_as_before(accounts, viewer, monkeypatch):
    monkeypatch.setattr(Autocomplete, "look_up", None)
    request = RequestFactory().get("/", {"q": "nna"})
    request.user = viewer
    request.resolver_match = type("Match", (), {"url_name": "app_account_changelist"})
    found, _ = AccountAdmin(Account, site).get_search_results(request, Account.objects.all(), "nna")
    assert [row.name for row in found] == ["Anna Schmidt"]
