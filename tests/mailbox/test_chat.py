"""Chats: numbers, places of members, what is removed when, and refusals."""

import threading
import time

from redis_kit.mailbox import Chat, Chats


def bodies(fetched):
    return [message.body for message in fetched.messages]


def test_messages_have_numbers_without_gaps_and_each_member_their_place(any_kit, twin):
    chat = Chat("office")
    assert twin(chat.create, ["anna", "ben"]) is True
    assert [twin(chat.send, "anna", "hello"), twin(chat.send, "ben", {"n": [1, None]})] == [1, 2]
    fetched = twin(chat.fetch, "anna")
    assert [(each.number, each.sender, each.body) for each in fetched.messages] == [
        (1, "anna", "hello"),
        (2, "ben", {"n": [1, None]}),
    ]
    assert (fetched.missed, fetched.unread, fetched.read) == (0, 0, 0)
    assert twin(chat.ack, "anna", 1) == 1
    assert twin(chat.ack, "anna", fetched.messages[0]) == 1
    assert bodies(twin(chat.fetch, "anna")) == [{"n": [1, None]}]
    assert [twin(chat.unread, name) for name in ("anna", "ben")] == [1, 2]
    assert twin(Chats("ben").unread) == {"office": 2}
    assert [tuple(member) for member in twin(chat.members)] == [("ben", 0, 2, False), ("anna", 1, 1, False)]
    assert twin(chat.read_by, 1) == ["anna"]
    assert [each.number for each in twin(chat.history, limit=1)] == [2]
    assert [each.number for each in twin(chat.history, before=2)] == [1]


def test_messages_that_all_have_read_go_away(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    for number in range(5):
        chat.send("anna", f"m{number}")
    chat.ack("anna", 4)
    chat.ack("ben", 2)
    assert [each.number for each in chat.history()] == [3, 4, 5]
    chat.leave("ben")
    assert [each.number for each in chat.history()] == [5]
    chat.ack("anna", 5)
    assert chat.history() == []
    assert chat.send("anna", "next") == 6


def test_wait(any_kit, twin):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    threading.Timer(0.3, lambda: chat.send("ben", "hi")).start()
    began = time.monotonic()
    assert bodies(twin(chat.fetch, "anna", timeout=5)) == ["hi"]
    assert time.monotonic() - began < 2
