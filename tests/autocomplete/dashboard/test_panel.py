"""The dashboard's page about autocomplete: its rows, the search, and its buttons."""

import pytest

from redis_kit.autocomplete import Autocomplete, ModelAutocomplete
from redis_kit.autocomplete.dashboard.panel import AutocompletePanel
from redis_kit.autocomplete.metrics import AutocompleteMetrics
from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.indexes import model_index
from redis_kit.core.panels import Figure, Pages, Table, Viewer
from tests.app.models import Account
from tests.fixtures.process import wait_for


@pytest.fixture(autouse=True)
def no_models(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])


def content(may=True, **asked):
    panel = AutocompletePanel()
    panel.viewer = Viewer(may=lambda permission: may, asked=asked)
    return list(panel.content())


def tables(**asked):
    return [part for part in content(**asked) if isinstance(part, Table)]


def test_indexes_are_shown_with_their_entries(kit, trips):
    assert [list(table.rows) for table in tables()] == [[]]
    Autocomplete("people").add_many((id, f"Anna {id}") for id in range(30))
    Autocomplete("places", "x", unique_ids=True).add(1, "Berlin")
    content()
    trips.clear()
    figures = {part.label: part.value for part in content() if isinstance(part, Figure)}
    assert len(trips) == 2
    assert (figures["Indexes"], figures["Entries"]) == (2, 31)
    (table,) = tables()
    assert [(row[0].lines[0], *row[1:3]) for row in table.rows] == [("people", 30, 1), ("places", 1, 1)]
    assert {row[3] for row in table.rows} == {""}  # no model has them, so none can be rebuilt
    assert table.offered == [()] * 2
    samples = flow.run(AutocompleteMetrics().read("default", 10), connections.client("default"))
    assert len(samples) == 2


def test_text_is_searched_in_a_scope(kit):
    Autocomplete("places", "x", unique_ids=True).add(1, "Berlin")
    assert tables(index="places", scope="x", text="b")[0].rows == [("Berlin", "1")]
    assert tables(index="places", text="b")[0].rows == []
    assert tables(index="no", text="b")[0].rows == []
    assert len(tables(may=False, index="places", scope="x", text="b")) == 1


def test_index_is_cleared(kit):
    Autocomplete("places", "x", unique_ids=True).add(1, "Berlin")
    assert str(AutocompletePanel().clear("places")) == "Deleted: places."
    assert Autocomplete("places").info() is None
    with pytest.raises(InvalidValue, match="places does not exist"):
        AutocompletePanel().clear("places")


@pytest.mark.django_db(transaction=True)
def test_index_of_a_model_is_rebuilt(kit):
    index = ModelAutocomplete(Account, ["name"])
    Account.objects.create(name="Anna")
    assert tables()[0].rows[0][-1] == "not asked: rebuild it"
    AutocompletePanel().rebuild(index.name)
    wait_for(lambda: index.search("an"))
    assert tables()[0].rows[0][-1] == "complete"
    assert tables(index=index.name.upper(), text="an")[0].rows[0][0] == "Anna"
    assert tables()[0].offered == [("rebuild",)]
    with pytest.raises(InvalidValue, match="No model has"):
        AutocompletePanel().rebuild("shop.product")


def test_tile_counts_entries(kit):
    def tile():
        panel = AutocompletePanel()
        replies = {using: flow.run(read, connections.client(using)) for using, read in panel.reads().items()}
        return panel.tile(replies)

    assert tile() is None
    Autocomplete("people").add(1, "Anna")
    assert [figure.value for figure in tile().figures][:2] == [1, 1]
    assert tile().alerts == []
    index = ModelAutocomplete(Account, ["name"])
    assert [alert.text for alert in tile().alerts] == [f"{index.name} does not answer"]


def test_many_indexes_have_pages(kit):
    for number in range(250):
        Autocomplete(f"f{number:03}").add(1, "Anna")
    pages = [part for part in content(page="2") if isinstance(part, Pages)]
    assert [(part.number, part.count) for part in pages] == [(2, 3)]
