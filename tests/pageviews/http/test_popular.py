"""Most viewed objects, as a function, a tag and a view."""

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import RequestFactory

from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import PageViews, PopularView, popular

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
