from datetime import timedelta

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.panels import Figure, HeatMap, LineChart, Viewer
from redis_kit.pageviews import PageViews, batch, periods, snapshot
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.pageviews.dashboard.panel import DAYS, PageViewsPanel

pytestmark = pytest.mark.django_db
PAGES = ("post", "front")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(batch, "_admitted", {})


@pytest.fixture
def viewed(kit):
    """Views of today, of yesterday and of the period before, and a request of a bot."""
    moment = periods.now()
    events = [Event(moment, "post", str(n), identified(f"v{n % 2}"), "search.example", "autumn") for n in range(5)]
    events += [Event(moment, "front", "", identified("v0")), Event(moment, "front", "", "", bot=True)]
    events += [Event(moment - timedelta(ago), "post", "1", identified("v1")) for ago in (1, DAYS)]
    PageViews("any").run_flow(ViewBatch(events, using="default").send())
    return kit


def shown(**asked):
    """Return the content for a search: figures by label, other content by title, and links by name."""
    panel = PageViewsPanel()
    panel.viewer = Viewer(asked=asked)
    content = list(panel.content())
    figures = {}
    for one in content:
        if isinstance(one, Figure):
            figures.setdefault(str(one.label), []).append(one)
    return figures, {str(one.title): one for one in content if not isinstance(one, Figure)}


def names(table):
    return [(getattr(row[0], "value", row[0]), row[1]) for row in table.rows]


def test_site_is_read_in_one_round_trip(viewed, trips):
    PageViews.site().by_day()
    del trips[:]
    figures, items = shown()
    assert len(trips) == 1
    assert [figures[label][0].value for label in ("Views today", "Unique visitors today", "Visitors online")] == [
        6,
        2,
        2,
    ]
    assert figures[f"Views in {DAYS} days"][0].value == 7
    assert figures[f"Views in {DAYS} days"][0].hint == f"+600 % to the {DAYS} days before"
    assert "once for each day" in figures[f"Visitors in {DAYS} days"][0].hint
    assert (figures["Requests of bots"][0].value, figures["Requests of bots"][0].hint[:8]) == ("12 %", "1 of 8 r")
    assert names(items["Top pages today"]) == [("post", 5), ("front", 1)]
    assert names(items["Trending now"])[0][0] == "post"
    assert items["Referrers today"].rows == [("search.example", 5)]
    assert items["Campaigns today"].rows == [("autumn", 5)]


def test_charts_have_the_days_before_beside_the_last_days(viewed):
    _, items = shown()
    chart = items["Views by day"]
    assert isinstance(chart, LineChart)
    (_, last), (_, before) = chart.lines
    assert (len(chart.labels), last[-2:], before[-1], sum(last), sum(before)) == (DAYS, [1, 6], 1, 7, 1)
    visitors = items["Unique visitors by day"].lines[0][1]
    assert visitors[-2:] == [1, 2]


def test_heat_map_adds_up_the_views_of_a_weekday_and_hour(viewed):
    _, items = shown()
    (heat_map,) = [one for one in items.values() if isinstance(one, HeatMap)]
    now = periods.now()
    cells = {(cell.row, cell.column): cell.value for cell in heat_map.cells}
    assert (len(cells), sum(cells.values())) == (168, 7)
    assert cells[now.isoweekday() % 7, now.hour] == 6  # weeks begin on Sunday
    viewed.options(PAGEVIEWS={"HOUR_RETENTION": 40 * 86_400})
    assert any("in 28 days" in title for title in shown()[1])


def test_page_and_object_have_their_own_page(viewed):
    figures, items = shown(page="post")
    assert figures["Views today"][0].value == 5
    assert sorted(names(items["Top objects today"])) == [(str(number), 1) for number in range(5)]
    link = items["Top objects today"].rows[0][0]
    assert (link.slug, set(link.asked)) == ("pageviews", {"page", "key"})
    figures, items = shown(page="post", key="1")
    assert figures["Views in 28 days"][0].value == 2
    assert "Top objects today" not in items


