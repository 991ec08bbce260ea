"""Messages for one user, on several devices: each is leased to one, until one acknowledges it."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.channels import LONGEST, until_found
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, single, twin
from redis_kit.core.steps import Argument, Call
from redis_kit.core.values.numbers import seconds, whole_number
from redis_kit.mailbox.box import LIMIT, Box, deferred
from redis_kit.mailbox.message import Message, Place, call_id, encoded, position
from redis_kit.mailbox.settings import MailboxSettings

PUSH, PULL, SETTLE, PEEK = (scripts.load(__package__, name) for name in ("push", "pull", "settle", "peek"))
LEASE = (0.1, 86_400.0)

Messages = Iterable[Place] | Place


class Pulled(NamedTuple):
    """Messages, how many were ``missed``, as the inbox was full, and the seconds until a lease of others may end.

    The number of those missed is told until the next message is acknowledged.
    """

    messages: list[Message]
    missed: int
    next_look: float = LONGEST


class Inbox(Box):
    """Messages for one user, in their order, each delivered at least once. A method is one round trip."""

    kind = "inbox"

    @operation
    def push(self, body: Any, *, client_id: str = "", on_commit: bool = False, **data: Any) -> Flow[int | None]:
        """Put a message into the inbox, with more ``data`` for its receiver, and return its number.

        For ``client_id`` and ``on_commit`` see Chat.send(). If the inbox is full, its oldest message is removed.
        """
        kind, text = encoded(body, data)
        args: list[Argument] = [self.encoded, f"{kind}  {text}", call_id(client_id)]
        keys = [self.key("inboxes"), *self.keys("messages", "numbers", "leases", "last", "ids", "wake")]
        push = single(PUSH(keys, [*args, conf.section(MailboxSettings).MAX_MESSAGES]))
        return deferred(self, push, on_commit=on_commit)

    @operation
    def pull(self, limit: int = 10, *, timeout: float = 0, lease: float = 30) -> Flow[Pulled]:
        """Lease the first messages that nobody has leased. Those not acknowledged in ``lease`` seconds come again.

        If there is none, wait for ``timeout`` seconds, 0 to 3,600, at most. A lease is 0.1 s to a day. If the reply is
        lost, the messages come again after their leases. At most 1,000 messages are leased at a time.
        """
        whole_number("limit", limit, LIMIT)
        ttl = round(seconds("lease", lease, LEASE) * 1000)
        return until_found(self.using, self.wake, partial(self._leased, limit, ttl), timeout)

    @operation
    def ack(self, messages: Messages) -> Flow[int]:
        """Remove messages, with or without a lease, and return how many were there. May be repeated."""
        return self.settle_flow("ack", messages)

    @operation
    def nack(self, messages: Messages) -> Flow[int]:
        """End the leases of messages, so that they come again at once. Return how many were there. May be repeated."""
        return self.settle_flow("nack", messages)

    @operation
    def unread(self) -> Flow[int]:
        """Return how many messages are not acknowledged."""
        return single(Call("ZCARD", *self.keys("numbers")))

    @operation
    def peek(self, limit: int = 10, *, after: Place | None = None) -> Flow[Pulled]:
        """Return the first messages that are not acknowledged, or those after one, without leasing them."""
        return self.read_flow(limit, after)

    def read_flow(self, limit: int, after: Place | None, member: str = "") -> Flow[Pulled]:
        """See peek(). There is no ``member``, unlike in Chat."""
        number = 0 if after is None else position("after", after)[0]
        whole_number("limit", limit, LIMIT)
        missed, *messages = yield PEEK(self.keys("messages", "numbers"), [number, limit])
        return Pulled(_parsed(*messages), int(missed))

    def _leased(self, limit: int, ttl: int) -> Flow[Pulled]:
        missed, pause, *messages = yield PULL(self.keys("messages", "numbers", "leases"), [limit, ttl])
        return Pulled(_parsed(*messages), int(missed), pause / 1000 + 0.001 if pause > 0 else LONGEST)

    def settle_flow(self, verb: str, messages: Messages) -> Flow[int]:
        """Acknowledge messages, or end their leases; see ack() and nack()."""
        are_many = isinstance(messages, Iterable) and not isinstance(messages, (Message, str))
        places: Any = messages if are_many else [messages]
        numbers = [position("messages", message, least=1)[0] for message in places]
        if len(numbers) > LIMIT[1]:
            raise InvalidValue(f"{verb}() takes {LIMIT[1]:,} messages at most, not {len(numbers):,}.")
        keys = [self.key("inboxes"), *self.keys("messages", "numbers", "leases", "wake")]
        return int((yield SETTLE(keys, [self.encoded, verb, *numbers]))) if numbers else 0

    apush = twin(push)
    apull = twin(pull)
    aack = twin(ack)
    anack = twin(nack)
    aunread = twin(unread)
    apeek = twin(peek)


def _parsed(numbers: list[bytes], entries: list[bytes | None]) -> list[Message]:
    return [Message.parse(int(number), entry) for number, entry in zip(numbers, entries, strict=True) if entry]
