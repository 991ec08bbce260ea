from datetime import UTC, datetime, timedelta

import pytest

from redis_kit.pageviews import PageViews

NOON = datetime(2024, 2, 10, 12, tzinfo=UTC)  # a Saturday
DAY = NOON.date()


def seen(page, visitors, *, ago=0):
    for visitor in visitors:
        page.add(visitor, at=NOON - timedelta(ago))


def test_range_is_the_union_of_its_days_and_never_the_sum(kit):
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    page = PageViews("news")
    seen(page, map(str, range(600)))
    seen(page, map(str, range(300, 900)), ago=1)
    seen(page, map(str, range(300)), ago=30)
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
        seen(page, ["anna"], ago=day)
    one, two = page.visitors(DAY, DAY), page.visitors(DAY - timedelta(1), DAY)
    assert (one.distinct, two.distinct) == (True, False)


def test_range_stays_marked_after_the_setting_changed(kit):
    page = PageViews("news")
    seen(page, ["anna"], ago=2)
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    for ago in (1, 0):
        seen(page, ["anna"], ago=ago)
    assert page.visitors(DAY - timedelta(1), DAY).distinct
    assert not page.visitors(DAY - timedelta(2), DAY).distinct
    kit.options(PAGEVIEWS={"VISITOR": "cookie"})
    seen(page, ["anna"])
    assert not page.visitors(DAY, DAY).distinct


def test_range_across_a_change_of_the_key_that_hashes_is_marked(kit):
    kit.options(PAGEVIEWS={"VISITOR": "user"})
    page = PageViews("news")
    seen(page, ["anna"], ago=1)
    kit.options(HASH_KEY="another key that has more than 32 bytes")
    seen(page, ["anna"])
    assert page.visitors(DAY, DAY).distinct
    union = page.visitors(DAY - timedelta(1), DAY)
    assert (union, union.distinct) == (2, False)


def test_error_is_that_of_a_hyperloglog(kit):
    page = PageViews("news")
    seen(page, map(str, range(1000)))
    count = page.visitors(DAY, DAY)
    assert count.error == round(count * 0.0081)
