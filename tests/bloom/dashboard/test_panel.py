"""The dashboard's page about filters: its rows, the look-up, and its buttons."""

import pytest

from redis_kit.bloom import BloomFilter, ModelFilter
from redis_kit.bloom.component import _check_full
from redis_kit.bloom.dashboard.panel import BloomPanel
from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.indexes import model_index
from redis_kit.core.indexes.generations import names
from redis_kit.core.panels import Figure, Meter, Pages, Table, Viewer
from tests.app.models import Account
from tests.fixtures.process import wait_for


@pytest.fixture(autouse=True)
def no_models(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])


def content(**asked):
    panel = BloomPanel()
    panel.viewer = Viewer(asked=asked)
    return list(panel.content())


def tables(**asked):
    return [part for part in content(**asked) if isinstance(part, Table)]


def test_filters_are_shown_with_their_fill_and_error(kit, trips):
    assert [list(table.rows) for table in tables()] == [[]]
    seen = BloomFilter("seen", 100, 1e-6)
    seen.add_many(range(250))
    seen.rebuild(range(250))
    BloomFilter("new", 1000).add(1)
    content()  # the server knows the scripts now
    trips.clear()
    figures = {part.label: part.value for part in content() if isinstance(part, Figure)}
    assert len(trips) == 2
    assert (figures["Filters"], figures["Values"]) == (2, 251)
    (table,) = tables()
    new, old = table.rows
    assert (new[0], new[1], new[2].lines, new[-1]) == ("new", Meter(1, 1000), (1, ""), "")
    assert (old[1], old[2].lines) == (Meter(250, 100), (2, "full: give it a larger capacity"))
    assert table.offered == [("clear",)] * 2


def test_value_is_looked_up_in_all_that_it_may_stand_for(kit):
    BloomFilter("seen", 100, 1e-6).add(42)
    answers = {row[1]: row[2] for row in tables(filter="seen", value="42")[0].rows}
    assert answers == {"text": "surely not in it", "whole number": "probably in it"}
    identity = "12345678-1234-5678-1234-567812345678"
    assert [row[1] for row in tables(filter="seen", value=identity)[0].rows] == ["text", "UUID"]
    assert tables(filter="no", value="42")[0].rows == []


def test_filter_is_cleared(kit):
    BloomFilter("seen", 100, 1e-6).add_many(range(5))
    assert str(BloomPanel.clear.panel_action.effect("seen")) == "5 values are deleted."
    assert str(BloomPanel().clear("seen")) == "The filter seen was deleted."
    assert BloomFilter("seen", 100, 1e-6).info() is None
    for call in (BloomPanel().clear, BloomPanel.clear.panel_action.effect):
        with pytest.raises(InvalidValue, match="there is no filter seen"):
            call("seen")


@pytest.mark.django_db(transaction=True)
def test_filter_of_a_model_is_rebuilt(kit, monkeypatch):
    index = ModelFilter(Account, capacity=1000)
    monkeypatch.setattr(index, "read_values", lambda: [7])
    index.add_many([8])
    assert tables()[0].offered == [("rebuild", "clear")]
    BloomPanel().rebuild(index.name)
    wait_for(lambda: index.filter.info().complete)
    assert [index.may_exist(value) for value in (7, 8, 9)] == [True, True, False]  # 8 may be of an open transaction
    with pytest.raises(InvalidValue, match="No model has"):
        BloomPanel().rebuild("shop.product.pk")


def test_tile_warns_of_filters_with_layers(kit):
    def tile():
        panel = BloomPanel()
        replies = {using: flow.run(read, connections.client(using)) for using, read in panel.reads().items()}
        return panel.tile(replies)

    assert tile() is None
    BloomFilter("seen", 100, 1e-6).add_many(range(250))
    (alert,) = tile().alerts
    assert (alert.text, alert.value) == ("seen is full", "250 %")


def test_many_filters_have_pages(kit):
    kit.client.zadd(names("bloom"), {f"f{number}": 0 for number in range(250)})
    pages = [part for part in content(page="2") if isinstance(part, Pages)]
    assert [(part.number, part.count) for part in pages] == [(2, 3)]


def test_value_of_a_model_is_looked_up_as_its_field_has_it(kit):
    index = ModelFilter(Account, "name", capacity=1000)
    index.add_many(["Zoë"])
    assert [row[1:] for row in tables(filter=index.name, value="ZOE")[0].rows] == [
        ("value of the field", "probably in it")
    ]


def test_filter_of_a_model_says_whether_it_is_asked(kit):
    index = ModelFilter(Account, capacity=1000)
    index.add_many([8])
    assert tables()[0].rows[0][-1] == "not asked: rebuild it"
    index.filter.rebuild([8])
    assert tables()[0].rows[0][-1] == "complete"


def test_check_names_full_filters(kit):
    BloomFilter("fine", 100).add_many(range(50))
    assert list(_check_full()) == []
    BloomFilter("seen", 100, 1e-6).add_many(range(250))
    (warning,) = _check_full()
    assert (warning.id, warning.msg) == (
        "redis_kit.W026",
        "The Bloom filter 'seen' has 2 layers: it holds 250 values, and its capacity is 100.",
    )
