"""The members of a chat, and the chats of a member."""

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import BUCKETS, encode
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched, several
from redis_kit.mailbox.box import Box, bucket_key, decoded
from redis_kit.mailbox.errors import ChatNotFound, MessageNotFound, NotMember, NotSender
from redis_kit.mailbox.message import Message, Place, position
from redis_kit.mailbox.settings import MailboxSettings

JOIN, LEAVE, COUNT_UNREAD = (scripts.load(__package__, name) for name in ("join", "leave", "count_unread"))
AT_ONCE = 1000  # members of one call
PAGE = (1, 10_000)  # members of one answer


class Member(NamedTuple):
    """A member, the number of the last message that they have read, and whether they are ``idle``: hold no messages."""

    name: str
    read: int
    unread: int
    idle: bool


class Membership(Box):
    """The part of a chat that is about its members."""

    kind = "chat"

    @operation
    def create(self, members: Iterable[str] = (), *, keep: int = 0) -> Flow[bool]:
        """Create the chat, and return whether it is new. Members who are missing join from now on.

        The last ``keep`` messages are stored even if all have read them. One round trip for each 1,000 members.
        """
        whole_number("keep", keep, (0, conf.section(MailboxSettings).MAX_MESSAGES))
        names = several(members, "members")
        is_new = bool((yield from self._join([], str(keep), False))[0])
        for some in batched(names, AT_ONCE):
            yield from self._join(some, str(keep), False)
        return is_new

    @operation
    def join(self, member: str, *, history: bool = False) -> Flow[bool]:
        """Add a member, and return whether they are new. They see what comes after; with ``history``, all."""
        return bool((yield from self._join([member], "", history))[1])

    @operation
    def leave(self, member: str) -> Flow[bool]:
        """Remove a member, and return whether they were one. Messages that only they had not read are removed."""
        return bool((yield from self._leave([member]))[0])

    @operation
    def members(self, *, start: int = 0, limit: int = 1000) -> Flow[list[Member]]:
        """Return members, the slowest first, and after them idle ones: ``limit`` of each at most."""
        return self._members(start, limit)

    @operation
    def read_by(self, message: Place, *, limit: int = 1000) -> Flow[list[str]]:
        """Return the names of members who have read a message, and were members before it. Two round trips."""
        number = position("message", message, least=1)[0]
        whole_number("limit", limit, PAGE)
        *sets, joined = self.keys("members", "idle", "joined")
        ranges = [Call("ZRANGE", key, number, "+inf", "BYSCORE", "LIMIT", 0, limit) for key in sets]
        last, *pages = yield Batch([Call("HGET", self.key("chats"), self.encoded), *ranges])
        if last is None or number > int(last):
            self._refuse(b"none" if last is None else b"missing", None, message)
        names = [name for page in pages for name in page]
        hidden = (yield Call("HMGET", joined, *names)) if names else []
        readers = [name for name, until in zip(names, hidden, strict=True) if int(until or 0) < number]
        return [decoded(name.decode()) for name in readers[:limit]]

    @operation
    def clear(self) -> Flow[None]:
        """Remove the chat with its members and messages. Two round trips for each 1,000 members."""
        is_gone = False
        while not is_gone:
            members = yield from self._members(0, AT_ONCE)
            is_gone = bool((yield from self._leave([member.name for member in members[:AT_ONCE]], clear=True))[1])

    def own_keys(self, *parts: str, names: Iterable[str] = ()) -> list[str]:
        """Return the keys of all chats of the bucket, those of this one, and those of what members have read."""
        return [*map(self.key, ("chats", "sizes")), *self.keys(*parts), *(self.key(f"reads:{name}") for name in names)]

    def answer_of(self, call: Any, member: str | None = None, message: Any = None) -> Flow[Any]:
        """Return the reply of a script. Raises the error for a reason that it gives in place of one."""
        reply = yield call
        if isinstance(reply, bytes):
            self._refuse(reply, member, message)
        return reply

    def _join(self, members: list[str], keep: str, history: bool) -> Flow[Any]:
        names = [encode(member) for member in members]
        keys = self.own_keys("messages", "members", "idle", "joined", names=names)
        return self.answer_of(JOIN(keys, [self.encoded, keep, int(history), *names]))

    def _leave(self, members: list[str], *, clear: bool = False) -> Flow[Any]:
        names = [encode(member) for member in members]
        keys = self.own_keys("messages", "members", "idle", "joined", "ids", "wake", names=names)
        args: list[Argument] = [self.encoded, *limits(), int(clear), *names]
        return self.answer_of(LEAVE(keys, args))

    def _members(self, start: int, limit: int) -> Flow[list[Member]]:
        whole_number("start", start, (0, 2**53))
        whole_number("limit", limit, PAGE)
        reads = [Call("ZRANGE", key, start, start + limit - 1, "WITHSCORES") for key in self.keys("members", "idle")]
        last, *pages = yield Batch([Call("HGET", self.key("chats"), self.encoded), *reads])
        if last is None:
            self._refuse(b"none", None, None)
        return [
            Member(decoded(name.decode()), int(read), max(0, int(last) - int(read)), idle)
            for idle, pairs in zip((False, True), pages, strict=True)
            for name, read in zip(pairs[::2], pairs[1::2], strict=True)
        ]

    def _refuse(self, reason: bytes, member: str | None, message: Any) -> NoReturn:
        name, reader = shortened(self.name), shortened(member)
        if reason == b"none":
            raise ChatNotFound(f"There is no chat {name}. create() makes it.")
        if reason == b"stranger":
            raise NotMember(f"{reader} is not a member of the chat {name}.")
        named = message.id if isinstance(message, Message) else shortened(message)
        if reason == b"other":
            raise NotSender(f"The message {named} is not from {reader}.")
        raise MessageNotFound(f"The chat {name} has no message {named}.")

    acreate = twin(create)
    ajoin = twin(join)
    aleave = twin(leave)
    amembers = twin(members)
    aread_by = twin(read_by)
    aclear = twin(clear)


class Chats(Box):
    """The chats of a member, by their name."""

    @operation
    def unread(self) -> Flow[dict[str, int]]:
        """Return the number of unread messages of each chat by name. One round trip; on a Cluster one to each node."""
        keys = [[bucket_key(bucket, part) for part in ("chats", f"reads:{self.encoded}")] for bucket in BUCKETS]
        replies = yield Batch(list(map(COUNT_UNREAD, keys)))
        parts = b" ".join(filter(None, replies)).decode().split(" ") if any(replies) else []
        return dict(zip(map(decoded, parts[::2]), map(int, parts[1::2]), strict=True))

    aunread = twin(unread)


def limits() -> tuple[int, int]:
    """Return the messages of a chat at most, and the ms after which a member who has not read one holds none."""
    options = conf.section(MailboxSettings)
    return options.MAX_MESSAGES, round(options.IDLE_AFTER * 1000)
