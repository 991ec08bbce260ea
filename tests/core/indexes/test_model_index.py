"""Indexes of models: which rows they follow, how they are named, and rebuilds in the background."""

import logging
import threading

import pytest
from django.db.models import Field

from redis_kit.bloom import ModelFilter
from redis_kit.core.errors import (
    ConfigurationError,
    InvalidValue,
    OutOfMemory,
    RebuildRunning,
    RedisKitError,
    RedisUnavailable,
)
from redis_kit.core.indexes import model_index
from redis_kit.core.indexes.model_index import find_index, indexes
from tests.app.models import Account, Place
from tests.fixtures.process import wait_for

pytestmark = pytest.mark.django_db


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
    with pytest.raises(ConfigurationError, match=r"^Make ModelFilter in models\.py"):
        ModelFilter(Account)


@pytest.mark.django_db(transaction=True)
def test_rebuild_in_the_background_says_how_it_ended(kit, monkeypatch, caplog):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelFilter(Account, capacity=1000)
    monkeypatch.setattr(index, "read_values", lambda: [7])
    caplog.set_level(logging.INFO, "redis_kit")
    index.rebuild_in_background()
    wait_for(lambda: "read 1 rows" in caplog.text)
    monkeypatch.setattr(index, "read_values", lambda: 1 / 0)
    with pytest.raises(RedisKitError, match="ZeroDivisionError"):
        index.rebuild_in_background()
    assert "failed: ZeroDivisionError" in caplog.text
    assert not index.may_exist(8)


@pytest.mark.django_db(transaction=True)
def test_rebuild_that_the_server_refuses_says_so(own_kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = ModelFilter(Account, capacity=1000)
    own_kit.client.config_set("maxmemory", 1)
    with pytest.raises(OutOfMemory):
        index.rebuild_in_background()
    own_kit.client.config_set("maxmemory", 0)
    own_kit.client.replicaof("127.0.0.1", "1")
    with pytest.raises(RedisUnavailable, match="read only replica"):
        index.rebuild_in_background()


@pytest.mark.django_db(transaction=True)
def test_rebuild_in_the_background_returns_after_the_first_batch(kit, monkeypatch, caplog):
    monkeypatch.setattr(model_index, "_indexes", [])
    monkeypatch.setattr(model_index, "FIRST_BATCH", 30.0)
    index, goes_on = ModelFilter(Account, capacity=5000), threading.Event()

    def read_values():
        yield from range(1000)
        goes_on.wait(30)

    monkeypatch.setattr(index, "read_values", read_values)
    caplog.set_level(logging.INFO, "redis_kit")
    index.rebuild_in_background()
    with pytest.raises(RebuildRunning):
        index.rebuild_in_background()
    goes_on.set()
    wait_for(lambda: "read 1000 rows" in caplog.text)


def test_row_is_saved_if_the_thread_that_reports_can_not_start(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    reports = []

    class Failing(ModelFilter):
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


class Reported(ModelFilter):
    """A filter whose reports fail as often as the test says."""

    types = (Field,)

    def __init__(self, model, field, failures):
        super().__init__(model, field)
        self.failures, self.reports = list(failures), 0

    def distrust(self):
        self.reports += 1
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def no_pause(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    monkeypatch.setattr(model_index, "PAUSE", 0.01)


def test_reports_are_fair_and_survive_any_error(no_pause):
    first = Reported(Account, "name", [RedisUnavailable("x")] * 10**6)
    second = Reported(Account, "balance", [TypeError("x"), RuntimeError("x")])
    third = Reported(Account, "id", [])
    for index in (first, second, third):
        index.report_miss(RedisUnavailable("x"))
    wait_for(lambda: not second.misses_change() and not third.misses_change())
    assert first.misses_change()
    first.failures.clear()
    wait_for(lambda: not first.misses_change())


def test_process_that_ends_reports_or_names_the_command(no_pause, monkeypatch, caplog):
    monkeypatch.setattr(model_index, "_start_reporter", lambda: None)
    told = Reported(Account, "name", [RedisUnavailable("x")])
    untold = Reported(Account, "balance", [RedisUnavailable("x")] * 10**6)
    untold.command = "rk_bloom"
    for index in (told, untold):
        index.report_miss(RedisUnavailable("x"))
    model_index.report_at_end(0.1)
    assert not told.misses_change()
    critical = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(critical) == 1
    assert f"manage.py rk_bloom rebuild {untold.name}" in critical[0]
    untold.failures.clear()
    model_index.report_at_end(1)
    assert not untold.misses_change()


def test_rebuild_says_that_its_thread_can_not_start(no_pause, monkeypatch):
    def no_more_threads(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(model_index.threading.Thread, "start", no_more_threads)
    with pytest.raises(RedisKitError, match="no thread"):
        Reported(Account, "name", []).rebuild_in_background()
