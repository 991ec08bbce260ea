"""The largest chats, and the inboxes with the oldest messages, of a connection."""

from datetime import datetime
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.flow import Flow, single
from redis_kit.core.gather import gather
from redis_kit.core.keys import BUCKETS
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.mailbox.box import bucket_key, decoded
from redis_kit.mailbox.chat import Chat
from redis_kit.mailbox.inbox import Inbox
from redis_kit.mailbox.message import moment

DESCRIBE = scripts.load(__package__, "describe")


class ChatInfo(NamedTuple):
    """A chat. Members who are ``behind`` have not read all messages; ``oldest`` is the time of the first one stored."""

    name: str
    messages: int
    members: int
    idle: int
    behind: int
    oldest: datetime | None


class Mailboxes(NamedTuple):
    """The number of chats, and the largest; that of inboxes with messages, and name, size and age of the oldest."""

    chats: int
    largest: list[ChatInfo]
    inboxes: int
    waiting: list[tuple[str, int, datetime]]


def read_mailboxes(count: int) -> Flow[Mailboxes]:
    """Return what a connection has. Two round trips."""
    sizes, inboxes = ([bucket_key(bucket, part) for bucket in BUCKETS] for part in ("sizes", "inboxes"))
    replies = yield Batch(
        [Call("ZCARD", key) for key in (*sizes, *inboxes)]
        + [Call("ZRANGE", key, 0, count - 1, "REV", "WITHSCORES") for key in sizes]
        + [Call("ZRANGE", key, 0, count - 1, "WITHSCORES") for key in inboxes]
    )
    chats, users, large, old = (replies[start : start + len(BUCKETS)] for start in range(0, len(replies), len(BUCKETS)))
    names = [name for name, _size in sorted(_pairs(large), key=lambda pair: -pair[1])[:count]]
    waiting = sorted(_pairs(old), key=lambda pair: pair[1])[:count]
    counts = [single(Call("ZCARD", *Inbox(name).keys("numbers"))) for name, _number in waiting]
    described = yield from gather([*(_described(Chat(name)) for name in names), *counts])
    return Mailboxes(
        sum(chats),
        sorted(described[: len(names)], key=lambda info: -info.messages),
        sum(users),
        [(name, count, moment(us / 1000)) for (name, us), count in zip(waiting, described[len(names) :], strict=True)],
    )


def _described(chat: Chat) -> Flow[ChatInfo]:
    *counts, oldest = yield DESCRIBE([chat.key("chats"), *chat.keys("messages", "members", "idle")], [chat.encoded])
    return ChatInfo._make((chat.name, *counts, moment(oldest) if oldest else None))


def _pairs(replies: list[list[bytes]]) -> list[tuple[str, float]]:
    return [(decoded(name.decode()), float(score)) for reply in replies for name, score in batched(reply, 2)]
