from dataclasses import replace

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.core.panels import Action, Bars, Figure, Table
from tests.dashboard.support import parts
from tests.dashboard.support.attacks import ATTACKS, harmless_links, without_titles
from tests.dashboard.support.html import whole_page
from tests.fixtures.dashboard import ADMIN

SHORT = 40  # characters: a text that is not longer is not cut, and gets no title
SHAPES = {}  # of the pages with a harmless text


def shown(signed_in, attack):
    """Put a text into every field that a panel has, and return the pages."""
    boss = signed_in("superuser")  # with no message or log entry of an earlier round
    parts.TITLE[:] = [attack]
    parts.MIRROR[:] = [
        Figure(attack, attack, attack, alarm=True),
        Table(attack, (attack, attack), [(attack, attack)], attack, actions=("reflect",)),
        Table(attack, (attack,), [], attack),
        Bars(attack, [(attack, 1), (attack, 2), (attack, 3)]),
        RedisUnavailable(attack),
    ]
    pages = [whole_page(boss.get(url)) for url in (ADMIN, f"{ADMIN}mirror/", f"{ADMIN}mirror/fragment/")]
    pages.append(whole_page(boss.post(f"{ADMIN}mirror/do/reflect/", {"value": attack or "x"})))
    boss.post(f"{ADMIN}mirror/do/reflect/", {"value": attack, "confirmed": "1"})
    return [*pages, whole_page(boss.get(f"{ADMIN}mirror/")), whole_page(boss.get("/admin/"))]


@pytest.fixture
def named_by_attackers(monkeypatch):
    def rename(attack):
        marked = parts.MirrorPanel.reflect.panel_action
        action = Action(attack, permission=marked.permission, confirm=True, asks=attack)
        monkeypatch.setattr(parts.MirrorPanel.reflect, "panel_action", replace(action))

    return rename


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_in_any_field_adds_no_element_and_no_attribute(stock, signed_in, named_by_attackers, attack):
    harmless = "w" * max(len(attack), SHORT)
    if harmless not in SHAPES:
        named_by_attackers(harmless)
        SHAPES[harmless] = [one.shape for one in shown(signed_in, harmless)]
    named_by_attackers(attack)
    after = shown(signed_in, attack)
    for shape, page in zip(SHAPES[harmless], after, strict=True):
        assert without_titles(page.shape) == without_titles(shape)
    assert all(harmless_links(page) for page in after)


def test_text_is_cut_at_200_characters_and_full_in_the_title(stock, boss):
    parts.MIRROR[:] = [Figure("long", "ab<" * 100), Figure("endless", "y" * 50_000_000)]
    response = boss.get(f"{ADMIN}mirror/")
    first, second = whole_page(response).find("dd")
    assert first.words == ("ab<" * 100)[:199] + "…"
    assert first.attributes["title"] == "ab<" * 100
    assert len(second.words) == 200
    assert second.attributes["title"] == "y" * 4096 + "…"
    assert len(response.content) < 60_000


def test_only_the_first_hundred_rows_are_drawn(stock, boss):
    parts.MIRROR[:] = [Table("Many", ("N",), [(n,) for n in range(250)])]
    found = whole_page(boss.get(f"{ADMIN}mirror/fragment/"))
    assert len(found.find("th", scope="row")) == 100
    assert found.find("p", class_="rk-hint")[0].words == "150 more rows are not shown here."
