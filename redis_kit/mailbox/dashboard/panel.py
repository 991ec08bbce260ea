"""The dashboard's page about mailboxes: chats by size, and inboxes by their oldest message."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.signing import BadSignature, TimestampSigner
from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.panels import MOST_ROWS, Content, Figure, Link, Panel, Table, Tile, action
from redis_kit.mailbox.chat import Chat
from redis_kit.mailbox.errors import ChatNotFound
from redis_kit.mailbox.inbox import Inbox
from redis_kit.mailbox.inspection import Mailboxes, read_mailboxes
from redis_kit.mailbox.settings import MailboxSettings

READ = "redis_kit.view_messages"
SALT = "redis_kit.mailbox.look."  # with the name of the viewer: a link that is passed on shows others nothing
READABLE = 300  # seconds after the button was pressed


class MailboxPanel(Panel):
    """Chats and inboxes without their messages. These are shown to users with a permission, after a logged action."""

    slug = "mailboxes"
    title = _("Mailboxes")

    def content(self) -> Iterator[Content]:
        """Return figures and tables. Two round trips, and one for messages."""
        if (look := self.viewer.asked.get("look")) and self.viewer.may(READ):
            yield _messages(look, self.viewer.name)
        state = Chat("all").run_flow(read_mailboxes(MOST_ROWS))
        yield from _figures(state)
        columns = (_("Name"), _("Messages"), _("Members"), _("Behind"), _("Idle"), _("Oldest message"))
        chats = [(*chat[:3], chat.behind, chat.idle, chat.oldest) for chat in state.largest]
        names = [f"chat {chat.name}" for chat in state.largest]
        yield Table(_("Chats"), columns, chats, empty=_("There are no chats."), actions=("show",), values=names)
        headings = (_("User"), _("Messages"), _("Oldest message"))
        users = [f"inbox {name}" for name, *_rest in state.waiting]
        yield Table(_("Inboxes"), headings, state.waiting, _("All inboxes are empty."), actions=("show",), values=users)

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the largest chats and the oldest inboxes. Two round trips."""
        return {conf.section(MailboxSettings).USING: read_mailboxes(10)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return how many chats and inboxes there are."""
        (state,) = replies.values()
        return Tile(list(_figures(state))) if state.chats or state.inboxes else None

    @action(_("Show messages"), permission=READ, asks=_("Mailbox, such as chat office"), confirm=True, harmless=True)
    def show(self, value: str) -> Link:
        """Let the viewer read messages for five minutes. The audit log notes it."""
        if not value.startswith(("chat ", "inbox ")):
            raise InvalidValue(_("Enter “chat” and its name, or “inbox” and its user."))
        look = TimestampSigner(salt=SALT + self.viewer.name).sign(value)
        return Link(_("Read the messages of %s for five minutes.") % value.partition(" ")[2], self.slug, {"look": look})


def _figures(state: Mailboxes) -> Iterator[Figure]:
    yield Figure(_("Chats"), state.chats)
    yield Figure(_("Inboxes with messages"), state.inboxes)
    yield Figure(_("Oldest message"), state.waiting[0][2] if state.waiting else None, _("in an inbox"))


def _messages(look: str, viewer: str) -> Content:
    columns = (_("Number"), _("Time"), _("Sender"), _("Message"))
    try:
        kind, _space, name = TimestampSigner(salt=SALT + viewer).unsign(look, max_age=READABLE).partition(" ")
        messages = Chat(name).history(limit=MOST_ROWS)[::-1] if kind == "chat" else Inbox(name).peek(MOST_ROWS).messages
    except (BadSignature, ChatNotFound, InvalidName):
        return Table(_("Messages"), columns, [], empty=_("The time is over. Press the button again."))
    rows = [(each.number, each.time, each.sender, _text(each.body)) for each in messages]
    return Table(_("Messages of %s") % name, columns, rows, empty=_("There are no messages."))


def _text(body: Any) -> Any:
    return json.dumps(body, ensure_ascii=False) if isinstance(body, (dict, list)) else body
