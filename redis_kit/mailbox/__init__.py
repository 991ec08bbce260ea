"""Mailboxes: messages for one user, and group chats in which each member has a place of their own."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.mailbox.chat import Chat
    from redis_kit.mailbox.errors import ChatNotFound, MessageNotFound, NotMember, NotSender
    from redis_kit.mailbox.inbox import Inbox
    from redis_kit.mailbox.membership import Chats
    from redis_kit.mailbox.message import Message

__all__ = ["Chat", "ChatNotFound", "Chats", "Inbox", "Message", "MessageNotFound", "NotMember", "NotSender"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "chat": ("Chat",),
        "errors": ("ChatNotFound", "MessageNotFound", "NotMember", "NotSender"),
        "inbox": ("Inbox",),
        "membership": ("Chats",),
        "message": ("Message",),
    },
)
