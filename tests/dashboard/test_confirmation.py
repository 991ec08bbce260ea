"""Buttons with a confirmation: a typed name, or a second value."""

import pytest
from django.contrib.admin.models import LogEntry

from tests.dashboard.support import vault
from tests.dashboard.support.html import Parsed, page, refused, said
from tests.fixtures.dashboard import ADMIN

OPEN, RESIZE = f"{ADMIN}vault/do/open/", f"{ADMIN}vault/do/resize/"
YES = {"row": "0%3Agold", "confirmed": "1"}


@pytest.fixture(autouse=True)
def boxes(kit, own_panels):
    kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.vault.Vault"])
    vault.DONE.clear()
    vault.BOXES.clear()
    vault.BOXES["gold"] = "bars"


def fields(found):
    """Return what a browser would send: the hidden fields."""
    return {one.attributes["name"]: one.attributes["value"] for one in found.find("input", type="hidden")}


def test_name_has_to_be_typed(boss):
    asked = page(boss.post(OPEN, {"row": "0%3Agold"}))
    assert [one.words for one in asked.find("dd")] == ["gold"]
    (typed,) = asked.find("input", id="rk-typed")
    assert (typed.attributes["name"], "required" in typed.attributes) == ("typed", True)
    assert [one.words for one in asked.find("label", **{"for": "rk-typed"})] == ["Type the name above to confirm"]
    assert vault.DONE == []
    response = boss.post(OPEN, {**fields(asked), "typed": " gold "})
    assert (response.status_code, response.url) == (302, f"{ADMIN}vault/")
    assert vault.DONE == [("open", "0:gold")]
    assert said(response) == ["gold is open."]
    assert LogEntry.objects.get().get_change_message() == "Open: gold – gold is open."


def test_page_says_what_will_happen(boss):
    asked = page(boss.post(RESIZE, {"value": "gold"}))
    assert [one.words for one in asked.find("p", class_="rk-effect")] == ["gold holds bars <b>now</b>."]
    assert not page(boss.post(OPEN, {"row": "0%3Agold"})).find("p", class_="rk-effect")


def test_action_gets_the_value_that_the_confirmation_names(boss):
    asked = page(boss.post(RESIZE, {"value": "any"}))
    assert [one.words for one in asked.find("dd")] == ["gold"]
    boss.post(RESIZE, {**fields(asked), "wants": "7"})
    assert vault.DONE == [("resize", "gold", "7")]
    assert LogEntry.objects.get().object_repr == "Resize: gold"


def test_button_whose_effect_is_nothing_leads_back_with_the_reason(boss):
    response = boss.post(RESIZE, {"value": "gone"})
    assert (response.status_code, response.url) == (302, f"{ADMIN}vault/")
    assert said(response) == ["That box is gone."]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("typed", [{"typed": "silver"}, {"typed": "Gold"}, {"typed": ""}, {}, {"typed": "0:gold"}])
def test_other_text_is_refused_and_can_be_corrected(boss, typed):
    response = boss.post(OPEN, {**YES, **typed, "reason": "it <b>hangs</b>"})
    assert response.status_code == 400
    assert vault.DONE == []
    assert not LogEntry.objects.exists()
    found = Parsed(response.content.decode())
    assert found.find("p", id="rk-wrong")[0].words == "The text you typed is not the name above. Nothing was done."
    (field,) = found.find("input", id="rk-typed")
    assert (field.attributes["aria-describedby"], field.attributes["aria-invalid"]) == ("rk-wrong", "true")
    assert found.find("input", id="rk-reason")[0].attributes["value"] == "it <b>hangs</b>"
    assert boss.post(OPEN, {**YES, "typed": "gold"}).status_code == 302


def test_reason_goes_into_the_log_and_is_cut(boss):
    boss.post(OPEN, {**YES, "typed": "gold", "reason": "stuck\x1b[31m" + "x" * 500})
    text = LogEntry.objects.get().get_change_message()
    assert text.startswith("Open: gold – gold is open. Reason: stuck\\x1b[31mxxx")
    assert len(text) < 300


@pytest.mark.parametrize("name", ["a\nb", "\u202eevil", " spaced ", "部门", "x" * 512, '"><script>', "100%", "\x00"])
def test_any_name_can_be_typed_as_it_is_shown(boss, name):
    vault.BOXES.clear()
    vault.BOXES[name] = 1
    button = page(boss.get(f"{ADMIN}vault/")).find("button", name="row")[0]
    asked = page(boss.post(OPEN, {"row": button.attributes["value"]}))
    (shown,) = asked.find("dd")
    boss.post(OPEN, {**fields(asked), "typed": "".join(shown.text)})
    assert [*vault.DONE] == [("open", f"0:{name}")]


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
def test_only_post_does_it(boss, method):
    response = getattr(boss, method)(f"{OPEN}?row=0%3Agold&confirmed=1&typed=gold")
    assert response.status_code == (302 if method in ("get", "head") else 405)
    assert vault.DONE == []


