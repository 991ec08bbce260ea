"""The base of chats and inboxes: their keys, and what they send at a commit."""

from functools import lru_cache, partial
from typing import Any, ClassVar
from urllib.parse import unquote

from django.db import transaction

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import NOTHING, Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.mailbox.settings import MailboxSettings

LIMIT = (1, 1000)  # messages of one call
decoded = lru_cache(maxsize=4096)(unquote)  # the name that is part of a key


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


def bucket_key(bucket: str, part: str) -> str:
    """Return a key that all boxes of a bucket share."""
    return f"{conf.section(KitSettings).PREFIX}:{{mailbox:{bucket}}}:{part}"


def deferred(box: Box, steps: Flow[int], *, on_commit: bool) -> Flow[int | None]:
    """Return the result of a flow; or None, and carry it out at the commit of the transaction of this thread."""
    if on_commit and transaction.get_connection().in_atomic_block:
        transaction.on_commit(partial(box.run_flow, steps))
        return None
    return (yield from steps)
