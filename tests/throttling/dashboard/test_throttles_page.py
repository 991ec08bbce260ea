"""The page about throttles in the admin: whom they refuse, what rules hold, and the buttons that change it."""

from time import monotonic

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import translation

from redis_kit.core import component, connections
from redis_kit.core.keys import hashed
from redis_kit.throttling import Throttle, throttle
from redis_kit.throttling.throttles import registered
from tests.dashboard.support.attacks import SAMPLE, harmless_links, without_titles
from tests.dashboard.support.html import page, refused, row_buttons, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("none_registered")]

PAGE = f"{ADMIN}throttles/"
NAMES = ("reset", "ban", "exempt", "override", "override_all", "lift")
URLS = {name: f"{PAGE}do/{name}/" for name in NAMES}
ADDRESS = "ip:198.51.100.4"
WHO = hashed(ADDRESS)
ALONE = tuple(path for path in component.BUILTIN if "throttling" in path or "dashboard" in path)


@pytest.fixture
def login(kit):
    """A throttle that refused somebody twice, and bans somebody else."""
    kit.options(THROTTLING={"REMEMBER": 0})
    found = Throttle("login", "1/h")
    for _ in range(3):
        found.hit(ADDRESS)
    found.rules.ban("user:7", 600)
    return found


def buttons(client, **asked):
    return row_buttons(page(client.get(PAGE, asked)))


def hidden(response):
    return {one.attributes["name"]: one.attributes["value"] for one in page(response).find("input", type="hidden")}


def press(client, name, head, **given):
    """Press the button of a row, fill in the page of confirmation, and return the answer."""
    asked = client.post(URLS[name], {"row": buttons(client)[name, head]})
    assert not LogEntry.objects.exists()
    return client.post(URLS[name], {**hidden(asked), **given})


def test_page_shows_throttles_identities_and_rules(login, boss):
    found = page(boss.get(PAGE))
    assert [one.words for one in found.find("h2")] == [
        "Allowed per minute",
        "Refused per minute",
        "Throttles",
        "Refused most often, in up to a day",
        "Rules in force, in the order in which they end",
    ]
    assert [one.words for one in found.find("th", scope="row") if "role" in one.attributes] == [
        "login",
        f"{ADDRESS} {WHO}",
        f"user:7 {hashed('user:7')}",
    ]
    assert not found.find("p", class_="rk-error")


def test_identities_are_masked_without_the_permission(login, signed_in):
    looker = signed_in("view_dashboard", "reset_throttles").get(PAGE).content.decode()
    assert "ip:198.51.100.***" in looker
    assert ADDRESS not in looker
    assert ADDRESS in signed_in("view_dashboard", "view_identities").get(PAGE).content.decode()


def test_identity_is_reset(login, signed_in):
    client = signed_in("view_dashboard", "reset_throttles")
    response = press(client, "reset", "ip:198.51.100.***", reason="asked for it")
    assert said(response) == [f"All calls were reset: login, {WHO}."]
    assert login.peek(ADDRESS)
    text = LogEntry.objects.get().get_change_message()
    assert text == f"Reset: login, {WHO} – All calls were reset: login, {WHO}. Reason: asked for it"


def test_identity_is_banned_exempted_and_given_rates(login, boss):
    for name, wants, kind in (
        ("ban", "15m", "ban"),
        ("exempt", "2h", "exempt"),
        ("override", "9/m for 1d", "override"),
    ):
        LogEntry.objects.all().delete()
        assert press(boss, name, ADDRESS, wants=wants).status_code == 302
        assert login.rules.of(ADDRESS).kind == kind
        assert LogEntry.objects.count() == 1
    assert login.rules.of(ADDRESS).shown == ADDRESS  # though the button knew its hash alone
    assert login.peek(ADDRESS).limit == 9


def test_rates_for_everybody_need_the_name_typed(login, boss):
    asked = boss.post(URLS["override_all"], {"row": buttons(boss)["override_all", "login"]})
    given = {**hidden(asked), "wants": "100/m for 2h"}
    assert boss.post(URLS["override_all"], {**given, "typed": "logon"}).status_code == 400
    assert login.rules.of() is None
    boss.post(URLS["override_all"], {**given, "typed": "login"})
    assert login.rules.of().rates == "100/m"
    text = LogEntry.objects.get().get_change_message()
    assert text == "Override: login – Rates are 100/m for 2h: login."
    (row,) = [one for one in page(boss.get(PAGE)).find("th", scope="row") if one.words == "all identities"]
    assert row.attributes["role"] == "rowheader"


def test_rule_is_lifted(login, boss):
    assert said(press(boss, "lift", "user:7")) == [f"The rule was lifted: login, {hashed('user:7')}."]
    assert login.rules.list() == []
    assert ("lift", "user:7") not in buttons(boss)


def test_rule_for_everybody_is_lifted_alone(login, boss):
    login.rules.override("9/m", 60)
    press(boss, "lift", "all identities")
    assert [rule.kind for rule in login.rules.list()] == ["ban"]


