import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.panels import Bars, Figure, Table
from redis_kit.pageviews import PageViews
from redis_kit.pageviews.dashboard.panel import PageViewsPanel


def test_panel_shows_the_day_in_three_round_trips(kit, trips):
    for number in range(5):
        PageViews("post", number).add(f"visitor {number % 2}")
    PageViews("front").add("visitor 0")
    del trips[:]
    views, visitors, hours, top = PageViewsPanel().content()
    assert len(trips) == 3
    assert [type(one) for one in (views, visitors, hours, top)] == [Figure, Figure, Bars, Table]
    assert (views.value, visitors.value) == (6, 2)
    assert len(hours.bars) == 24
    assert sum(value for _, value in hours.bars) == 6
    assert top.rows == [("post", 5), ("front", 1)]


def test_panel_does_not_show_zeros_while_redis_is_unavailable(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    with pytest.raises(RedisUnavailable):
        list(PageViewsPanel().content())
