import calendar
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.core.errors import InvalidName, InvalidValue, RedisUnavailable
from redis_kit.pageviews import PageViews, batch, history, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.pageviews.counter import Overlap
from redis_kit.pageviews.pages import encoded
from redis_kit.pageviews.periods import days, now, sketches

TODAY = datetime.now(UTC).date()
NOON = datetime(2024, 2, 10, 12, tzinfo=UTC)  # a Saturday
DAY = NOON.date()
HALF_LIFE = 6 * 3600


def test_conformance(any_kit, twin):
    pages = [PageViews("news"), *(PageViews("post", number) for number in range(4))]
    for number, page in enumerate(pages):
        for visitor in range(number + 1):
            assert twin(page.add, f"visitor {visitor}")
    site, post = PageViews.site(), PageViews("post")
    assert [twin(page.views) for page in (site, post, *pages)] == [15, 14, 1, 2, 3, 4, 5]
    assert [twin(page.visitors) for page in (site, post, *pages)] == [5, 5, 1, 2, 3, 4, 5]
    assert twin(site.top) == [("post", 14), ("news", 1)]
    assert twin(post.top, 2) == [("3", 5), ("2", 4)]
    assert twin(site.by_day, TODAY - timedelta(1), TODAY) == [(TODAY - timedelta(1), 0, 0, 0), (TODAY, 15, 5, 0)]
    assert sum(hour.views for hour in twin(site.by_hour)) == 15
    assert max(hour.visitors for hour in twin(site.by_hour)) == 5
    assert twin(site.online) == 5
    assert [trend.name for trend in twin(site.trending)] == ["post", "news"]
    assert twin(page.add, "visitor 0", referrer="example.org", campaign="autumn")
    assert twin(page.referrers) == twin(site.referrers) == [("example.org", 1)]
    assert twin(page.campaigns) == twin(site.campaigns) == [("autumn", 1)]
    assert twin(post.overlap, pages[0]) == Overlap(1, error=0, first=5, second=1, union=5, distinct=True)


def test_two_thousand_visitors_are_counted_with_an_error_of_two_percent(kit):
    page = PageViews("news")
    for number in range(2000):
        page.add(f"visitor {number}", at=NOON)
        if number % 4 == 0:
            page.add(f"visitor {number}", at=NOON + timedelta(days=1))
    day = DAY
    assert page.views(day, day) == 2000
    assert page.views(day, day + timedelta(1)) == 2500
    for found in (
        page.visitors(day, day),
        page.visitors(day, day + timedelta(1)),
        page.visitors(date(2024, 2, 1), date(2024, 2, 29)),
    ):
        assert found == pytest.approx(2000, rel=0.02)
    assert page.visitors(day + timedelta(1), day + timedelta(1)) == pytest.approx(500, rel=0.02)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 800), max_size=30), st.integers(0, 800), st.integers(0, 365))
def test_ranges_equal_a_list_of_days(kit, offsets, start, length):
    page = PageViews(f"p{uuid.uuid4()}")
    first = NOON - timedelta(400)
    for offset in offsets:
        page.add(f"visitor {offset}", at=first + timedelta(offset))
    begin = (first + timedelta(start)).date()
    end = begin + timedelta(length)
    inside = [offset for offset in offsets if start <= offset <= start + length]
    assert page.views(begin, end) == len(inside)
    assert page.visitors(begin, end) == len(set(inside))
    counted = Counter(inside)
    expected = [
        (begin + timedelta(number), counted[start + number], min(1, counted[start + number]), 0)
        for number in range(length + 1)
    ]
    assert page.by_day(begin, end) == expected


def test_range_is_read_with_few_keys():
    assert sketches(days(date(2024, 1, 1), date(2024, 12, 31))) == [f"2024-{month:02}" for month in range(1, 13)]
    assert sketches(days(date(2024, 1, 31), date(2024, 3, 1))) == ["2024-02", "2024-01-31", "2024-03-01"]
    assert sketches(days(date(2024, 1, 28), date(2024, 2, 12))) == ["2024-01-28", "2024-W05", "2024-W06", "2024-02-12"]


def test_any_ninety_days_are_covered_by_at_most_16_sketches():
    most = 0
    for number in range(0, 4 * 366, 5):  # so each weekday and each day of a month begins some of them
        first = date(2024, 1, 1) + timedelta(number)
        wanted = days(first, first + timedelta(89))
        periods = sketches(wanted)
        covered = {day for period in periods for day in days_of(period)}
        assert covered == set(wanted)
        most = max(most, len(periods))
    assert most <= 16


