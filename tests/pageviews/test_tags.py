from datetime import timedelta

import pytest
from django.template import Context, Template

from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import PageViews
from redis_kit.pageviews.periods import now
from tests.app.models import User


def rendered(tag, **context):
    return Template("{% load redis_kit_pageviews %}{% " + tag + " %}").render(Context(context))


def test_views_and_visitors_of_a_page_and_an_object(kit):
    for visitor in ("anna", "anna", "bert"):
        PageViews("post", 7).add(visitor)
    PageViews("post", 8).add("carl", at=now() - timedelta(days=1))
    assert rendered("page_views 'post'") == "3"
    assert rendered("page_views 'post' days=2") == "4"
    assert rendered("page_views 'post' pk", pk=7) == "3"
    assert rendered("page_visitors 'post' pk days=30", pk=7) == "2"
    assert rendered("page_visitors 'post' as visitors %}{{ visitors }}{% if 1 %}{% endif") == "2"


def test_tags_show_zero_while_redis_is_unavailable(kit):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert rendered("page_views 'post'") == rendered("page_visitors 'post'") == "0"


@pytest.mark.parametrize("days", ["0", "367", "'7'", "True"])
def test_wrong_number_of_days_is_refused(kit, days):
    with pytest.raises(InvalidValue, match="days"):
        rendered(f"page_views 'post' days={days}")


def test_beacon_needs_the_request():
    with pytest.raises(ValueError, match=r"context_processors\.request"):
        rendered("page_view_beacon")


@pytest.mark.parametrize("tag", ["page_views", "page_visitors"])
def test_unsaved_object_and_missing_variable_have_no_views(kit, tag):
    PageViews("post", 7).add("anna")
    assert rendered(f"{tag} 'post' post.pk", post=User()) == "0"
    assert rendered(f"{tag} 'post' nothing.pk days=30") == rendered(f"{tag} nothing") == "0"


def test_box_without_its_queryset_is_empty(kit):
    assert "Nothing is popular yet." in rendered("popular nothing 'post'")
    assert "Nothing is popular yet." in rendered("popular users nothing", users=User.objects.all())
