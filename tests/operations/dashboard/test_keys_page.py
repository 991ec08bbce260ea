"""The page about keys."""

import pytest
from django.utils import translation

from tests.dashboard.support.attacks import SAMPLE, harmless_links
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN, layout_problems, visited

PAGE = f"{ADMIN}keys/"


def rows(found):
    return [one.words for one in found.find("th", scope="row")]


def test_components_link_to_their_keys(filled, boss, trips):
    boss.get(PAGE)
    trips.clear()
    found = page(boss.get(PAGE))
    assert len(trips) == 2
    assert rows(found) == ["other programs", "Queues", "Locks and semaphores"]
    assert len(rows(page(boss.get(PAGE, {"component": "locks"})))) == 2


def test_components_have_the_titles_of_the_menu_in_each_language(filled, boss):
    filled.client.set(f"{filled.prefix}:{{shop:1}}:x", "x")
    with translation.override("zh-hans"):
        found = page(boss.get(f"{ADMIN}server/"))
        (box,) = page(boss.get(ADMIN)).find("section", class_="rk-attention")
    assert {"队列", "shop"} < set(rows(found))
    assert "服务器：该服务器没有 AOF 文件" in box.words


def test_search_is_continued_by_its_link_and_by_its_refresh(filled, boss, trips):
    search = {"component": "queues", "text": "jobs"}
    filled.client.mset({f"{filled.prefix}:{{queues:{number}}}:jobs": "x" for number in range(100)})
    trips.clear()
    first = boss.get(PAGE, search)
    assert len(trips) <= 3
    (link,) = [one for one in page(first).find("a") if one.words == "Next"]
    second = boss.get(ADMIN + link.attributes["href"].removeprefix("/admin/redis_kit/dashboard/"))
    assert set(rows(page(first))).isdisjoint(rows(page(second)))
    assert f"{PAGE}fragment/?component=queues&amp;text=jobs&amp;cursor=" in second.content.decode()


def test_names_are_shown_as_text(kit, boss):
    for attack in SAMPLE:
        kit.client.set(f"{kit.prefix}:{{locks:0}}:{attack}", "value")
    answer = boss.get(PAGE, {"component": "locks"})
    assert harmless_links(page(answer))
    assert not page(answer).find("script", src=None)


@pytest.mark.parametrize("wrong", [{"cursor": "x"}, {"component": "*"}, {"text": "x" * 129}, {"connection": "y"}])
def test_wrong_search_is_an_answer(kit, boss, wrong):
    answer = boss.get(PAGE, wrong)
    assert answer.status_code == 200
    assert len(page(answer).find("p", class_="rk-error")) == 1


def test_page_needs_its_own_permission(kit, signed_in):
    assert signed_in("view_dashboard", "view_server").get(PAGE).status_code == 403
    assert signed_in("view_dashboard", "view_keys").get(PAGE).status_code == 200


def test_values_are_never_shown(kit, boss):
    kit.client.set(f"{kit.prefix}:{{locks:0}}:holder", "the-secret-value")
    assert b"the-secret-value" not in boss.get(PAGE, {"component": "locks"}).content


@pytest.mark.once
def test_pages_are_well_drawn(transactional_db, chromium, site, filled, boss):
    session = {"name": "sessionid", "value": boss.cookies["sessionid"].value, "url": site.url}

    def body(browser):
        with visited(browser, site.url, session) as (tab, problems):
            for url in (f"{ADMIN}server/", PAGE, f"{PAGE}?component=queues&text="):
                tab.goto(url)
                problems += layout_problems(tab)
        return problems

    assert chromium(body) == []
