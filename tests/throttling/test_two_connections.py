"""Two throttles of one name on two connections are two throttles, wherever both are shown, looked up or changed."""

import json
from functools import partial

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import hashed
from redis_kit.core.panels import Bars, Figure, Table, Viewer
from redis_kit.throttling import Throttle
from redis_kit.throttling.dashboard.actions import Target
from redis_kit.throttling.dashboard.panel import ThrottlesPanel, overview
from redis_kit.throttling.discovery import built_throttles
from redis_kit.throttling.rules import counts
from redis_kit.throttling.statistics import recent
from redis_kit.throttling.throttles import registered

pytestmark = pytest.mark.usefixtures("none_registered")

WHO = hashed("joe")


@pytest.fixture
def both(kit, debian_redis):
    """The throttle ``login`` of the default connection, called once, and that of ``other``, called twice."""
    connections = kit.settings.REDIS_KIT["CONNECTIONS"] | {"other": debian_redis.connection}
    kit.options(CONNECTIONS=connections, THROTTLING={"REMEMBER": 0})
    found = [Throttle("login", "1/h"), Throttle("login", "2/h", using="other")]
    found[0].hit("joe")
    for _ in range(3):
        found[1].hit("joe")
    return found


@pytest.fixture
def command(shell):
    return partial(shell, "rk_throttle")


def panel(**asked):
    found = ThrottlesPanel()
    found.viewer = Viewer(lambda permission: True, asked)
    return found


def content(kind, **asked):
    return [one for one in panel(**asked).content() if isinstance(one, kind)]


def table(title, **asked):
    (found,) = [one for one in content(Table, **asked) if str(one.title).startswith(title)]
    return found


def test_registry_knows_both(both):
    assert list(registered.values()) == built_throttles() == both
    again = Throttle("login", "9/h", using="other")
    assert list(registered.values()) == [both[0], again]


def test_minutes_and_rules_are_counted_apart(both):
    both[1].rules.ban("ann", 60)
    minutes = recent(both, minutes=2)
    sums = [sum(one.allowed for one in minutes[throttle]) for throttle in both]
    assert sums == [1, 2]
    assert [counts(both)[throttle] for throttle in both] == [0, 1]
    found = overview(both)
    assert [one.throttle for one in found] == both
    assert [sum(minute.allowed for minute in one.minutes) for one in found] == sums
    assert [one.rule_count for one in found] == [0, 1]


def test_dashboard_has_a_row_for_each(both):
    rows = table("Throttles").rows
    assert [(row[0].value, row[1]) for row in rows] == [("login", "1/h"), ("login (other)", "2/h")]
    for row, calls in zip(rows, (1, 2), strict=True):
        allowed, *_others = [one.value for one in panel(**row[0].asked).content() if isinstance(one, Figure)]
        assert allowed == calls
    assert [figure.value for figure in content(Figure)] == [2, 3, 1, 0]
    assert [sum(value for _, value in bars.bars) for bars in content(Bars)] == [3, 1]
    most = table("Refused most often")
    assert [row[1] for row in most.rows] == ["login (other)"]
    assert most.values == [Target("login", WHO, "other").value]


def test_buttons_change_the_throttle_of_their_row(both):
    (value,) = table("Refused most often").values
    assert panel().ban(value, "15m") == f"Banned for 15m: login (other), {WHO}."
    assert [one.rules.of("joe") is not None for one in both] == [False, True]
    assert [row[1] for row in table("Rules in force").rows] == ["login (other)"]
    panel().lift(table("Rules in force").values[0])
    panel().override_all(table("Throttles").values[1], "9/h for 2h")
    assert [one.rules.of() and one.rules.of().rates for one in both] == [None, "9/h"]
    panel().reset(value)
    assert [one.peek("joe").allowed for one in both] == [False, True]


def test_value_of_before_changes_the_throttle_of_the_default_connection(both):
    panel().ban(f"{WHO} login", "15m")
    assert [one.rules.of("joe") is not None for one in both] == [True, False]
    with pytest.raises(InvalidValue, match="not built the throttle login"):
        panel().ban(f"{WHO}@third login", "15m")


def test_look_up_asks_for_the_connection_if_there_are_several(both):
    throttle, connection, _ = panel().search().fields
    assert (throttle.choices, connection.choices) == (["login"], ["default", "other"])
    both[1].rules.ban("joe", 60)
    asked = {"throttle": "login", "identity": "joe"}
    assert table("Looked up in login (other)", **asked, connection="other").rows[0][5] is not None
    assert table("Looked up in login", **asked).rows[0][5] is None
    assert table("Looked up in login", **asked).values == [Target("login", WHO).value]


def test_look_up_finds_the_throttle_of_the_only_connection(both):
    del registered["default", "login"]
    assert len(panel().search().fields) == 2
    assert table("Looked up in login", throttle="login", identity="joe").values == [Target("login", WHO, "other").value]


def test_command_lists_both_and_asks_which_one_is_meant(both, command):
    lines = command("list")[1].splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == ["login", "login (other)"]
    assert [(one["using"], one["allowed"]) for one in json.loads(command("list", "--json")[1])] == [
        ("default", 1),
        ("other", 2),
    ]
    code, output, errors = command("ban", "login", "joe", 60)
    assert (code, output) == (1, "")
    assert "Several throttles have the name login. Choose one with --using: default, other." in errors
    assert command("ban", "login", "joe", 60, "--using", "other")[0] == 0
    assert [one.rules.of("joe") is not None for one in both] == [False, True]
    assert json.loads(command("show", "login", "--using", "other", "--json")[1])["rates"] == ["2/h"]
    code, _, errors = command("show", "login", "--using", "third")
    assert code == 2
    assert "'third' is not a connection; there are default, other" in errors


def test_command_needs_no_connection_where_the_name_is_there_once(both, command):
    del registered["default", "login"]
    assert json.loads(command("show", "login", "--json")[1])["using"] == "other"