def test_second_press_finds_nothing_and_is_not_logged(login, boss):
    value = buttons(boss)["lift", "user:7"]
    for _ in range(2):
        response = boss.post(URLS["lift"], {"row": value, "confirmed": "1"})
    assert said(response)[-1] == f"Nothing was lifted: there is no rule for login, {hashed('user:7')}."
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "wants"),
    [
        ("ban", ""),
        ("ban", "ever"),
        ("exempt", "0"),
        ("exempt", "9999d"),
        ("override", "9/m"),
        ("override", "0/s for 1h"),
    ],
)
def test_wrong_times_and_rates_are_told_and_not_logged(login, boss, name, wants):
    assert refused(press(boss, name, ADDRESS, wants=wants))
    assert login.rules.of(ADDRESS) is None
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    "codenames", [("view_dashboard",), ("view_dashboard", "view_identities"), ("reset_throttles",)]
)
def test_permission_to_change_is_needed(login, signed_in, boss, codenames):
    client = signed_in(*codenames)
    login.rules.override("9/m", 60)
    pressed = set()
    for (name, head), value in buttons(boss).items():
        given = {"row": value, "confirmed": "1", "typed": head, "wants": "9/m for 1h" if "over" in name else "1h"}
        assert client.post(URLS[name], given).status_code == 403
        pressed.add(name)
    assert pressed == set(NAMES)
    assert [rule.kind for rule in login.rules.list()] == ["override", "ban"]
    assert not login.peek(ADDRESS)
    assert not LogEntry.objects.exists()
    if "view_dashboard" in codenames:
        assert buttons(client) == {}


@pytest.mark.parametrize("name", NAMES)
def test_token_and_post_are_required(login, boss, signed_in, name):
    strict = signed_in("superuser", enforce_csrf_checks=True)
    given = {"row": f"{WHO}%20login", "confirmed": "1", "typed": "login", "wants": "9/m for 1h"}
    assert strict.post(URLS[name], given).status_code == 403
    assert boss.get(URLS[name], given).status_code == 302
    assert [rule.kind for rule in login.rules.list()] == ["ban"]


@pytest.mark.parametrize("value", ["junk", "", "%20", f"{WHO}%20none", "%ff%fe", f"{WHO}x%20login", "x" * 3000])
@pytest.mark.parametrize("name", NAMES)
def test_value_of_no_row_does_no_harm(login, boss, name, value):
    response = boss.post(URLS[name], {"row": value, "confirmed": "1", "typed": "none", "wants": "9/m for 1h"})
    assert response.status_code in (302, 400)
    assert [rule.kind for rule in login.rules.list()] == ["ban"]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [("203.0.113.7", "ip:203.0.113.7"), ("usr:42", "user:42"), ("ip:2001:DB8::/64", "ip:2001:db8::/64")],
)
def test_identity_that_no_key_makes_is_not_looked_up(kit, boss, given, meant):
    view = throttle("5/m", name="export")(lambda request: None)
    found = page(boss.get(PAGE, {"throttle": "export", "identity": given}))
    told = [one.words for one in found.find("p", class_="rk-hint")]
    assert f"No key of this throttle makes this identity. Did you mean {meant}?" in told
    assert "Did you mean" not in str(page(boss.get(PAGE, {"throttle": "export", "identity": meant})).elements)
    assert view  # which keeps the throttle


def test_identity_is_looked_up_and_changed(login, signed_in):
    client = signed_in("view_dashboard", "reset_throttles")
    asked = {"throttle": "login", "identity": "user:7"}
    found = page(client.get(PAGE, asked))
    assert found.find("h2")[0].words == "Looked up in login"
    cells = [one.words for one in found.find("td", role="cell")][:5]
    assert cells[:2] == ["refused: banned", "–"]
    assert cells[4].startswith("banned 20")
    value = buttons(client, **asked)["lift", "user:7"]
    client.post(URLS["lift"], {"row": value, "confirmed": "1"})
    assert login.peek("user:7")
    assert "allowed" in [one.words for one in page(client.get(PAGE, asked)).find("td", role="cell")]


def test_look_up_needs_a_permission(login, signed_in):
    asked = {"throttle": "login", "identity": ADDRESS}
    found = page(signed_in("view_dashboard").get(PAGE, asked))
    assert not found.find("input", name="identity")
    assert "Looked up" not in found.find("h2")[0].words
    assert ADDRESS not in signed_in("view_dashboard").get(f"{PAGE}fragment/", asked).content.decode()


def test_look_up_in_a_missing_throttle_says_so_beside_the_tables(login, boss):
    found = page(boss.get(PAGE, {"throttle": "none", "identity": "joe"}))
    assert found.find("p", class_="rk-hint")[0].words == "This process has not built the throttle none."
    assert len(found.find("h2")) == 6
    assert not found.find("p", class_="rk-error")


