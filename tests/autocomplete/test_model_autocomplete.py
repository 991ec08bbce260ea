"""Rows of a model: they are found as soon as they are committed, and never when only the database knows."""

import asyncio

import pytest
from django.db import transaction

from redis_kit.autocomplete import Autocomplete, ModelAutocomplete
from redis_kit.core.errors import ConfigurationError, InvalidValue, ParameterMismatch, RebuildLost
from redis_kit.core.indexes import model_index
from redis_kit.core.indexes.row_index import WriterLost
from tests.app.models import Account, Device, User
from tests.fixtures.process import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_other_indexes(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])


@pytest.fixture
def accounts(kit):
    return ModelAutocomplete(Account, ["name"], weight="balance")


def names(index, text, **options):
    hits = index.search(text, **options)
    return None if hits is None else [hit.text for hit in hits]


def test_committed_rows_are_found(accounts):
    Account.objects.create(name="Anna Schmidt")
    assert names(accounts, "an") is None  # not complete yet
    assert accounts.rebuild() == 1
    assert names(accounts, "an") == ["Anna Schmidt"]
    with transaction.atomic():
        row = Account.objects.create(name="Anton", balance=5)
        assert names(accounts, "an") == ["Anna Schmidt"]
    assert names(accounts, "an") == ["Anton", "Anna Schmidt"]
    assert [hit.id for hit in accounts.search("ant")] == [str(row.pk)]
    row.name = "Berta"
    row.save()
    assert names(accounts, "an") == ["Anna Schmidt"]
    assert names(accounts, "ber") == ["Berta"]
    row.delete()
    assert names(accounts, "ber") == []
    assert asyncio.run(accounts.asearch("an"))[0].text == "Anna Schmidt"
    with transaction.atomic():
        Account.objects.create(name="Anders")
        transaction.set_rollback(True)
    assert names(accounts, "an") == ["Anna Schmidt"]


def test_index_of_an_empty_table_is_complete(accounts):
    accounts.rebuild()
    assert accounts.index().info().complete
    assert not accounts.search("an")
    row = Account.objects.create(name="Anna")
    assert names(accounts, "an") == ["Anna"]
    row.delete()
    assert accounts.index().info().complete
    Account.objects.create(name="Anton")
    assert names(accounts, "an") == ["Anton"]


def test_index_whose_entries_were_evicted_is_not_complete(accounts, kit):
    Account.objects.create(name="Anna")
    accounts.rebuild()
    [terms] = [key for key in kit.keys() if ":terms:" in key]
    kit.raw.delete(terms)
    assert not accounts.index().info().complete


def test_row_that_moves_to_another_scope_leaves_the_old_one(kit):
    index = ModelAutocomplete(Account, ["name"], scope="owner")
    first, second = (User.objects.create(username=name) for name in "ab")
    row = Account.objects.create(name="Anna", owner=first)
    Account.objects.create(name="Anton", owner=second)
    index.rebuild()
    assert names(index, "a", scope=first.pk) == ["Anna"]
    row.owner = second
    row.save()
    assert names(index, "a", scope=first.pk) == []
    assert names(index, "a", scope=second.pk) == ["Anna", "Anton"]
    assert names(index, "a") == []
    assert index.index(second.pk).use(row.pk)
    assert not index.index(first.pk).use(row.pk)
    assert names(index, "a", scope=first.pk) == []


def test_empty_and_wrong_rows_are_left_out(kit, caplog):
    index = ModelAutocomplete(Account, ["name"], weight=lambda row: 1 / row.balance if row.name == "Bad" else 0)
    index.rebuild()
    for name in ("", "Bad", "Good"):
        Account.objects.create(name=name)
    assert names(index, "g") == ["Good"]
    assert names(index, "", limit=100) == ["Good"]
    assert "can't take the row" in caplog.text
    Account.objects.all().delete()
    assert names(index, "g") in ([], None)


def test_keys_that_can_be_no_ids_stop_no_other_row(accounts):
    accounts.rebuild()
    accounts.commit(["\n", "x" * 500])
    with pytest.raises((InvalidValue, ValueError)):
        Account.objects.get(pk="\n")


def test_other_types_of_keys_work(kit):
    index = ModelAutocomplete(Device, ["id"])
    row = Device.objects.create()
    index.rebuild()
    assert [hit.id for hit in index.search(str(row.pk)[:8])] == [str(row.pk)]


def test_database_is_asked_while_redis_is_unavailable(own_kit, caplog):
    index = ModelAutocomplete(Account, ["name"])
    row = Account.objects.create(name="Anna")
    index.rebuild()
    with pytest.raises(InvalidValue):
        index.search("an", 1000)
    own_kit.server.stop()
    assert Autocomplete("people").search("an") == []
    assert names(index, "an") is None
    assert "answers again" not in caplog.text
    row.name = "Bo"
    row.save()
    assert index.misses_change()
    assert "is not asked" in caplog.text
    own_kit.server.restart()
    wait_for(lambda: not index.misses_change())
    assert names(index, "an") is None
    index.rebuild()
    assert names(index, "bo") == ["Bo"]


def test_index_with_other_parameters_is_not_asked(accounts):
    Autocomplete(accounts.name).add(1, "Anna")
    assert names(accounts, "an") is None
    with pytest.raises(ParameterMismatch):
        accounts.rebuild()


def test_late_writer_changes_nothing(accounts, kit):
    accounts.rebuild()
    kit.client.set(accounts.writer_key, "another")
    with pytest.raises(WriterLost):
        accounts.write({"1": accounts.document(Account(pk=1, name="Anna"))}, [], "mine")
    assert accounts.index().search("an") == []


def test_rebuild_of_a_cleared_index_is_lost(accounts, monkeypatch):
    Account.objects.create(name="Anna")
    monkeypatch.setattr(accounts, "text_of", lambda row: accounts.index().clear() and "x")
    with pytest.raises(RebuildLost):
        accounts.rebuild()


def test_wrong_declarations_are_refused(kit):
    with pytest.raises(ConfigurationError, match="must be a list of names"):
        ModelAutocomplete(Account, "name")
    with pytest.raises(Exception, match="no field named"):
        ModelAutocomplete(Account, ["nam"])
    ModelAutocomplete(Account, ["name"])
    with pytest.raises(ConfigurationError, match="has a ModelAutocomplete already"):
        ModelAutocomplete(Account, ["name"])
