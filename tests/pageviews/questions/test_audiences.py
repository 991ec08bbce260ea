from datetime import UTC, datetime, timedelta

import pytest

from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.batch import ViewBatch
from redis_kit.pageviews.periods import now
from redis_kit.pageviews.tally import Event, identified

NOON = datetime(2024, 2, 10, 12, tzinfo=UTC)
DAY = NOON.date()


def seen(page, visitors, *, at=NOON):
    events = [Event(at, page, "", identified(str(visitor))) for visitor in visitors]
    for begin in range(0, len(events), 500):
        PageViews(page).run_flow(ViewBatch(events[begin : begin + 500], using="default").send())


def test_online_counts_visitors_of_the_last_five_minutes_once(kit):
    page, moment = PageViews("news"), now()
    for minutes, visitor in ((0, "anna"), (2, "anna"), (3, "ben"), (7, "cem"), (60, "dora")):
        page.add(visitor, at=moment - timedelta(minutes=minutes))
    assert page.online() == PageViews.site().online() == 2
    assert PageViews("other").online() == 0


def test_views_that_waited_are_online_if_they_are_of_the_last_minutes(kit, monkeypatch):
    end = NOON + timedelta(minutes=24, seconds=59)
    monkeypatch.setattr(periods, "now", lambda: end)
    ages = [timedelta(seconds=6 * number) for number in range(250)]
    events = [Event(end - age, "news", "", identified(f"visitor {age}")) for age in ages]
    PageViews("news").run_flow(ViewBatch(events, using="default").send())
    page = PageViews("news")
    assert page.online() == PageViews.site().online() == pytest.approx(50, abs=2)
    assert page.by_hour(DAY)[12].visitors == page.visitors(DAY, DAY) == pytest.approx(250, rel=0.05)
    # A visitor of a minute whose others are known, and a view without a visitor.
    events = [Event(end, "news", "", identified(f"visitor {timedelta(0)}")), Event(end, "news", "", "")]
    events += [Event(end - timedelta(minutes=20), "news", "", identified(f"new {number}")) for number in range(100)]
    PageViews("news").run_flow(ViewBatch(events, using="default").send())
    assert page.online() == pytest.approx(50, abs=2)
    assert page.visitors(DAY, DAY) == pytest.approx(350, rel=0.05)


def test_visitor_of_a_minute_is_in_all_longer_periods(kit):
    page = PageViews("news")
    for number in range(50):
        page.add("anna", at=NOON + timedelta(minutes=number))
        page.add(f"visitor {number}", at=NOON + timedelta(minutes=number))
    assert page.by_hour(DAY)[12].visitors == page.visitors(DAY, DAY) == 51
    assert kit.client.pfcount(page.key("visitors:2024-02")) == kit.client.pfcount(page.key("visitors:2024-W06")) == 51


@pytest.mark.parametrize("common", [0, 500, 2000])
def test_overlap_is_within_three_errors_of_the_true_number(any_kit, common):
    seen("a", range(3000))
    seen("b", range(3000 - common, 5000 - common))
    page = PageViews("a").overlap(PageViews("b"), DAY - timedelta(10), DAY)
    assert abs(page.common - common) <= 3 * page.error
    assert page.error < 80
    assert page.first == pytest.approx(3000, rel=0.025)
    assert page.second == pytest.approx(2000, rel=0.025)
    assert page.union == pytest.approx(5000 - common, rel=0.025)
    assert not any(":union" in key for key in any_kit.keys())


def test_overlap_reads_in_one_round_trip_and_writes_nothing(kit, commands):
    with commands(kit) as sent:
        PageViews("a").overlap(PageViews("b"), DAY - timedelta(10), DAY)
    assert sent == ["PFCOUNT", "PFCOUNT", "PFCOUNT", "SMEMBERS", "SMEMBERS"]


def test_overlap_says_whether_a_visitor_has_one_identity(kit):
    seen("a", range(3))
    a, b = PageViews("a"), PageViews("b")
    assert a.overlap(b, DAY, DAY).distinct
    assert not a.overlap(b, DAY - timedelta(1), DAY).distinct
    assert a.overlap(b, DAY, DAY)[:5] == (0, 0, 3, 0, 3)
