"""The guard of a model: it hides no row, and saves the database most look-ups of others."""

import asyncio
import logging

import pytest
from django import shortcuts
from django.db import connection, transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat, Lower
from django.http import Http404

from redis_kit.bloom import BloomFilter, BloomQuerySet, ModelFilter, aget_object_or_404, get_object_or_404, model_filter
from redis_kit.bloom.component import Bloom
from redis_kit.core.errors import ConfigurationError, InvalidValue, ParameterMismatch, RebuildLost
from redis_kit.core.indexes import model_index
from tests.app.models import Account, Device, Kiosk, Leaflet, Place, Region, User
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
    if lose == "bitmap":
        assert accounts.filter.info().complete is False
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


def test_evicted_bitmap_that_an_add_brings_back_makes_it_incomplete(kit, names):
    Account.objects.create(name="one")
    names.rebuild()
    assert hidden(names, ["one", "zzz"]) == ["zzz"]
    kit.client.delete(*[key for key in kit.keys() if ":bits:" in key])
    Account.objects.create(name="two")
    assert hidden(names, ["one", "two", "zzz"]) == []
    assert names.filter.info().complete is False


def test_primary_that_was_a_replica_meanwhile_is_not_believed(own_kit, make_server):
    """Its process is the same, and its data are those of another server that lacked the latest adds."""
    first, second = make_server(tcp=True), make_server(tcp=True)
    own_kit.connect(first.connection)
    accounts = ModelFilter(Account, capacity=1000)
    accounts.rebuild()
    with first.client() as one, second.client() as two:
        address = [
            str(each["port"]) for each in (one.connection_pool.connection_kwargs, two.connection_pool.connection_kwargs)
        ]
        follow(two, address[0])
        two.replicaof("NO", "ONE")
        row = Account.objects.create(name="lost")  # on the first one only
        follow(one, address[1])
        one.replicaof("NO", "ONE")
    assert hidden(accounts, [row.pk, 10**6]) == []


def follow(client, port):
    client.replicaof("127.0.0.1", port)
    wait_for(lambda: client.info("replication").get("master_link_status") == "up")


def test_rows_are_looked_up_by_the_value_of_another_row(kit):
    regions = ModelFilter(Leaflet, "region", capacity=1000)
    region = Region.objects.create(code="DE")
    row = Leaflet.objects.create(title="a", region=region)
    regions.rebuild()
    other = Region(code="FR")
    assert hidden(regions, [region, "DE", other, "FR"]) == [other, "FR"]
    assert get_object_or_404(Leaflet, region=region) == row
    assert get_object_or_404(Leaflet, region_id="DE") == row
    with pytest.raises(Http404):
        get_object_or_404(Leaflet, region=other)


def test_expressions_are_left_to_the_database_without_a_warning(names, accounts, caplog):
    row = Account.objects.create(name="a")
    names.rebuild()
    accounts.rebuild()
    values = [Lower(Value("A")), F("name"), Account.objects.all(), Account(name="x"), None]
    assert hidden(names, values) == hidden(accounts, [*values, float("inf"), "x", [1], object()]) == []
    assert get_object_or_404(Account, name=Lower(Value("A"))) == row
    assert caplog.records == []


def test_unavailable_server_is_in_the_log(own_kit, caplog):
    accounts = ModelFilter(Account, capacity=1000)
    own_kit.server.stop()
    assert accounts.may_exist(1)
    assert "is not asked: RedisUnavailable" in caplog.text


def test_expression_that_is_saved_is_read_back(kit):
    titles, slugs = ModelFilter(Leaflet, "title", capacity=1000), ModelFilter(Leaflet, "slug", capacity=1000)
    editions = ModelFilter(Leaflet, "edition", capacity=1000)
    for each in (titles, slugs, editions):
        each.rebuild()
    row = Leaflet.objects.create(title="AA")
    row.title = Concat(Value("x-"), F("title"))
    row.save()
    assert (hidden(titles, ["x-AA", "no"]), hidden(slugs, ["x-aa", "no"])) == (["no"], ["no"])
    assert hidden(editions, [7, 8]) == [8]


@pytest.mark.parametrize(
    "wrong",
    [{"capacity": -5}, {"capacity": 10**12}, {"error": 2}, {"error": "0.1"}],
)
def test_wrong_parameters_are_refused_at_once(wrong):
    with pytest.raises(InvalidValue):
        ModelFilter(Account, **wrong)
    with pytest.raises(TypeError):
        ModelFilter(Account, cap=5)
    assert model_index.indexes(ModelFilter) == []


def test_fields_that_a_filter_can_not_take_are_refused():
    with pytest.raises(ConfigurationError, match=r"CharField, TextField, .*changed_at is of the type DateTimeField"):
        ModelFilter(Account, "changed_at")
    ModelFilter(Account)
    with pytest.raises(ConfigurationError, match="second"):
        ModelFilter(Account, "id")
    assert len(model_index.indexes(ModelFilter)) == 1


def test_check_names_unknown_connections(kit):
    ModelFilter(Account, "name")
    assert list(Bloom().checks()) == []
    ModelFilter(Account, using="nope")
    (error,) = Bloom().checks()
    assert (error.id, "'nope'" in error.msg) == ("redis_kit.E002", True)


