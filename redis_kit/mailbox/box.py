"""The base of chats and inboxes: their keys, and waiting for messages."""

from collections.abc import Callable
from time import monotonic
from typing import Any, ClassVar

from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.client.backoff import full_jitter
from redis_kit.core.errors import PoolExhausted, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.steps import Sleep
from redis_kit.core.values.numbers import seconds
from redis_kit.core.channels.listener import renew, subscribed
from redis_kit.mailbox.settings import MailboxSettings
from redis_kit.core.channels.subscription import Listen

LIMIT = (1, 1000)  # messages of one call
TIMEOUT = (0.0, 3600.0)
LONGEST = 30.0  # seconds without a publication after which a caller looks all the same
PASSING = (RedisUnavailable, PoolExhausted)  # failures that may pass


class Box(Primitive):
    """Something that holds messages. Those of a bucket share a slot of a Cluster, as a script updates their index."""

    component, settings = "mailbox", MailboxSettings
    kind: ClassVar[str]

    def __init__(self, name: str, using: str | None = None, **unknown: Any) -> None:
        super().__init__(name, using=using or conf.section(MailboxSettings).USING, unknown=unknown or NOTHING)

    def tag(self) -> str:
        """Return the hash tag: that of the bucket."""
        return f"mailbox:{bucket_of(self.encoded)}"

    def keys(self, *parts: str) -> list[str]:
        """Return keys of its own."""
        return [self.key(f"{self.kind}:{self.encoded}:{part}") for part in parts]

    @property
    def wake(self) -> str:
        """Return the channel on which its messages are published."""
        return self.keys("wake")[0]

    def until_found(self, look: Callable[[], Flow[Any]], timeout: float) -> Flow[Any]:
        """Look for messages, and again after each publication, until there are some or the time is over.

        A failure that may pass is raised at the first look, or at the end.
        """
        deadline = monotonic() + seconds("timeout", timeout, TIMEOUT)
        found = yield from look()
        if found.messages or not timeout:
            return found
        with subscribed(self.using, self.wake) as subscription:
            failures = 0
            while not found.messages and (left := deadline - monotonic()) > 0:
                try:
                    if not failures:
                        renew(self.using, subscription)
                        yield Listen(subscription, min(left, found.next_look))
                    found = yield from look()
                    failures = 0
                except PASSING:
                    pause = full_jitter(failures, first=0.1, longest=1.0)
                    failures += 1
                    if monotonic() + pause > deadline:
                        raise
                    yield Sleep(pause)
        return found


def deferred(send: Callable[[], object], *, on_commit: bool) -> bool:
    """Call a function at the commit of this thread's transaction if there is one and that is wanted. Tell whether."""
    if not on_commit or not transaction.get_connection().in_atomic_block:
        return False
    transaction.on_commit(send)
    return True
