"""The throttles on the dashboard."""

import pytest

from redis_kit.core.panels import Bars, Figure, Table
from redis_kit.throttling import Throttle, throttles
from redis_kit.throttling.panel import ThrottlesPanel


@pytest.fixture(autouse=True)
def none_registered(monkeypatch):
    monkeypatch.setattr(throttles, "_registered", {})


def shown(kind):
    return [one for one in ThrottlesPanel().content() if isinstance(one, kind)]


def test_panel_shows_what_each_throttle_let_pass(kit):
    login, api = Throttle("login", "2/h; 5/d"), Throttle("api", "100/m burst 5")
    Throttle("free", None)
    for caller in ("joe", "joe", "joe", "ann"):
        login.hit(caller)
    api.hit("joe")
    (table,) = shown(Table)
    assert [row[:3] for row in table.rows] == [
        ("api", "100/m burst 5", "gcra"),
        ("free", "no limit", "gcra"),
        ("login", "2/h; 5/d", "gcra"),
    ]
    assert [row[3:] for row in table.rows] == [(0.0, 0.0), (0.0, 0.0), (0.1, 0.0)]
    assert [figure.value for figure in shown(Figure)] == [3, 4, 1]
    allowed, refused = shown(Bars)
    assert (len(allowed.bars), sum(value for _, value in allowed.bars)) == (30, 4)
    assert (len(refused.bars), sum(value for _, value in refused.bars)) == (30, 1)


def test_panel_without_throttles_says_so(kit):
    (table,) = shown(Table)
    assert table.rows == []
    assert "No throttle" in table.empty


def test_panel_takes_one_round_trip_for_a_hundred_throttles(kit, commands):
    for number in range(150):
        Throttle(f"t{number}", "5/m")
    with commands(kit) as sent:
        (table,) = shown(Table)
    assert len(table.rows) == 100
    assert len(sent) in (100, 200)  # with their source, where the server had not seen the script
