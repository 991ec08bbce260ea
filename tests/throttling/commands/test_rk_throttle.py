"""``manage.py rk_throttle``."""

import io
import json
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.core.management import call_command
from django.utils import timezone

from redis_kit.core.keys import hashed
from redis_kit.throttling import Ban, Throttle
from redis_kit.throttling.engine import memory
from tests.fixtures.servers import wait_for

pytestmark = pytest.mark.usefixtures("none_registered")

AWAY = {"URL": "redis://127.0.0.1:1/0"}
JOE = "ip:203.0.113.7"
VIEWS = """
from redis_kit.throttling import throttle
urlpatterns = []
{code}
"""


@pytest.fixture
def rk_throttle(shell):
    return partial(shell, "rk_throttle")


@pytest.fixture
def routes(tmp_path, settings, monkeypatch):
    """Make a module with this code the routes of the project."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code):
        name = f"routes_{abs(hash(str(tmp_path)))}"
        (tmp_path / f"{name}.py").write_text(VIEWS.format(code=code))
        settings.ROOT_URLCONF = name
        return name

    return write


@pytest.fixture
def login(kit):
    """A throttle that let an address pass once and refused it twice."""
    found = Throttle("login", "1/h")
    for _ in range(3):
        found.hit(JOE)
        memory._refusals.clear()
    return found


def test_nothing_is_known(kit, rk_throttle):
    code, output, errors = rk_throttle("list")
    assert (code, errors) == (0, "")
    assert output.startswith("There are no throttles. A throttle is found if a policy of the settings names it")
    assert json.loads(rk_throttle("list", "--json")[1]) == []


def test_throttles_of_policies_and_of_views_are_known(kit, rk_throttle, routes):
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "60/m burst 10", "SHADOW": True}}})
    routes("@throttle('5/m', name='export')\ndef view(request): ...")
    code, output, errors = rk_throttle("list")
    titles, *lines, period, shadow = output.splitlines()
    assert (code, errors) == (0, "")
    assert titles.split() == ["NAME", "RATES", "STRATEGY", "ALLOWED", "REFUSED", "RULES"]
    assert [line.split("  ")[0] for line in lines] == ["api", "export"]
    assert "60/m burst 10" in lines[0]
    assert "gcra, shadow" in lines[0]
    assert "30 minutes" in period
    assert "shadow mode" in shadow


def test_list_counts_calls_and_rules(login, rk_throttle):
    login.rules.ban("ann", 60)
    login.rules.override("9/h", 60)
    Throttle("free", None)
    _, free, line, _ = rk_throttle("list")[1].splitlines()
    assert line.split() == ["login", "1/h", "gcra", "1", "2", "2"]
    assert free.split() == ["free", "no", "limit", "gcra", "0", "0", "0"]
    assert json.loads(rk_throttle("list", "--json")[1])[1] == {
        "name": "login",
        "using": "default",
        "rates": ["1/h"],
        "strategy": "gcra",
        "shadow": False,
        "allowed": 1,
        "refused": 2,
        "rules": 2,
    }


def test_show_has_rules_and_offenders_with_identities_masked(login, rk_throttle):
    login.rules.exempt("user:12345", 600)
    login.rules.override("9/h", 600)
    code, output, errors = rk_throttle("show", "login")
    lines = [line.split() for line in output.splitlines()]
    assert (code, errors) == (0, "")
    assert lines[0] == ["login"]
    assert ["rates", "1/h"] in lines
    assert ["refused", "2", "in", "30", "minutes"] in lines
    assert [line[:4] for line in lines if line and line[0] == "all"] == [["all", "identities", "rates", "9/h"]]
    assert [line[:2] for line in lines if line and line[-1] == hashed("user:12345")] == [["user:123***", "exempt"]]
    assert lines[-3] == ["ip:203.0.113.***", "2", hashed(JOE)]
    assert "--plain" in lines[-1]
    assert "--plain" not in rk_throttle("show", "login", "--plain")[1]
    assert output.splitlines()[-2].startswith("TIMES: in up to a day.")
    assert "12345" not in output
    plain = rk_throttle("show", "login", "--plain")[1]
    assert "user:12345" in plain
    assert JOE in plain


def test_show_of_a_quiet_throttle_says_so(kit, rk_throttle):
    Throttle("quiet", "5/m", ban=Ban(after=3, within=60, seconds=(60, 600)), shadow=True)
    output = rk_throttle("show", "quiet")[1]
    assert "No rules are in force." in output
    assert "No call was refused" in output
    assert "after 3 refusals within 1 min 0 s, for 1 min 0 s, 10 min 0 s" in output
    assert "refuses nothing" in output


def test_show_tells_how_many_rules_it_leaves_out(login, rk_throttle):
    for number in range(5):
        login.rules.ban(number, 60 + number)
    output = rk_throttle("show", "login", "--limit", 2)[1]
    assert "3 more rules are in force" in output
    assert json.loads(rk_throttle("show", "login", "--limit", 2, "--json")[1])["more"] == 3


def test_show_has_the_calls_by_hour(login, rk_throttle):
    code, output, errors = rk_throttle("show", "login", "--hours", 24)
    assert (code, errors) == (0, "")
    lines = [line.split() for line in output.splitlines()]
    assert ["allowed", "1", "in", "24", "h"] in lines
    assert ["refused", "2", "in", "24", "h"] in lines
    rows = lines[lines.index(["HOUR", "ALLOWED", "REFUSED"]) + 1 :]
    rows = rows[: rows.index([])]
    assert [sum(map(int, numbers)) for numbers in zip(*(row[2:] for row in rows), strict=True)] == [1, 2]
    data = json.loads(rk_throttle("show", "login", "--hours", 24, "--json")[1])
    assert len(data["hours"]) == 24
    assert sum(hour["refused"] for hour in data["hours"]) == data["refused"] == 2
    assert datetime.fromisoformat(data["hours"][-1]["start"]) <= timezone.now()


def test_show_json_has_all_that_is_known(login, rk_throttle):
    rule = login.rules.override("9/h", 600, JOE)
    data = json.loads(rk_throttle("show", "login", "--json")[1])
    assert data["rules"] == [
        {
            "kind": "override",
            "identity_hash": hashed(JOE),
            "shown": "ip:203.0.113.***",
            "until": rule.until.isoformat(),
            "rates": "9/h",
        }
    ]
    assert data["offenders"] == [{"identity_hash": hashed(JOE), "shown": "ip:203.0.113.***", "refusals": 2}]
    assert (data["name"], data["more"], data["refused"]) == ("login", 0, 2)
    assert json.loads(rk_throttle("show", "login", "--json", "--plain")[1])["offenders"][0]["shown"] == JOE


def test_what_is_masked_already_is_not_masked_again(kit, rk_throttle):
    kit.options(THROTTLING={"OFFENDERS": "masked"})
    limit = Throttle("login", "1/h")
    limit.rules.ban(JOE, 60)
    assert "ip:203.0.113.*** " in rk_throttle("show", "login")[1]
    kit.options(THROTTLING={"OFFENDERS": "hashed"})
    limit.rules.ban(JOE, 60)
    assert rk_throttle("show", "login")[1].splitlines()[-3].split()[:2] == ["-", "banned"]


def test_show_of_an_identity_is_its_next_answer(login, rk_throttle):
    code, output, errors = rk_throttle("show", "login", JOE)
    lines = [line.split() for line in output.splitlines()]
    assert (code, errors) == (0, "")
    assert lines[0] == ["login,", JOE]
    assert ["now", "refused"] in lines
    assert ["retry", "in", "59", "min"] in [line[:4] for line in lines] or ["retry", "in", "1", "h"] in [
        line[:4] for line in lines
    ]
    assert ["rate", "1/h"] in lines
    login.rules.override("9/h", 600)
    assert "rates 9/h, for all identities, ends in" in rk_throttle("show", "login", JOE)[1]
    login.rules.ban(JOE, 600)
    output = rk_throttle("show", "login", JOE)[1]
    assert "refused (banned)" in output
    assert "rule       banned, ends in" in output
    assert login.peek(JOE).reason == "banned"


def test_show_of_an_identity_as_json(login, rk_throttle):
    rule = login.rules.ban(JOE, 7200)
    data = json.loads(rk_throttle("show", "login", JOE, "--json")[1])
    assert data["rule"] == rule._asdict() | {"until": rule.until.isoformat()}
    assert (data["decision"]["allowed"], data["decision"]["reason"]) == (False, "banned")
    assert data["decision"]["retry_after"] == pytest.approx(7200, abs=5)
    Throttle("never", "0/s")
    data = json.loads(rk_throttle("show", "never", JOE, "--json")[1])
    assert (data["decision"]["retry_after"], data["decision"]["rate"], data["rule"]) == (None, "0/s", None)
    assert "retry in   never" in rk_throttle("show", "never", JOE)[1]


def test_ban_exempt_and_lift_say_what_they_did(login, rk_throttle):
    assert rk_throttle("ban", "login", JOE, 600) == (0, f"Banned from login for 10 min 0 s: {JOE}.\n", "")
    assert login.hit(JOE).reason == "banned"
    assert rk_throttle("exempt", "login", JOE, 600) == (0, f"Exempt from login for 10 min 0 s: {JOE}.\n", "")
    assert login.hit(JOE).reason == "exempt"
    assert rk_throttle("lift", "login", JOE) == (0, f"Lifted: the rule of login for {JOE}.\n", "")
    assert not login.hit(JOE)
    assert rk_throttle("lift", "login", JOE) == (
        1,
        "",
        f"CommandError: Nothing was lifted: login has no rule for {JOE}.\n",
    )


def test_override_is_for_one_identity_or_for_all(login, rk_throttle):
    assert rk_throttle("override", "login", "2/h;9/d", 7200, JOE) == (
        0,
        f"Rates of login are 2/h; 9/d for 2 h 0 min: {JOE}.\n",
        "",
    )
    assert login.hit(JOE).remaining == 1
    assert rk_throttle("override", "login", "5/h", 600)[1] == "Rates of login are 5/h for 10 min 0 s: all identities.\n"
    assert login.hit("ann").remaining == 4
    assert rk_throttle("lift", "login")[1] == "Lifted: the rule of login for all identities.\n"
    assert rk_throttle("lift", "login")[0] == 1
    assert login.peek("bob").limit == 1


def test_reset_forgets_calls(login, rk_throttle):
    assert rk_throttle("reset", "login", JOE) == (0, f"Reset: the calls of {JOE} to login.\n", "")
    assert login.peek(JOE)
    assert rk_throttle("reset", "login", JOE) == (
        1,
        "",
        f"CommandError: Nothing was reset: login counts no calls of {JOE}.\n",
    )


def test_identity_can_be_named_by_its_hash(login, rk_throttle):
    identity_hash = hashed(JOE)
    assert rk_throttle("ban", "login", "--hash", "--", identity_hash, 600)[0] == 0
    assert login.peek(JOE).reason == "banned"
    assert JOE in rk_throttle("show", "login", "--plain")[1]
    assert rk_throttle("exempt", "login", identity_hash, 600, "--hash")[0] == 0
    assert login.peek(JOE).reason == "exempt"
    assert rk_throttle("override", "login", "8/h", 600, identity_hash, "--hash")[0] == 0
    assert login.peek(JOE).limit == 8
    assert rk_throttle("lift", "login", identity_hash, "--hash")[0] == 0
    login.hit(JOE)
    assert rk_throttle("reset", "login", identity_hash, "--hash")[0] == 0
    assert rk_throttle("reset", "login", identity_hash, "--hash")[0] == 1


def test_hash_that_begins_with_a_dash_stands_behind_two(login, rk_throttle):
    identity_hash = next(hashed(str(number)) for number in range(10_000) if hashed(str(number)).startswith("-"))
    assert rk_throttle("ban", "login", "--hash", "--", identity_hash, 600)[0] == 0
    assert login.rules.of(identity_hash=identity_hash).kind == "ban"


def test_changes_answer_programs_too(login, rk_throttle):
    for arguments, kind in ((("ban", "login", JOE, 600), "ban"), (("override", "login", "5/h", 600), "override")):
        data = json.loads(rk_throttle(*arguments, "--json")[1])
        assert (data["action"], data["throttle"], data["rule"]["kind"]) == (kind, "login", kind)
        left = datetime.fromisoformat(data["rule"]["until"]) - timezone.now()
        assert abs(left - timedelta(seconds=600)) < timedelta(seconds=10)
    for action in (("lift", "login", JOE), ("reset", "login", JOE)):
        assert json.loads(rk_throttle(*action, "--json")[1]) == {"action": action[0], "throttle": "login"}


def test_report_proposes_a_rate_in_the_grammar(kit, rk_throttle):
    limit = Throttle("api", "2/m", shadow=True)
    for _ in range(3):
        limit.hit("joe")
    code, output, errors = rk_throttle("report", "api")
    lines = [line.split() for line in output.splitlines()]
    assert (code, errors) == (0, "")
    assert lines[:2] == [["api"], ["rate", "2/m"]]
    assert lines[-1][0] == "proposed"
    assert Throttle("other", lines[-1][1]).rates[0].period == 60
    data = json.loads(rk_throttle("report", "api", "--json")[1])
    assert (data["name"], data["rate"], data["proposed"]) == ("api", "2/m", lines[-1][1])
    assert (data["allowed"] + data["refused"], data["share"]) == (3, pytest.approx(1 / 3))


def test_report_before_anybody_came(kit, rk_throttle):
    Throttle("api", "2/m", shadow=True)
    assert "nothing yet" in rk_throttle("report", "api")[1]
    assert json.loads(rk_throttle("report", "api", "--json")[1])["proposed"] is None


def test_report_needs_shadow_mode(login, rk_throttle):
    code, output, errors = rk_throttle("report", "login")
    assert (code, output) == (1, "")
    assert errors == "CommandError: The throttle 'login' has no report: it needs shadow=True and a rate.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "logn"),
        ("show", "logn", JOE),
        ("reset", "logn", JOE),
        ("ban", "logn", JOE, "60"),
        ("exempt", "logn", JOE, "60"),
        ("override", "logn", "5/m", "60"),
        ("lift", "logn"),
        ("report", "logn"),
    ],
)
def test_unknown_name_says_which_is_near(login, rk_throttle, arguments):
    assert rk_throttle(*arguments) == (
        1,
        "",
        "CommandError: There is no throttle logn. Did you mean 'login'?\n",
    )


def test_unknown_name_that_is_near_to_none_says_which_there_are(login, rk_throttle):
    Throttle("api", "5/m")
    assert rk_throttle("show", "zzz")[2].endswith("throttle zzz. The throttles are: api, login.\n")
    for number in range(30):
        Throttle(f"number{number:02}", "5/m")
    assert rk_throttle("show", "zzz")[2].endswith("number17 and 12 more.\n")


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("nonsense",),
        ("list", "a"),
        ("show",),
        ("show", "login", "--limit", "0"),
        ("show", "login", "--hours", "2161"),
        ("show", "login", JOE, "--hours", "24"),
        ("show", "login", ""),
        ("reset", "login"),
        ("reset", "login", ""),
        ("reset", "login", "nohash", "--hash"),
        ("ban", "login", JOE),
        ("ban", "login", JOE, "0"),
        ("ban", "login", JOE, "nan"),
        ("ban", "login", JOE, "1x"),
        ("ban", "login", JOE, "31622401"),
        ("ban", "login", "", "60"),
        ("ban", "login", "nohash", "60", "--hash"),
        ("ban", "login", "", "60", "--hash"),
        ("override", "login", "5/x", "60"),
        ("override", "login", "0/s", "60"),
        ("override", "login", "5/m", "60", "--hash"),
        ("override", "login", "5/m", "60", ""),
        ("lift", "login", ""),
        ("lift", "login", "", "--hash"),
        ("ban", "free", JOE, "60"),
        ("report",),
    ],
)
def test_wrong_arguments_give_the_usage(login, rk_throttle, wrong, kit):
    Throttle("free", None)
    before = kit.keys()
    code, output, errors = rk_throttle(*wrong)
    assert (code, output) == (2, "")
    assert errors.startswith("usage:")
    assert kit.keys() == before


def test_wrong_rates_name_the_grammar(login, rk_throttle):
    assert "Write a rate as" in rk_throttle("override", "login", "5/x", "60")[2]
    assert "ban the identity" in rk_throttle("override", "login", "0/s", "60")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "login"),
        ("show", "login", JOE),
        ("reset", "login", JOE),
        ("ban", "login", JOE, "60"),
        ("lift", "login"),
        ("override", "login", "5/m", "60", "--json"),
    ],
)
def test_redis_is_unavailable(kit, rk_throttle, arguments):
    Throttle("login", "1/h")
    kit.connect(AWAY)
    code, output, errors = rk_throttle(*arguments)
    assert (code, output) == (69, "")
    # What else tried to reach it in this second may have opened the circuit breaker.
    assert errors.startswith(("CommandError: Redis can't be reached", "CommandError: The Redis connection 'default'"))
    assert len(errors.splitlines()) == 1


def test_wrong_settings_are_no_traceback(kit, rk_throttle):
    kit.options(THROTTLING={"POLICIES": {"api": {"RATES": "5/x"}}})
    code, output, errors = rk_throttle("list")
    assert (code, output) == (78, "")
    assert "REDIS_KIT['THROTTLING']" in errors


def test_views_that_can_not_be_imported_are_no_traceback(kit, rk_throttle, routes):
    name = routes("1 / 0")
    code, output, errors = rk_throttle("show", "login")
    assert (code, output) == (78, "")
    assert errors == (
        f"CommandError: The throttles of ROOT_URLCONF '{name}' can't be found; ZeroDivisionError: division by zero\n"
    )


def test_text_of_others_can_not_control_the_terminal(kit, rk_throttle):
    evil = "user:evil\x1b[2J\n\u202e"
    limit = Throttle(evil, "1/h")
    for _ in range(2):
        limit.hit(evil)
    limit.rules.ban(evil, 60)
    outputs = [
        rk_throttle("list"),
        rk_throttle("show", evil, "--plain"),
        rk_throttle("show", evil, evil),
        rk_throttle("show", "evi"),
        rk_throttle("ban", evil, evil, 60),
        rk_throttle("lift", evil, evil),
        rk_throttle("lift", evil, evil),
        rk_throttle("reset", evil, evil),
        rk_throttle("report", evil),
        rk_throttle("show", evil, "--plain", "--json"),
    ]
    assert {code for code, *_ in outputs} == {0, 1}
    assert all(text.replace("\n", "").isprintable() for _, *both in outputs for text in both)


def test_options_of_every_command_may_stand_at_the_end(kit, rk_throttle):
    assert rk_throttle("list", "--settings", "tests.settings")[0] == 0


def test_call_command_works(login):
    out = io.StringIO()
    call_command("rk_throttle", "ban", "login", JOE, "60", stdout=out)
    assert out.getvalue().startswith("Banned from login")


def test_nothing_is_scanned_and_nothing_logged(login, rk_throttle, kit, commands):
    with commands(kit) as sent:
        for arguments in (("list",), ("show", "login"), ("show", "login", JOE), ("ban", "login", JOE, 60)):
            rk_throttle(*arguments)
    assert sent
    assert not {"SCAN", "KEYS", "HSCAN", "ZSCAN", "SSCAN"} & set(sent)


def test_throttles_of_several_connections_are_listed(kit, rk_throttle, make_server):
    other = make_server()
    kit.options(CONNECTIONS={"default": kit.server.connection, "other": other.connection})
    one, two = Throttle("one", "1/h"), Throttle("two", "1/h", using="other")
    one.hit("joe")
    two.rules.ban("joe", 60)
    assert [line.split() for line in rk_throttle("list")[1].splitlines()[1:3]] == [
        ["one", "1/h", "gcra", "1", "0", "0"],
        ["two", "(other)", "1/h", "gcra", "0", "0", "1"],
    ]


def test_it_works_on_every_kind_of_server(any_kit, rk_throttle):
    limit = Throttle("login", "1/h")
    for _ in range(2):
        limit.hit(JOE)
    for arguments in (("ban", "login", JOE, 60), ("override", "login", "5/h", 60), ("lift", "login", JOE)):
        assert rk_throttle(*arguments)[0] == 0
    output = rk_throttle("show", "login")[1]
    assert "all identities" in output
    assert "ip:203.0.113.***" in output


def test_rule_that_ends_is_shown_no_more(login, rk_throttle):
    rk_throttle("ban", "login", JOE, "0.05")
    wait_for(lambda: "No rules are in force." in rk_throttle("show", "login")[1])


def test_connection_that_is_wrong_is_named(kit, rk_throttle):
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "jobs": {"URL": kit.url}})
    Throttle("login", "1/h")
    code, _, errors = rk_throttle("show", "login", "--using", "x")
    assert (code, "'x' is not a connection; there are default, jobs" in errors) == (2, True), errors
    assert "Did you mean 'default'?" in rk_throttle("show", "login", "--using", "defualt")[2]
    code, _, errors = rk_throttle("show", "login", "--using", "jobs")
    assert "There is no throttle login on the connection jobs, but there is on default." in errors


@pytest.fixture
def export(kit, routes):
    """A view whose key makes ``user:`` and ``ip:``, and the name of its throttle."""
    routes("@throttle('5/m', name='export')\ndef view(request): ...")
    return "export"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("203.0.113.7", "ip:203.0.113.7"),
        ("42", "user:42"),
        ("2001:db8::7", "ip:2001:db8::/64"),
        ("ip:2001:db8::7", "ip:2001:db8::/64"),
        ("usr:42", "user:42"),
        ("user:042", "user:42"),
        ("ip: 203.0.113.7", "ip:203.0.113.7"),
        ("ip:2001:DB8::/64", "ip:2001:db8::/64"),
    ],
)
@pytest.mark.parametrize("action", ["ban", "exempt", "override"])
def test_identity_that_no_key_makes_is_refused(export, rk_throttle, action, given, meant):
    arguments = ("9/h", 60, given) if action == "override" else (given, 60)
    code, output, errors = rk_throttle(action, export, *arguments)
    assert (code, output) == (1, "")
    assert f"Nothing was done. No key of export makes {given}. Its identities begin with user:" in errors
    assert f"Did you mean {meant}?" in errors
    assert rk_throttle(action, export, *arguments, "--as-is")[0] == 0


@pytest.mark.parametrize(
    ("key", "given", "by"),
    [("user", "127.0.0.1", "user"), ("user", "ip:::1", "user"), ("ip", "42", "address"), ("ip", "user:42", "address")],
)
def test_identity_of_a_kind_that_is_not_counted_has_no_suggestion(kit, rk_throttle, routes, key, given, by):
    routes(f"@throttle('5/m', name='form', key={key!r})\ndef view(request): ...")
    code, _, errors = rk_throttle("ban", "form", given, "1h")
    assert (code, "Did you mean" in errors) == (1, False)
    assert f"No key of form makes {given}." in errors
    assert f"form counts by {by}. Give --as-is" in errors


@pytest.mark.parametrize("given", ["ip:10.0.0.0/8", "ip:999.1.1.1", "ip:foo", "ip:", "user:joe", "user:"])
def test_value_that_no_key_makes_has_no_suggestion(export, rk_throttle, given):
    code, _, errors = rk_throttle("ban", export, given, "1h")
    assert (code, "Did you mean" in errors) == (1, False)
    assert "begin with user:<primary key> or ip:<address>. Give --as-is" in errors


def test_lookups_of_an_identity_that_no_key_makes_name_the_likely_identity(export, rk_throttle):
    for action in ("reset", "lift", "show"):
        code, _, errors = rk_throttle(action, export, "203.0.113.7")
        assert (code, "Did you mean ip:203.0.113.7?" in errors) == (1, True)
    assert "allowed" in rk_throttle("show", export, "203.0.113.7", "--as-is")[1]
    for right in (JOE, "user:42", "ip:2001:db8::/64", "ip:invalid"):
        assert rk_throttle("show", export, right)[2] == ""


def test_empty_identity_is_refused(export, rk_throttle):
    for arguments in (("ban", export, "", "1h"), ("override", export, "9/h", "1h", "")):
        code, _, errors = rk_throttle(*arguments)
        assert (code, "IDENTITY is empty; only override and lift may omit it" in errors) == (2, True)


def test_identity_of_a_combined_key_has_all_of_its_parts(kit, rk_throttle, routes):
    routes("@throttle('5/m', name='form', key=['ip', 'post:email'])\ndef view(request): ...")
    assert rk_throttle("ban", "form", "ip:203.0.113.7 post:a@b.c", 60)[0] == 0
    code, _, errors = rk_throttle("ban", "form", "203.0.113.7 a@b.c", 60)
    assert (code, "Did you mean ip:203.0.113.7 post:a@b.c?" in errors) == (1, True)
    assert rk_throttle("ban", "form", "203.0.113.7", 60)[0] == 1


def test_key_that_is_a_function_may_make_any_identity(kit, rk_throttle, routes):
    routes(
        "def tenant(request): ...\n"
        "@throttle('5/m', name='tenants', key=tenant)\ndef view(request): ...\n"
        "@throttle('5/m', name='both', key=['ip', tenant])\ndef other(request): ..."
    )
    assert rk_throttle("ban", "tenants", "acme", 60)[::2] == (0, "")
    code, output, errors = rk_throttle("ban", "both", "203.0.113.7 acme", 60)
    assert (code, "Banned" in output) == (0, True)
    assert errors.startswith("Warning: No key of both makes 203.0.113.7 acme. Its identities begin with ip:<address> ")


def test_last_part_of_a_name_suffices_if_it_is_unique(kit, rk_throttle, routes):
    routes(
        "from redis_kit.throttling import Throttle\n"
        "Throttle('shop.views.buy', '5/m')\nThrottle('shop.views.pay', '5/m')\n"
        "Throttle('bank.views.pay', '5/m')\nThrottle('x.pay-later', '5/m')"
    )
    code, output, _ = rk_throttle("show", "buy")
    assert (code, output.splitlines()[0]) == (0, "shop.views.buy")
    assert "shop.views.buy" in rk_throttle("ban", "views.buy", "joe", 60)[1]
    code, _, errors = rk_throttle("show", "pay")
    assert (code, "Several throttles end with pay: bank.views.pay, shop.views.pay." in errors) == (1, True)
    assert "There is no throttle later." in rk_throttle("show", "later")[2]


def test_throttle_without_a_key_takes_any_identity(login, rk_throttle):
    assert rk_throttle("ban", "login", "ann", 60)[::2] == (0, "")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h", 3600), ("15m", 900), ("90", 90), ("1.5", 1.5), ("2 days", 172800)]
)
def test_seconds_may_have_a_unit(login, rk_throttle, text, seconds):
    before = timezone.now()
    assert rk_throttle("ban", "login", JOE, text)[0] == 0
    assert login.rules.of(JOE).until - before == pytest.approx(timedelta(seconds=seconds), abs=timedelta(seconds=5))
