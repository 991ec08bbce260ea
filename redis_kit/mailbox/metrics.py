"""The metrics of mailboxes."""

from time import time

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.mailbox.inspection import read_mailboxes
from redis_kit.mailbox.settings import MailboxSettings

CHATS = Metric("redis_kit_mailbox_chats", "gauge", "Chats.")
MESSAGES = Metric("redis_kit_mailbox_chat_messages", "gauge", "Stored messages of a chat.", ("chat",))
BEHIND = Metric("redis_kit_mailbox_members_behind", "gauge", "Members who have not read all messages.", ("chat",))
INBOXES = Metric("redis_kit_mailbox_inboxes", "gauge", "Inboxes with messages.")
OLDEST = Metric("redis_kit_mailbox_oldest_seconds", "gauge", "Age of the oldest message of all inboxes.")


class MailboxMetrics(MetricSource):
    """The number of chats and inboxes, and the largest chats."""

    metrics = (CHATS, MESSAGES, BEHIND, INBOXES, OLDEST)

    def read(self, using: str, limit: int) -> Flow[list[Sample]]:
        """Return the samples of the component's connection. Two round trips."""
        if using != conf.section(MailboxSettings).USING:
            return []
        state = yield from read_mailboxes(limit)
        age = time() - state.waiting[0][2].timestamp() if state.waiting else 0
        samples = [CHATS.sample(state.chats), INBOXES.sample(state.inboxes), OLDEST.sample(max(0, age))]
        samples += [MESSAGES.sample(info.messages, info.name) for info in state.largest]
        return samples + [BEHIND.sample(info.behind, info.name) for info in state.largest]
