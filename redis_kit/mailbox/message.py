"""A message, its checks, and how it is stored: ``time edited kind sender body``, with spaces between."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_whole
from redis_kit.mailbox.box import decoded
from redis_kit.mailbox.settings import MailboxSettings

TEXT, JSON, WITH_DATA, DELETED = "t", "j", "d", "x"  # kinds of bodies
MAX_ID = 128  # characters of the id of a call
LARGEST = 2**53  # numbers below are exact in Lua
DEEPEST = 100  # levels of JSON: the more that one may write, the less of the stack others have left to read it
NO_DATA: Mapping[str, Any] = {}


class Message(NamedTuple):
    """A message. ``number`` is its place in the chat, without gaps, or in an inbox a time in microseconds.

    ``body`` is text, or what JSON can hold. ``sender`` is None for messages of the project, and those of inboxes.
    """

    number: int
    body: Any
    time: datetime
    sender: str | None = None
    edited: datetime | None = None
    deleted: bool = False
    data: Mapping[str, Any] = NO_DATA

    @property
    def id(self) -> str:
        """Return its number and its time in ms: no other message has it, even if the server loses some."""
        return f"{self.number}-{round(self.time.timestamp() * 1000)}"

    @classmethod
    def parse(cls, number: int, entry: bytes) -> "Message":
        """Return a stored message."""
        time, edited, kind, sender, body = entry.decode().split(" ", 4)
        content: Any = json.loads(body) if kind in (JSON, WITH_DATA) else body
        return cls(
            number=number,
            body=content["body"] if kind == WITH_DATA else None if kind == DELETED else content,
            time=moment(int(time)),
            sender=decoded(sender) if sender else None,
            edited=moment(int(edited)) if edited != "0" else None,
            deleted=kind == DELETED,
            data=content["data"] if kind == WITH_DATA else NO_DATA,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for a client, which must escape the body where it shows it."""
        edited = self.edited.isoformat() if self.edited else None
        maybe = {"sender": self.sender, "edited": edited, "deleted": self.deleted, "data": self.data}
        always = {"id": self.id, "number": self.number, "body": self.body, "time": self.time.isoformat()}
        return always | {name: value for name, value in maybe.items() if value}


Place = Message | str | int  # a message, its id, or its number


def encoded(body: Any, data: Mapping[str, Any] = NO_DATA) -> tuple[str, str]:
    """Return the kind and the text of a body. Raises InvalidValue unless it is text or JSON of a size allowed."""
    kind, content = (WITH_DATA, {"body": body, "data": data}) if data else (JSON, body)
    if body is None or body == "":
        raise InvalidValue("A message must have a body: text, or what JSON can hold.")
    try:
        if isinstance(body, str) and not data:
            kind, text = TEXT, body
        else:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidValue("The body is not valid Unicode: it has half of a surrogate pair.") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"The body must be text, or what JSON can hold, not {shortened(body)}: {error}.") from error
    if size > (most := conf.section(MailboxSettings).MAX_BYTES):
        raise InvalidValue(f"A message of {size:,} bytes is too large: MAX_BYTES in REDIS_KIT['MAILBOX'] is {most:,}.")
    level: list[Any] = [] if kind == TEXT else [[content]]
    for _ in range(DEEPEST + 1 if level else 0):
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in level if isinstance(part, (dict, list, tuple))]
    if level:
        raise InvalidValue(f"A body must not be nested more than {DEEPEST} levels deep.")
    return kind, text


def position(name: str, value: Any, *, least: int = 0) -> tuple[int, str]:
    """Return the number of a message and its time in ms, or "": of a Message, an id, or a number."""
    if isinstance(value, Message):
        value = value.id
    number, time = value, ""
    if isinstance(value, str):
        first, dash, time = value[:40].partition("-")
        number = int(first) if all(part.isascii() and part.isdecimal() for part in (first, time or dash or "0")) else -1
    if not is_whole(number) or not least <= number < LARGEST:
        raise InvalidValue(f"{name} must be a Message, its id, or a number from {least}, not {shortened(value)}.")
    return number, time


def call_id(client_id: Any, sender: str = "") -> str:
    """Return what is stored of the id of a call, "" for none. Raises InvalidValue."""
    if not isinstance(client_id, str) or len(client_id) > MAX_ID or not client_id.isprintable():
        raise InvalidValue(f"client_id must be at most {MAX_ID} printable characters, not {shortened(client_id)}.")
    return f"{sender} {client_id}" if client_id else ""


def moment(ms: float) -> datetime:
    """Return a time that is stored in ms."""
    return datetime.fromtimestamp(ms / 1000, UTC)
