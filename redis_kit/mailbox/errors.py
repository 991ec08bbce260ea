"""The errors of mailboxes. After each of them nothing was changed."""

from redis_kit.core.errors import RedisKitError


class ChatNotFound(RedisKitError):
    """There is no chat with this name. ``create()`` makes it."""


class NotMember(RedisKitError):
    """The sender or reader is not a member of the chat."""


class MessageNotFound(RedisKitError):
    """The message is no longer stored, or never was."""


class NotSender(RedisKitError):
    """The message is from another sender."""
