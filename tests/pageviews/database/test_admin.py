"""The list of snapshots in the admin."""

from redis_kit.models import PageViewSnapshot
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.database.models import digest_of
from tests.dashboard.support.html import page

LIST = "/admin/redis_kit/pageviewsnapshot/"


def test_snapshots_are_listed_and_cannot_be_changed(kit, boss):
    name = PageViews("a b").encoded
    figures = {"views": 12, "visitors": 5, "bots": 1}
    row = PageViewSnapshot.objects.create(
        period="day", start=periods.now().date(), digest=digest_of(name), page=name, key="", **figures
    )
    cells = [cell.words for cell in page(boss.get(LIST)).find("td")]
    assert {"12", "5", "1"} <= set(cells)
    assert any("a b" in cell.words for cell in page(boss.get(LIST)).find("th"))
    assert boss.get(f"{LIST}{row.pk}/change/").status_code == 200
    assert boss.post(f"{LIST}{row.pk}/change/", {"views": 1}).status_code == 403
    assert boss.get(f"{LIST}add/").status_code == boss.post(f"{LIST}{row.pk}/delete/").status_code == 403


def test_snapshots_need_the_permission_for_the_dashboard(kit, client, django_user_model):
    client.force_login(django_user_model.objects.create_user("ann", is_staff=True))
    assert client.get(LIST).status_code == 403
