import asyncio
from datetime import UTC, date, datetime, timedelta
from urllib.parse import unquote

import pytest

from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.pageviews import PageViews, ahistory, asnapshot, history, periods, snapshot
from redis_kit.pageviews.batch import Event, ViewBatch
from redis_kit.pageviews.database import snapshots
from redis_kit.pageviews.database.models import PageViewSnapshot
from redis_kit.pageviews.database.snapshots import SnapshotResult, closed_periods

pytestmark = pytest.mark.django_db
TODAY = datetime.now(UTC).date()
YESTERDAY = TODAY - timedelta(1)


def viewed(page, key=None, *, ago=1, visitors=("anna",)):
    for visitor in visitors:
        PageViews(page, key).add(visitor, at=periods.now() - timedelta(ago))


def rows(period="day"):
    found = PageViewSnapshot.objects.filter(period=period)
    return {(unquote(row.page), unquote(row.key), row.start): (row.views, row.visitors, row.bots) for row in found}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("take", [snapshot, lambda: asyncio.run(asnapshot())], ids=["sync", "async"])
def test_days_that_are_over_are_copied_with_all_pages_and_objects(kit, take):
    viewed("post", "a/b{c}", visitors=("anna", "ben", "anna"))
    viewed("news", ago=2)
    viewed("news", ago=0)
    PageViews("any").run_flow(
        ViewBatch([Event(periods.now() - timedelta(1), "post", "", "", bot=True)], using="default").send()
    )
    result = take()
    assert rows() == {
        ("(site)", "", YESTERDAY): (3, 2, 1),
        ("post", "", YESTERDAY): (3, 2, 1),
        ("post", "a/b{c}", YESTERDAY): (3, 2, 0),
        ("(site)", "", TODAY - timedelta(2)): (1, 1, 0),
        ("news", "", TODAY - timedelta(2)): (1, 1, 0),
    }
    assert result.created == PageViewSnapshot.objects.count()


def test_repeated_snapshot_changes_nothing_and_late_views_are_added(kit):
    viewed("news")
    first = snapshot(days=1)
    assert snapshot(days=1) == SnapshotResult(0, 0, first.created)
    viewed("news", visitors=("ben",))
    assert snapshot(days=1).updated == first.created
    assert rows()["news", "", YESTERDAY] == (2, 2, 0)


def test_snapshot_after_redis_was_wiped_lowers_nothing(kit):
    viewed("news", visitors=("anna", "ben"))
    snapshot(days=1)
    before = rows()
    kit.client.delete(*kit.keys())
    snapshot(days=1)
    viewed("news")
    snapshot(days=1)
    assert rows() == before


def test_history_is_there_after_redis_was_wiped(kit, twin):
    viewed("news", visitors=("anna", "ben"))
    viewed("news", ago=2)
    snapshot()
    page = PageViews("news")
    whole = page.by_day(TODAY - timedelta(3), TODAY)
    assert history(page, TODAY - timedelta(3), TODAY) == whole
    kit.client.delete(*kit.keys())
    viewed("news", ago=0)
    assert [tuple(day[1:]) for day in history(page, TODAY - timedelta(3), TODAY)] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 2, 0),
        (1, 1, 0),
    ]


@pytest.mark.django_db(transaction=True)
def test_async_history_is_the_same(kit):
    page = PageViews("news")
    viewed("news")
    snapshot()
    kit.client.delete(*kit.keys())
    assert asyncio.run(ahistory(page, YESTERDAY, TODAY)) == history(page, YESTERDAY, TODAY)
    assert history(page, YESTERDAY, YESTERDAY)[0].views == 1


def test_snapshot_of_more_names_than_a_chunk_has_them_all(kit, monkeypatch):
    monkeypatch.setattr(snapshots, "CHUNK", 7)
    moment = periods.now() - timedelta(1)
    events = [Event(moment, f"page {number}", "", "") for number in range(20)]
    events += [Event(moment, "post", str(number), "") for number in range(30)]
    PageViews("any").run_flow(ViewBatch(events, using="default").send())
    snapshot(days=1)
    assert len(rows()) == 1 + 20 + 1 + 30
    assert sum(views for (page, key, _), (views, *_) in rows().items() if key) == 30


def test_weeks_and_months_are_closed_after_their_last_day():
    closed = [(period.kind, period.name) for period in closed_periods(date(2024, 4, 2), 3)]
    assert closed == [
        ("day", "2024-04-01"),
        ("day", "2024-03-31"),
        ("week", "2024-W13"),
        ("month", "2024-03"),
        ("day", "2024-03-30"),
    ]


def test_weeks_and_months_have_unions_of_visitors(kit, monkeypatch):
    first = datetime(2024, 4, 1, tzinfo=UTC)
    monkeypatch.setattr(periods, "now", lambda: first)
    for ago in range(1, 8):
        PageViews("news").add("anna", at=first - timedelta(ago))
    snapshot(days=1)
    assert rows("week")["news", "", date(2024, 3, 25)] == rows("month")["news", "", date(2024, 3, 1)] == (7, 1, 0)


def distinct():
    return {row.period: row.distinct for row in PageViewSnapshot.objects.filter(page="news")}


def test_snapshot_says_whether_a_visitor_may_count_more_than_once(kit, monkeypatch):
    first = datetime(2024, 4, 1, tzinfo=UTC)
    monkeypatch.setattr(periods, "now", lambda: first)
    for ago in range(1, 8):
        PageViews("news").add(f"day {ago}, anna", at=first - timedelta(ago))
    assert kit.client.smembers(PageViews.site().key("identities:2024-03"))
    snapshot(days=1)
    assert distinct() == {"day": True, "week": False, "month": False}
    kit.options(PAGEVIEWS={"VISITOR": "session"})  # the days say that they were counted under the setting before
    assert snapshot(days=1).updated == 0
    assert distinct() == {"day": True, "week": False, "month": False}
    PageViews("news").add("ben", at=first - timedelta(1))
    snapshot(days=1)
    assert distinct() == {"day": False, "week": False, "month": False}
    kit.client.delete(*kit.keys())
    snapshot(days=1)
    assert distinct() == {"day": False, "week": False, "month": False}


def test_week_of_sessions_is_distinct_and_an_older_row_gets_its_mark(kit, monkeypatch):
    kit.options(PAGEVIEWS={"VISITOR": "session"})
    first = datetime(2024, 4, 1, tzinfo=UTC)
    monkeypatch.setattr(periods, "now", lambda: first)
    PageViews("news").add("anna", at=first - timedelta(1))
    snapshot(days=1)
    assert distinct() == {"day": True, "week": True, "month": True}
    PageViewSnapshot.objects.update(distinct=False)
    snapshot(days=1)
    assert distinct() == {"day": True, "week": True, "month": True}


@pytest.mark.parametrize("days", [0, 401, True, "3", 1.0])
def test_wrong_number_of_days_is_refused(days):
    with pytest.raises(InvalidValue, match="1 to 400"):
        snapshot(days=days)


def test_snapshot_raises_while_redis_is_unavailable(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    with pytest.raises(RedisUnavailable):
        snapshot()
    assert not PageViewSnapshot.objects.exists()
