"""The dashboard in an admin site of the project's own, in place of Django's."""

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.urls import path

from redis_kit.dashboard.collect import panels
from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard
from tests.dashboard.support.html import said, whole_page

site = AdminSite(name="backoffice")
site.register(Dashboard, DashboardAdmin)
urlpatterns = [path("office/", site.urls)]
OFFICE = "/office/redis_kit/dashboard/"
pytestmark = pytest.mark.urls(__name__)


def test_pages_link_only_within_their_site(kit, boss):
    for url in [OFFICE, *(f"{OFFICE}{panel.slug}/" for panel in panels())]:
        response = boss.get(url)
        assert response.status_code == 200, url
        links = [link.attributes["href"] for link in whole_page(response).find("a") if link.attributes.get("href")]
        assert all(link == "/" or link.startswith(("/office/", "#", "?")) for link in links), (url, links)


def test_button_leads_back_and_its_log_entry_to_the_panel(stock, boss):
    response = boss.post(f"{OFFICE}stock/do/sell/", {"row": "bolt"})
    assert (response.status_code, response.url) == (302, f"{OFFICE}stock/")
    assert said(response) == ["bolt: 2 are left."]
    assert LogEntry.objects.get().object_id == "stock"
    assert boss.post(f"{OFFICE}stock/do/clear/", {"row": "bolt"}).status_code == 200
