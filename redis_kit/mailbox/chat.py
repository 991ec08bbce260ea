"""Group chats (Josiah Carlson: Redis in Action, chapter 6.5.2), without its lock, and with numbers without gaps."""

from functools import partial
from typing import Any, NamedTuple

from redis_kit.core import scripts
from redis_kit.core.channels import until_found
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.keys import encode
from redis_kit.core.steps import Argument
from redis_kit.core.values.numbers import whole_number
from redis_kit.mailbox.box import LIMIT, deferred
from redis_kit.mailbox.membership import Membership, limits
from redis_kit.mailbox.message import DELETED, Message, Place, call_id, encoded, position

SEND, FETCH, ACK, EDIT = (scripts.load(__package__, name) for name in ("send", "fetch", "ack", "edit"))


class Fetched(NamedTuple):
    """Messages, how many more follow (``unread``), and the numbers of the last one ``read``, and of the ``last``.

    ``missed`` is the number of messages that were removed before this member had read them.
    """

    messages: list[Message]
    missed: int
    unread: int
    read: int
    last: int


class Chat(Membership):
    """Messages for a group. A message is stored until all members have read it.

    Names of chats and members are text of 1 to 512 bytes. A method is one round trip unless it says otherwise. All but
    ``create()`` raise ChatNotFound if the chat does not exist. After an ``indeterminate`` RedisUnavailable, all may be
    repeated, ``send()`` with a ``client_id``.
    """

    @operation
    def send(self, sender: str | None, body: Any, *, client_id: str = "", on_commit: bool = False) -> Flow[int | None]:
        """Send text or JSON to all members, and return the number of the message.

        ``sender`` is a member, or None for the project. A repeat with the same ``client_id`` within an hour and 1,000
        messages sends nothing, and returns the first number; without it, a repeat sends twice. With ``on_commit``, in a
        transaction, the message is sent at the commit, and the result is None. Raises NotMember.
        """
        return deferred(self, self.send_flow(sender, body, client_id), on_commit=on_commit)

    @operation
    def fetch(self, member: str, limit: int = 100, *, timeout: float = 0, after: Place | None = None) -> Flow[Fetched]:
        """Return the first messages that a member has not acknowledged, or those ``after`` one.

        If there is none, wait for ``timeout`` seconds, 0 to 3,600, at most. A wait costs one more round trip. An
        ``after`` that the server does not know, as it lost its last seconds, is ignored. Raises NotMember.
        """
        return self.fetch_flow(member, limit, timeout, after)

    @operation
    def ack(self, member: str, up_to: Place) -> Flow[int]:
        """Note that a member has read a message and all before it. Return the number that counts, maybe a later one.

        Give the Message or its id rather than its number: then a message that the server lost can't stand for another.
        Raises NotMember, and MessageNotFound for a message that was never sent.
        """
        return self.ack_flow(member, up_to)

    @operation
    def unread(self, member: str) -> Flow[int]:
        """Return how many messages a member has not acknowledged, with those that they missed. Raises NotMember."""
        last, read, *_rest = yield from self._fetch(encode(member) and member, 1, "", "", "")
        return int(last) - int(read)

    @operation
    def history(
        self, *, before: Place | None = None, limit: int = 50, member: str | None = None
    ) -> Flow[list[Message]]:
        """Return the last messages that are stored, or the last ones before another one, the oldest first.

        With ``member``, only those since they joined, unless they joined with the history. Raises NotMember.
        """
        return self.history_flow(before, limit, member)

    @operation
    def edit(self, message: Place, body: Any, *, sender: str | None = None) -> Flow[None]:
        """Replace the body of a message, if given only of this member. Raises MessageNotFound, NotSender, NotMember."""
        return self.edit_flow(message, *encoded(body), sender)

    @operation
    def delete(self, message: Place, *, sender: str | None = None) -> Flow[None]:
        """Remove the body of a message for all. Its number stays, as ``deleted``. See edit()."""
        return self.edit_flow(message, DELETED, "", sender)

    def read_flow(self, limit: int, after: Place | None, member: str) -> Flow[Fetched]:
        """See fetch(), which calls it more than once."""
        number, time = ("", "") if after is None else position("after", after)
        last, read, missed, first, entries = yield from self._fetch(encode(member) and member, limit, number, time, "")
        messages = [Message.parse(first + place, entry) for place, entry in enumerate(entries)]
        return Fetched(messages, int(missed), max(0, last - first + 1 - len(messages)), int(read), last)

    def fetch_flow(self, member: str, limit: int, timeout: float, after: Place | None) -> Flow[Fetched]:
        """See fetch()."""
        look = partial(self.read_flow, limit, after, member)
        return until_found(self.using, self.wake, look, timeout, partial(following, limit))

    def send_flow(self, sender: str | None, body: Any, client_id: str) -> Flow[int]:
        """See send()."""
        name = "" if sender is None else encode(sender)
        kind, text = encoded(body)
        args: list[Argument] = [self.encoded, name, f"{kind} {name} {text}", call_id(client_id, name)]
        keys = self.own_keys("messages", "members", "idle", "ids", "wake")
        return self.answer_of(SEND(keys, [*args, *limits()]), sender)

    def _fetch(self, member: str | None, limit: int, *args: Argument) -> Flow[Any]:
        whole_number("limit", limit, LIMIT)
        name = "" if member is None else encode(member)
        keys = [self.key("chats"), *self.keys("messages", "members", "idle", "joined")]
        return self.answer_of(FETCH(keys, [self.encoded, name, limit, *args]), member)

    def ack_flow(self, member: str, up_to: Place) -> Flow[int]:
        """See ack()."""
        name, place = encode(member), position("up_to", up_to)
        keys = self.own_keys("messages", "members", "idle", names=[name])
        return self.answer_of(ACK(keys, [self.encoded, name, *place, *limits()]), member, up_to)

    def history_flow(self, before: Place | None, limit: int, member: str | None) -> Flow[list[Message]]:
        """See history()."""
        number = 2**53 if before is None else position("before", before)[0]
        _last, _read, _missed, first, entries = yield from self._fetch(member, limit, "", "", number)
        return [Message.parse(first + place, entry) for place, entry in enumerate(entries)]

    def edit_flow(self, message: Place, kind: str, text: str, sender: str | None) -> Flow[None]:
        """See edit()."""
        place = position("message", message, least=1)
        args: list[Argument] = [self.encoded, *place, "" if sender is None else encode(sender), kind, text]
        keys = [self.key("chats"), *self.keys("messages", "members", "idle", "wake")]
        yield from self.answer_of(EDIT(keys, args), sender, message)

    asend = twin(send)
    afetch = twin(fetch)
    aack = twin(ack)
    aunread = twin(unread)
    ahistory = twin(history)
    aedit = twin(edit)
    adelete = twin(delete)


def following(limit: int, result: Fetched, publications: list[bytes]) -> Fetched | None:
    """Return published messages as the next result, if they are all that follows on the last one."""
    messages: list[Message] = []
    for number, publication in enumerate(publications, result.last + 1):
        entry = publication.removeprefix(b"message %d " % number)
        if entry == publication or len(messages) == limit:
            return None
        messages.append(Message.parse(number, entry))
    return result._replace(messages=messages, last=result.last + len(messages))
