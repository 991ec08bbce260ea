from datetime import timedelta

import pytest

from redis_kit.pageviews import PageViews, batch, periods
from redis_kit.pageviews.batch import ViewBatch
from redis_kit.pageviews.periods import now
from redis_kit.pageviews.tally import Event

HALF_LIFE = 6 * 3600


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(batch, "_admitted", {})


def sent(events):
    page = PageViews("any")
    assert page.run_flow(ViewBatch(events, using="default").send()) == 0


def test_top_is_that_of_a_day_a_week_or_a_month(kit):
    friday = now().replace(year=2024, month=3, day=1, hour=12)
    for ago, page in ((0, "a"), (1, "b"), (1, "b"), (4, "c"), (4, "c"), (4, "c"), (5, "d")):
        PageViews(page).add(at=friday - timedelta(ago))
    site, day = PageViews.site(), friday.date()
    assert site.top(10, day) == [("a", 1)]
    assert site.top(10, day, period="week") == [("c", 3), ("b", 2), ("a", 1)]
    assert site.top(2, day, period="week") == [("c", 3), ("b", 2)]
    assert site.top(10, day, period="month") == [("a", 1)]
    assert site.top(10, day - timedelta(1), period="month") == [("c", 3), ("b", 2), ("d", 1)]


def test_view_counts_half_after_each_half_life(kit):
    moment = now()
    ages = {"now": (0,), "old": (2 * HALF_LIFE,) * 8, "both": (0, HALF_LIFE, 3 * HALF_LIFE)}
    for page, seconds in ages.items():
        for age in seconds:
            PageViews(page).add(at=moment - timedelta(seconds=age))
    trends = dict(PageViews.site().trending())
    assert trends == pytest.approx({"old": 2, "both": 1.625, "now": 1}, rel=0.001)
    assert list(trends) == ["old", "both", "now"]


def test_order_in_which_views_of_different_age_arrive_changes_no_trend(kit):
    moment = now()
    for page, order in (("up", (5, 3, 0)), ("down", (0, 3, 5))):
        sent([Event(moment - timedelta(hours=age), page, "", "") for age in order])
    up, down = (trend.score for trend in PageViews.site().trending())
    assert up == pytest.approx(down, rel=1e-6)


def test_view_of_the_future_does_not_weigh_more_than_one_of_now(kit, monkeypatch):
    with monkeypatch.context() as clock:
        clock.setattr(periods, "now", lambda: now() + timedelta(days=300))
        PageViews("soon").add()
    ((_, score),) = PageViews.site().trending()
    assert score == pytest.approx(1, rel=0.001)


def test_very_old_views_are_not_listed(kit, monkeypatch):
    monkeypatch.setattr(periods, "TRENDING_HALF_LIFE", 60)
    PageViews("a").add(at=now() - timedelta(seconds=120))
    PageViews("b").add(at=now() - timedelta(hours=1))
    assert [name for name, _ in PageViews.site().trending()] == ["a"]


def test_list_of_trends_is_bounded(kit):
    moment = now()
    sent([Event(moment, "post", str(number), "") for number in range(1200)])
    assert kit.client.zcard(PageViews("post").key("trending")) == 1000


def test_sources_are_bounded_and_frequent_ones_are_never_missing(kit):
    moment = now()
    noise = [Event(moment, "news", "", "", f"{number}.example") for number in range(3000)]
    frequent = [Event(moment, "news", "", "", "search.example", "autumn") for _ in range(300)]
    mixed = [event for pair in zip(noise[::10], frequent, strict=True) for event in pair] + noise
    for begin in range(0, len(mixed), 500):
        sent(mixed[begin : begin + 500])
    page = PageViews("news")
    ((name, views), *_rest) = page.referrers(100)
    assert name == "search.example"
    assert 300 <= views <= 300 + len(mixed) / 100
    assert sum(views for _, views in page.referrers(100)) == len(mixed)  # the invariant of Space-Saving
    assert page.campaigns() == [("autumn", 300)]
    assert kit.client.zcard(page.key(f"referrers:{moment:%Y-%m-%d}")) == 100


def test_source_is_cut_and_any_text_is_stored_as_it_is(kit):
    page, hostile = PageViews("news"), "{a}:b\r\n\x00*" + "x" * 600
    page.add(referrer=hostile, campaign="\udcff秋")
    assert page.referrers() == [(hostile[:64], 1)]
    assert page.campaigns() == [("?秋", 1)]
