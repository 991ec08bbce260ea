"""The page about locks in the admin: a lock that hangs is looked at and released, a limit is changed."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.utils import translation

from redis_kit.locks import Lock, Semaphore
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN

PAGE = f"{ADMIN}locks/"
RELEASE, RELEASE_ALL, SET_LIMIT = (f"{PAGE}do/{name}/" for name in ("release", "release_all", "set_limit"))


def buttons(client):
    """Return the values of the buttons of rows, by the address that they go to and the name in their row."""
    found = page(client.get(PAGE)).find("button", name="row")
    return {
        (one.attributes["formaction"], one.attributes["aria-label"].partition(": ")[2]): one.attributes["value"]
        for one in found
    }


def hidden(response):
    return {one.attributes["name"]: one.attributes["value"] for one in page(response).find("input", type="hidden")}


def test_lock_that_hangs_is_released(kit, signed_in):
    client = signed_in("view_dashboard", "release_locks")
    lease = Lock("invoice:42", timeout=60).acquire()
    asked = client.post(RELEASE, {"row": buttons(client)[RELEASE, "invoice:42"]})
    assert client.post(RELEASE, {**hidden(asked), "typed": "invoice:41"}).status_code == 400
    assert Lock("invoice:42").locked()
    response = client.post(RELEASE, {**hidden(asked), "typed": "invoice:42", "reason": "hangs since noon"})
    assert response.status_code == 302
    assert not Lock("invoice:42").locked()
    (message,) = map(str, get_messages(response.wsgi_request))
    assert "MainThread, tests/locks/dashboard/test_locks_page.py:" in message
    assert LogEntry.objects.get().get_change_message() == f"Release: invoice:42 – {message} Reason: hangs since noon"
    assert lease.token not in client.get(PAGE).content.decode()


def test_lock_that_was_taken_anew_meanwhile_is_left_alone(kit, boss):
    first = Lock("a").acquire()
    value = buttons(boss)[RELEASE, "a"]
    first.release()
    with Lock("a"):
        response = boss.post(RELEASE, {"row": value, "confirmed": "1", "typed": "a"})
        assert Lock("a").locked()
    assert list(map(str, get_messages(response.wsgi_request))) == ["Nothing was released: a was released before."]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("codenames", [("view_dashboard",), ("view_dashboard", "change_limits"), ("release_locks",)])
def test_permission_to_release_is_needed(kit, signed_in, boss, codenames):
    client = signed_in(*codenames)
    with Lock("a"), Semaphore("s", 2):
        for (url, name), value in buttons(boss).items():
            if url != SET_LIMIT:
                given = {"row": value, "confirmed": "1", "typed": name}
                assert client.post(url, given).status_code == 403
        assert Lock("a").locked()
        assert Semaphore("s", 2).used() == 1
        if "view_dashboard" in codenames:
            assert {RELEASE, RELEASE_ALL} & {url for url, _name in buttons(client)} == set()


def test_token_and_post_are_required(kit, boss, signed_in):
    strict = signed_in("superuser", enforce_csrf_checks=True)
    with Lock("a"):
        given = {"row": buttons(boss)[RELEASE, "a"], "confirmed": "1", "typed": "a"}
        assert strict.post(RELEASE, given).status_code == 403
        assert boss.get(RELEASE, given).status_code == 302
        assert Lock("a").locked()


def test_one_slot_or_all_of_them_are_released(kit, boss):
    leases = [Semaphore("s", 5).acquire() for _ in range(3)]
    boss.post(RELEASE, {"row": buttons(boss)[RELEASE, "s"], "confirmed": "1", "typed": "s"})
    assert Semaphore("s", 5).used() == len(leases) - 1
    boss.post(RELEASE_ALL, {"row": buttons(boss)[RELEASE_ALL, "s"], "confirmed": "1", "typed": "s"})
    assert Semaphore("s", 5).used() == 0
    assert LogEntry.objects.count() == 2


def test_limit_is_changed_by_those_who_may(kit, signed_in):
    client = signed_in("view_dashboard", "change_limits")
    with Semaphore("s", 5):
        asked = client.post(SET_LIMIT, {"row": buttons(client)[SET_LIMIT, "s"]})
        assert [one.words for one in page(asked).find("dd")] == ["s"]
        client.post(SET_LIMIT, {**hidden(asked), "wants": "2"})
        assert "1 of 2" in [one.words for one in page(client.get(PAGE)).find("span", class_="rk-drawn")]
        assert LogEntry.objects.get().get_change_message() == "Set limit: s – The limit of s is 2 now."
        others = signed_in("view_dashboard", "release_locks")
        assert others.post(SET_LIMIT, {**hidden(asked), "wants": "9"}).status_code == 403


@pytest.mark.parametrize("name", ['"><script>alert(1)</script>', "a\nb", "\u202eevil", "a/b", "100%", "x" * 512])
def test_any_name_is_inert_and_can_be_released(kit, boss, name):
    assert Semaphore(name, 2).acquire()
    assert b"<script>alert" not in boss.get(PAGE).content
    (value,) = [value for (url, _name), value in buttons(boss).items() if url == RELEASE_ALL]
    asked = boss.post(RELEASE_ALL, {"row": value})
    (shown,) = page(asked).find("dd")
    assert boss.post(RELEASE_ALL, {**hidden(asked), "typed": shown.words}).status_code == 302
    assert Semaphore(name, 2).used() == 0


def test_page_is_in_the_language_of_its_viewer(kit, boss):
    with Lock("a"), translation.override("zh-hans"):
        text = boss.get(PAGE).content.decode()
    for words in ("锁与信号量", "租约", "等待最久", "释放…"):
        assert words in text
    for words in ("Release", "Lease", "Waiting", "Held"):
        assert words not in text
