from urllib.parse import quote

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.utils import translation

from redis_kit.core.errors import InvalidName, OutOfMemory, RedisUnavailable
from redis_kit.core.panels import Table
from tests.dashboard.support import parts
from tests.dashboard.support.html import page, said, whole_page
from tests.fixtures.dashboard import ADMIN

SELL, CLEAR, RESTOCK = (f"{ADMIN}stock/do/{name}/" for name in ("sell", "clear", "restock"))
REFLECT = f"{ADMIN}mirror/do/reflect/"


def left(stock, part):
    return stock.client.hget(parts.key("stock"), part)


def test_action_is_run_confirmed_by_a_message_and_logged(stock, boss):
    response = boss.post(SELL, {"row": "bolt"})
    assert (response.status_code, response.url) == (302, f"{ADMIN}stock/")
    assert left(stock, "bolt") == "2"
    assert said(response) == ["bolt: 2 are left."]
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == "Sell one: bolt – bolt: 2 are left."
    assert (entry.object_id, entry.object_repr, entry.action_flag) == ("stock", "Sell one: bolt", CHANGE)
    assert entry.user.pk == int(boss.session["_auth_user_id"])
    assert entry.get_admin_url() == f"{ADMIN}stock/"
    (message,) = whole_page(boss.get(f"{ADMIN}stock/")).find("ul", class_="messagelist")
    assert message.words == "Bolt: 2 are left."


def test_recent_actions_say_what_was_done_and_link_to_the_panel(stock, boss):
    boss.post(SELL, {"row": "bolt"})
    assert "Sell one: bolt" in [one.words for one in page(boss.get("/admin/")).find("a", href=f"{ADMIN}stock/")]


def test_value_can_be_typed(stock, boss):
    boss.post(SELL, {"value": " nut "})
    assert left(stock, "nut") == "3"


def test_action_without_a_value_is_a_plain_button(stock, boss):
    response = boss.post(RESTOCK, {"value": "ignored"})
    assert said(response) == ["Restocked."]
    assert left(stock, "bolt") == "100"
    assert LogEntry.objects.get().get_change_message() == "Restock – Restocked."


def test_nothing_is_done_for_an_empty_field(stock, boss):
    response = boss.post(SELL, {"value": "  "})
    assert said(response) == ["Nothing was done: the field was empty."]
    assert not LogEntry.objects.exists()


def test_action_with_confirmation_asks_first(stock, boss):
    response = boss.post(CLEAR, {"row": "bolt"})
    assert left(stock, "bolt") == "3"
    assert not LogEntry.objects.exists()
    found = page(response)
    assert [one.words for one in found.find("dd")] == ["bolt"]
    (form,) = found.find("form", action=CLEAR)
    assert form.attributes["method"] == "post"
    assert [one.attributes["href"] for one in found.find("a", class_="cancel-link")] == [f"{ADMIN}stock/"]
    fields = {one.attributes["name"]: one.attributes["value"] for one in found.find("input", type="hidden")}
    boss.post(CLEAR, fields)
    assert left(stock, "bolt") is None
    assert LogEntry.objects.get().get_change_message() == "Clear: bolt – bolt: 1 cleared."


@pytest.mark.parametrize("url", [SELL, CLEAR, RESTOCK, REFLECT])
@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
def test_only_post_does_it_and_a_get_leads_to_the_page(stock, boss, url, method):
    response = getattr(boss, method)(url)
    assert response.status_code == (302 if method in ("get", "head") else 405)
    assert response.headers.get("Location", url).startswith(url.partition("do/")[0])
    assert left(stock, "bolt") == "3"


@pytest.mark.parametrize("url", [SELL, CLEAR, RESTOCK, REFLECT])
def test_token_is_required(stock, signed_in, url):
    client = signed_in("superuser", enforce_csrf_checks=True)
    assert client.post(url, {"row": "bolt", "confirmed": "1"}).status_code == 403
    assert left(stock, "bolt") == "3"
    assert not LogEntry.objects.exists()


def test_token_of_the_page_is_enough(stock, signed_in):
    client = signed_in("superuser", enforce_csrf_checks=True)
    found = page(client.get(f"{ADMIN}stock/"))
    token = found.find("input", name="csrfmiddlewaretoken")[0].attributes["value"]
    assert client.post(SELL, {"row": "bolt", "csrfmiddlewaretoken": token}).status_code == 302
    assert left(stock, "bolt") == "2"


def test_buttons_of_rows_belong_to_a_form_with_a_token(stock, boss):
    found = page(boss.get(f"{ADMIN}stock/"))
    buttons = [one for one in found.find("button") if one.attributes.get("name") == "row"]
    assert [(one.attributes["formaction"], one.attributes["value"]) for one in buttons] == [
        (SELL, "bolt"),
        (CLEAR, "bolt"),
        (SELL, "nut"),
        (CLEAR, "nut"),
    ]
    assert {one.attributes["form"] for one in buttons} == {"rk-row-form"}
    assert len(found.find("form", id="rk-row-form")) == 1


