"""Names of pages, checked where a view is defined."""

import pytest
from django.test import RequestFactory
from django.utils.decorators import method_decorator
from django.views import View

from redis_kit.core.errors import InvalidName
from redis_kit.core.web.page_marks import mark_of
from redis_kit.pageviews import page


@pytest.mark.parametrize(
    "name", [5, "", "(site)", ("post",), ("post", 1, 2), ("post", 1.5), ("post", None, 1), True, b"a"]
)
def test_wrong_name_is_refused_where_the_view_is_defined(name):
    with pytest.raises(InvalidName):
        page(name)


@pytest.mark.parametrize("name", ["post", ("post", 42), None, lambda request: "post"])
def test_right_name_marks_the_view(name):
    def view(request): ...

    assert page(name)(view) is view


def test_view_without_a_name_can_be_left_to_the_beacon():
    def view(request): ...

    assert page(beacon=True)(view) is view


def test_decorator_without_a_name_is_refused():
    for name in ((), (View,)):
        with pytest.raises(TypeError, match="needs a name first"):
            page(*name)

    @page
    def view(request): ...

    with pytest.raises(TypeError, match="needs a name first"):
        view(RequestFactory().get("/"))


def test_method_that_no_route_leads_to_is_refused():
    with pytest.raises(TypeError, match=r"not the method .*Article\.get: put it on the view class"):

        class Article(View):
            @page("article")
            def get(self, request): ...


def test_dispatch_of_a_view_class_may_have_a_page():
    class Article(View):
        @page("article")
        def dispatch(self, request): ...

    assert mark_of(Article.as_view()).name == "article"


def test_view_class_takes_a_page_through_method_decorator():
    @method_decorator(page("article"), name="dispatch")
    class Article(View): ...

    assert mark_of(Article.as_view()).name == "article"
