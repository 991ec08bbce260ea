"""The settings of mailboxes."""

from dataclasses import dataclass

from redis_kit.core.conf import Section


@dataclass(frozen=True)
class MailboxSettings(Section):
    """The options of ``REDIS_KIT["MAILBOX"]``."""

    name = "MAILBOX"
    ranges = {"MAX_MESSAGES": (1, 1_000_000), "MAX_BYTES": (1, 1_048_576), "IDLE_AFTER": (60, 10 * 366 * 86_400)}

    #: The messages of a chat or an inbox at most. One more removes the oldest. Readers are told how many they missed.
    MAX_MESSAGES: int = 10_000
    #: The bytes of a message at most, as JSON if it is not text.
    MAX_BYTES: int = 65_536
    #: Seconds after which a message of a chat is no longer held for members who have not read it.
    IDLE_AFTER: float = 30 * 86_400.0
    #: The connection of mailboxes that name none.
    USING: str = "default"
