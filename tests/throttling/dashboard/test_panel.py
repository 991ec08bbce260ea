"""The throttles on the dashboard."""

from datetime import timedelta

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import hashed
from redis_kit.core.panels import RANGES, Bars, Figure, Link, Meter, Pages, Ranges, StackedBars, Table, Viewer
from redis_kit.throttling import Ban, Throttle
from redis_kit.throttling.dashboard.actions import Target
from redis_kit.throttling.dashboard.panel import CHANGE, UNMASK, ThrottlesPanel
from redis_kit.throttling.throttles import registered

pytestmark = pytest.mark.usefixtures("none_registered")

ALL = {CHANGE, UNMASK}


def panel(permissions=ALL, **asked):
    found = ThrottlesPanel()
    found.viewer = Viewer(lambda permission: permission in permissions, asked)
    return found


def shown(kind, permissions=ALL, **asked):
    return [one for one in panel(permissions, **asked).content() if isinstance(one, kind)]


def table(title, permissions=ALL, **asked):
    (found,) = [one for one in shown(Table, permissions, **asked) if str(one.title).startswith(title)]
    return found


def lines(cell):
    return [*map(str, cell.lines)]


def test_panel_shows_what_each_throttle_let_pass(kit):
    kit.options(THROTTLING={"REMEMBER": 0})
    login = Throttle("login", "2/h; 5/d", on_failure="local")
    api = Throttle("api", "100/m burst 5", strategy="token_bucket", on_failure="closed")
    Throttle("free", None)
    for caller in ("joe", "joe", "joe", "ann"):
        login.hit(caller)
    api.hit("joe")
    rows = table("Throttles").rows
    assert [row[0] for row in rows] == [
        Link(name, "throttles", {"throttle": name}) for name in ("api", "free", "login")
    ]
    assert [(row[0].value, *row[1:6]) for row in rows] == [
        ("api", "100/m burst 5", "token_bucket", "refuse", 0.03, 0.0),
        ("free", "no limit", "gcra", "allow", 0.0, 0.0),
        ("login", "2/h; 5/d", "gcra", "count in each process", 0.1, 0.03),
    ]
    assert [figure.value for figure in shown(Figure)] == [3, 4, 1, 0]
    allowed, refused = shown(Bars)
    assert (len(allowed.bars), sum(value for _, value in allowed.bars)) == (30, 4)
    assert (len(refused.bars), sum(value for _, value in refused.bars)) == (30, 1)


def test_bans_of_a_throttle_are_named_below_its_rates(kit):
    Throttle("login", "2/h", ban=Ban(3, 600, (60, 3600)))
    ((_, rates, *_),) = table("Throttles").rows
    assert lines(rates) == ["2/h", "bans after 3 refusals within 10 min 0 s, for 1 min 0 s, 1 h 0 min"]


def test_panel_without_throttles_says_so(kit):
    found = table("Throttles")
    assert found.rows == []
    assert "No throttle" in found.empty
    assert panel().search() is None


def test_hundred_throttles_take_two_round_trips(kit, trips):
    for number in range(150):
        Throttle(f"t{number}", "5/m", shadow=number % 2 == 0)
    registered["default", "t0"].rules.ban("joe", 60)
    for asked in ({}, {"throttle": "t1", "identity": "joe"}):
        list(panel(**asked).content())  # the server learns the scripts
    trips.clear()
    assert len(table("Throttles").rows) == 100
    assert len(trips) == 2
    trips.clear()
    assert len(table("Looked up", throttle="t1", identity="joe").rows) == 1
    assert len(trips) == 4


def test_nothing_scans(kit, commands):
    Throttle("login", "5/m").hit("joe")
    with commands(kit) as sent:
        list(panel(throttle="login", identity="joe").content())
    assert sent
    assert not {"SCAN", "KEYS", "SMEMBERS", "HSCAN", "ZSCAN"} & set(sent)


def test_throttles_of_another_connection_are_asked_there(kit, debian_redis):
    connections_of_both = {**kit.settings.REDIS_KIT["CONNECTIONS"], "other": debian_redis.connection}
    kit.options(CONNECTIONS=connections_of_both, THROTTLING={"REMEMBER": 0})
    here, there = Throttle("here", "1/h"), Throttle("there", "1/h", using="other")
    for throttle in (here, there, there):
        throttle.hit("joe")
    assert [figure.value for figure in shown(Figure)][:3] == [2, 2, 1]
    assert [(row[1], row[2]) for row in table("Refused most").rows] == [("there (other)", 1)]
    link = table("Throttles").rows[1][0]
    assert link == Link("there (other)", "throttles", {"throttle": "there", "connection": "other"})
    assert [figure.value for figure in shown(Figure, **link.asked)] == [1, 1, 0]
    connections.close()


