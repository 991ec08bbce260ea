"""Panels with a search form, and their viewer."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.panels import Content, Field, Figure, Panel, Search, action
from tests.dashboard.support.attacks import ATTACKS, harmless_links, without_titles
from tests.dashboard.support.html import page, whole_page
from tests.fixtures.dashboard import ADMIN

PAGE = f"{ADMIN}finder/"
CHOICES = ["bolt", '"><b>']


@dataclass(frozen=True)
class FinderSettings(conf.Section):
    name = "FINDER"


class Finder(Component):
    settings = FinderSettings
    panels = ("tests.dashboard.test_search.FinderPanel",)


class FinderPanel(Panel):
    """Shows what it was asked for."""

    slug = "finder"
    title = "Finder"

    def search(self) -> Search | None:
        if not self.viewer.may("redis_kit.manage_queues"):
            return None
        return Search("Find", (Field("part", "Part", CHOICES), Field("text", "Words")))

    def content(self) -> Iterator[Content]:
        yield Figure("Asked", " and ".join(f"{name} {value}" for name, value in self.viewer.asked.items()))


@pytest.fixture(autouse=True)
def finder(kit, own_panels):
    kit.options(EXTRA_COMPONENTS=["tests.dashboard.test_search.Finder"])


@pytest.fixture
def client(signed_in):
    return signed_in("view_dashboard", "manage_queues")


def answer(found):
    return found.find("dd")[0].words


def test_search_reaches_the_panel_and_stays_in_the_form(client):
    (form,) = page(client.get(PAGE)).find("form", class_="rk-search")
    assert (form.attributes["method"], form.attributes["role"], "action" in form.attributes) == ("get", "search", False)
    found = page(client.get(PAGE, {"part": CHOICES[1], "text": "long <b>"}))
    assert answer(found) == f"part {CHOICES[1]} and text long <b>"
    assert found.find("input", name="text")[0].attributes["value"] == "long <b>"
    (chosen,) = [one for one in found.find("option") if "selected" in one.attributes and one.words in CHOICES]
    assert chosen.attributes["value"] == CHOICES[1]
    assert [one.words for one in found.find("label", **{"for": "rk-search-text"})] == ["Words"]
    assert [one.words for one in found.find("a", href=PAGE)] == ["Finder", "Finder", "Show all"]


def test_refresh_repeats_the_search(client):
    for asked in ({"part": "bolt", "text": "a&b=c"}, {"text": "部"}):
        (live,) = page(client.get(PAGE, {**asked, "other": "x"})).find("div", id="rk-live")
        fragment = client.get(live.attributes["data-url"])
        assert answer(page(fragment)) == " and ".join(f"{name} {value}" for name, value in asked.items())
    (live,) = page(client.get(PAGE, {"other": "x"})).find("div", id="rk-live")
    assert live.attributes["data-url"] == f"{PAGE}fragment/"


def test_overview_has_no_search(client):
    found = page(client.get(ADMIN, {"text": "words"}))
    assert [one.words for one in found.find("dd")] == [""]
    assert not found.find("form")


def test_panel_knows_the_permissions_of_its_viewer(signed_in):
    found = page(signed_in("view_dashboard").get(PAGE, {"text": "words"}))
    assert not found.find("form")
    assert found.find("div", id="rk-live")[0].attributes["data-url"] == f"{PAGE}fragment/"


def test_panel_without_a_request_has_a_viewer_without_permissions():
    panel = FinderPanel()
    assert panel.search() is None
    assert [one.value for one in panel.content()] == [""]


def test_choices_by_a_function_are_loaded_once_for_a_page_not_for_buttons(client, monkeypatch):
    asked = []

    def choices():
        asked.append(1)
        return ["bolt", "nut"]

    @action("Press", permission="redis_kit.manage_queues", asks="")
    def press(self, value):
        return "Pressed."

    field = Field("part", "Part", choices, any="all")
    monkeypatch.setattr(FinderPanel, "search", lambda self: Search("Find", [field]))
    monkeypatch.setattr(FinderPanel, "press", press, raising=False)
    found = page(client.get(PAGE, {"part": "nut"}))
    assert found.find("select", name="part")
    assert [one.words for one in found.find("option")[-3:]] == ["all", "bolt", "nut"]
    assert asked == [1]
    client.get(f"{PAGE}fragment/", {"part": "nut"})
    assert client.post(f"{PAGE}do/press/?part=nut").url == f"{PAGE}?part=nut"
    assert asked == [1]


def test_unavailable_choices_become_a_text_field(client, monkeypatch):
    def away():
        raise RedisUnavailable("away")

    field = Field("part", "Part", away, any="all", optional=True)
    monkeypatch.setattr(FinderPanel, "search", lambda self: Search("Find", [field]))
    (text,) = page(client.get(PAGE, {"part": "nut"})).find("input", name="part")
    assert (text.attributes["type"], text.attributes["value"], "required" in text.attributes) == ("text", "nut", False)


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_adds_no_element_and_no_attribute(client, attack):
    before = whole_page(client.get(PAGE, {"text": "w" * len(attack), "part": "w"}))
    after = whole_page(client.get(PAGE, {"text": attack, "part": attack}))
    assert without_titles(after.shape) == without_titles(before.shape)
    assert harmless_links(after)