def test_viewer_who_had_to_log_in_is_told_that_nothing_was_done(boss):
    response = boss.get(OPEN)
    assert (response.status_code, response.url) == (302, f"{ADMIN}vault/")
    assert said(response) == ["Nothing was done: you were logged out. Press the button again."]


def test_token_is_required(signed_in):
    client = signed_in("superuser", enforce_csrf_checks=True)
    assert client.post(OPEN, {**YES, "typed": "gold"}).status_code == 403
    assert vault.DONE == []


@pytest.mark.parametrize(
    "codenames", [("view_dashboard",), ("view_dashboard", "manage_queues"), ("release_locks",), ()]
)
def test_permission_is_required(signed_in, codenames):
    client = signed_in(*codenames)
    assert client.post(OPEN, {**YES, "typed": "gold"}).status_code == 403
    assert client.post(OPEN, YES).status_code == 403
    assert vault.DONE == []
    if "view_dashboard" in codenames:
        assert OPEN not in client.get(f"{ADMIN}vault/").content.decode()


def test_permission_is_enough(signed_in):
    assert signed_in("view_dashboard", "release_locks").post(OPEN, {**YES, "typed": "gold"}).status_code == 302
    assert vault.DONE == [("open", "0:gold")]


def test_wrong_value_gives_an_error_before_the_confirmation(boss):
    for given in ({"row": "junk"}, {"row": "junk", "confirmed": "1", "typed": "junk"}):
        response = boss.post(OPEN, given)
        assert response.status_code == 302
        assert said(response)[-1] == "junk is not a box."
    assert said(boss.post(OPEN, {}))[-1] == "Nothing was done: the field was empty."
    assert vault.DONE == []


def test_action_for_rows_only_has_no_form_below(boss):
    found = page(boss.get(f"{ADMIN}vault/"))
    assert [form.attributes.get("action") for form in found.find("form")] == [None, RESIZE]
    buttons = [(one.attributes["formaction"], one.attributes["value"]) for one in found.find("button", name="row")]
    assert buttons == [(OPEN, "0%3Agold"), (RESIZE, "0%3Agold")]
    assert {one.words for one in found.find("button", name="row")} == {"Open…", "Resize…"}


def test_row_without_a_value_has_no_buttons(boss):
    vault.BOXES["locked"] = 1
    found = page(boss.get(f"{ADMIN}vault/"))
    assert len(found.find("th", scope="row")) == 2
    assert len(found.find("button", name="row")) == 2


def test_second_value_is_requested_and_passed_to_the_action(boss):
    asked = page(boss.post(RESIZE, {"value": "gold"}))
    assert [one.words for one in asked.find("label", **{"for": "rk-wants"})] == ["New size"]
    assert not asked.find("input", id="rk-typed")
    boss.post(RESIZE, {**fields(asked), "wants": " 12 "})
    boss.post(RESIZE, fields(asked))
    assert vault.DONE == [("resize", "gold", "12"), ("resize", "gold", "")]


def test_wrong_second_value_is_asked_for_again_beside_what_was_entered(boss):
    asked = page(boss.post(RESIZE, {"value": "gold"}))
    response = boss.post(RESIZE, {**fields(asked), "wants": "many", "reason": "too small"})
    assert refused(response) == "The size must be a number."
    again = Parsed(response.content.decode())
    entered = {one.attributes["name"]: one.attributes["value"] for one in again.find("input", type="text")}
    assert entered == {"wants": "many", "reason": "too small"}
    assert vault.DONE == []
    assert not LogEntry.objects.exists()
    boss.post(RESIZE, {**fields(again), "wants": "12"})
    assert vault.DONE == [("resize", "gold", "12")]


def test_meters_are_drawn_beside_their_text(boss):
    found = page(boss.get(f"{ADMIN}vault/"))
    assert [one.words for one in found.find("span", class_="rk-drawn")] == ["12.3 s", "2 of 5"]
    drawings = [one for one in found.find("svg") if "rk-meter" in one.attributes["class"]]
    assert [one.attributes["aria-hidden"] for one in drawings] == ["true"] * 2
    assert [one.attributes["width"] for one in found.find("rect", class_="rk-part")] == ["41.0", "40.0"]
