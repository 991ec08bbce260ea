"""Names of pages, checked where a view is defined."""

import pytest

from redis_kit.core.errors import InvalidName
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
