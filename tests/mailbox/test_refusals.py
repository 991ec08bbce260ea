"""Wrong arguments: each is refused by an error that says why, and changes nothing."""

import json
from datetime import datetime

import pytest

from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.mailbox import Chat, Chats, Inbox, MessageNotFound, NotMember
from redis_kit.mailbox.message import Message
from tests.mailbox.conftest import Browser

NAMES = [None, "", 7, b"anna", ["anna"], "\ud800", "x" * 513, "ü" * 257, 1.5, object()]
NUMBERS = [
    -1,
    "x",
    "",
    2**53,
    2**64,
    float("nan"),
    1.0,
    True,
    [],
    b"1",
    "1-",
    "1-x",
    "-1",
    "１",
    "9" * 50,
    "1" * 5000,
    {},
]
BODIES = [
    None,
    "",
    "\ud800",
    {"a": "\udfff"},
    "x" * 65_537,
    "ü" * 40_000,
    {"a": "x" * 70_000},
    float("nan"),
    [float("inf")],
    b"bytes",
    {1, 2},
    datetime(2026, 1, 1),
    object(),
    10**5000,
    Message,
]
IDS = [7, b"1", "x" * 129, "a\nb", "\ud800", ["1"], "a\x00"]
LIMITS = [0, -1, 1001, 1.5, "10", None, True]
SECONDS = [-1, 3601, float("nan"), "1", None, True]
deep = {}
for _ in range(100_000):
    deep = {"a": deep}
BODIES.append(deep)

ERRORS = (InvalidName, InvalidValue, NotMember, MessageNotFound)


def calls(chat, inbox):
    """Yield calls that must be refused."""
    for name in NAMES:
        yield lambda name=name: Chat(name)
        yield lambda name=name: Inbox(name)
        yield lambda name=name: Chats(name)
        yield lambda name=name: chat.create([name])
        yield lambda name=name: chat.join(name)
        yield lambda name=name: chat.leave(name)
        yield lambda name=name: chat.fetch(name)
        yield lambda name=name: chat.ack(name, 1)
        yield lambda name=name: chat.unread(name)
        if name is not None:
            yield lambda name=name: chat.send(name, "hi")
            yield lambda name=name: chat.history(member=name)
            yield lambda name=name: chat.edit(1, "x", sender=name)
    for name in ("eve", "Anna", "anna ", "{anna}", "anna:x", "*", "a\x00"):
        yield lambda name=name: chat.send(name, "hi")
        yield lambda name=name: chat.fetch(name)
        yield lambda name=name: chat.ack(name, 1)
        yield lambda name=name: chat.unread(name)
        yield lambda name=name: chat.history(member=name)
    for number in NUMBERS:
        yield lambda number=number: chat.ack("anna", number)
        yield lambda number=number: chat.edit(number, "x")
        yield lambda number=number: chat.delete(number)
        yield lambda number=number: chat.read_by(number)
        yield lambda number=number: chat.fetch("anna", after=number)
        yield lambda number=number: chat.history(before=number)
        yield lambda number=number: inbox.ack([number])
        yield lambda number=number: inbox.nack([number])
        yield lambda number=number: inbox.peek(after=number)
    for number in (2, 100, 2**52, "2-1"):  # of messages that were never sent
        yield lambda number=number: chat.ack("anna", number)
        yield lambda number=number: chat.edit(number, "x")
        yield lambda number=number: chat.delete(number)
        yield lambda number=number: chat.read_by(number)
    yield lambda: chat.edit(0, "x")
    yield lambda: chat.ack("anna", "1-1")
    for body in BODIES:
        yield lambda body=body: chat.send("anna", body)
        yield lambda body=body: chat.edit(1, body)
        yield lambda body=body: inbox.push(body)
    for body in (float("nan"), b"x", object(), "\ud800", "x" * 70_000):
        yield lambda body=body: inbox.push("hi", more=body)
    for client_id in IDS:
        yield lambda client_id=client_id: chat.send("anna", "hi", client_id=client_id)
        yield lambda client_id=client_id: inbox.push("hi", client_id=client_id)
    for limit in LIMITS:
        yield lambda limit=limit: chat.fetch("anna", limit)
        yield lambda limit=limit: chat.history(limit=limit)
        yield lambda limit=limit: inbox.pull(limit)
        yield lambda limit=limit: inbox.peek(limit)
    for limit in (0, -1, 10_001, 1.5, "10", None, True):
        yield lambda limit=limit: chat.members(limit=limit)
        yield lambda limit=limit: chat.read_by(1, limit=limit)
    for seconds in SECONDS:
        yield lambda seconds=seconds: chat.fetch("anna", timeout=seconds)
        yield lambda seconds=seconds: inbox.pull(timeout=seconds)
    for seconds in (-1, 0, 0.05, 86_401, float("nan"), "1", None, True):
        yield lambda seconds=seconds: inbox.pull(lease=seconds)
    for keep in (-1, 10_001, 1.5, "1", None, True):
        yield lambda keep=keep: chat.create(["anna"], keep=keep)
    yield lambda: chat.create("anna")
    yield lambda: chat.create(b"anna")
    yield lambda: inbox.ack(range(1, 1002))