def test_two_pages_are_compared_in_one_round_trip(viewed, trips):
    shown(page="post", other="front")  # the server has the scripts from now on
    del trips[:]
    figures, items = shown(page="post", other="front")
    assert len(trips) == 1
    (common,) = figures["Common visitors in 28 days"]
    assert common.value == "1 ± 0"
    assert common.hint.startswith("Each day has its own identities")
    assert [figure.hint for figure in figures["Views in 28 days"]] == ["post", "front"]
    assert [name for name, _ in items["Views by day"].lines] == ["post", "front"]


def test_charts_are_there_after_redis_was_wiped(viewed):
    snapshot(days=DAYS + 1)
    viewed.client.delete(*viewed.keys())
    _, items = shown()
    (_, last), (_, before) = items["Views by day"].lines
    assert (last[-2:], before[-1]) == ([1, 0], 1)


@pytest.mark.parametrize("mode", ["daily_salt", "session"])
def test_visitors_of_days_that_only_the_database_has(kit, mode):
    kit.options(PAGEVIEWS={"VISITOR": mode})
    moment = periods.now()
    events = [
        Event(moment - timedelta(ago), page, "", identified(f"{ago if mode == 'daily_salt' else ''} anna"))
        for ago in range(DAYS + 2)
        for page in PAGES
    ]
    PageViews("any").run_flow(ViewBatch(events, using="default").send())
    snapshot(days=2 * DAYS)
    lost = f"visitors:{(moment - timedelta(2)).date()}"
    kit.client.delete(PageViews.site().key(lost), *[PageViews(page).key(lost) for page in PAGES])
    (figure,) = shown()[0]["Visitors in 28 days"]
    figures, _ = shown(page="post", other="front")
    (common,) = figures["Common visitors in 28 days"]
    if mode == "daily_salt":
        assert (figure.value, figure.hint[:34]) == (DAYS, "A visitor counts once for each day")
        assert [one.value for one in figures["Visitors in 28 days"]] == [DAYS, DAYS]
    else:
        assert (figure.value, figure.hint) == (None, "Redis no longer has all of these days.")
        assert [one.value for one in figures["Visitors in 28 days"]] == [None, None]
    assert (common.value, common.hint) == (None, "Redis no longer has all of these days.")
    kit.client.delete(*kit.keys())
    assert shown()[0]["Visitors in 28 days"][0].value == (DAYS - 1 if mode == "daily_salt" else None)


def test_numbers_of_captions_are_grouped(kit):
    moment = periods.now()
    events = [Event(moment, "post", "", identified("anna"))] * 1_500 + [Event(moment, "post", "", "", bot=True)] * 1_200
    events += [Event(moment - timedelta(DAYS), "post", "", identified("anna"))]
    PageViews("any").run_flow(ViewBatch(events, using="default").send())
    PageViews.site().run_flow(batch.dropped_today(1_300))
    figures, _ = shown()
    assert figures["Views in 28 days"][0].hint == "+149,900 % to the 28 days before"
    assert figures["Requests of bots"][0].hint == "1,200 of 2,700 requests in 28 days"
    assert figures["Dropped views in 28 days"][0].hint.startswith("1,300 of them today.")
    panel = PageViewsPanel()
    (reads,) = panel.reads().values()
    tile = panel.tile({"default": PageViews.site().run_flow(reads)})
    assert tile.trend.value == "1,500 views in 24 hours"


def test_wrong_name_is_told_and_an_unknown_page_is_empty(kit):
    figures, items = shown(page="x" * 600)
    assert (figures, "at most 512" in items["Page views"].empty) == ({}, True)
    figures, items = shown(page="nothing")
    assert figures["Views today"][0].value == 0
    assert items["Top objects today"].empty == "No views today."


def test_panel_does_not_show_zeros_while_redis_is_unavailable(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    with pytest.raises(RedisUnavailable):
        shown()


def test_dropped_views_of_all_processes_are_on_the_page_of_the_site(viewed):
    figures, _ = shown()
    assert "Dropped views in 28 days" not in figures
    PageViews.site().run_flow(batch.dropped_today(5))
    (figure,) = shown()[0]["Dropped views in 28 days"]
    assert (figure.value, figure.alarm) == (5, True)
    assert "Dropped views in 28 days" not in shown(page="post")[0]
