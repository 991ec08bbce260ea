"""Most viewed objects, as a function, a tag and a view, and the views of many objects."""

import asyncio
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.core.paginator import Paginator
from django.template import Context, Template
from django.test import RequestFactory

from redis_kit.core.errors import InvalidName, InvalidValue, RedisUnavailable
from redis_kit.pageviews import PageViews, PopularView, awith_views, popular, with_views
from tests.app.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def groups(kit):
    """Groups whose pages have one, two and three views, and keys that are no group."""
    made = [Group.objects.create(name=f"<group {number}>") for number in range(4)]
    for views, group in enumerate(made):
        for _ in range(views):
            PageViews("group", group.pk).add()
            PageViews("name", group.name).add()
    for key in ("(other)", "not a number", 999_999):
        PageViews("group", key).add()
    return made


def names(objects):
    return [(each.name, each.page_views) for each in objects]


def test_most_viewed_objects_come_first(groups, trips, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert names(popular(Group.objects.all(), "group", 2)) == [("<group 3>", 3), ("<group 2>", 2)]
    assert len(trips) == 1
    assert names(popular(Group.objects.exclude(name="<group 3>"), "group")) == [("<group 2>", 2), ("<group 1>", 1)]
    assert names(popular(Group.objects.all(), "name", 1, key="name", by="month")) == [("<group 3>", 3)]
    assert names(popular(Group.objects.all(), "group", by="now")) == [(f"<group {n}>", None) for n in (3, 2, 1)]
    assert popular(Group.objects.all(), "nothing") == []


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 101}, {"n": True}, {"n": "5"}, {"by": "year"}])
def test_wrong_arguments_are_refused(kit, wrong):
    with pytest.raises(InvalidValue):
        popular(Group.objects.all(), "group", **wrong)
    with pytest.raises(InvalidValue, match="queryset must be a QuerySet, not list"):
        popular([], "group")


def test_nothing_is_popular_while_redis_is_unavailable(kit):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert popular(Group.objects.all(), "group") == []


def test_tag_shows_links_with_escaped_names(groups, monkeypatch):
    monkeypatch.setattr(Group, "get_absolute_url", lambda group: f"/groups/{group.pk}/", raising=False)
    template = Template("{% load redis_kit_pageviews %}{% popular groups 'group' 2 %}")
    html = template.render(Context({"groups": Group.objects.all()}))
    assert f'<a href="/groups/{groups[3].pk}/">&lt;group 3&gt;</a> <span class="rk-views">3 views</span>' in html
    assert html.count("<li>") == 2
    assert "Nothing is popular yet." in template.render(Context({"groups": Group.objects.none()}))


def test_view_answers_with_a_box_that_may_be_cached(groups):
    view = PopularView.as_view(model=Group, page="group", by="now")
    response = view(RequestFactory().get("/")).render()
    assert {*response["Cache-Control"].split(", ")} == {"max-age=60", "public"}
    assert [line.strip() for line in response.content.decode().splitlines() if "group" in line] == [
        f"<li>&lt;group {number}&gt;</li>" for number in (3, 2, 1)
    ]
    with pytest.raises(ImproperlyConfigured, match="needs page"):
        PopularView.as_view(model=Group)(RequestFactory().get("/"))


def test_box_of_an_outage_is_not_cached(kit):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    for by in ("now", "week"):
        response = PopularView.as_view(model=Group, page="group", by=by)(RequestFactory().get("/")).render()
        assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
        assert "Nothing is popular yet." in response.content.decode()


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