def test_identities_refused_most_are_shown_over_all_throttles(kit):
    kit.options(THROTTLING={"REMEMBER": 0})
    login, api = Throttle("login", "1/h"), Throttle("api", "1/h")
    for number in range(15):
        for throttle in (login, api):
            for _ in range(2 + number):
                throttle.hit(f"user:{throttle.name}-{number}")
    found = table("Refused most")
    assert len(found.rows) == len(found.values) == 20
    assert [row[2] for row in found.rows] == [count for count in range(15, 5, -1) for _ in range(2)]
    assert {row[1] for row in found.rows[:2]} == {"login", "api"}
    assert found.actions == ("reset", "ban", "exempt", "override")


@pytest.mark.parametrize(
    ("permissions", "identity"), [(ALL, "user:alice"), ({CHANGE}, "user:ali***"), (set(), "user:ali***")]
)
def test_identities_are_masked_without_the_permission(kit, permissions, identity):
    kit.options(THROTTLING={"REMEMBER": 0})
    login = Throttle("login", "1/h")
    for _ in range(2):
        login.hit("user:alice")
    login.rules.ban("user:alice", 60)
    who = hashed("user:alice")
    assert lines(table("Refused most", permissions).rows[0][0]) == [identity, who]
    assert lines(table("Rules", permissions).rows[0][0]) == [identity, who]
    everything = repr(list(panel(permissions).content()))
    assert ("alice" in everything) == (UNMASK in permissions)


@pytest.mark.parametrize(("setting", "shown_"), [("masked", ["user:ali***"]), ("hashed", [])])
def test_what_the_settings_hide_nobody_sees(kit, setting, shown_):
    kit.options(THROTTLING={"REMEMBER": 0, "OFFENDERS": setting})
    for _ in range(2):
        Throttle("login", "1/h").hit("user:alice")
    for permissions in (ALL, set()):
        cell = table("Refused most", permissions).rows[0][0]
        assert [line for line in lines(cell) if line] == [*shown_, hashed("user:alice")]


def test_rules_are_shown_with_their_ends(kit):
    login, api = Throttle("login", "5/m"), Throttle("api", "100/m")
    ends = [
        login.rules.exempt("user:7", 7200).until,
        login.rules.ban("ip:203.0.113.7", 60).until,
        api.rules.override("500/m burst 50", 3600).until,
        api.rules.override("1000/m", 600, "user:8").until,
    ]
    found = table("Rules")
    assert [(str(row[1]), str(row[2])) for row in found.rows] == [
        ("login", "banned"),
        ("api", "1000/m"),
        ("api", "500/m burst 50"),
        ("login", "exempt"),
    ]
    assert str(found.rows[2][0]) == "all identities"
    for row, expected in zip(found.rows, sorted(ends), strict=True):
        assert abs(row[3] - expected) < timedelta(milliseconds=100)
    assert found.actions == ("lift",)
    assert [figure.value for figure in shown(Figure)][3] == 4
    override = next(row for row in table("Throttles").rows if row[0].value == "api")[6]
    assert override == "500/m burst 50"


def test_list_of_rules_is_bounded_and_their_number_is_shown(kit):
    login, api = Throttle("login", "5/m"), Throttle("api", "5/m")
    for number in range(110):
        login.rules.ban(f"user:{number}", 600)
    api.rules.ban("user:1", 60)
    found = table("Rules")
    assert len(found.rows) == len(found.values) == 100
    assert found.rows[0][1] == "api"
    assert [figure.value for figure in shown(Figure)][3] == 111


def test_rules_of_a_throttle_have_pages(kit):
    login = Throttle("login", "5/m")
    login.rules.override("9/m", 9000)
    for number in range(110):
        login.rules.ban(f"user:{number}", 600 + number)
    pages = [table("Rules", throttle="login", page=number).rows for number in ("1", "2")]
    assert [len(rows) for rows in pages] == [100, 11]
    assert len({row[3] for rows in pages for row in rows}) == 111
    assert [(each.number, each.count) for each in shown(Pages, throttle="login", page="3")] == [(2, 2)]


def test_rule_of_a_refused_identity_is_shown_however_many_there_are(kit):
    kit.options(THROTTLING={"REMEMBER": 0})
    login = Throttle("login", "1/h")
    for _ in range(2):
        login.hit("user:joe")
    login.rules.ban("user:joe", 9000)
    for number in range(110):
        login.rules.ban(f"user:{number}", 600)
    for asked in ({}, {"throttle": "login"}):
        ((_identity, _throttle, refusals, rule),) = table("Refused most", **asked).rows
        assert (refusals, str(rule.lines[0])) == (1, "banned")


