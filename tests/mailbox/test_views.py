"""The views: what they show, what they carry out, and whom they refuse."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import Client
from django.test.utils import override_settings

from redis_kit.mailbox import Chat, Inbox
from tests.fixtures.servers import wait_for
from tests.mailbox.conftest import Browser
from tests.mailbox.urls import AsyncView, View


@pytest.fixture
def office(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"], keep=10)
    return chat


def test_member_reads_and_writes(office, browser):
    assert browser.post("/office/", {"body": "hi", "client_id": "1"}) == (200, {"number": 1})
    assert browser.post("/office/", {"body": "hi", "client_id": "1"}) == (200, {"number": 1})
    assert browser.post("/office/", {"body": {"n": [1]}}) == (200, {"number": 2})
    status, content = browser.get("/office/")
    first, second = content["messages"]
    assert (status, content["unread"], content["read"], content["missed"], content["last"]) == (200, 0, 0, 0, 2)
    assert (first["body"], first["sender"], second["body"]) == ("hi", "anna", {"n": [1]})
    assert browser.post("/office/", {"ack": first["id"]}) == (200, {"read": 1})
    assert [each["number"] for each in browser.get("/office/")[1]["messages"]] == [2]
    assert [each["number"] for each in browser.get("/office/?after=0&limit=1")[1]["messages"]] == [1]
    assert [each["number"] for each in browser.get(f"/office/?before={second['id']}")[1]["messages"]] == [1]
    assert browser.post("/office/", {"edit": first["id"], "body": "hello"})[0] == 200
    assert browser.post("/office/", {"delete": second["id"]})[0] == 200
    messages = browser.get("/office/?after=0")[1]["messages"]
    assert [(each["body"], each.get("deleted", False)) for each in messages] == [("hello", False), (None, True)]


def test_wait_for_messages(office, browser):
    assert browser.get("/office/?timeout=0")[1]["messages"] == []
    assert browser.get("/office/?timeout=1")[1]["messages"] == []


def test_inbox_is_read_and_acknowledged(kit, browser):
    inbox = Inbox("anna")
    inbox.push("shipped", url="/1")
    inbox.push("paid")
    status, content = browser.get("/inbox/")
    assert (status, content["missed"]) == (200, 0)
    assert [(each["body"], each.get("data")) for each in content["messages"]] == [
        ("shipped", {"url": "/1"}),
        ("paid", None),
    ]
    ids = [each["id"] for each in content["messages"]]
    assert browser.post("/inbox/", {"ack": ids[:1]}) == (200, {"acknowledged": 1})
    assert [each["id"] for each in browser.get("/inbox/")[1]["messages"]] == ids[1:]
    assert browser.get(f"/inbox/?after={ids[1]}")[1]["messages"] == []
    assert Browser(browser.kind, "ben").get("/inbox/")[1]["messages"] == []


def test_others_are_refused(office, browser):
    office.send("ben", "secret")
    stranger, nobody = Browser(browser.kind, "eve"), Browser(browser.kind, "")
    for other in (stranger, nobody):
        for answer in (
            other.get("/office/"),
            other.get("/office/?before=5"),
            other.get("/office/", accept="text/event-stream"),
            other.post("/office/", {"body": "hi"}),
            other.post("/office/", {"ack": 1}),
            other.post("/office/", {"delete": 1}),
        ):
            assert answer[0] == 403
            assert "secret" not in str(answer)
    assert browser.post("/office/", {"edit": 1, "body": "forged"})[0] == 403  # of ben
    assert browser.get("/other/")[0] == 404
    assert [each.body for each in office.history()] == ["secret"]


def test_everybody_is_refused_until_a_project_allows(settings, kit):
    settings.ROOT_URLCONF = "tests.mailbox.urls"
    for path in ("/default/", "/adefault/"):
        assert Client().get(path).status_code == 403


def test_wrong_answer_of_authorize_names_the_right_ones(settings, kit):
    settings.ROOT_URLCONF = "tests.mailbox.urls"
    for path in ("/wrong/", "/wrong/office/"):
        with pytest.raises(TypeError, match="an Inbox, a Chat and a member, or None, not "):
            Client().get(path)


def test_post_needs_a_token(settings, kit):
    settings.ROOT_URLCONF = "tests.mailbox.urls"
    settings.MIDDLEWARE = ["django.middleware.csrf.CsrfViewMiddleware"]
    answer = Client(enforce_csrf_checks=True).post("/sync/inbox/", {"ack": []}, content_type="application/json")
    assert answer.status_code == 403


def test_answers_are_not_stored_by_proxies(kit, settings):
    settings.ROOT_URLCONF = "tests.mailbox.urls"
    assert Client().get("/sync/inbox/", headers={"X-User": "anna"})["Cache-Control"] == "no-store"


def test_atomic_requests_do_not_hold_a_transaction(kit, browser, monkeypatch):
    for alias in connections:
        monkeypatch.setitem(connections.settings[alias], "ATOMIC_REQUESTS", True)
    assert browser.get("/inbox/?timeout=1")[0] == 200  # to begin one would need the database


class Connection:
    """A connection to a database of the thread that authorizes."""

    in_atomic_block, settings_dict = False, {"AUTOCOMMIT": True}

    def __init__(self):
        self.is_closed, self.thread = False, threading.current_thread()
        connections["default"] = self

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize(("query", "accept"), [(b"", b"text/event-stream"), (b"timeout=20", b"application/json")])
def test_request_that_waits_keeps_no_thread_and_no_database(settings, kit, monkeypatch, query, accept):
    used = []
    monkeypatch.setattr(View, "authorize", lambda view, request: used.append(Connection()) or Inbox("anna"))
    monkeypatch.setattr(AsyncView, "authorize", View.authorize)
    settings.ROOT_URLCONF, settings.MIDDLEWARE = "tests.mailbox.urls", []
    scope = {"type": "http", "method": "GET", "path": "/async/inbox/", "query_string": query}

    async def main():
        asked = ApplicationCommunicator(get_asgi_application(), scope | {"headers": [(b"accept", accept)]})
        await asked.send_input({"type": "http.request"})
        await asyncio.to_thread(wait_for, lambda: used and used[0].is_closed and not used[0].thread.is_alive())
        await Inbox("anna").apush("hi")
        text = b""
        while b"hi" not in text:
            text += (await asked.receive_output(timeout=10)).get("body", b"")
        await asked.send_input({"type": "http.disconnect"})
        await asked.wait()

    asyncio.run(main())


@pytest.mark.parametrize(("query", "accept"), [("", "text/event-stream"), ("?timeout=1", "application/json")])
def test_sync_request_that_waits_keeps_no_database(settings, kit, monkeypatch, query, accept):
    monkeypatch.setattr(View, "authorize", lambda view, request: used.append(Connection()) or Inbox("anna"))
    settings.ROOT_URLCONF, settings.MIDDLEWARE, used = "tests.mailbox.urls", [], []
    Inbox("anna").push("hi")

    def asked():
        response = Client().get(f"/sync/inbox/{query}", headers={"accept": accept})
        return next(iter(response)), used[0].is_closed

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(asked).result()[1]


def test_outage_is_503(own_kit, browser):
    own_kit.server.stop()
    assert browser.get("/inbox/")[0] == 503
    assert browser.post("/inbox/", {"ack": []})[0] == 200  # nothing to ask for
    assert browser.post("/inbox/", {"ack": [1]})[0] == 503


def test_stream_that_is_opened_in_an_outage_goes_on_after_it(own_kit, browser):
    own_kit.server.stop()

    def recover():
        own_kit.server.start()
        Inbox("anna").push("after")

    assert [data["body"] for _, _, data in browser.events("/inbox/", 1, then=[recover])] == ["after"]


@pytest.mark.django_db  # the end of a request closes old connections
@override_settings(MIDDLEWARE=["django.middleware.gzip.GZipMiddleware"], ROOT_URLCONF="tests.mailbox.urls")
def test_events_are_not_held_back_to_be_compressed(kit):
    headers = {"X-User": "anna", "accept": "text/event-stream", "accept-encoding": "gzip"}
    answer = Client().get("/sync/inbox/", headers=headers)
    assert next(answer.streaming_content) == b"retry: 2000\n\n"
    answer.close()


def test_member_who_left_changes_nothing_any_more(office, browser):
    browser.post("/office/", {"body": "hi"})
    office.leave("anna")
    assert browser.post("/office/", {"edit": 1, "body": "forged"})[0] == 403
    assert browser.post("/office/", {"delete": 1})[0] == 403
    assert [each.body for each in office.history()] == ["hi"]


def test_body_that_is_nested_deeply_is_refused(office, browser):
    for depth in (101, 500, 990, 30_000):
        raw = '{"body": ' + "[" * depth + "]" * depth + "}"
        assert browser.post("/office/", raw=raw)[0] == 400
    assert browser.get("/office/")[0] == 200