def test_wrong_calls_are_refused_and_change_nothing(kit):
    chat, inbox = Chat("office"), Inbox("anna")
    chat.create(["anna", "ben"])
    chat.send("anna", "hi")
    inbox.push("hi")
    before = stored(kit)
    wrong, count = [], 0
    for count, call in enumerate(calls(chat, inbox), 1):  # noqa: B007 - counted at the end
        try:
            answer = call()
        except ERRORS as error:
            answer = str(error)
            if len(answer) < 300:
                continue
        except Exception as error:
            answer = error
        wrong.append(f"line {call.__code__.co_firstlineno} {shortened(call.__defaults__)}: {shortened(answer)}")
    assert not wrong, "\n".join(wrong)
    assert count > 300
    assert stored(kit) == before


def stored(kit):
    return {key: kit.raw.dump(key) for key in kit.keys()}


CONTENTS = [
    {},
    [],
    "body",
    7,
    None,
    {"body": ""},
    {"body": None},
    {"body": "hi", "sender": "ben"},
    {"body": "hi", "client_id": 7},
    {"body": "hi", "client_id": None},
    {"body": "x" * 70_000},
    {"ack": -1},
    {"ack": "x"},
    {"ack": None},
    {"ack": [1]},
    {"ack": 2**70},
    {"ack": {"a": 1}},
    {"ack": 1, "body": "hi"},
    {"edit": 1},
    {"edit": 1, "body": None},
    {"edit": "x", "body": "y"},
    {"edit": 1, "body": "y", "sender": "ben"},
    {"delete": "x"},
    {"delete": None},
    {"delete": 1, "sender": "ben"},
    {"leave": "ben"},
    {"join": "eve"},
]
RAW = [b"", b"{", b"\xff", b'{"body": "\\ud800"}', b'{"body": NaN}', b"[" * 100_000, b'{"ack": 1' + b"0" * 5000 + b"}"]
QUERIES = ["limit=0", "limit=x", "limit=-1", "limit=1001", "after=x", "after=-1", "before=x", "timeout=x", "timeout=-1"]


def test_views_refuse_what_is_wrong_and_change_nothing(kit, browser):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    chat.send("ben", "hi")
    Inbox("anna").push("hi")
    before = stored(kit)
    for content in CONTENTS:
        assert browser.post("/office/", content)[0] == 400, content
    for content in (*CONTENTS, {"ack": "x"}, {"ack": ["x"]}, {"ack": [None]}, {"ack": [[]]}, {"nack": []}):
        if content != {"ack": [1]}:
            assert browser.post("/inbox/", content)[0] == 400, content
    for raw in RAW:
        status, answer = browser.post("/office/", raw=raw)
        assert (status, list(answer)) == (400, ["error"])
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert browser.post("/office/", raw=json.dumps({"body": "hi"}).encode(), content_type=content_type)[0] == 400
    for query in QUERIES:
        assert browser.get(f"/office/?{query}")[0] == 400, query
    for last in ("x", "-1", "1-x", "9" * 100):
        assert browser.get("/office/", accept="text/event-stream", **{"last-event-id": last})[0] == 400
    for content, status in (
        ({"ack": 2}, 404),
        ({"delete": 9}, 404),
        ({"delete": 1}, 403),
        ({"edit": 1, "body": "x"}, 403),
    ):
        assert browser.post("/office/", content)[0] == status, content
    eve = Browser(browser.kind, "eve")
    for content in ({"body": "hi"}, {"ack": 1}, {"edit": 1, "body": "x"}, {"delete": 1}):
        assert eve.post("/office/", content)[0] == 403, content
    assert stored(kit) == before


def test_list_that_is_none_is_refused(kit):
    for value in (None, 1.5, object()):
        for call in (Chat("office").create, Inbox("anna").ack, Inbox("anna").nack):
            with pytest.raises(InvalidValue, match=r"list of members|messages must be"):
                call(value)
    assert kit.keys() == []
