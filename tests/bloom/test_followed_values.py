"""Filters of fields: which values they get, when, and what a value that can't be added means."""

import pytest
from django.db import transaction
from django.db.models import F, Field, QuerySet, Value
from django.db.models.functions import Concat
from django.db.models.signals import pre_save

from redis_kit.bloom import BloomQuerySet, ModelFilter, model_filter
from redis_kit.core.errors import ConfigurationError, RedisUnavailable
from redis_kit.core.indexes import model_index
from tests.app.models import Account, Kiosk, Leaflet, Place, Shop

pytestmark = pytest.mark.django_db(transaction=True)


class Recorded(ModelFilter):
    """A filter that only notes what it gets."""

    types = (Field,)

    def __init__(self, *args):
        super().__init__(*args)
        self.values = []

    def add_many(self, values):
        self.values.extend(values)

    def distrust(self):
        self.values.append("distrusted")


@pytest.fixture(autouse=True)
def no_other_indexes(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    monkeypatch.setattr(model_index, "_incomplete", {})


def slugify(sender, instance, **kwargs):
    instance.name = f"made-{instance.name}"


def test_value_that_a_later_receiver_changes_is_added():
    names = Recorded(Account, "name")
    pre_save.connect(slugify, sender=Account)
    try:
        Account.objects.create(name="a")
        with transaction.atomic():
            Account.objects.create(name="b")
            assert names.values[-1] == "made-b"
    finally:
        pre_save.disconnect(slugify, sender=Account)
    assert "made-a" in names.values


def test_save_without_a_transaction_adds_before_and_after_it():
    keys, names = Recorded(Account), Recorded(Account, "name")
    row = Account.objects.create(name="a")
    assert (keys.values, names.values) == ([row.pk], ["a", "a"])
    with transaction.atomic():
        Account.objects.create(name="b")
        assert names.values == ["a", "a", "b"]
    assert names.values == ["a", "a", "b", "b"]
    row.balance = 5
    row.save(update_fields=["balance"])
    Account.objects.defer("name").get(pk=row.pk).save()
    assert len(names.values) == 4


def test_values_that_the_database_makes_are_read_back():
    titles, slugs, editions = (Recorded(Leaflet, field) for field in ("title", "slug", "edition"))
    row = Leaflet.objects.create(title="AA")
    assert (slugs.values, editions.values) == (["aa"], [7])
    row = Leaflet.objects.get(pk=row.pk)
    row.title, row.edition = Concat(Value("x-"), F("title")), F("edition") + 1
    row.save()
    assert titles.values == ["AA", "AA", "x-AA"]
    assert (slugs.values[-1], editions.values[-1]) == ("x-aa", 8)
    row = Leaflet.objects.get(pk=row.pk)
    row.title = "CC"
    row.save(update_fields=["title"])
    assert slugs.values[-1] == "cc"


@pytest.mark.parametrize("error", [TypeError("x"), ValueError("x"), RedisUnavailable("x"), ZeroDivisionError("x")])
def test_row_is_saved_if_its_value_can_not_be_added(monkeypatch, error):
    names = Recorded(Account, "name")

    def fail(values):
        raise error

    monkeypatch.setattr(names, "add_many", fail)
    monkeypatch.setattr(model_index, "_start_reporter", lambda: None)
    row = Account.objects.create(name="a")
    assert Account.objects.filter(pk=row.pk).exists()
    assert names.misses_change()


def test_value_that_is_not_saved_is_no_missed_change():
    balances = Recorded(Account, "balance")
    balances.add_many = lambda values: balances.values.extend(map(int, values))
    with pytest.raises(ValueError, match="balance"):
        Account.objects.create(name="a", balance="x")
    assert not balances.misses_change()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_interrupted_add_is_a_missed_change(monkeypatch, end):
    names = Recorded(Account, "name")

    def interrupted(values):
        raise end

    monkeypatch.setattr(names, "add_many", interrupted)
    monkeypatch.setattr(model_index, "_start_reporter", lambda: None)
    with pytest.raises(end):
        Account.objects.create(name="a")
    assert names.misses_change()


def test_field_of_a_base_is_followed_on_the_base():
    cities = Recorded(Shop, "city")
    assert (cities.model, cities.name) == (Place, f"{Place._meta.label_lower}.city")
    assert model_index.find_index(Recorded, f"{Shop._meta.label}.city") is cities
    shop = Kiosk.objects.create(city="Ulm")
    place = Place.objects.get(pk=shop.pk)
    place.city = "Bonn"
    place.save()
    assert cities.values[-1] == "Bonn"
    assert list(cities.read_values()) == ["Bonn"]


def test_second_index_of_a_field_and_fields_without_a_column_are_refused():
    Recorded(Place, "city")
    for model in (Place, Shop):
        with pytest.raises(ConfigurationError, match="second"):
            Recorded(model, "city")
    with pytest.raises(ConfigurationError, match="no column"):
        Recorded(Account._meta.get_field("owner").related_model, "accounts")
    assert len(model_index.indexes(Recorded)) == 1


def test_all_rows_are_read_in_batches_that_see_what_came_meanwhile(monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(model_filter, "BATCH", 2)
    names = Recorded(Account, "name")
    Account.objects.bulk_create([Account(name=str(number)) for number in range(3)])
    values = names.read_values()
    assert next(values) == "0"
    Account.objects.bulk_create([Account(name="late")])
    assert list(values) == ["1", "2", "late"]
    with django_assert_num_queries(3):
        list(names.read_values())


def test_rows_come_from_no_manager_of_the_model(monkeypatch):
    class Live:
        """A base manager that hides rows."""

        def using(self, alias):
            return QuerySet(Account).none()

    Account.objects.create(name="a")
    monkeypatch.setattr(type(Account), "_base_manager", Live(), raising=False)
    assert list(Recorded(Account, "name").read_values()) == ["a"]


def test_rows_that_were_saved_in_bulk_are_added_now_and_at_the_commit():
    keys, names = Recorded(Account), Recorded(Account, "name")
    with transaction.atomic():
        rows = BloomQuerySet(Account).bulk_create([Account(name="a"), Account(name="b")])
        assert names.values == ["a", "b"]
    assert names.values == ["a", "b"] * 2
    assert keys.values == [row.pk for row in rows] * 2
    BloomQuerySet(Account).filter(name="a").update(name="c", balance=5)
    assert names.values[4:] == ["c"] * 2


def test_bulk_changes_whose_values_are_unknown_are_missed_changes(monkeypatch):
    monkeypatch.setattr(model_index, "_start_reporter", lambda: None)
    keys, names = Recorded(Account), Recorded(Account, "name")
    model_filter._add_saved(Account, [Account(name="a")], "default")
    assert (keys.misses_change(), names.misses_change()) == (True, False)
    BloomQuerySet(Account).update(name=Concat(F("name"), Value("x")))
    assert names.misses_change()
