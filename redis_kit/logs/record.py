"""Log records: as entries that wait, made by the thread that logs, and as text to store, made by the one that sends."""

import logging
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from time import time
from traceback import TracebackException
from typing import NamedTuple

from redis_kit.core.logs.error_text import path_of
from redis_kit.core.logs.filters import captured, formatted
from redis_kit.core.logs.masking import is_hidden, message_of, without_secrets
from redis_kit.core.text import clean, contained, cut_to_bytes
from redis_kit.core.web.log_fields import fields_of
from redis_kit.logs.keys import HOUR

LIMIT = 4000  # characters of a text that waits
ERROR_LIMIT = 400  # characters of the text of an error, so that its frames have room
SIZE = 2048  # bytes of a stored record
SEPARATOR = "\x1f"  # of fields: in their text it is escaped
LEVELS = {"CRITICAL": "5", "ERROR": "4", "WARNING": "3", "INFO": "2", "DEBUG": "1"}
NAMES = tuple(LEVELS)


class Entry(NamedTuple):
    """A record that waits. Arguments and frames are not kept, as they may change and hold memory."""

    created: float
    level: str
    logger: str
    template: str
    error: str  # the path of an exception's class, or ""
    place: str
    message: str
    traceback: TracebackException | str
    context: list[str]  # the path, the user and the job

    @property
    def fingerprint(self) -> str:
        """Return what records of a message share. It begins with the level: of equal counts the severest is first."""
        text = SEPARATOR.join(self[1:6]).encode("utf-8", "surrogatepass")
        return LEVELS[self.level] + blake2b(text, digest_size=7).hexdigest()


class StoredRecord(NamedTuple):
    """A stored record. Texts that are not known are empty, and so is a template that is the message."""

    time: datetime
    level: str
    logger: str
    fingerprint: str
    error: str
    place: str
    path: str
    user: str
    job: str
    template: str
    message: str
    traceback: str

    @classmethod
    def parse(cls, stored: bytes) -> "StoredRecord | None":
        """Return the record from its stored text; None if it can't be read, such as one of another release."""
        try:
            time, *texts = stored.decode().split(SEPARATOR)
            return cls(datetime.fromtimestamp(int(time) / 1e6, UTC), *texts)
        except (TypeError, ValueError, OverflowError, OSError):
            return None

    @property
    def title(self) -> str:
        """Return the first line of its message."""
        return self.message.partition("\n")[0] or "–"

    @property
    def id(self) -> str:
        """Return its fingerprint and its time in microseconds."""
        return f"{self.fingerprint}.{self.time:%Y%m%d%H%M%S%f}"


def entry_of(record: logging.LogRecord) -> Entry:
    """Return the entry of a record. Called by the thread that logs: nothing here asks a database or a server."""
    message = message_of(record, is_hidden)
    template = record.msg if isinstance(record.msg, str) else message
    if isinstance(record.msg, BaseException):
        template = path_of(type(record.msg))
    error, place = "", _place(str(record.pathname), str(record.funcName or ""))
    traceback: TracebackException | str = (record.exc_text or record.stack_info or "")[-LIMIT:]
    if isinstance(record.exc_info, tuple) and record.exc_info[0]:
        error = path_of(record.exc_info[0]).removeprefix("builtins.")
        traceback = captured(record.exc_info, frames=20, longest=LIMIT)
        if isinstance(traceback, TracebackException) and traceback.stack:
            place = _place(traceback.stack[-1].filename, traceback.stack[-1].name)
    created, now, fields = record.created, time(), fields_of(record)
    if not (isinstance(created, (int, float)) and now - 24 * HOUR < created <= now):  # neither is NaN
        created = now
    level = NAMES[min(max(5 - record.levelno // 10, 0), 4)]
    context = [str(fields.get(name, "")) for name in ("path", "user", "job")]
    return Entry(created, level, str(record.name), template[:LIMIT], error, place, message[:LIMIT], traceback, context)


def stored(entry: Entry, fingerprint: str) -> bytes:
    """Return the text to store, at most 2048 bytes, without secrets and control characters."""
    path, user, job = entry.context
    template = "" if entry.template == entry.message else contained(_masked(entry.template))
    texts = [(entry.logger, 100), (fingerprint, 16), (entry.error, 100), (entry.place, 100)]
    texts += [(_masked(path), 200), (user, 64), (job, 64)]
    head = [str(int(entry.created * 1e6)), entry.level, *(cut_to_bytes(clean(text), size) for text, size in texts)]
    head.append(cut_to_bytes(template, 200))
    traceback, message = _masked(formatted(entry.traceback, _masked, ERROR_LIMIT)), contained(_masked(entry.message))
    room = SIZE - len(SEPARATOR.join([*head, "", ""]).encode())
    message = cut_to_bytes(message, max(room - len(traceback.encode()), room // 2))
    traceback = cut_to_bytes(traceback, room - len(message.encode()), end=True)
    return SEPARATOR.join([*head, message, traceback]).encode()


@lru_cache(maxsize=1024)
def _place(path: str, function: str) -> str:
    """Return a function and the last two parts of its path, which are the same wherever a project is installed."""
    return f"{'/'.join(path.replace(chr(92), '/').split('/')[-2:])} {function}"


def _masked(text: str) -> str:
    return text and without_secrets(text, is_hidden, is_cut=len(text) == LIMIT)