def test_report_of_shadow_mode_is_shown(kit):
    search = Throttle("search", "2/h", shadow=True)
    Throttle("off", None, shadow=True)
    assert search.hit("idle")
    assert [search.hit("joe").reason for _ in range(4)] == ["", "", "shadow", "shadow"]
    (row,) = table("Shadow mode").rows
    assert row == ("search", "2/h", 5, "40.0 %", 4, 4, "4/h")
    named = {tuple(str(getattr(line, "value", line)) for line in row[0].lines) for row in table("Throttles").rows}
    nothing = "shadow mode: refuses nothing, would refuse"
    assert named == {("search", f"{nothing} 0.1 per minute"), ("off", f"{nothing} 0.0 per minute")}


def test_calls_that_shadow_mode_would_refuse_are_counted_apart(kit):
    kit.options(THROTTLING={"REMEMBER": 0})
    for throttle in (Throttle("login", "2/h"), Throttle("search", "2/h", shadow=True)):
        for _ in range(5):
            throttle.hit("joe")
    figures = {str(one.label): one.value for one in shown(Figure)}
    assert (figures["Allowed"], figures["Refused"], figures["Would be refused"]) == (7, 3, 3)
    assert [sum(value for _, value in bars.bars) for bars in shown(Bars)] == [7, 3]
    assert [row[1:] for row in table("Refused most often").rows] == [("login", 3, None)]
    assert [row[1:] for row in table("Would be refused most often").rows] == [("search", 3, None)]
    cells = [(getattr(row[0], "lines", [row[0]])[0], row[4:6]) for row in table("Throttles").rows]
    rows = {link.value: numbers for link, numbers in cells}
    assert rows == {"login": (0.1, 0.1), "search": (0.2, 0.0)}


def test_confirmations_say_what_a_rule_replaces(kit):
    login = Throttle("login", "2/h")
    target = Target.of(login, hashed("joe"))
    effects = {name: one.effect for name, one in panel().actions().items()}
    assert effects["ban"](target.value) == "Every call of this identity is refused until the ban ends or is lifted."
    with pytest.raises(InvalidValue, match="there is no rule"):
        effects["lift"](target.value)
    until = login.rules.ban("joe", 3600).until.strftime("%Y-%m-%d %H:%M:%S")
    assert effects["exempt"](target.value).endswith(f"It replaces this rule: ban until {until}.")
    assert effects["lift"](target.value).text.startswith(f"This rule ends: ban until {until}.")
    address = "ip:203.0.113.7"
    login.rules.exempt(address, 60)
    reset, value = panel().actions()["reset"], Target.of(login, hashed(address)).value
    for viewer, name in ((panel(()), "ip:203.0.113.***"), (panel(), address)):
        sentence = viewer.effect_of(reset, value)
        assert sentence.startswith(f"The identity is {name}. The calls of this identity")
    assert not reset.grave
    assert "replaces" not in effects["reset"](target.value)
    login.rules.override("9/m", 60)
    assert "It replaces this rule: 9/m until" in effects["override_all"](Target.of(login).value)


def test_only_the_rule_that_was_confirmed_is_lifted(kit):
    login = Throttle("login", "2/h")
    value, lift = Target.of(login, hashed("joe")).value, panel().actions()["lift"]
    login.rules.exempt("joe", 60)
    confirmed = panel().effect_of(lift, value).value
    login.rules.ban("joe", 3600)
    with pytest.raises(InvalidValue, match=f"Nothing was lifted: login, {hashed('joe')} has another rule now."):
        panel().lift(confirmed)
    assert login.rules.of("joe").kind == "ban"
    assert panel().lift(panel().effect_of(lift, value).value).startswith("The rule was lifted")
    with pytest.raises(InvalidValue, match="there is no rule"):
        panel().lift(confirmed)


def test_there_is_no_report_without_shadow_mode(kit):
    Throttle("login", "5/m")
    assert not [one for one in shown(Table) if str(one.title).startswith("Shadow")]


def looked_up(identity="joe", permissions=ALL):
    (row,) = table("Looked up in login", permissions, throttle="login", identity=identity).rows
    return [str(cell) if not isinstance(cell, (Meter, timedelta, type(None))) else cell for cell in row[1:5]]


def test_identity_is_looked_up_and_nothing_is_counted(kit):
    login = Throttle("login", "2/h")
    assert looked_up() == ["allowed", Meter(0, 2), "now", "now"]
    login.hit("joe")
    for _ in range(3):
        answer, used, room, forgotten = looked_up(" joe ")
        assert (answer, used, room) == ("allowed", Meter(1, 2), "now")
        assert timedelta(minutes=29) < forgotten <= timedelta(minutes=30)
    login.hit("joe")
    answer, used, room, _ = looked_up()
    assert (answer, used) == ("refused", Meter(2, 2))
    assert timedelta(minutes=29) < room <= timedelta(minutes=30)


