"""Mailboxes: messages for one user, and group chats in which each member has a place of their own."""

from typing import TYPE_CHECKING

from redis_kit.core.lazy import lazily

if TYPE_CHECKING:
    from redis_kit.mailbox.chat import Chat as Chat
    from redis_kit.mailbox.errors import ChatNotFound as ChatNotFound
    from redis_kit.mailbox.errors import MessageNotFound as MessageNotFound
    from redis_kit.mailbox.errors import NotMember as NotMember
    from redis_kit.mailbox.errors import NotSender as NotSender
    from redis_kit.mailbox.inbox import Inbox as Inbox
    from redis_kit.mailbox.membership import Chats as Chats
    from redis_kit.mailbox.message import Message as Message

_PUBLIC: dict[str, tuple[str, ...]] = {
    "chat": ("Chat",),
    "errors": ("ChatNotFound", "MessageNotFound", "NotMember", "NotSender"),
    "inbox": ("Inbox",),
    "membership": ("Chats",),
    "message": ("Message",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]
__getattr__, __dir__ = lazily(__name__, _PUBLIC)
