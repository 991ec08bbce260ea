"""Inboxes: order, leases, and what comes again."""

import threading
import time

from redis_kit.mailbox import Inbox


def bodies(pulled):
    return [message.body for message in pulled.messages]


def test_messages_come_in_their_order_until_they_are_acknowledged(any_kit, twin):
    inbox = Inbox("anna")
    for number in range(4):
        twin(inbox.push, f"m{number}", url=f"/{number}")
    first = twin(inbox.pull, 2, lease=0.2)
    assert bodies(first) == ["m0", "m1"]
    assert first.messages[0].data == {"url": "/0"}
    assert bodies(twin(inbox.pull, 10, lease=0.2)) == ["m2", "m3"]
    assert bodies(twin(inbox.pull)) == []
    assert twin(inbox.ack, first.messages[:1]) == 1
    assert twin(inbox.ack, first.messages[:1]) == 0
    assert twin(inbox.unread) == 3
    assert bodies(twin(inbox.peek, 2)) == ["m1", "m2"]
    assert bodies(twin(inbox.peek, after=first.messages[1])) == ["m2", "m3"]
    assert bodies(twin(inbox.pull, 1, timeout=3, lease=30)) == ["m1"]  # its lease has ended
    assert twin(inbox.nack, first.messages[1].id) == 1
    assert twin(inbox.pull, lease=30).messages[0].body == "m1"


def test_wait_ends_with_a_message(any_kit, twin):
    inbox = Inbox("anna")
    threading.Timer(0.3, lambda: inbox.push("hi")).start()
    began = time.monotonic()
    assert bodies(twin(inbox.pull, timeout=5)) == ["hi"]
    assert time.monotonic() - began < 2
    assert bodies(twin(inbox.pull, timeout=0.1)) == []


def test_late_acknowledgement_does_not_hide_what_is_missed(kit):
    kit.options(MAILBOX={"MAX_MESSAGES": 2})
    inbox = Inbox("anna")
    inbox.push("m0")
    held = inbox.pull().messages
    for number in range(1, 4):
        inbox.push(f"m{number}")
    assert inbox.ack(held) == 0  # removed, as the inbox was full
    pulled = inbox.pull()
    assert (bodies(pulled), pulled.missed) == (["m2", "m3"], 2)
    inbox.ack(pulled.messages[0])
    assert inbox.pull().missed == 0


def test_lease_ends_with_its_message(kit):
    kit.options(MAILBOX={"MAX_MESSAGES": 1000})
    inbox = Inbox("anna")
    numbers = [inbox.push("old") for _ in range(1000)]
    assert len(inbox.pull(1000, lease=3600).messages) == 1000
    kit.options(MAILBOX={"MAX_MESSAGES": 1})
    while inbox.unread() > 1:
        numbers.append(inbox.push("new"))
    assert kit.client.zcard(inbox.keys("leases")[0]) == 0
    assert bodies(inbox.pull()) == ["new"]
