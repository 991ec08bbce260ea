"""The dashboard's page about filters: its rows, the look-up, and its buttons."""

from datetime import timedelta

import pytest

from redis_kit.bloom import BloomFilter, ModelFilter
from redis_kit.bloom.component import _check_full
from redis_kit.bloom.dashboard.panel import BloomPanel
from redis_kit.bloom.metrics import BloomMetrics
from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidValue
from redis_kit.core.indexes import inventory, model_index
from redis_kit.core.indexes.model_index import indexes
from redis_kit.core.panels import Figure, Meter, Pages, Table, Viewer
from tests.app.models import Account
from tests.fixtures.dashboard import ADMIN, visited
from tests.fixtures.process import wait_for

CUT = """() => [...document.querySelectorAll(".rk-scroll, tbody td, tbody th")].filter((part) => {
  const range = document.createRange();
  range.selectNodeContents(part);
  const right = Math.max(...[...range.getClientRects()].map((box) => box.right));
  return right > part.getBoundingClientRect().right + 1;
}).map((part) => part.textContent)"""


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
    trips.clear()
    figures = {part.label: part.value for part in content() if isinstance(part, Figure)}
    assert len(trips) == 2
    assert (figures["Bloom filters"], figures["Values"]) == (2, 251)
    (table,) = tables()
    old, new = table.rows
    assert (new[0].lines, new[1]) == (("new", ""), Meter(1, 1000))
    assert (new[2].lines, new[-1]) == ((1, "", ""), "")
    assert old[1] == Meter(250, 100)
    assert old[2].lines == (2, "2.5 times its capacity: give it a larger one", "")
    assert table.offered == [()] * 2


def test_value_is_looked_up_in_all_that_it_may_stand_for(kit):
    BloomFilter("seen", 100, 1e-6).add(42)
    answers = {row[1]: row[2] for row in tables(filter="seen", value="42")[0].rows}
    assert answers == {"text": "surely not in it", "whole number": "probably in it"}
    identity = "12345678-1234-5678-1234-567812345678"
    assert [row[1] for row in tables(filter="seen", value=identity)[0].rows] == ["text", "UUID"]
    assert tables(filter="no", value="42")[0].rows == []


def test_filter_is_cleared(kit):
    BloomFilter("seen", 100, 1e-6).add_many(range(5))
    panel = BloomPanel()
    clear = panel.actions()["clear"]
    assert str(panel.effect_of(clear, "seen")) == "5 entries are deleted."
    assert str(panel.clear("seen")) == "Deleted: seen."
    assert BloomFilter("seen", 100, 1e-6).info() is None
    for call in (panel.clear, lambda name: panel.effect_of(clear, name)):
        with pytest.raises(InvalidValue, match="seen does not exist"):
            call("seen")


@pytest.mark.django_db(transaction=True)
def test_filter_of_a_model_is_rebuilt(kit, monkeypatch):
    index = ModelFilter(Account, capacity=1000)
    monkeypatch.setattr(index, "read_values", lambda: [7])
    index.add_many([8])
    assert tables()[0].offered == [("rebuild",)]
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
    assert (alert.text, alert.hint) == ("seen is full", "2.5 times its capacity: give it a larger one")


def test_tile_warns_of_filters_of_models_that_are_not_asked(kit):
    def texts():
        reads = BloomPanel().reads()
        return [alert.text for alert in BloomPanel().tile({"default": run(reads["default"])}).alerts]

    def run(read):
        return flow.run(read, connections.client())

    index = ModelFilter(Account, capacity=1000)
    BloomFilter("seen", 100).add(1)
    assert texts() == [f"{index.name} does not answer"]
    index.filter.rebuild([8])
    assert texts() == []
    index.distrust()
    assert texts() == [f"{index.name} does not answer"]


def test_many_filters_have_pages_and_all_count(kit):
    for number in range(120):
        BloomFilter(f"f{number}", 1000).add(1)
    BloomFilter("z full", 1, 0.5).add_many(range(300))
    ModelFilter(Account, "name").add_many(["a"])
    found = content(page="2")
    assert [(part.number, part.count) for part in found if isinstance(part, Pages)] == [(2, 2)]
    figures = {part.label: part.value for part in found if isinstance(part, Figure)}
    assert (figures["Bloom filters"], figures["Values"] > 121 + 200) == (122, True)
    rows = tables()[0].rows
    assert [row[0].lines[0] for row in rows[:2]] == ["z full", indexes(ModelFilter)[0].name]


