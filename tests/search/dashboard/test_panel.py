"""The dashboard's page about search: its rows, its lists of queries, and its buttons."""

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.indexes import model_index
from redis_kit.core.panels import Figure, Pages, Table, Viewer
from redis_kit.search import engine
from redis_kit.search.dashboard.panel import SearchPanel
from redis_kit.search.store import SearchStore
from tests.app.models import Page
from tests.fixtures.process import wait_for


def content(**asked):
    panel = SearchPanel()
    panel.viewer = Viewer(asked=asked)
    return list(panel.content())


def tables():
    return [part for part in content() if isinstance(part, Table)]


def test_indexes_and_queries_are_shown_in_two_round_trips_at_most(pages, trips, monkeypatch):
    Page.objects.create(title="a b", tags=["c"])
    pages.search("nothing")
    monkeypatch.setattr(engine, "SLOW", 0.0)
    pages.search("token=abc a")
    pages.search("a")
    trips.clear()
    figures = {part.label: part.value for part in content() if isinstance(part, Figure)}
    assert len(trips) <= 2
    assert (figures["Indexes"], figures["Documents"]) == (1, 1)
    indexes, slow, empty = tables()
    ((name, documents, words, _memory, rebuilt, searches, state),) = indexes.rows
    assert (name.lines[0], documents, words) == ("app.PageIndex", 1, 5)
    assert rebuilt is not None
    assert searches.lines == (3, "1 without a result", "1 slow")
    assert state.lines[0] == "complete"
    assert [row[:2] for row in empty.rows] == [("nothing", "app.PageIndex")]
    assert slow.rows[0][0].endswith("token=*** a")


def test_index_without_a_class_can_only_be_cleared(pages, kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    table = tables()[0]
    assert (table.rows[0][-1].lines[0], table.offered) == ("no class has it", [()])
    panel = SearchPanel()
    assert str(panel.effect_of(panel.actions()["clear"], "app.PageIndex")) == "0 entries are deleted."
    assert panel.clear("app.PageIndex") == "Deleted: app.PageIndex."
    assert tables()[0].rows == []


def test_rebuild_runs_in_a_thread(pages):
    Page.objects.bulk_create([Page(title="quiet")])
    SearchPanel().rebuild("app.PageIndex")
    wait_for(lambda: pages.search("quiet").total == 1)


def test_index_that_is_not_built_and_a_restarted_server_are_alerts(own_kit, page_index):
    panel = SearchPanel()

    def tile():
        return panel.tile({"default": flow.run(panel.reads()["default"], connections.client())})

    assert [str(alert.text) for alert in tile().alerts] == ["app.PageIndex is not built"]
    page_index.instance.rebuild()
    assert tile().alerts == []
    connections.client().call("HDEL", page_index.instance.store.key("state"), "complete")
    assert [str(alert.text) for alert in tile().alerts] == ["app.PageIndex may miss changes"]


@pytest.mark.django_db
def test_many_indexes_are_on_several_pages(kit):
    for number in range(101):
        store = SearchStore(f"app.Index{number:03}", "a:Text")
        store.run_flow(store.generations.rotate(store.generations.shape))
    shown = content(page="2")
    assert [part.number for part in shown if isinstance(part, Pages)] == [2]
    assert [row[0].lines[0] for row in next(part for part in shown if isinstance(part, Table)).rows] == ["app.Index100"]
