"""Chats: numbers, places of members, what is removed when, and refusals."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from django.db import transaction
from django.utils.functional import lazystr

from redis_kit.core.errors import InvalidValue, KeyConflict, PermissionDenied, RedisUnavailable
from redis_kit.mailbox import Chat, ChatNotFound, Chats, Inbox, MessageNotFound, NotMember, NotSender
from redis_kit.mailbox.chat import Fetched, following


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


def test_member_sees_what_comes_after_they_joined_or_all(kit, twin):
    chat = Chat("office")
    chat.create(["anna"], keep=10)
    for number in range(3):
        chat.send("anna", f"m{number}")
    assert twin(chat.join, "new") is True
    assert twin(chat.join, "old", history=True) is True
    assert twin(chat.join, "new", history=True) is False  # a repeat changes nothing
    chat.send("anna", "m3")
    assert bodies(chat.fetch("new")) == ["m3"]
    assert bodies(chat.fetch("new", after=0)) == ["m3"]
    assert [each.body for each in chat.history(member="new")] == ["m3"]
    assert bodies(chat.fetch("old")) == ["m0", "m1", "m2", "m3"]
    chat.ack("new", 4)
    assert chat.read_by(4) == ["new"]
    assert chat.read_by(3) == []
    assert twin(chat.leave, "new") is True
    assert twin(chat.leave, "new") is False
    assert Chats("new").unread() == {}
    with pytest.raises(NotMember):
        twin(chat.fetch, "new")


def test_history_is_kept_if_that_is_wanted(kit):
    chat = Chat("office")
    chat.create(["anna"], keep=3)
    for number in range(5):
        chat.send(None, f"m{number}")
    chat.ack("anna", 5)
    assert [each.body for each in chat.history()] == ["m2", "m3", "m4"]
    assert chat.fetch("anna").messages == []


def test_slow_member_is_told_how_many_were_missed(kit):
    kit.options(MAILBOX={"MAX_MESSAGES": 3})
    chat = Chat("office")
    chat.create(["anna", "ben"])
    for number in range(5):
        chat.send("anna", f"m{number}")
    fetched = chat.fetch("ben")
    assert (bodies(fetched), fetched.missed) == (["m2", "m3", "m4"], 2)
    assert chat.ack("ben", 1) == 1
    assert chat.fetch("ben").missed == 1
    chat.ack("ben", fetched.messages[-1])
    assert chat.fetch("ben").missed == 0


def test_idle_member_does_not_hold_messages_and_may_come_back(kit):
    chat = Chat("office")
    chat.create(["anna", "gone"])
    chat.send("anna", "old")
    chat.ack("anna", 1)
    age(kit, chat, 31 * 86_400)
    assert len(chat.history()) == 1
    chat.send("anna", "new")
    assert [(member.name, member.idle) for member in chat.members()] == [("anna", False), ("gone", True)]
    assert [each.body for each in chat.history()] == ["new"]
    chat.ack("anna", 2)
    assert chat.history() == []
    fetched = chat.fetch("gone")
    assert (bodies(fetched), fetched.missed) == ([], 2)
    chat.ack("gone", 2)
    assert [member.idle for member in chat.members()] == [False, False]


def age(kit, chat, seconds):
    """Make the oldest message older."""
    key = chat.keys("messages")[0]
    time, rest = kit.client.lindex(key, 0).split(" ", 1)
    kit.client.lset(key, 0, f"{int(time) - seconds * 1000} {rest}")


def test_message_is_edited_and_deleted_for_all(kit, twin):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    number = chat.send("anna", "helo")
    twin(chat.edit, number, "hello", sender="anna")
    message = chat.fetch("ben").messages[0]
    assert (message.body, message.edited is not None, message.sender) == ("hello", True, "anna")
    with pytest.raises(NotSender, match="not from 'ben'"):
        twin(chat.delete, message, sender="ben")
    twin(chat.delete, message, sender="anna")
    twin(chat.delete, message)
    message = chat.fetch("ben").messages[0]
    assert (message.body, message.deleted, message.number) == (None, True, 1)
    assert "hello" not in "".join(kit_text(kit, chat))
    with pytest.raises(MessageNotFound):
        twin(chat.edit, number, "again")
    with pytest.raises(MessageNotFound):
        twin(chat.edit, 2, "again")


def kit_text(kit, chat):
    return kit.client.lrange(chat.keys("messages")[0], 0, -1)


def test_repeat_with_the_same_id_sends_once(kit, twin):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    assert twin(chat.send, "anna", "hi", client_id="1") == 1
    assert twin(chat.send, "anna", "hi", client_id="1") == 1
    assert twin(chat.send, "ben", "hi", client_id="1") == 2  # each sender has their own ids
    assert twin(chat.send, "ben", "hi") == 3
    ids = chat.keys("ids")[0]
    assert 0 < kit.client.pttl(ids) <= 3_600_000


def test_number_of_ids_is_limited(kit):
    chat = Chat("office")
    chat.create(["anna"])
    ids = chat.keys("ids")[0]
    kit.client.zadd(ids, {f" id {number}": 0 for number in range(1005)})
    chat.send(None, "x", client_id="last")
    assert kit.client.zcard(ids) == 1000
    assert kit.client.zscore(ids, " last") == 1


def test_chat_is_removed_with_all_that_is_stored(kit):
    chat = Chat("office")
    chat.create([f"m{number}" for number in range(2500)])
    chat.send("m1", "hi", client_id="1")
    assert len(chat.members(limit=10_000)) == 2500
    chat.clear()
    assert kit.keys() == []
    with pytest.raises(ChatNotFound, match="There is no chat 'office'"):
        chat.send("m1", "hi")


def test_create_may_be_repeated(kit, twin):
    chat = Chat("office")
    assert twin(chat.create) is True
    assert twin(chat.create, ["anna"]) is False
    chat.send("anna", "hi")
    assert twin(chat.create, ["anna", "ben"], keep=5) is False
    assert twin(chat.fetch, "ben").messages == []
    assert twin(chat.fetch, "anna").unread == 0


def test_unread_counts_of_all_chats_are_one_round_trip(kit, trips):
    for number in range(40):
        chat = Chat(f"chat {number}")
        chat.create(["anna"])
        for _ in range(number % 3):
            chat.send(None, "x")
    Chats("anna").unread()
    trips.clear()
    assert Chats("anna").unread() == {f"chat {number}": number % 3 for number in range(40)}
    assert len(trips) == 1
    Chat("chat 2").ack("anna", 2)
    assert Chats("anna").unread()["chat 2"] == 0
    assert Chats("ben").unread() == {}


def test_each_call_is_one_round_trip_whatever_the_number_of_members(kit, trips):
    chat = Chat("office")
    chat.create([f"m{number}" for number in range(50)])
    calls = [
        lambda: chat.send("m1", "hi"),
        lambda: chat.fetch("m2"),
        lambda: chat.ack("m2", 1),
        lambda: chat.history(),
        lambda: chat.unread("m3"),
        lambda: chat.members(),
        lambda: chat.edit(1, "x"),
    ]
    for call in (*calls, *calls):
        trips.clear()
        call()
    for call in calls:
        trips.clear()
        call()
        assert len(trips) == 1


def test_number_that_a_server_gave_out_twice_is_noticed(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    chat.send("ben", "first")
    seen = chat.fetch("anna").messages[0]
    age(kit, chat, 60)  # the server lost the message, and another one has its number
    assert len(chat.fetch("anna", after=seen).messages) == 1
    with pytest.raises(MessageNotFound):
        chat.ack("anna", seen)
    assert chat.fetch("anna", after=1).messages == []
    assert len(chat.fetch("anna", after=7).messages) == 1  # lost, too
    with pytest.raises(MessageNotFound):
        chat.ack("anna", 2)


@pytest.mark.django_db(transaction=True)
def test_message_is_sent_at_the_commit(kit):
    chat, inbox = Chat("office"), Inbox("anna")
    chat.create(["anna"])
    with transaction.atomic():
        assert chat.send("anna", "hi", on_commit=True) is None
        assert inbox.push("hi", on_commit=True, url="/1") is None
        assert (chat.history(), inbox.unread()) == ([], 0)
    assert [each.body for each in chat.history()] == ["hi"]
    assert inbox.pull().messages[0].data == {"url": "/1"}
    with suppress(ZeroDivisionError), transaction.atomic():
        chat.send("anna", "never", on_commit=True)
        raise ZeroDivisionError
    assert len(chat.history()) == 1
    assert chat.send("anna", "now", on_commit=True) == 2


def test_key_of_another_type_is_named_and_nothing_is_changed(kit):
    chat = Chat("office")
    chat.create(["anna"])
    chat.send("anna", "hi")
    kit.client.set(chat.keys("idle")[0], "x")
    before = kit.client.lrange(chat.keys("messages")[0], 0, -1)
    for call in (lambda: chat.send("anna", "hi"), lambda: chat.ack("anna", 1), lambda: chat.leave("anna")):
        with pytest.raises(KeyConflict, match="idle"):
            call()
    assert kit.client.lrange(chat.keys("messages")[0], 0, -1) == before


def test_waiting_call_goes_on_over_a_restart_of_the_server(own_kit):
    chat = Chat("office")

    def restart():
        own_kit.server.restart()
        chat.create(["anna"])  # the server has no persistence
        chat.send(None, "after")

    chat.create(["anna"])
    thread = threading.Timer(0.3, restart)
    thread.start()
    assert bodies(chat.fetch("anna", timeout=20)) == ["after"]
    thread.join()


def test_wait_that_ends_in_an_outage_raises(own_kit):
    chat = Chat("office")
    chat.create(["anna"])
    threading.Timer(0.2, own_kit.server.stop).start()
    with pytest.raises(RedisUnavailable):
        chat.fetch("anna", timeout=1.5)


def test_many_callers_wait_on_one_connection(kit):
    chat = Chat("office")
    chat.create([f"m{number}" for number in range(30)])

    async def wait():
        waits = [asyncio.create_task(chat.afetch(f"m{number}", timeout=10)) for number in range(30)]
        await asyncio.sleep(0.3)
        subscribed = [each for each in kit.client.client_list() if each.get("ssub", "0") != "0"]
        await chat.asend("m1", "hi")
        return len(subscribed), [bodies(each) for each in await asyncio.gather(*waits)]

    assert asyncio.run(wait()) == (1, [["hi"]] * 30)


def test_chat_whose_name_has_a_wide_space_is_counted(kit):
    names = ["部屋\u3000一", "no\u00a0break", "line\u2028end"]
    for name in names:
        Chat(name).create(["anna"])
        Chat(name).send(None, "x")
    assert Chats("anna").unread() == dict.fromkeys(names, 1)


def test_single_name_is_not_taken_for_several_members(kit, twin):
    for name in ("anna", lazystr("anna")):
        with pytest.raises(InvalidValue, match="Give a list of members, not 'anna'"):
            twin(Chat("office").create, name)
    assert kit.keys() == []


def test_body_that_others_could_not_read_is_refused(kit):
    chat, nested = Chat("office"), "x"
    chat.create(["anna"])
    for _ in range(100):
        nested = [nested]
    chat.send("anna", nested)
    assert chat.fetch("anna").messages[0].body == nested
    for call in (lambda: chat.send("anna", [nested]), lambda: chat.edit(1, {"a": nested})):
        with pytest.raises(InvalidValue, match="nested more than 100 levels deep"):
            call()


def test_change_is_for_members_and_for_the_message_that_they_mean(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    chat.send("anna", "first")
    seen = chat.history()[0]
    chat.clear()
    chat.create(["anna", "ben"])
    chat.send("anna", "second")  # has the number 1, too
    age(kit, chat, 1)
    for call in (lambda: chat.edit(seen, "x"), lambda: chat.delete(seen.id, sender="anna")):
        with pytest.raises(MessageNotFound):
            call()
    chat.leave("anna")
    with pytest.raises(NotMember):
        chat.edit(1, "x", sender="anna")
    assert [each.body for each in chat.history()] == ["second"]


def test_nobody_is_removed_by_a_call_that_is_refused(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    kit.client.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", "~*", "+@all", "resetchannels")
    kit.connect({**kit.server.connection, "USERNAME": kit.prefix, "PASSWORD": "secret"})
    try:
        with pytest.raises(PermissionDenied):
            chat.leave("anna")
        assert [member.name for member in chat.members()] == ["anna", "ben"]
    finally:
        kit.connect(kit.server.connection)
        kit.client.execute_command("ACL", "DELUSER", kit.prefix)


def test_sync_call_waits_in_a_thread_with_an_event_loop(kit):
    chat = Chat("office")
    chat.create(["anna"])
    threading.Timer(0.3, lambda: chat.send(None, "hi")).start()

    async def run():
        return chat.fetch("anna", timeout=5)

    assert bodies(asyncio.run(run())) == ["hi"]


def test_message_that_arrives_costs_a_waiting_caller_no_round_trip(kit, trips):
    chat = Chat("office")
    chat.create(["anna", "ben"])
    for body in ("one", "two"):  # with the second one, the server knows all scripts
        trips.clear()
        threading.Timer(0.3, lambda body=body: chat.send("ben", body)).start()
        fetched = chat.fetch("anna", timeout=5)
        assert (bodies(fetched), fetched.missed, fetched.unread) == ([body], 0, 0)
        assert fetched.last == fetched.messages[0].number
        chat.ack("anna", fetched.messages[0])
    assert len(trips) == 4  # two looks, the send, and ack()


def test_publications_that_do_not_follow_are_looked_up(kit):
    result = Fetched([], 0, 0, 4, 4)
    entry = b"1700000000000 0 t anna hi"
    assert following(1, result, [b"message 5 " + entry]).last == 5
    assert [each.number for each in following(2, result, [b"message 5 " + entry, b"message 6 " + entry]).messages] == [
        5,
        6,
    ]
    for publications in (
        [b"message 6 " + entry],
        [b"message 4 " + entry],
        [b"change 5 t"],
        [b"message 5 " + entry, b"left"],
        [b"message 5 " + entry, b"message 6 " + entry],  # more than the limit
    ):
        assert following(1, result, publications) is None
