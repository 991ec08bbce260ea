"""Indexes of models: which rows they follow, how they are named, and rebuilds in the background."""

import logging

import pytest

from redis_kit.bloom import ModelFilter
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisUnavailable
from redis_kit.core.indexes import model_index
from redis_kit.core.indexes.field_index import FieldIndex
from redis_kit.core.indexes.model_index import find_index, indexes
from tests.app.models import Account, Kiosk, Place
from tests.fixtures.process import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def added(monkeypatch):
    """The values that an index of names got."""
    monkeypatch.setattr(model_index, "_indexes", [])
    values = []

    class Names(FieldIndex):
        def add_many(self, more):
            values.extend(more)

    Names(Account, "name")
    return values


def test_saved_values_are_added_before_the_row_is_seen_and_at_commit(added, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        row = Account.objects.create(name="a")
        assert added == ["a"]
    callbacks[0]()
    assert added == ["a", "a"]
    row.balance = 5
    row.save(update_fields=["balance"])
    assert len(added) == 2
    Account.objects.defer("name").get(pk=row.pk).save()
    assert len(added) == 2


def test_index_is_found_by_model_and_field_in_any_case(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    pk, city = ModelFilter(Place), ModelFilter(Place, "city")
    label = Place._meta.label
    assert [find_index(ModelFilter, f"{label}.{field}") for field in ("pk", "id", "CITY")] == [pk, pk, city]
    assert indexes(ModelFilter) == [pk, city]
    with pytest.raises(InvalidValue, match=r"No model has the ModelFilter '.*citi'\. Did you mean '.*city'"):
        find_index(ModelFilter, f"{label}.citi")


def test_index_that_is_made_too_late_is_refused(monkeypatch):
    monkeypatch.setattr(model_index.conf, "tests_run", lambda: False)
    with pytest.raises(ConfigurationError, match=r"is made in models\.py"):
        ModelFilter(Account)


def test_values_come_from_the_rows_of_children_too(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    Kiosk.objects.create(city="Ulm")
    assert list(ModelFilter(Place, "city").read_values()) == ["Ulm"]


@pytest.mark.django_db(transaction=True)
def test_rebuild_in_the_background_says_how_it_ended(kit, monkeypatch, caplog):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelFilter(Account, capacity=1000)
    monkeypatch.setattr(index, "read_values", lambda: [7])
    caplog.set_level(logging.INFO, "redis_kit")
    index.rebuild_in_background()
    wait_for(lambda: "read 1 rows" in caplog.text)
    monkeypatch.setattr(index, "read_values", lambda: 1 / 0)
    index.rebuild_in_background()
    wait_for(lambda: "failed: ZeroDivisionError" in caplog.text)
    assert not index.may_exist(8)


def test_row_is_saved_if_the_thread_that_reports_can_not_start(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    reports = []

    class Failing(FieldIndex):
        def add_many(self, more):
            raise RedisUnavailable("no answer")

        def distrust(self):
            reports.append(self)

    def no_more_threads(thread):
        raise RuntimeError("can't start new thread")

    index = Failing(Account, "name")
    with monkeypatch.context() as patch:
        patch.setattr(model_index.threading.Thread, "start", no_more_threads)
        Account.objects.create(name="a")
    assert reports == []
    assert index.misses_change()
    wait_for(lambda: reports == [index] and not index.misses_change())