def test_of_very_many_filters_the_first_thousand_are_read(kit, monkeypatch):
    monkeypatch.setattr(inventory, "MOST", 3)
    for number in range(5):
        BloomFilter(f"f{number}", 1000).add(1)
    figure = content()[0]
    assert (figure.value, figure.hint) == (5, "3 were read")


def test_filters_of_all_connections_are_shown(kit, make_server):
    second = make_server()
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "second": second.connection})
    BloomFilter("both", 100).add(1)
    BloomFilter("both", 100, using="second").add_many(range(250))
    assert [row[0].lines for row in tables()[0].rows] == [("both", "second"), ("both", "default")]
    assert [row[2] for row in tables(filter="both", value="240")[0].rows] == ["surely not in it"] * 2 + [
        "surely not in it",
        "probably in it",
    ]
    (warning,) = _check_full()
    assert "'both'" in warning.msg
    assert set(BloomPanel().reads()) == {"default", "second"}
    samples = [
        (using, sample.value)
        for using in ("default", "second")
        for sample in flow.run(BloomMetrics().read(using, 10), connections.client(using))
        if sample.metric.name.endswith("items")
    ]
    assert samples == [("default", 1), ("second", 250)]
    assert tables()[0].values == ["second/both", "default/both"]
    with pytest.raises(InvalidValue, match="several connections: default, second"):
        BloomPanel().clear("both")
    assert str(BloomPanel().clear("second/both")) == "Deleted: both."
    assert [row[0].lines for row in tables()[0].rows] == [("both", "default")]


def test_several_filters_are_cleared_whatever_their_names_are(kit):
    for name in ("a/b", "c\n", "d"):
        BloomFilter(name, 100).add_many(range(5))
    panel, value = BloomPanel(), "\n".join(tables()[0].values)
    assert str(panel.effect_of(panel.actions()["clear"], value)) == "15 entries are deleted."
    panel.clear(value)
    assert tables()[0].rows == []


def test_window_is_shown(kit):
    BloomFilter("week", 100, window=timedelta(days=7)).add(1)
    assert tables()[0].rows[0][2].lines == (1, "", "window of 7 d")
    assert [row[-1] for row in tables(filter="week", value="1")[0].rows] == ["surely not in it", "probably in it"]


def test_value_of_a_model_is_looked_up_as_its_field_has_it(kit):
    index = ModelFilter(Account, "name", capacity=1000)
    index.add_many(["Zoë"])
    for name in (index.name, index.name.upper()):
        assert [row[1:] for row in tables(filter=name, value="ZOE")[0].rows] == [
            ("value of the field", "probably in it")
        ]


def test_filter_of_a_model_says_whether_it_is_asked(kit, monkeypatch):
    index = ModelFilter(Account, capacity=1000)
    table = tables()[0]
    assert (table.rows[0][-1], table.offered) == ("not built: rebuild it", [("rebuild",)])
    index.add_many([8])
    assert tables()[0].rows[0][-1] == "not asked: rebuild it"
    index.filter.rebuild([8])
    assert tables()[0].rows[0][-1] == "complete"
    monkeypatch.setattr(model_index, "_indexes", [])  # as after a release without it
    assert tables()[0].rows[0][-1] == ""
    assert [row[-1] for row in tables(filter=index.name, value="8")[0].rows] == ["surely not in it", "probably in it"]


def test_check_names_full_filters(kit):
    BloomFilter("fine", 100).add_many(range(50))
    assert list(_check_full()) == []
    BloomFilter("seen", 100, 1e-6).add_many(range(250))
    (warning,) = _check_full()
    assert (warning.id, warning.msg) == (
        "redis_kit.W026",
        "The Bloom filter 'seen' has 2 layers: it holds 250 values, and its capacity is 100.",
    )


@pytest.mark.once
def test_nothing_is_cut_on_the_page(transactional_db, chromium, site, kit, boss, make_server):
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "second": make_server().connection})
    BloomFilter("n1509020894196895465", 10).add_many(range(5))
    BloomFilter("newsletter", 10_000_000, 1e-6).add_many(range(10_017))
    ModelFilter(Account, capacity=10_000).add_many(range(20_000))
    session = {"name": "sessionid", "value": boss.cookies["sessionid"].value, "url": site.url}

    def body(browser):
        with visited(browser, site.url, session) as (tab, problems):
            tab.goto(f"{ADMIN}filters/")
            for width in (1280, 800, 390):
                tab.set_viewport_size({"width": width, "height": 900})
                problems += [f"{width} px: {text}" for text in tab.evaluate(CUT)]
        return problems

    assert chromium(body) == []
