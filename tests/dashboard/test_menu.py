"""The menu of the dashboard."""

import pytest
from django.utils.translation import gettext_lazy

from redis_kit.components import BUILTIN
from redis_kit.core import component
from redis_kit.core.component import Component
from redis_kit.core.panels import Panel
from redis_kit.dashboard.site import menu
from tests.fixtures.dashboard import ADMIN, findings, layout_problems

LATER = type("Later0", (Panel,), {"slug": "later", "title": "Facets"})


class Later(Component):
    group = gettext_lazy("Filters and indexes")

    def load_panels(self):
        return [LATER()]


LATER_PATHS = ["tests.dashboard.test_menu.Later"]


def groups(here="", may=lambda permission: True):
    drawn = menu(here, may=may, url=lambda name, *args: "/".join((name, *args)))
    return {group.title.text: [page.title.text for page in group.pages] for group in drawn}


def test_pages_stand_in_the_groups_of_their_components(kit):
    kit.options(EXTRA_COMPONENTS=LATER_PATHS)
    assert groups() == {
        "Overview": ["Overview"],
        "Locks and semaphores": ["Locks and semaphores"],
        "Throttles": ["Throttles"],
        "Queues": ["Queues", "Jobs", "Workers", "Tasks", "Hand-overs", "Schedule", "Workflows"],
        "Visitors": ["Page views", "Sign-ins"],
        "Filters and indexes": ["Bloom filters", "Autocomplete", "Search", "Facets"],
        "Servers": ["Keys", "Server", "Logs", "Audit log"],
        "Messages": ["Mailboxes"],
    }


def test_panels_without_a_group_stand_under_the_first_one(stock):
    assert groups()["Stock"] == ["Stock", "Mirror"]


def test_pages_that_need_a_permission_are_left_out(kit):
    allowed = groups(may=lambda permission: permission == "redis_kit.view_server")
    assert allowed["Servers"] == ["Server"]
    assert "Jobs" not in allowed["Queues"]


def test_group_of_the_present_page_is_marked(kit):
    drawn = menu("jobs", may=lambda permission: True, url=lambda *names: "")
    assert [group.title.text for group in drawn if group.current] == ["Queues"]
    assert not any(group.current for group in menu(None, may=lambda permission: True, url=lambda *names: ""))


@pytest.mark.once
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_all_pages_fit_in_one_row_and_in_one_button_on_a_phone(visit, stock, settings, monkeypatch, language):
    settings.LANGUAGE_CODE = language
    monkeypatch.setattr(component, "BUILTIN", BUILTIN)
    stock.options(EXTRA_COMPONENTS=LATER_PATHS)

    def look(page):
        shown = page.locator(".rk-menu :is(a, summary):visible")
        assert (shown.count(), len({link.bounding_box()["y"] for link in shown.all()})) == (8, 1)
        shown.nth(3).click()
        assert layout_problems(page) == []  # and makes the window narrow
        assert page.locator(".rk-menu summary:visible").count() == 1
        page.locator(".rk-menu summary:visible").click()
        assert page.locator(".rk-menu a:visible").count() == 21
        assert layout_problems(page) == []

    visit(look, start=f"{ADMIN}audit/")


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}], ids=["script", "no script"])
def test_menu_is_used_with_the_keyboard(visit, options):
    def look(page):
        page.locator(".rk-groups > li > a").last.press("Tab")
        page.keyboard.press("Enter")
        assert [each.inner_text() for each in page.locator(".rk-groups ul a:visible").all()] == ["Stock", "Mirror"]
        if not options:
            assert findings(page) == []
            page.set_viewport_size({"width": 1280, "height": 900})
            page.locator(".rk-groups summary").press("Escape")
            assert page.locator(".rk-groups ul a:visible").count() == 0
            page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/stock/")
        assert page.locator(".rk-menu [aria-current=true]").inner_text() == "Stock"

    visit(look, **options)