def test_check_names_relations_to_fields_that_a_filter_can_not_take(kit, monkeypatch):
    regions = ModelFilter(Leaflet, "region")
    assert list(Bloom().checks()) == []
    monkeypatch.setattr(ModelFilter, "types", ())
    (error,) = Bloom().checks()
    assert (error.id, error.msg) == ("redis_kit.E033", regions.wrong_type())


def test_operators(accounts):
    accounts.rebuild()
    accounts.add(7)
    assert (7 in accounts, 8 in accounts) == (True, False)


def test_filter_of_another_database_is_not_believed(accounts, monkeypatch):
    Account.objects.create(pk=7, name="a")
    accounts.rebuild()
    assert hidden(accounts, [7, 8]) == [8]
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "NAME", "staging")
        assert hidden(accounts, [7, 8]) == []
        accounts.add_many([8])
        accounts.filter.rebuild([])  # of that database, which has no row
        assert hidden(accounts, [7, 8]) == [7, 8]
    assert hidden(accounts, [7, 8]) == []
    accounts.rebuild()
    assert hidden(accounts, [7, 9]) == [9]


def test_rebuild_adopts_the_parameters_of_the_code(kit, monkeypatch):
    old = ModelFilter(Account, "name", capacity=100)
    Account.objects.create(name="a")
    old.rebuild()
    monkeypatch.setattr(model_index, "_indexes", [])
    new = ModelFilter(Account, "name", capacity=5000, error=0.001)  # as the processes of the next release
    assert hidden(new, ["a", "b"]) == hidden(old, ["a", "b"]) == ["b"]
    new.add_many(["c"])
    assert (hidden(old, ["c"]), old.filter.info().capacity) == ([], 100)
    new.rebuild()
    old.add_many(["d"])
    assert hidden(new, ["a", "d", "e"]) == hidden(old, ["a", "d", "e"]) == ["e"]
    info = new.filter.info()
    assert (info.capacity, info.target_error, info.complete) == (5000, 0.001, True)
    with pytest.raises(ParameterMismatch, match="parameters of a model's filter"):
        BloomFilter(new.name, 100).add(1)


def test_former_generation_counts_neither_twice_nor_as_error(names):
    names.add_many(map(str, range(900)))
    names.filter.rebuild(map(str, range(900)), keep=True)
    info = names.filter.info()
    assert (880 < info.items <= 900, info.is_overfull) == (True, False)
    assert sum(names.filter.contains_many(map(str, range(10**6, 10**6 + 2000)))) < 0.02 * 2000


def test_bulk_changes_of_the_manager_hide_no_row(accounts, names, caplog):
    rows = BloomQuerySet(Account)
    accounts.rebuild()
    names.rebuild()
    created = rows.bulk_create([Account(name=f"n{number}") for number in range(3)])
    assert hidden(accounts, [row.pk for row in created]) == hidden(names, ["n0", "n2"]) == []
    rows.filter(name="n0").update(name="updated")
    created[1].name, created[2].name = "bulk", Concat(Value("x"), Value("y"))
    rows.bulk_update(created[1:], ["name"])
    assert hidden(names, ["updated", "bulk", "xy", "no"]) == ["no"]
    assert caplog.records == []
    rows.filter(name="bulk").update(name=Case(When(pk=1, then=Value("z")), default=Value("zz")))
    assert hidden(names, ["no", "zz"]) == []
    assert hidden(accounts, [10**6]) == [10**6]


def test_bulk_changes_outside_a_transaction_are_added_before_their_commit(accounts):
    accounts.rebuild()
    with transaction.atomic():
        (row,) = BloomQuerySet(Account).bulk_create([Account(name="a")])
        assert hidden(accounts, [row.pk]) == []


@pytest.mark.parametrize("wrong", [5, "x", str, None])
def test_what_is_no_model_is_refused_as_by_django(wrong):
    with pytest.raises(ValueError, match="First argument") as ours:
        get_object_or_404(wrong, pk=1)
    with pytest.raises(ValueError, match="First argument") as theirs:
        shortcuts.get_object_or_404(wrong, pk=1)
    assert str(ours.value) == str(theirs.value)


def test_querysets_and_managers_of_relations_are_asked(accounts, django_assert_num_queries):
    accounts.rebuild()
    user = User.objects.create(username="u")
    for rows in (user.accounts, Account.objects.filter(balance=0), Account._default_manager):
        with django_assert_num_queries(0), pytest.raises(Http404):
            get_object_or_404(rows, pk=10**6)


def test_text_beyond_ascii_is_left_to_databases_that_may_ignore_more(names, monkeypatch):
    monkeypatch.setattr(model_filter, "EXACT", ())
    Account.objects.create(name="Ascii")
    names.rebuild()
    assert hidden(names, ["ascii", "ASCII ", "Straße", "a\x00b", "no"]) == ["no"]
    Account.objects.create(name="Straße")
    assert hidden(names, ["strasse", "no"]) == []  # the database may take these for equal


def test_error_in_the_look_up_is_no_error_of_the_caller(accounts, monkeypatch, caplog):
    accounts.rebuild()
    monkeypatch.setattr(ModelFilter, "comparable", lambda self, value: 1 / 0)
    assert accounts.may_exist(5)
    monkeypatch.setattr(ModelFilter, "misses_change", lambda self: {}["x"])
    caplog.set_level(logging.WARNING)
    assert accounts.may_exist(5)
    assert "KeyError" in caplog.text
