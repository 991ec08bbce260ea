import asyncio
from types import SimpleNamespace

import pytest
from django.core.paginator import Paginator

from redis_kit.core.errors import InvalidName, InvalidValue, RedisUnavailable
from redis_kit.pageviews import PageViews, awith_views, with_views
from tests.app.models import User


@pytest.fixture
def users(kit, db):
    found = [User.objects.create(username=f"user {number}") for number in range(4)]
    for number, user in enumerate(found):
        for view in range(number):
            PageViews("profile", user.pk).add(f"visitor {view // 2}")
    return found


def figures(objects):
    return [(each.page_views, each.page_visitors) for each in objects]


def test_page_of_objects_is_annotated_in_one_round_trip(users, trips):
    page = Paginator(User.objects.order_by("pk"), 10).page(1)
    PageViews("profile").views()
    del trips[:]
    listed = with_views(page, "profile")
    assert len(trips) == 1
    assert listed == users
    assert figures(listed) == [(0, 0), (1, 1), (2, 1), (3, 2)]
    assert with_views(User.objects.none(), "profile") == []


@pytest.mark.django_db(transaction=True)
def test_async_twin_takes_a_queryset_and_a_list(users):
    assert figures(asyncio.run(awith_views(User.objects.order_by("pk"), "profile"))) == figures(
        asyncio.run(awith_views(users, "profile"))
    )


def test_key_is_any_attribute_or_a_function(kit):
    PageViews("article", "a-b").add("anna")
    article = SimpleNamespace(slug="a-b", pk=1)
    for key in ("slug", lambda each: each.slug):
        assert figures(with_views([article], "article", key=key)) == [(1, 1)]


def test_object_without_a_key_has_no_views(users):
    assert figures(with_views([users[3], User(), users[1]], "profile")) == [(3, 2), (0, 0), (1, 1)]
    assert figures(asyncio.run(awith_views([User()], "profile"))) == [(0, 0)]
    assert figures(with_views([SimpleNamespace(slug="")], "profile", key="slug")) == [(0, 0)]


def test_wrong_objects_are_refused(kit):
    with pytest.raises(InvalidValue, match="at most 1000"):
        with_views([SimpleNamespace(pk=1)] * 1001, "post")
    with pytest.raises(InvalidName):
        with_views([SimpleNamespace(pk=None)], "post", key=lambda each: 1.5)


def test_policy_decides_while_redis_is_unavailable(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    assert figures(with_views([SimpleNamespace(pk=1)], "post")) == [(0, 0)]
    settings.REDIS_KIT = {**settings.REDIS_KIT, "PAGEVIEWS": {"ON_FAILURE": "raise"}}
    with pytest.raises(RedisUnavailable):
        with_views([SimpleNamespace(pk=1)], "post")
