"""The search box of the change list asks the index, or the database while the index can't answer."""

import pytest
from django.contrib import admin

from redis_kit.search.admin import SearchAdminMixin
from tests.app.models import Page


@pytest.fixture
def found(pages):
    class PageAdmin(SearchAdminMixin, admin.ModelAdmin):
        search_fields = ("title",)
        search_index = pages

    def found(text):
        rows, may_repeat = PageAdmin(Page, admin.site).get_search_results(None, Page.objects.order_by("pk"), text)
        return [row.title for row in rows], may_repeat

    return found


def test_box_asks_the_index(found, pages):
    for title, body in (("Redis", "a lock"), ("Other", "of redis"), ("x", "y")):
        Page.objects.create(title=title, body=body)
    assert found("redis") == (["Redis", "Other"], False)
    assert found("+redis -other") == (["Redis"], False)
    assert found(" ")[0] == ["Redis", "Other", "x"]
    pages.instance.clear()
    assert found("redis")[0] == ["Redis"]
