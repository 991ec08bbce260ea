"""The page of indexes and its tile if a connection is unavailable that may have some."""

import json

import pytest

from redis_kit.bloom import BloomFilter
from redis_kit.core.indexes import model_index
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN

pytestmark = pytest.mark.django_db


@pytest.fixture
def other_is_down(kit, monkeypatch):
    """Let a connection be unavailable that only a filter in the code names."""
    monkeypatch.setattr(model_index, "_indexes", [])
    nobody = {"URL": "redis://127.0.0.1:1/0", "TEST": True}
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "other": nobody})


def test_page_shows_the_error_beside_the_indexes_of_the_others(other_is_down, boss):
    BloomFilter("seen", 100).add(1)
    found = page(boss.get(f"{ADMIN}filters/"))
    (error,) = found.find("p", class_="rk-error")
    assert error.words.startswith("Redis can't be reached (")
    assert "seen default" in [cell.words for cell in found.find("th")]


def test_overview_has_a_box_beside_the_tile(other_is_down, boss):
    BloomFilter("seen", 100).add(1)
    found = page(boss.get(ADMIN))
    (box,) = found.find("section", class_="rk-error")
    assert box.words.startswith("The Redis connection “other” is unavailable")
    assert "Bloom filters" in box.words
    assert "Bloom filters" in [title.words for title in found.find("h2")]


def test_overview_has_the_box_without_an_index(other_is_down, boss):
    found = page(boss.get(ADMIN))
    assert [box.words.split(" is ")[0] for box in found.find("section", class_="rk-error")] == [
        "The Redis connection “other”"
    ]
    assert "Bloom filters" not in [title.words for title in found.find("h2")]


def test_three_alerts_of_a_kind_are_named(kit, boss, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    for number in range(5):
        BloomFilter(f"seen {number}", 100).add_many(range(250))
    lines = [line.words for line in page(boss.get(ADMIN)).find("li") if line.words.startswith("Bloom filters: ")]
    full = [f"Bloom filters: seen {number} is full · 2.5 times its capacity" for number in range(3)]
    assert [line.partition(": give")[0] for line in lines] == [*full, "Bloom filters: 2 others"]


def test_command_lists_the_others_and_fails(other_is_down, shell):
    BloomFilter("seen", 100).add(1)
    code, out, errors = shell("rk_bloom", "list", "--json")
    assert (code, [info["name"] for info in json.loads(out)]) == (69, ["seen"])
    assert "can't be reached" in errors
    code, out, _errors = shell("rk_bloom", "list", "--using", "other")
    assert (code, "There are no filters" in out) == (69, False)
