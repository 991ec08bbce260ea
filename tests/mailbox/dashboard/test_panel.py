"""The dashboard's page about mailboxes: without messages, unless somebody asks for them, which is logged."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Figure, Table, Viewer
from redis_kit.mailbox import Chat, Inbox
from redis_kit.mailbox.dashboard import panel as module
from redis_kit.mailbox.dashboard.panel import MailboxPanel
from tests.fixtures.dashboard import ADMIN


@pytest.fixture
def filled(kit):
    for number in range(3):
        chat = Chat(f"chat {number}")
        chat.create(["anna", "ben"], keep=10)
        for _ in range(number + 1):
            chat.send("anna", "secret")
    Chat("chat 1").ack("anna", 2)
    Inbox("anna").push("secret")
    Inbox("ben").push("secret")
    Inbox("ben").push("secret")


def content(*permissions, **asked):
    panel = MailboxPanel()
    panel.viewer = Viewer(lambda permission: permission in permissions, asked)
    return list(panel.content())


def test_chats_are_sorted_by_size_and_inboxes_by_age(filled, trips):
    trips.clear()
    parts = content()
    assert len(trips) == 2
    figures = {part.label: part.value for part in parts if isinstance(part, Figure)}
    assert (figures["Chats"], figures["Inboxes with messages"]) == (3, 2)
    chats, inboxes = (part for part in parts if isinstance(part, Table))
    assert [row[:5] for row in chats.rows] == [
        ("chat 2", 3, 2, 2, 0),
        ("chat 1", 2, 2, 1, 0),
        ("chat 0", 1, 2, 2, 0),
    ]
    assert [row[:2] for row in inboxes.rows] == [("anna", 1), ("ben", 2)]
    assert "secret" not in str(parts)


def test_messages_need_the_permission_and_a_fresh_look(filled, monkeypatch):
    link = MailboxPanel().show("chat chat 1")
    assert "secret" not in str(content(**link.asked))
    assert [row[-1] for row in content(module.READ, **link.asked)[0].rows] == ["secret"] * 2
    inbox = MailboxPanel().show("inbox ben")
    assert len(content(module.READ, **inbox.asked)[0].rows) == 2
    for look in ("chat chat 1", "chat chat 1:x:y", link.asked["look"] + "x", "nothing"):
        assert content(module.READ, look=look)[0].rows == []
    Chat("chat 1").clear()
    assert content(module.READ, **link.asked)[0].rows == []
    monkeypatch.setattr(module, "READABLE", -1)
    assert content(module.READ, **inbox.asked)[0].rows == []


def test_last_messages_come_first_and_json_is_shown_as_json(filled):
    chat = Chat("chat 0")
    chat.send("anna", {"photo": "ü", "size": None})
    chat.send("anna", "gone")
    chat.delete(3)
    link = MailboxPanel().show("chat chat 0")
    assert [(row[0], row[-1]) for row in content(module.READ, **link.asked)[0].rows] == [
        (3, None),
        (2, '{"photo": "ü", "size": null}'),
        (1, "secret"),
    ]


def test_look_at_a_name_that_is_none_shows_nothing(filled):
    link = MailboxPanel().show("chat ")
    assert content(module.READ, **link.asked)[0].rows == []
    for value in ("", "inbox", "room ben"):
        with pytest.raises(InvalidValue, match="Enter “chat”"):
            MailboxPanel().show(value)


@pytest.mark.django_db
def test_look_is_for_the_viewer_who_pressed_the_button(filled, boss, signed_in):
    boss.post(f"{ADMIN}mailboxes/do/show/", {"value": "chat chat 1", "confirmed": "yes"})
    path = re.search(r'href="([^"]*look=[^"]*)"', boss.get(f"{ADMIN}mailboxes/").content.decode())[1]
    assert b"secret" in boss.get(path).content
    other = signed_in("superuser")
    assert b"secret" not in other.get(path).content


@pytest.mark.django_db
def test_each_look_is_logged(filled, boss):
    boss.post(f"{ADMIN}mailboxes/do/show/", {"value": "chat chat 1", "confirmed": "yes", "reason": "a report"})
    (entry,) = LogEntry.objects.all()
    assert "chat chat 1" in entry.get_change_message()


def test_tile_has_the_figures(filled):
    panel = MailboxPanel()
    (flow,) = panel.reads().values()
    tile = panel.tile({"default": Chat("any").run_flow(flow)})
    assert [figure.value for figure in tile.figures[:2]] == [3, 2]