def days_of(period):
    """Return the days of a day, an ISO week or a month."""
    if "W" in period:
        monday = date.fromisocalendar(int(period[:4]), int(period[6:]), 1)
        return [monday + timedelta(number) for number in range(7)]
    if len(period) == 10:
        return [date.fromisoformat(period)]
    year, month = map(int, period.split("-"))
    return [date(year, month, day) for day in range(1, calendar.monthrange(year, month)[1] + 1)]


def test_hours_are_in_the_sites_time_zone(kit, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    page = PageViews("news")
    page.add(at=datetime(2024, 2, 10, 15, 30, tzinfo=UTC))
    assert [hour.views for hour in page.by_hour(date(2024, 2, 11))] == [1] + [0] * 23
    assert page.views(date(2024, 2, 10), date(2024, 2, 10)) == 0
    assert now().utcoffset() == timedelta(hours=9)


def test_time_without_a_zone_is_in_the_sites_zone_without_use_tz(kit, settings):
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Tokyo"
    page = PageViews("news")
    page.add(at=datetime(2024, 2, 11, 0, 30))
    assert [hour.views for hour in page.by_hour(date(2024, 2, 11))] == [1] + [0] * 23


def test_reading_is_one_round_trip_and_adding_one_script_each(kit, commands):
    page = PageViews("post", 1)
    page.add("anna")
    for call, expected in (
        (page.visitors, ["PFCOUNT", "SMEMBERS"]),
        (page.views, ["HMGET"]),
        (page.by_hour, ["HMGET", "EVALSHA"]),
        (page.top, ["ZRANGE"]),
        (page.online, ["PFCOUNT"]),
        (page.trending, ["ZRANGE"]),
        (lambda: page.add("anna"), ["EVALSHA"] * 3),
    ):
        with commands(kit) as sent:
            call()
        assert sent == expected


def test_process_admits_the_pages_of_a_day_once_after_many_days(kit, commands, monkeypatch):
    monkeypatch.setattr("redis_kit.pageviews.batch._admitted", {})
    page = PageViews("post", 1)
    for ago in range(9):
        page.add("anna", at=now() - timedelta(ago))
    with commands(kit) as sent:
        page.add("anna", at=now() - timedelta(8))
    assert sent == ["EVALSHA"] * 3


def test_everything_expires(kit):
    PageViews("post", 1).add("anna", referrer="example.org", campaign="autumn")
    PageViews("post", 1).overlap(PageViews("post"))
    assert len(kit.keys()) > 30
    assert all(0 < kit.client.ttl(key) <= 400 * 86_400 for key in iter(kit.keys()))


@pytest.mark.parametrize(
    "call",
    [
        lambda page: page.views(TODAY, TODAY - timedelta(1)),
        lambda page: page.visitors(TODAY - timedelta(366), TODAY),
        lambda page: page.by_day(date.min, date.max),
        lambda page: page.views(datetime(2024, 1, 1, tzinfo=UTC)),
        lambda page: page.views("2024-01-01"),
        lambda page: page.by_hour(7),
        lambda page: page.top(0),
        lambda page: page.top(1001),
        lambda page: page.top(True),
        lambda page: page.top(period="year"),
        lambda page: page.trending(1001),
        lambda page: page.referrers(101),
        lambda page: page.campaigns(day="2024-01-01"),
        lambda page: page.overlap("news"),
        lambda page: page.overlap(page, TODAY, TODAY - timedelta(1)),
        lambda page: page.add(at=datetime(2024, 1, 1)),
        lambda page: page.add(at="now"),
        lambda page: page.add(at=now() + timedelta(1)),
        lambda page: page.add(at=datetime.max.replace(tzinfo=UTC)),
        lambda page: page.add(referrer=1),
        lambda page: page.add(campaign=b"autumn"),
        lambda page: PageViews("news", on_failure="clsoed"),
        lambda page: history("news"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(settings, call):
    settings.REDIS_KIT = {
        "CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}},
        "PAGEVIEWS": {"ON_FAILURE": "raise"},
    }
    with pytest.raises(InvalidValue):
        call(PageViews("news"))


def test_limit_of_a_days_pages_is_logged_once(kit, caplog):
    kit.options(PAGEVIEWS={"MAX_PAGES": 2})
    for page in ("a", "b", "c", "d"):
        PageViews(page).add()
    assert dict(PageViews.site().top()) == {"a": 1, "b": 1, "(other)": 2}
    (logged,) = [record.message for record in caplog.records if "MAX_PAGES" in record.message]
    assert logged.endswith("as MAX_PAGES allows, 2; views of further ones count under (other).")


@pytest.mark.parametrize("key", [["a"], b"a", 1.5, True, "", "x" * 600, "\ud800"])
def test_wrong_keys_are_refused(key):
    with pytest.raises(InvalidName):
        PageViews("post", key)


def test_site_is_only_counted_through_its_pages(kit):
    with pytest.raises(InvalidName):
        PageViews.site().add("anna")


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_pages_and_objects_never_share_a_name(first, second, third):
    try:
        names = [encoded(first), encoded(first, second), encoded(f"{first}:{second}"), encoded(first, third)]
    except InvalidName:
        return
    assert len(set(names)) == (3 if second == third else 4)
    assert all("{" not in name and "}" not in name for name in names)


def test_policy_decides_the_result_while_redis_is_unavailable(settings, twin):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    page = PageViews("news")
    assert (twin(page.views), twin(page.visitors), twin(page.top), twin(page.add, "anna")) == (0, 0, [], False)
    assert twin(page.by_day, TODAY, TODAY) == [(TODAY, 0, 0, 0)]
    assert twin(page.by_hour) == [(hour, 0, 0) for hour in range(24)]
    assert (twin(page.online), twin(page.trending), twin(page.referrers), twin(page.campaigns)) == (0, [], [], [])
    assert twin(page.overlap, page).common == 0
    with pytest.raises(RedisUnavailable):
        twin(PageViews("news", on_failure="raise").views)


def visit(page, visitors, *, ago=0):
    for visitor in visitors:
        page.add(visitor, at=NOON - timedelta(ago))


def test_range_is_the_union_of_its_days_and_never_the_sum(kit):
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    page = PageViews("news")
    visit(page, map(str, range(600)))
    visit(page, map(str, range(300, 900)), ago=1)
    visit(page, map(str, range(300)), ago=30)
    assert sum(day.visitors for day in page.by_day(DAY - timedelta(1), DAY)) == pytest.approx(1200, rel=0.03)
    for ago in (1, 9, 30, 89):
        union = page.visitors(DAY - timedelta(ago), DAY)
        assert union == pytest.approx(900, rel=0.02)
        assert union.distinct
    assert page.visitors(DAY, DAY) == pytest.approx(600, rel=0.02)


def test_ninety_days_of_visitors_are_at_most_24_keys_in_one_round_trip(kit, trips):
    page = PageViews("news")
    page.views()
    for number in range(31):
        del trips[:]
        page.visitors(DAY - timedelta(number + 89), DAY - timedelta(number))
        (((calls,),)) = trips
        assert sum(len(command) - 1 for command in calls) <= 24


def test_range_across_a_change_of_the_salt_is_marked(kit):
    page = PageViews("news")
    for day in (0, 1):
        visit(page, ["anna"], ago=day)
    one, two = page.visitors(DAY, DAY), page.visitors(DAY - timedelta(1), DAY)
    assert (one.distinct, two.distinct) == (True, False)


def test_range_stays_marked_after_the_setting_changed(kit):
    page = PageViews("news")
    visit(page, ["anna"], ago=2)
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    for ago in (1, 0):
        visit(page, ["anna"], ago=ago)
    assert page.visitors(DAY - timedelta(1), DAY).distinct
    assert not page.visitors(DAY - timedelta(2), DAY).distinct
    kit.options(PAGEVIEWS={"VISITOR": "cookie"})
    visit(page, ["anna"])
    assert not page.visitors(DAY, DAY).distinct


def test_range_across_a_change_of_the_key_that_hashes_is_marked(kit):
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    page = PageViews("news")
    visit(page, ["anna"], ago=1)
    kit.options(HASH_KEY="another key that has more than 32 bytes")
    visit(page, ["anna"])
    assert page.visitors(DAY, DAY).distinct
    union = page.visitors(DAY - timedelta(1), DAY)
    assert (union, union.distinct) == (2, False)


def test_error_is_that_of_a_hyperloglog(kit):
    page = PageViews("news")
    visit(page, map(str, range(1000)))
    count = page.visitors(DAY, DAY)
    assert count.error == round(count * 0.0081)


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


@pytest.fixture(autouse=True)
def fresh():
    batch._admitted.clear()


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