def test_rule_of_an_identity_is_looked_up(kit):
    login = Throttle("login", "2/h")
    login.rules.ban("joe", 60)
    found = table("Looked up", throttle="login", identity="joe")
    assert lines(found.rows[0][0]) == ["joe", hashed("joe")]
    assert [str(found.rows[0][1]), lines(found.rows[0][5])[0]] == ["refused: banned", "banned"]
    assert found.actions[-1] == "lift"
    login.rules.exempt("joe", 60)
    assert looked_up()[:2] == ["allowed: exempt", None]
    assert table("Looked up", throttle="login", identity="ann").rows[0][5] is None


def test_look_up_shows_shadow_mode(kit):
    login = Throttle("login", "1/h", shadow=True)
    login.hit("joe")
    assert looked_up()[0] == "allowed by shadow mode, else refused"


def test_look_up_shows_a_limit_of_zero(kit):
    Throttle("login", "0/s")
    assert looked_up() == ["refused", Meter(0, 0), "never", "never"]
    assert table("Throttles").values == [""]


def test_look_up_needs_permission_to_change_or_to_see_identities(kit):
    Throttle("login", "2/h")
    for permissions in ({CHANGE}, {UNMASK}):
        assert panel(permissions).search().fields[0].choices == ["login"]
        assert looked_up(permissions=permissions)[0] == "allowed"
    assert [field.name for field in panel(set()).search().fields] == ["throttle"]
    assert not [one for one in shown(Table, set(), throttle="login", identity="joe") if "Looked" in str(one.title)]


def test_look_up_in_a_missing_throttle_says_so(kit):
    Throttle("login", "2/h")
    found = table("Looked up in none", throttle="none", identity="joe")
    assert (found.rows, found.empty) == ([], "This process has not built the throttle none.")
    assert table("Throttles", throttle="none", identity="joe").rows


@pytest.mark.parametrize("permissions", [ALL, set()])
def test_throttle_without_an_identity_is_shown_alone(kit, permissions):
    kit.options(THROTTLING={"REMEMBER": 0})
    for throttle in (Throttle("login", "1/h"), Throttle("api", "9/h")):
        for _ in range(3):
            throttle.hit("user:alice")
    Throttle("login", "1/h").rules.ban("user:alice", 60)
    asked = {"throttle": "login", "identity": "  "}
    assert [row[0].value for row in table("Throttle login", permissions, **asked).rows] == ["login"]
    (row,) = table("Refused most", permissions, **asked).rows
    assert (*row[1:3], row[3].lines[0]) == ("login", 2, "banned")
    assert len(table("Rules", permissions, **asked).rows) == 1
    assert [figure.value for figure in shown(Figure, permissions, **asked)] == [1, 2, 1]
    assert not [one for one in shown(Table, permissions, **asked) if "Looked" in str(one.title)]
    assert ("alice" in repr(list(panel(permissions, **asked).content()))) == (UNMASK in permissions)


@pytest.mark.parametrize("hours", RANGES)
def test_calls_of_a_throttle_are_shown_in_each_range(kit, trips, hours):
    kit.options(THROTTLING={"REMEMBER": 0})
    search = Throttle("search", "1/h", shadow=True)
    for _ in range(3):
        search.hit("joe")
    list(panel(throttle="search", range=str(hours)).content())
    trips.clear()
    content = list(panel(throttle="search", range=str(hours)).content())
    assert len(trips) == 2
    (choice,) = [one for one in content if isinstance(one, Ranges)]
    assert (choice.slug, choice.chosen, choice.asked) == ("throttles", hours, {"throttle": "search"})
    (chart,) = [one for one in content if isinstance(one, StackedBars)]
    assert [(str(name), sum(calls)) for name, calls in chart.parts] == [("Allowed", 1), ("Would be refused", 2)]
    assert len(chart.labels) == len(chart.parts[0][1]) >= RANGES[hours].minutes // RANGES[hours].bar
    figures = [(str(one.label), one.value, str(one.hint)) for one in content if isinstance(one, Figure)]
    label = str(RANGES[hours].label)
    assert figures == [("Allowed", 1, label), ("Would be refused", 2, label), ("Rules in force", 0, "")]


def test_missing_throttle_is_named_above_all_others(kit):
    Throttle("login", "2/h")
    assert table("Throttle none", throttle="none").empty == "This process has not built the throttle none."
    assert len(table("Throttles", throttle="none").rows) == 1


def test_identity_of_any_kind_is_looked_up(kit):
    Throttle("login", "2/h")
    for identity in ("x" * 4000, "\0", "\ud800", "\u202eevil", '"><script>'):
        assert looked_up(identity)[0] == "allowed"
