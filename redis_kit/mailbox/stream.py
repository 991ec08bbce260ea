"""Server-Sent Events of a chat or an inbox (WHATWG HTML, section 9.2), written once for sync and async code."""

import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from asgiref.sync import SyncToAsync
from django.db import connections

from redis_kit.core.channels import PASSING, Listen, Subscription, in_turn, subscribed
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.mailbox.chat import Chat
from redis_kit.mailbox.errors import ChatNotFound, NotMember
from redis_kit.mailbox.inbox import Inbox
from redis_kit.mailbox.message import Message, position

ALIVE = 15.0  # seconds without an event after which a comment is sent, as proxies cut silent connections
LENGTH = (540.0, 660.0)  # seconds of a stream, at random: then the client reconnects, and its rights are checked again
PAGE = 100  # messages of one look


class EventStream:
    """The events after a message. It holds no connection while it waits, and ends when the reader may not read on.

    An event without a name is a message, whose id a client goes on with. ``missed`` says how many are gone, ``change``
    which message was edited or deleted, ``ack`` which were acknowledged in an inbox, and ``end`` why no more follows.
    """

    def __init__(self, box: Chat | Inbox, member: str, after: str | None) -> None:
        self.box, self.member = box, member
        self._after: Any = after
        self._number = 0 if after is None else position("after", after)[0]  # of the last message that was sent
        self._missed = 0  # messages of an inbox, as the client knows
        self._must_look = True
        self._end = monotonic() + random.uniform(*LENGTH)  # noqa: S311 -- spreads load, hides nothing

    def __iter__(self) -> Iterator[bytes]:
        close_databases()
        yield b"retry: 2000\n\n"
        with subscribed(self.box.using, self.box.wake) as subscription:
            while (chunk := self.box.run_flow(self._next(subscription))) is not None:
                yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        end_thread()
        yield b"retry: 2000\n\n"
        with subscribed(self.box.using, self.box.wake) as subscription:
            while (chunk := await self.box.arun_flow(self._next(subscription))) is not None:
                yield chunk

    def _next(self, subscription: Subscription) -> Flow[bytes | None]:
        """Return the next events, a comment if there were none for a while, or None at the end."""
        due = monotonic() + ALIVE
        while (now := monotonic()) < self._end:
            if not self._must_look:
                publications = yield Listen(subscription, max(0.0, min(due, self._end) - now))
                self._must_look = publications is None
                if events := b"".join(map(self._event_of, publications or ())):
                    return events
            if self._must_look or monotonic() >= due:
                events = b""
                try:
                    events = yield from self._look()
                except PASSING:
                    self._must_look = True
                    yield Listen(subscription, random.uniform(1, 5))  # noqa: S311
                except (ChatNotFound, NotMember) as error:
                    self._end = 0
                    return _event({"reason": type(error).__name__}, name="end")
                if events or monotonic() >= due:
                    return events or b": \n\n"
        return None

    def _look(self) -> Flow[bytes]:
        result: Any = yield from in_turn(self.box.read_flow(PAGE, self._after, self.member))
        self._must_look = len(result.messages) == PAGE
        events = []
        if result.missed and (isinstance(self.box, Chat) or result.missed != self._missed):
            events.append(_event({"missed": result.missed}, name="missed"))
        self._missed = result.missed
        events += [_event(message.as_json(), id=message.id) for message in result.messages]
        if result.messages:
            self._after, self._number = result.messages[-1].id, result.messages[-1].number
        elif isinstance(self.box, Chat) and (self._after is None or result.last != self._number):
            self._after = self._number = result.last
        return b"".join(events)

    def _event_of(self, publication: bytes) -> bytes:
        """Return the event of a publication, or b"" and note that a look is needed."""
        kind, _, rest = publication.partition(b" ")
        if kind == b"message" and not self._must_look:
            first, _, entry = rest.partition(b" ")
            number = int(first)
            if number == self._number + 1 or (number > self._number and isinstance(self.box, Inbox)):
                message = Message.parse(number, entry)
                self._after, self._number = message.id, number
                return _event(message.as_json(), id=message.id)
            self._must_look = number > self._number
        elif kind == b"change":
            changed, _, body_kind = rest.partition(b" ")
            return _event({"number": int(changed), "deleted": body_kind == b"x"}, name="change")
        elif kind == b"ack":
            return _event({"numbers": [int(number) for number in rest.split()]}, name="ack")
        self._must_look |= kind == b"left" and encode(self.member).encode() in rest.split()
        return b""


def _event(data: Any, *, name: str = "", id: str = "") -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))  # no line ends in it
    lines = (f"event: {name}" if name else "", f"id: {id}" if id else "", f"data: {text}")
    return ("\n".join(filter(None, lines)) + "\n\n").encode()


def close_databases() -> None:
    """Close the database connections of this thread that are in no transaction. Django opens them again when needed."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["AUTOCOMMIT"] and not connection.in_atomic_block:
            connection.close()


def end_thread() -> None:
    """End the thread in which Django runs sync code for this ASGI request, and close its database connections.

    Otherwise both last as long as the request. Sync code that is called later gets another thread.
    """
    with suppress(AttributeError, LookupError):  # asgiref documents neither; without a context there is none
        executor = SyncToAsync.context_to_thread_executor.pop(SyncToAsync.thread_sensitive_context.get())
        executor.submit(close_databases)
        executor.shutdown(wait=False)
