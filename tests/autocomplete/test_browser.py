"""A row is chosen in the admin, in a browser: by the index, and by the database without Redis."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.views.autocomplete import AutocompleteJsonView

from redis_kit.autocomplete import ModelAutocomplete
from redis_kit.autocomplete.index import Autocomplete
from redis_kit.core.indexes import model_index
from tests.app.models import Account, User

pytestmark = pytest.mark.once
FORM = "/admin/app/account/add/"


@pytest.fixture
def users(transactional_db, stock, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelAutocomplete(User, ["username"])
    User.objects.bulk_create(User(username=f"Writer {number:04} 王小明") for number in range(2000))
    User.objects.create(username="Zoë Müller")
    index.rebuild()
    return index


def choose(page, typed):
    """Type into the field, and return what it offers."""
    page.click(".field-owner .select2-selection")
    page.wait_for_selector(".select2-results__option:not(.loading-results)")
    with page.expect_response(lambda response: parse_qs(urlsplit(response.url).query).get("term") == [typed]):
        page.fill(".select2-search__field", typed)
    page.locator(".select2-results__option").nth(1).wait_for(state="detached")
    return page.locator(".select2-results__option[role=option]").all_inner_texts()


def test_owner_is_chosen_by_the_index(users, visit, monkeypatch):
    searches = []
    look_up = Autocomplete.look_up
    monkeypatch.setattr(Autocomplete, "look_up", lambda *args, **kw: searches.append(args[1]) or look_up(*args, **kw))

    def act(page):
        assert choose(page, "mull zo") == ["Zoë Müller"]
        page.keyboard.press("Enter")
        page.fill("#id_name", "chosen")
        page.fill("#id_balance", "1")
        page.click("[name=_save]")

    visit(act, start=FORM, window="autocomplete")
    assert Account.objects.get(name="chosen").owner.username == "Zoë Müller"
    assert "mull zo" in searches


def test_owner_is_chosen_by_the_database_without_redis(users, visit, monkeypatch):
    users.distrust()
    found = []
    queryset = AutocompleteJsonView.get_queryset
    monkeypatch.setattr(AutocompleteJsonView, "get_queryset", lambda self: found.append(self.term) or queryset(self))
    visit(lambda page: found.append(choose(page, "üller")), start=FORM, window="autocomplete")
    assert found[-1] == ["Zoë Müller"]
