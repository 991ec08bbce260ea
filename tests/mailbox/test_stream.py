"""Events: their order, what a client gets that comes back, and when a stream ends."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from redis_kit.mailbox import Chat, Inbox, stream
from redis_kit.mailbox.stream import EventStream, close_databases, end_thread
from tests.fixtures.servers import wait_for


@pytest.fixture
def office(kit):
    chat = Chat("office")
    chat.create(["anna", "ben"], keep=100)
    return chat


def test_messages_come_as_they_are_sent(office, browser):
    office.send("ben", "one")
    then = [lambda: office.send("ben", "two\n\nlines"), lambda: office.send("ben", {"n": "ü"})]
    events = browser.events("/office/", 3, then=then)
    assert [(name, data["number"], data["body"]) for name, _, data in events] == [
        ("message", 1, "one"),
        ("message", 2, "two\n\nlines"),
        ("message", 3, {"n": "ü"}),
    ]
    last = events[1][1]
    assert [data["number"] for _, _, data in browser.events("/office/", 1, after=last)] == [3]
    assert office.unread("anna") == 3  # reading acknowledges nothing


def test_edits_and_deletions_are_told(office, browser):
    number = office.send("ben", "one")
    then = [lambda: office.edit(number, "two"), lambda: office.delete(number)]
    events = browser.events("/office/", 3, then=then)
    assert [(name, data.get("deleted")) for name, _, data in events[1:]] == [("change", False), ("change", True)]
    assert all(id is None for _, id, _ in events[1:])


def test_stream_ends_when_its_member_leaves(office, browser):
    events = browser.events("/office/", 9, then=[lambda: office.leave("anna")])
    assert events == [("end", None, {"reason": "NotMember"})]


def test_stream_ends_with_its_chat(office, browser):
    assert browser.events("/office/", 9, then=[office.clear]) == [("end", None, {"reason": "ChatNotFound"})]


def test_missed_messages_are_told(office, browser, kit):
    office.send("ben", "first")
    first = office.history()[0].id
    kit.options(MAILBOX={"MAX_MESSAGES": 2})
    for number in range(4):
        office.send("ben", str(number))
    events = browser.events("/office/", 3, after=first)
    assert [data.get("missed", data.get("number")) for _, _, data in events] == [2, 4, 5]


def test_inbox_tells_each_device(kit, browser):
    inbox = Inbox("anna")
    inbox.push("one")
    inbox.pull(lease=60)
    seen = []

    def acknowledge():
        seen.append(inbox.peek(1).messages[0].number)
        inbox.ack(seen)

    events = browser.events("/inbox/", 3, then=[lambda: inbox.push("two", url="/2"), acknowledge])
    assert [(name, data.get("body")) for name, _, data in events] == [
        ("message", "one"),
        ("message", "two"),
        ("ack", None),
    ]
    assert events[2][2] == {"numbers": seen}
    assert [data["body"] for _, _, data in browser.events("/inbox/", 1, after=events[0][1])] == ["two"]


def test_silent_stream_says_that_it_is_alive_and_ends_in_time(office, monkeypatch):
    monkeypatch.setattr(stream, "ALIVE", 0.1)
    monkeypatch.setattr(stream, "LENGTH", (0.35, 0.35))
    first, *signs = EventStream(office, "anna", None)
    assert first == b"retry: 2000\n\n"
    assert signs in [[b": \n\n"] * number for number in (1, 2, 3)]  # fewer on a busy machine


def test_stream_goes_on_after_a_restart(own_kit, monkeypatch):
    chat = Chat("office")
    chat.create(["anna"])

    async def run():
        chunks = aiter(EventStream(chat, "anna", None))
        await anext(chunks)
        reading = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own_kit.server.restart)
        await asyncio.to_thread(chat.create, ["anna"])
        await asyncio.to_thread(chat.send, None, "after")
        try:
            return await asyncio.wait_for(reading, 20)
        finally:
            await chunks.aclose()

    assert b'"body":"after"' in asyncio.run(run())


def test_stream_with_more_than_a_page_reads_on(office):
    for number in range(250):
        office.send(None, str(number))
    office.create(["anna"], keep=1000)
    chunks = iter(EventStream(office, "anna", "0"))
    text = b"".join(next(chunks) for _ in range(4))
    chunks.close()
    assert text.count(b"data: ") == 250


def test_client_that_is_slow_misses_nothing(office):
    chunks = iter(EventStream(office, "anna", None))
    office.send(None, "first")
    text = next(chunks) + next(chunks)
    for number in range(700):  # more than a subscription holds
        office.send(None, str(number))
    while text.count(b"data: ") < 701:
        text += next(chunks)
    chunks.close()
    numbers = [int(part.partition(b",")[0]) for part in text.split(b'"number":')[1:]]
    assert numbers == list(range(1, 702))


def test_open_stream_notices_a_number_that_was_given_out_twice(office, kit, monkeypatch):
    monkeypatch.setattr(stream, "ALIVE", 0.05)
    office.send("ben", "lost")
    chunks = iter(EventStream(office, "anna", None))
    assert b"lost" in next(chunks) + next(chunks)
    assert next(chunks) == b": \n\n"  # it has looked
    key = office.keys("messages")[0]
    time, rest = kit.client.lindex(key, 0).split(" ", 1)
    kit.client.lset(key, 0, f"{int(time) + 1000} {rest.replace('lost', 'next')}")
    assert b"next" in next(chunks)
    chunks.close()


def test_stream_that_begins_again_notices_it_too(office, kit, monkeypatch):
    monkeypatch.setattr(stream, "ALIVE", 0.05)
    office.send("ben", "lost")
    message = office.history()[0]
    chunks = iter(EventStream(office, "anna", message.id))
    assert [next(chunks), next(chunks)] == [b"retry: 2000\n\n", b": \n\n"]
    key = office.keys("messages")[0]
    time, rest = kit.client.lindex(key, 0).split(" ", 1)
    kit.client.lset(key, 0, f"{int(time) + 1000} {rest.replace('lost', 'next')}")
    assert b"next" in next(chunks)
    chunks.close()


def test_member_who_leaves_lets_no_other_stream_look(office, trips):
    chunks = iter(EventStream(office, "anna", None))
    office.send("ben", "one")
    assert b"one" in next(chunks) + next(chunks)
    office.send("ben", "two")
    assert b"two" in next(chunks)
    trips.clear()
    office.leave("ben")
    office.send(None, "three")
    assert b"three" in next(chunks)
    assert len(trips) == 2
    office.leave("anna")
    assert b"NotMember" in next(chunks)
    chunks.close()


class Connection:
    """A connection to a database in the running thread."""

    settings_dict = {"AUTOCOMMIT": True}

    def __init__(self, *, in_atomic_block=False):
        self.in_atomic_block, self.closed_by, self.thread = in_atomic_block, None, threading.current_thread()
        connections["default"] = self

    def close(self):
        self.closed_by = threading.current_thread()


def test_connection_is_closed_unless_it_is_in_a_transaction():
    def closed(*, in_atomic_block):
        connection = Connection(in_atomic_block=in_atomic_block)
        close_databases()
        return connection.closed_by is connection.thread

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(closed, in_atomic_block=False).result()
        assert not executor.submit(closed, in_atomic_block=True).result()


def test_thread_of_a_request_ends_and_another_one_serves_it():
    async def request():
        async with ThreadSensitiveContext():
            end_thread()  # there is none yet
            connection = await sync_to_async(Connection)()
            end_thread()
            await asyncio.to_thread(wait_for, lambda: not connection.thread.is_alive())
            assert connection.closed_by is connection.thread
            return await sync_to_async(threading.current_thread)()

    later = asyncio.run(request())
    wait_for(lambda: not later.is_alive())


def test_nothing_ends_outside_of_a_request():
    async def command():
        thread = await sync_to_async(threading.current_thread)()
        end_thread()
        return await sync_to_async(threading.current_thread)() is thread

    assert asyncio.run(command())