@pytest.mark.parametrize(
    ("codenames", "allowed"),
    [
        (("view_dashboard",), set()),
        (("view_dashboard", "manage_queues"), {SELL, RESTOCK, REFLECT}),
        (("view_dashboard", "release_locks"), {CLEAR}),
        (("view_dashboard", "reset_throttles"), set()),
        (("manage_queues", "release_locks"), set()),
        ((), set()),
        (("superuser",), {SELL, CLEAR, RESTOCK, REFLECT}),
    ],
)
def test_each_action_needs_its_own_permission_and_the_view_permission(stock, signed_in, codenames, allowed):
    client = signed_in(*codenames)
    for url in (SELL, CLEAR, RESTOCK, REFLECT):
        response = client.post(url, {"row": "bolt", "confirmed": "1"})
        assert response.status_code == (302 if url in allowed else 403), url
    assert LogEntry.objects.count() == len(allowed)
    if "view_dashboard" in codenames:
        assert offered(client) == allowed
        assert (left(stock, "bolt") == "3") == (not allowed)


def offered(client):
    """Return the addresses of all buttons on the pages that this client sees."""
    found = set()
    for slug in ("stock", "mirror"):
        one = page(client.get(f"{ADMIN}{slug}/"))
        found |= {button.attributes["formaction"] for button in one.find("button") if "formaction" in button.attributes}
        found |= {form.attributes["action"] for form in one.find("form") if form.attributes.get("action")}
    return found


def test_anonymous_users_are_redirected_to_the_login(stock, client, db):
    response = client.post(SELL, {"row": "bolt"})
    assert (response.status_code, response.url[:13]) == (302, "/admin/login/")
    assert left(stock, "bolt") == "3"


def test_unknown_action_is_404(stock, boss):
    for name in ("nothing", "content", "actions", "__init__", "<script>"):
        response = boss.post(f"{ADMIN}stock/do/{name}/", {"row": "x"})
        assert response.status_code == 404
    assert boss.post(f"{ADMIN}nothing/do/sell/", {"row": "x"}).status_code == 404


NAMES = [
    "a\nb",
    "a\r\nb",
    "nul\0",
    " space ",
    "100% {x}:*",
    "%41",
    "☃ 部",
    '"><script>',
    "'",
    "\u202eevil",
    "+",
    "&amp;",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_comes_back_from_its_row_unchanged(stock, boss, name):
    stock.client.delete(parts.key("stock"))
    stock.client.hset(parts.key("stock"), name, 5)
    buttons = page(boss.get(f"{ADMIN}stock/")).find("button", name="row")
    assert len(buttons) == 2
    boss.post(SELL, {"row": buttons[0].attributes["value"]})
    assert left(stock, name) == "4"
    asked = page(boss.post(CLEAR, {"row": buttons[1].attributes["value"]}))
    fields = {one.attributes["name"]: one.attributes["value"] for one in asked.find("input", type="hidden")}
    boss.post(CLEAR, fields)
    assert stock.client.hgetall(parts.key("stock")) == {}


def test_row_value_that_is_not_quoted_is_harmless(stock, boss):
    for value in ("%ff%fe", "%", "%zz", "x" * 101):
        assert boss.post(SELL, {"row": value}).status_code == 302


def test_refused_value_gives_a_message_and_no_log_entry(stock, boss):
    response = boss.post(SELL, {"value": "x" * 101})
    assert said(response) == ["The part's name is over 100 characters."]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("error", "answer", "logged"),
    [
        (RedisUnavailable("away"), "away", []),
        (OutOfMemory("full"), "full", []),
        (InvalidName("bad"), "bad", []),
        (
            RedisUnavailable("cut off", indeterminate=True),
            "The outcome is unknown. cut off",
            ["Sell one: bolt – The outcome is unknown."],
        ),
    ],
)
def test_failed_action_is_logged_if_it_may_have_happened(stock, boss, error, answer, logged):
    parts.FAILURE.append(error)
    response = boss.post(SELL, {"row": "bolt"})
    assert response.status_code == 302
    assert said(response) == [answer]
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == logged


def test_outage_is_told_in_the_language_of_the_viewer(own_kit, own_panels, boss):
    own_kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts"])
    own_kit.server.stop()
    with translation.override("zh-hans"):
        (message,) = said(boss.post(SELL, {"row": "bolt"}))
    assert message.startswith("无法连接 Redis (")


def test_message_of_an_action_is_escaped_and_cut(stock, boss):
    boss.post(REFLECT, {"value": "<script>alert(1)</script>\x1b[31m" + "x" * 5000})
    found = whole_page(boss.get(f"{ADMIN}mirror/"))
    (message,) = found.find("ul", class_="messagelist")
    assert message.words.startswith("<script>alert(1)</script>\\x1b[31mx")
    assert len(message.words) <= 1000
    assert len(LogEntry.objects.get().get_change_message()) <= 1000
    assert all(one.attributes.get("src") for one in found.find("script"))


def test_panel_handles_a_double_submit(stock, boss):
    fields = {"row": "bolt", "confirmed": "1"}
    assert said(boss.post(CLEAR, fields)) == ["bolt: 1 cleared."]
    assert said(boss.post(CLEAR, fields))[-1] == "bolt: 0 cleared."


def test_redirect_never_leaves_the_dashboard(stock, boss):
    response = boss.post(f"{SELL}?next=//evil.example/", {"row": "bolt", "next": "//evil.example/"})
    assert response.url == f"{ADMIN}stock/"


def test_table_offers_only_actions_that_exist(stock, boss):
    parts.MIRROR[:] = [Table("T", ("A",), [("one",)], actions=("reflect", "gone", "content"))]
    buttons = page(boss.get(f"{ADMIN}mirror/")).find("button", name="row")
    assert [one.attributes["formaction"] for one in buttons] == [REFLECT]
    assert quote("one") == buttons[0].attributes["value"]
    assert buttons[0].attributes["aria-label"] == "Reflect: one"
