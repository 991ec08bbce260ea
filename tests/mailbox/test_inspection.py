"""The largest chats and the oldest inboxes, and the metrics that are made of them."""

from redis_kit.mailbox import Chat, Inbox
from redis_kit.mailbox.inspection import read_mailboxes
from redis_kit.mailbox.metrics import MailboxMetrics


def run(flow):
    return Chat("any").run_flow(flow)


def test_state_of_a_connection(any_kit):
    assert run(read_mailboxes(10)) == (0, [], 0, [])
    for number in range(12):
        chat = Chat(f"{number}")
        chat.create(["anna", "ben"])
        for _ in range(number):
            chat.send(None, "x")
        Inbox(f"user {number}").push("x")
    Inbox("user 3").ack(Inbox("user 3").peek().messages)
    found = run(read_mailboxes(5))
    assert (found.chats, found.inboxes) == (12, 11)
    assert [info.name for info in found.largest] == ["11", "10", "9", "8", "7"]
    assert found.largest[0][1:5] == (11, 2, 0, 2)
    assert [name for name, *_rest in found.waiting] == ["user 0", "user 1", "user 2", "user 4", "user 5"]


def test_metrics(kit):
    Chat("office").create(["anna"])
    Chat("office").send(None, "x")
    Inbox("anna").push("x")
    samples = {
        (sample.metric.name, *sample.labels): sample.value for sample in run(MailboxMetrics().read("default", 5))
    }
    assert samples["redis_kit_mailbox_chats",] == samples["redis_kit_mailbox_inboxes",] == 1
    assert samples["redis_kit_mailbox_chat_messages", "office"] == 1
    assert samples["redis_kit_mailbox_members_behind", "office"] == 1
    assert 0 <= samples["redis_kit_mailbox_oldest_seconds",] < 60
    assert run(MailboxMetrics().read("other", 5)) == []
