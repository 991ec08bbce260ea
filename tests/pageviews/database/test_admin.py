"""The list of snapshots in the admin."""

from urllib.parse import urlencode

import pytest

from redis_kit.models import PageViewSnapshot
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.database.models import digest_of
from tests.dashboard.support.html import page

LIST = "/admin/redis_kit/pageviewsnapshot/"


def stored(page, key=""):
    name = PageViews(page, key or None).encoded
    encoded, _, encoded_key = name.partition(":")
    figures = {"views": 12, "visitors": 5, "bots": 1}
    return PageViewSnapshot.objects.create(
        period="day", start=periods.now().date(), digest=digest_of(name), page=encoded, key=encoded_key, **figures
    )


def test_snapshots_are_listed_and_cannot_be_changed(kit, boss):
    row = stored("a b")
    cells = [cell.words for cell in page(boss.get(LIST)).find("td")]
    assert {"12", "5", "1"} <= set(cells)
    assert any("a b" in cell.words for cell in page(boss.get(LIST)).find("th"))
    assert boss.get(f"{LIST}{row.pk}/change/").status_code == 200
    assert boss.post(f"{LIST}{row.pk}/change/", {"views": 1}).status_code == 403
    assert boss.get(f"{LIST}add/").status_code == boss.post(f"{LIST}{row.pk}/delete/").status_code == 403


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("shop:cart", 1),
        ("SHOP:C", 1),
        ("shop: 50%", 1),
        ("/posts/<int:pk>/", 1),
        ("p", 2),
        ("%3A", 0),
        ("x" * 600, 0),
        ("\ud800", 0),
        ("'\"", 0),
    ],
)
def test_snapshots_are_found_by_the_names_that_are_shown(kit, boss, term, found):
    stored("shop:cart", "50%")
    stored("/posts/<int:pk>/")
    listed = boss.get(f"{LIST}?{urlencode({'q': term}, errors='surrogatepass')}")
    assert (listed.status_code, listed.context["cl"].result_count) == (200, found)


def test_snapshots_need_the_permission_for_the_dashboard(kit, client, django_user_model):
    client.force_login(django_user_model.objects.create_user("ann", is_staff=True))
    assert client.get(LIST).status_code == 403
