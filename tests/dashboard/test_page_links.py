"""Breadcrumbs, and links between the pages of a list."""

import pytest
from django.contrib.admin.templatetags import admin_urls  # noqa: F401 - loads the admin before its templates are read
from django.template.loader import get_template

from redis_kit.core.panels import NextPage, Pages, Table
from redis_kit.dashboard import site
from tests.dashboard.support import parts
from tests.dashboard.support.html import page, whole_page
from tests.fixtures.dashboard import ADMIN


def names(response, tag):
    (breadcrumbs,) = whole_page(response).find(tag, class_="breadcrumbs")
    return breadcrumbs.words


def test_breadcrumbs_are_of_the_kind_that_the_admin_has(stock, boss):
    is_list = '<ol class="breadcrumbs"' in get_template("admin/base.html").template.source
    found = whole_page(boss.get(f"{ADMIN}stock/"))
    assert len(found.find("ol", class_="breadcrumbs")) == is_list
    assert len(found.find("div", class_="breadcrumbs")) == (not is_list)


@pytest.mark.parametrize(("is_list", "tag", "between"), [(False, "div", " \u203a "), (True, "ol", " ")])
def test_breadcrumbs_lead_to_the_pages_above(stock, boss, monkeypatch, is_list, tag, between):
    monkeypatch.setattr(site, "_has_breadcrumb_list", lambda: is_list)
    assert names(boss.get(ADMIN), tag) == between.join(("Home", "Dashboard"))
    assert names(boss.get(f"{ADMIN}stock/"), tag) == between.join(("Home", "Dashboard", "Stock"))
    asked = boss.post(f"{ADMIN}stock/do/clear/", {"value": "bolt"})
    assert names(asked, tag) == between.join(("Home", "Dashboard", "Stock", "Clear"))
    found = whole_page(asked)
    assert [one.words for one in found.find("li", aria_current="page")] == (["Clear"] if is_list else [])
    links = [one.attributes["href"] for one in found.find("a") if one.words in ("Home", "Dashboard", "Stock")]
    assert {"/admin/", ADMIN, f"{ADMIN}stock/"} <= set(links)


@pytest.mark.parametrize(
    ("number", "expected"), [(1, [("Next", "2")]), (2, [("Previous", "1"), ("Next", "3")]), (3, [("Previous", "2")])]
)
def test_pages_link_to_their_neighbours_with_the_search(stock, boss, number, expected):
    parts.MIRROR[:] = [Table("Bolts", ("Name",), [("m4",)]), Pages("mirror", number, 3, {"name": "m 4"})]
    found = page(boss.get(f"{ADMIN}mirror/"))
    (pages,) = found.find("nav", class_="rk-pages")
    assert f"Page {number} of 3" in pages.words
    links = [(one.words, one.attributes["href"]) for one in found.find("a") if one.attributes.get("rel")]
    assert links == [(text, f"{ADMIN}mirror/?name=m+4&page={to}") for text, to in expected]


@pytest.mark.parametrize(("cursor", "more"), [("7", "Next"), ("", "This is the end.")])
def test_list_with_a_cursor_links_to_its_next_page(stock, boss, cursor, more):
    parts.MIRROR[:] = [NextPage("mirror", {"name": "m 4", "cursor": cursor}, "2 <seen>.")]
    (pages,) = page(boss.get(f"{ADMIN}mirror/")).find("nav", class_="rk-pages")
    assert pages.words == f"2 <seen>. {more}"


def test_page_that_is_open_stays_when_it_refreshes(kit, boss):
    (live,) = page(boss.get(f"{ADMIN}locks/?name=a&page=2")).find("div", id="rk-live")
    assert live.attributes["data-url"] == f"{ADMIN}locks/fragment/?name=a&page=2"
    (live,) = page(boss.get(f"{ADMIN}locks/?page=x")).find("div", id="rk-live")
    assert live.attributes["data-url"] == f"{ADMIN}locks/fragment/"
