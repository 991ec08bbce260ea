"""The guard of a model: it hides no row, and saves the database most look-ups of others."""

import asyncio

import pytest
from django.db import transaction
from django.http import Http404

from redis_kit.bloom import ModelFilter, aget_object_or_404, get_object_or_404
from redis_kit.core.errors import RebuildLost
from redis_kit.core.indexes import model_index
from tests.app.models import Account, Device, Kiosk, Place
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_other_indexes(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])


@pytest.fixture
def accounts(kit):
    return ModelFilter(Account, capacity=1000)


@pytest.fixture
def names(kit):
    return ModelFilter(Account, "name", capacity=1000)


def hidden(filter, values):
    return [value for value in values if not filter.may_exist(value)]


def test_only_a_filter_that_was_rebuilt_is_asked(accounts, django_assert_num_queries):
    row = Account.objects.create(name="a")
    assert hidden(accounts, [row.pk, 10**6]) == []
    assert accounts.rebuild() == 1
    assert hidden(accounts, [row.pk, str(row.pk), 10**6]) == [10**6]
    with django_assert_num_queries(0), pytest.raises(Http404, match="No Account matches"):
        get_object_or_404(Account, pk=10**6)
    with django_assert_num_queries(1):
        assert get_object_or_404(Account, pk=row.pk) == row


def test_values_that_are_no_keys_are_left_to_the_database(accounts):
    accounts.rebuild()
    assert hidden(accounts, ["x", None, 1.5, object()]) in ([], [1.5])


def test_new_rows_are_found_before_and_after_their_commit(accounts, names, django_capture_on_commit_callbacks):
    accounts.rebuild()
    names.rebuild()
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        row = Account.objects.create(name="New")
        assert hidden(accounts, [row.pk]) == hidden(names, ["New"]) == []
    row.name = "Other"
    row.save(update_fields=["name"])
    assert hidden(names, ["new", "NEW ", "Néw", "Other"]) == []
    assert hidden(names, ["missing"]) == ["missing"]


def test_row_of_a_transaction_that_is_open_during_a_rebuild_is_found(accounts, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        row = Account.objects.create(name="open")
        accounts.rebuild()
        # As if the rebuild had read before the commit.
        accounts.filter.rebuild([])
    assert hidden(accounts, [row.pk]) == []


def test_child_rows_are_rows_of_their_base(kit):
    places = ModelFilter(Place, "city", capacity=1000)
    places.rebuild()
    Kiosk.objects.create(city="Ulm")
    assert hidden(places, ["Ulm", "Bonn"]) == ["Bonn"]


def test_uuids_are_found_in_each_spelling(kit):
    devices = ModelFilter(Device, capacity=1000)
    devices.rebuild()
    row = Device.objects.create()
    assert hidden(devices, [row.pk, str(row.pk), row.pk.hex]) == []


def test_bulk_and_raw_rows_are_found_after_add_many(accounts):
    accounts.rebuild()
    accounts.add_many(range(100, 200))
    Account.objects.bulk_create([Account(pk=pk, name=str(pk)) for pk in range(100, 150)])
    assert hidden(accounts, range(100, 200)) == []


@pytest.mark.parametrize("lose", ["flush", "bitmap", "distrust", "parameters"])
def test_filter_that_lost_something_hides_nothing(kit, accounts, lose):
    Account.objects.create(pk=7, name="a")
    accounts.rebuild()
    assert hidden(accounts, [7, 8]) == [8]
    if lose == "flush":
        kit.client.delete(*kit.keys())
        Account.objects.create(pk=9, name="b")
    elif lose == "bitmap":
        kit.client.delete(*[key for key in kit.keys() if ":bits:" in key])
    elif lose == "distrust":
        accounts.distrust()
    else:
        kit.client.hset(accounts.filter.key("state"), "parameters", "5 0.5 0.0")
    assert hidden(accounts, [7, 8]) == []


def test_nothing_is_hidden_during_a_rebuild_that_fails(accounts):
    Account.objects.create(pk=7, name="a")
    accounts.rebuild()

    def values():
        yield from range(1000)
        accounts.distrust()
        yield 1

    with pytest.raises(RebuildLost):
        accounts.filter.rebuild(values())
    assert hidden(accounts, [7, 8]) == []


def test_restart_of_the_server_makes_a_filter_incomplete(own_kit, tmp_path, make_server):
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "data")
    own_kit.connect(server.connection)
    accounts = ModelFilter(Account, capacity=1000)
    accounts.rebuild()
    assert hidden(accounts, [8]) == [8]
    server.restart()
    accounts.may_exist(8)
    assert hidden(accounts, [8]) == []
    assert accounts.filter.info().items == 0


def test_failed_add_is_reported_when_the_server_is_back(own_kit):
    accounts = ModelFilter(Account, capacity=1000)
    accounts.rebuild()
    own_kit.server.freeze()
    row = Account.objects.create(name="frozen")
    assert accounts.misses_change()
    assert hidden(accounts, [row.pk, 10**6]) == []
    own_kit.server.thaw()
    wait_for(lambda: not accounts.misses_change())
    assert not accounts.filter.info().complete
    assert hidden(accounts, [row.pk, 10**6]) == []


def test_async_twins(accounts):
    accounts.rebuild()

    async def look():
        assert await accounts.amay_exist(8) is False
        with pytest.raises(Http404):
            await aget_object_or_404(Account, id=8)

    asyncio.run(look())