def test_page_of_a_throttle_is_reached_from_the_list(login, signed_in):
    client = signed_in("view_dashboard")
    (link,) = [one for one in page(client.get(PAGE)).find("a") if one.words == "login"]
    found = page(client.get(link.attributes["href"]))
    assert [one.words for one in found.find("h2")][:2] == ["Throttle login", "Calls"]
    (week,) = [one for one in found.find("a") if one.words == "7 days"]
    there = page(client.get(week.attributes["href"]))
    assert [one.words for one in there.find("a", aria_current="true")] == ["7 days"]
    (live,) = there.find("div", id="rk-live")
    assert live.attributes["data-url"].endswith("?throttle=login&range=168")


@pytest.mark.parametrize("attack", SAMPLE[::3])  # a tag, a quote, a template, control characters
def test_identities_are_escaped_in_the_page(kit, signed_in, monkeypatch, attack):
    monkeypatch.setattr(component, "BUILTIN", ALONE)  # what others show on the overview may change meanwhile
    kit.options(THROTTLING={"REMEMBER": 0})

    def pages(identity):
        registered.clear()
        for key in kit.keys():
            kit.client.delete(key)
        client, throttle = signed_in("superuser"), Throttle("login", "1/h")
        for _ in range(3):
            throttle.hit(identity)
        throttle.rules.ban(identity, 600)
        asked = {"throttle": "login", "identity": identity}
        value = f"{hashed(throttle.checked(identity.strip() or 'x', 1))}%20login"
        found = [whole_page(client.get(PAGE, asked)), whole_page(client.get(ADMIN))]
        found.append(whole_page(client.get(PAGE, {"throttle": identity, "range": identity})))
        found.append(whole_page(client.post(URLS["ban"], {"row": value})))
        client.post(URLS["ban"], {"row": value, "confirmed": "1", "wants": identity})
        return [*found, whole_page(client.get(PAGE)), whole_page(client.get("/admin/"))]

    before = pages("w" * len(attack))
    for harmless, found in zip(before, pages(attack), strict=True):
        assert without_titles(found.shape) == without_titles(harmless.shape)
        assert harmless_links(found)


def test_sixty_throttles_make_one_page(kit, boss):
    for number in range(60):
        throttle = Throttle(f"t{number}", "5/m", shadow=number % 2 == 0)
        throttle.hit("joe")
    found = page(boss.get(PAGE))
    assert len(found.find("button", formaction=URLS["override_all"])) == 60
    assert not found.find("p", class_="rk-error")


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_look_up_is_answered_in_time_while_redis_is_unavailable(own_kit, boss, how):
    asked = {"throttle": "login", "identity": "joe"}
    for policy in ("open", "closed", "local"):
        Throttle("login", "5/m", on_failure=policy)
    boss.get(PAGE, asked)
    getattr(own_kit.server, how)()
    try:
        connections.close()  # so that no breaker is open yet
        started = monotonic()
        found = page(boss.get(PAGE, asked))
        assert monotonic() - started < 5  # without a time limit a frozen server is waited for until the test is killed
        assert found.find("p", class_="rk-error")
    finally:
        own_kit.server.thaw() if how == "freeze" else None


def test_page_is_in_the_language_of_its_viewer(login, boss):
    login.rules.exempt("user:8", 60)
    login.rules.override("9/m", 60)
    Throttle("search", "5/m", shadow=True).hit("joe")
    with translation.override("zh-hans"):
        text = boss.get(PAGE, {"throttle": "login", "identity": "user:7"}).content.decode()
    for words in ("查询", "封禁", "豁免", "限流器", "影子模式", "全部身份"):
        assert words in text
    for words in ("Look up", "Ban", "Exempt", "Override", "Lift", "all identities", "shadow", "refused", "Identity"):
        assert words not in text.partition("<main")[2]


@pytest.mark.once
def test_identity_is_looked_up_and_banned_with_the_keyboard(visit, monkeypatch, login):
    own = ("redis_kit.throttling.component.Throttling", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    login.rules.override("9/m", 60, "x" * 120)
    Throttle("a.view.with.a.long.name:post", "5/m; 100/h burst 7", shadow=True, on_failure="local").hit("joe")

    def look(page):
        page.get_by_label("Throttle", exact=True).select_option("login")
        page.get_by_label("Identity, such as").fill("user:9")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Looked up in login")
        assert layout_problems(page) == []
        with page.expect_response("**/fragment/?*identity=user%3A9*"):
            pass
        page.get_by_role("button", name="Ban: user:9").press("Enter")
        page.get_by_label("Duration, such as").fill("15m")
        assert layout_problems(page) == []
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")

    visit(look, start=PAGE)
    assert login.rules.of("user:9").kind == "ban"


def test_rate_of_a_single_call_is_not_zero(kit, boss):
    throttle = Throttle("rare", "1/h")
    assert [bool(throttle.hit("me")) for _ in range(2)] == [True, False]
    assert "0.03" in [cell.words for cell in page(boss.get(PAGE)).find("td")]
