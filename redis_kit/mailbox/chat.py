"""Group chats (Josiah Carlson: Redis in Action, chapter 6.5.2), without its lock, and with numbers without gaps."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import BUCKETS, encode
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Argument, Batch, Call, CombinedBatch
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.mailbox.box import LIMIT, LONGEST, Box, deferred
from redis_kit.mailbox.errors import ChatNotFound, MessageNotFound, NotMember, NotSender
from redis_kit.mailbox.message import DELETED, Message, call_id, encoded, position
from redis_kit.mailbox.settings import MailboxSettings

JOIN, LEAVE, SEND, FETCH, ACK, EDIT, COUNT_UNREAD = (
    scripts.load(__package__, name) for name in ("join", "leave", "send", "fetch", "ack", "edit", "count_unread")
)
AT_ONCE = 1000  # members of one call
SHARED = ("chats", "sizes")


class Fetched(NamedTuple):
    """Messages, how many more are ``unread``, the number of the last one ``read``, and how many are ``missed``.

    A message is missed if it was removed before this member had read it.
    """

    messages: list[Message]
    missed: int
    unread: int
    read: int

    @property
    def next_look(self) -> float:
        """Return the seconds until another look, if nothing is published."""
        return LONGEST


class Member(NamedTuple):
    """A member of a chat, the number of the last message that they have read, and whether messages wait for them."""

    name: str
    read: int
    unread: int
    idle: bool


class Chat(Box):
    """Messages for a group. A message is stored until all members have read it.

    Names of chats and members are text of 1 to 512 bytes. A method is one round trip unless it says otherwise. All but
    ``create()`` raise ChatNotFound if there is no such chat. Calls of ``create``, ``join``, ``leave``, ``ack``, ``edit``
    and ``delete`` may be repeated after an ``indeterminate`` RedisUnavailable.
    """

    kind = "chat"

    def create(self, members: Iterable[str] = (), *, keep: int = 0) -> bool:
        """Create the chat, and return whether it is new. Members who are missing join from now on.

        The last ``keep`` messages are stored even if all have read them. One round trip for each 1,000 members.
        """
        return bool(self.run_flow(self._create(members, keep)))

    async def acreate(self, members: Iterable[str] = (), *, keep: int = 0) -> bool:
        """See create()."""
        return bool(await self.arun_flow(self._create(members, keep)))

    def join(self, member: str, *, history: bool = False) -> bool:
        """Add a member, and return whether they are new. They see what comes after, or with ``history`` all there is."""
        return bool(self.run_flow(self._join([member], "", history))[1])

    async def ajoin(self, member: str, *, history: bool = False) -> bool:
        """See join()."""
        return bool((await self.arun_flow(self._join([member], "", history)))[1])

    def leave(self, member: str) -> bool:
        """Remove a member, and return whether they were one. Messages that only they had not read are removed."""
        return bool(self.run_flow(self._leave([member]))[0])

    async def aleave(self, member: str) -> bool:
        """See leave()."""
        return bool((await self.arun_flow(self._leave([member])))[0])

    def send(
        self, sender: str | None, body: Any, *, client_id: str | None = None, on_commit: bool = False
    ) -> int | None:
        """Send text or JSON to all members, and return the number of the message.

        ``sender`` is a member, or None for the project. A repeat with the same ``client_id`` within an hour and 1,000
        messages sends nothing, and returns the first number; without it, a repeat sends twice. With ``on_commit``, in a
        transaction, the message is sent at the commit, and the result is None. Raises NotMember.
        """
        step = self._send(sender, body, client_id)
        again = partial(self.send, sender, body, client_id=client_id)
        return None if deferred(again, on_commit=on_commit) else int(self.run_flow(step))

    async def asend(
        self, sender: str | None, body: Any, *, client_id: str | None = None, on_commit: bool = False
    ) -> int | None:
        """See send()."""
        step = self._send(sender, body, client_id)
        again = partial(self.send, sender, body, client_id=client_id)
        return None if deferred(again, on_commit=on_commit) else int(await self.arun_flow(step))

    def fetch(
        self, member: str, limit: int = 100, *, timeout: float = 0, after: Message | str | int | None = None
    ) -> Fetched:
        """Return the first messages that a member has not acknowledged, or those ``after`` one.

        If there is none, wait for ``timeout`` seconds, 0 to 3,600, at most. A wait costs two more round trips. An
        ``after`` that the server does not know, as it lost its last seconds, is ignored. Raises NotMember.
        """
        result: Fetched = self.run_flow(self.until_found(partial(self.read, member, limit, after), timeout))
        return result

    async def afetch(
        self, member: str, limit: int = 100, *, timeout: float = 0, after: Message | str | int | None = None
    ) -> Fetched:
        """See fetch()."""
        result: Fetched = await self.arun_flow(self.until_found(partial(self.read, member, limit, after), timeout))
        return result

    def ack(self, member: str, up_to: Message | str | int) -> int:
        """Note that a member has read a message and all before it. Return the number that counts, maybe a later one.

        Give the Message or its id rather than its number: then a message that the server lost can't stand for another.
        Raises NotMember, and MessageNotFound for a message that was never sent.
        """
        return int(self.run_flow(self._ack(member, up_to)))

    async def aack(self, member: str, up_to: Message | str | int) -> int:
        """See ack()."""
        return int(await self.arun_flow(self._ack(member, up_to)))

    def unread(self, member: str) -> int:
        """Return how many messages a member has not acknowledged, with those that they missed. Raises NotMember."""
        return int(self.run_flow(self._count(member)))

    async def aunread(self, member: str) -> int:
        """See unread()."""
        return int(await self.arun_flow(self._count(member)))

    def history(
        self, *, before: Message | str | int | None = None, limit: int = 50, member: str | None = None
    ) -> list[Message]:
        """Return the last messages that are stored, or the last ones before another one, the oldest first.

        With ``member``, only those since they joined, unless they joined with the history. Raises NotMember.
        """
        return list(self.run_flow(self._history(before, limit, member)))

    async def ahistory(
        self, *, before: Message | str | int | None = None, limit: int = 50, member: str | None = None
    ) -> list[Message]:
        """See history()."""
        return list(await self.arun_flow(self._history(before, limit, member)))

    def edit(self, message: Message | str | int, body: Any, *, sender: str | None = None) -> None:
        """Replace the body of a message. Raises MessageNotFound, and NotSender if it is not from ``sender``, if given."""
        self.run_flow(self._edit(message, *encoded(body), sender))

    async def aedit(self, message: Message | str | int, body: Any, *, sender: str | None = None) -> None:
        """See edit()."""
        await self.arun_flow(self._edit(message, *encoded(body), sender))

    def delete(self, message: Message | str | int, *, sender: str | None = None) -> None:
        """Remove the body of a message for all. Its number stays, as ``deleted``. See edit()."""
        self.run_flow(self._edit(message, DELETED, "", sender))

    async def adelete(self, message: Message | str | int, *, sender: str | None = None) -> None:
        """See delete()."""
        await self.arun_flow(self._edit(message, DELETED, "", sender))

    def members(self, *, start: int = 0, limit: int = 1000) -> list[Member]:
        """Return members, the slowest first, and after them idle ones: ``limit`` of each at most."""
        return list(self.run_flow(self._members(start, limit)))

    async def amembers(self, *, start: int = 0, limit: int = 1000) -> list[Member]:
        """See members()."""
        return list(await self.arun_flow(self._members(start, limit)))

    def read_by(self, message: Message | str | int, *, limit: int = 1000) -> list[str]:
        """Return the names of members who have read a message, without those who joined after it. Two round trips."""
        return list(self.run_flow(self._read_by(message, limit)))

    async def aread_by(self, message: Message | str | int, *, limit: int = 1000) -> list[str]:
        """See read_by()."""
        return list(await self.arun_flow(self._read_by(message, limit)))

    def clear(self) -> None:
        """Remove the chat with its members and messages. Two round trips for each 1,000 members."""
        self.run_flow(self._clear())

    async def aclear(self) -> None:
        """See clear()."""
        await self.arun_flow(self._clear())

    def read(self, member: str | None, limit: int, after: Message | str | int | None = None) -> Flow[Fetched]:
        """See fetch(), which calls it more than once."""
        number, time = ("", "") if after is None else position("after", after)
        last, read, missed, first, found = yield from self._fetch(member, limit, number, time, "")
        messages = [Message.parse(first + place, entry) for place, entry in enumerate(found)]
        return Fetched(messages, int(missed), max(0, last - first + 1 - len(messages)), int(read))

    def _create(self, members: Iterable[str], keep: int) -> Flow[bool]:
        whole_number("keep", keep, (0, conf.section(MailboxSettings).MAX_MESSAGES))
        if isinstance(members, str):
            raise InvalidValue(f"Give a list of members, not {shortened(members)}.")
        is_new = False
        for some in batched(members, AT_ONCE):
            is_new |= bool((yield from self._join(some, str(keep), False))[0])
        if not members:
            is_new = bool((yield from self._join([], str(keep), False))[0])
        return is_new

    def _join(self, members: list[str], keep: str, history: bool) -> Flow[tuple[int, int]]:
        names = [encode(member) for member in members]
        keys = [*self._shared(*SHARED), *self.keys("messages", "members", "idle", "joined"), *map(self._reads, names)]
        return (yield from self._answer_of(JOIN(keys, [self.encoded, keep, int(history), *names])))

    def _leave(self, members: list[str], *, clear: bool = False) -> Flow[tuple[int, int]]:
        names = [encode(member) for member in members]
        keys = [*self._shared(*SHARED), *self.keys("messages", "members", "idle", "joined", "ids", "wake")]
        args: list[Argument] = [self.encoded, *_limits(), int(clear), *names]
        return (yield from self._answer_of(LEAVE([*keys, *map(self._reads, names)], args)))

    def _send(self, sender: str | None, body: Any, client_id: str | None) -> Flow[int]:
        name = "" if sender is None else encode(sender)
        kind, text = encoded(body)
        args: list[Argument] = [self.encoded, name, f"{kind} {name} {text}", call_id(client_id, name)]
        keys = [*self._shared(*SHARED), *self.keys("messages", "members", "idle", "ids", "wake")]
        return self._answer_of(SEND(keys, [*args, *_limits()]), sender)

    def _fetch(self, member: str | None, limit: int, *args: Argument) -> Flow[Any]:
        whole_number("limit", limit, LIMIT)
        name = "" if member is None else encode(member)
        keys = [*self._shared("chats"), *self.keys("messages", "members", "idle", "joined")]
        return (yield from self._answer_of(FETCH(keys, [self.encoded, name, limit, *args]), member))

    def _ack(self, member: str, up_to: Message | str | int) -> Flow[int]:
        name, place = encode(member), position("up_to", up_to)
        keys = [*self._shared(*SHARED), *self.keys("messages", "members", "idle"), self._reads(name)]
        return (yield from self._answer_of(ACK(keys, [self.encoded, name, *place, *_limits()]), member, up_to))

    def _count(self, member: str) -> Flow[int]:
        last, read, *_rest = yield from self._fetch(encode(member) and member, 1, "", "", "")
        return int(last) - int(read)

    def _history(self, before: Message | str | int | None, limit: int, member: str | None) -> Flow[list[Message]]:
        number = 2**53 if before is None else position("before", before)[0]
        _last, _read, _missed, first, found = yield from self._fetch(member, limit, "", "", number)
        return [Message.parse(first + place, entry) for place, entry in enumerate(found)]

    def _edit(self, message: Message | str | int, kind: str, text: str, sender: str | None) -> Flow[None]:
        number = position("message", message, least=1)[0]
        name = "" if sender is None else encode(sender)
        args: list[Argument] = [self.encoded, number, name, kind, text]
        yield from self._answer_of(EDIT([*self._shared("chats"), *self.keys("messages", "wake")], args), sender, message)

    def _members(self, start: int, limit: int) -> Flow[list[Member]]:
        whole_number("start", start, (0, 2**53))
        whole_number("limit", limit, (1, 10_000))
        reads = [Call("ZRANGE", key, start, start + limit - 1, "WITHSCORES") for key in self.keys("members", "idle")]
        last, *found = yield Batch([Call("HGET", *self._shared("chats"), self.encoded), *reads])
        if last is None:
            self._refuse(b"none", None, None)
        return [
            Member(unquote(name.decode()), int(read), max(0, int(last) - int(read)), idle)
            for idle, pairs in zip((False, True), found, strict=True)
            for name, read in zip(pairs[::2], pairs[1::2], strict=True)
        ]

    def _read_by(self, message: Message | str | int, limit: int) -> Flow[list[str]]:
        number = position("message", message, least=1)[0]
        whole_number("limit", limit, (1, 10_000))
        *sets, joined = self.keys("members", "idle", "joined")
        ranges = [Call("ZRANGE", key, number, "+inf", "BYSCORE", "LIMIT", 0, limit) for key in sets]
        last, *found = yield Batch([Call("HGET", *self._shared("chats"), self.encoded), *ranges])
        if last is None or number > int(last):
            self._refuse(b"none" if last is None else b"future", None, message)
        names = [name for some in found for name in some]
        since = (yield Call("HMGET", joined, *names)) if names else []
        return [
            unquote(name.decode()) for name, hidden in zip(names, since, strict=True) if int(hidden or 0) < number
        ][:limit]

    def _clear(self) -> Flow[None]:
        is_gone = False
        while not is_gone:
            members = yield from self._members(0, AT_ONCE)
            is_gone = bool((yield from self._leave([member.name for member in members[:AT_ONCE]], clear=True))[1])

    def _shared(self, *parts: str) -> list[str]:
        return [self.key(part) for part in parts]

    def _reads(self, encoded_member: str) -> str:
        return self.key(f"reads:{encoded_member}")

    def _answer_of(self, call: Any, member: str | None = None, message: Any = None) -> Flow[Any]:
        reply = yield call
        if isinstance(reply, bytes):
            self._refuse(reply, member, message)
        return reply

    def _refuse(self, reason: bytes, member: str | None, message: Any) -> NoReturn:
        if reason == b"none":
            raise ChatNotFound(f"There is no chat {shortened(self.name)}. create() makes it.")
        if reason == b"stranger":
            raise NotMember(f"{shortened(member)} is not a member of the chat {shortened(self.name)}.")
        named = message.id if isinstance(message, Message) else shortened(message)
        if reason == b"other":
            raise NotSender(f"The message {named} is not from {shortened(member)}.")
        raise MessageNotFound(f"The chat {shortened(self.name)} has no message {named}.")


class Chats(Primitive):
    """The chats of a member."""

    component, settings = "mailbox", MailboxSettings

    def __init__(self, member: str, using: str | None = None) -> None:
        super().__init__(member, using=using or conf.section(MailboxSettings).USING)

    def unread(self) -> dict[str, int]:
        """Return the names of all chats of the member, and how many messages are unread in each of them.

        One round trip, on a Cluster one for each node: each of 16 buckets knows its part.
        """
        return dict(self.run_flow(self._count()))

    async def aunread(self) -> dict[str, int]:
        """See unread()."""
        return dict(await self.arun_flow(self._count()))

    def _count(self) -> Flow[dict[str, int]]:
        prefix = conf.section(KitSettings).PREFIX
        tags = [f"{prefix}:{{mailbox:{bucket}}}" for bucket in BUCKETS]
        calls = [COUNT_UNREAD([f"{tag}:chats", f"{tag}:reads:{self.encoded}"]) for tag in tags]
        replies = yield CombinedBatch(calls)
        return {
            unquote(name.decode()): int(count)
            for reply in replies
            for name, count in zip(reply[::2], reply[1::2], strict=True)
        }


def _limits() -> tuple[int, int]:
    options = conf.section(MailboxSettings)
    return options.MAX_MESSAGES, round(options.IDLE_AFTER * 1000)
