import calendar
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_kit.core.errors import InvalidName, InvalidValue, RedisUnavailable
from redis_kit.pageviews import PageViews, history
from redis_kit.pageviews.pages import encoded
from redis_kit.pageviews.periods import days, now, sketches
from redis_kit.pageviews.questions.values import Overlap

TODAY = datetime.now(UTC).date()
NOON = datetime(2024, 2, 10, 12, tzinfo=UTC)


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
    day = NOON.date()
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
