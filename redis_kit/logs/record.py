"""Log records: as entries that wait, made by the thread that logs, and as text to store, made by the one that sends."""

import hashlib
import logging
from datetime import UTC, datetime
from functools import lru_cache
from traceback import TracebackException
from typing import NamedTuple

from redis_kit.core.activity import current_fields
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.logs.filters import captured, formatted
from redis_kit.core.logs.masking import is_hidden, without_secrets
from redis_kit.core.text import clean, contained, cut_to_bytes
from redis_kit.core.web.log_fields import request_fields

LONGEST = 4000  # characters of a text that waits
SIZE = 2048  # bytes of a stored record
SEPARATOR = "\x1f"  # of fields: in their text it is escaped
LEVELS = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 10: "DEBUG"}


class Kind(NamedTuple):
    """The common part of records that are counted together; ``error`` is the path of an exception's class, or ""."""

    level: str
    logger: str
    template: str
    error: str
    place: str

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint."""
        return hashlib.blake2b(SEPARATOR.join(self).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Entry(NamedTuple):
    """A record that waits. Arguments and frames are not kept, as they may change and hold memory."""

    created: float
    kind: Kind
    message: str
    error: TracebackException | str
    path: str
    user: str
    job: str


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
    def parse(cls, stored: bytes) -> "StoredRecord":
        """Return the record from its stored text."""
        time, *texts = stored.decode().split(SEPARATOR)
        return cls(datetime.fromtimestamp(int(time) / 1000, UTC), *texts)


def entry_of(record: logging.LogRecord) -> Entry:
    """Return the entry of a record. Called by the thread that logs: nothing here asks a database or a server."""
    message = _message(record)
    template = record.msg if isinstance(record.msg, str) else message
    if isinstance(record.msg, BaseException):
        template = path_of(type(record.msg))
    kind, place = "", _place(record.pathname, record.funcName or "")
    error: TracebackException | str = (record.exc_text or record.stack_info or "")[-LONGEST:]
    if isinstance(record.exc_info, tuple) and record.exc_info[0]:
        kind, error = (
            path_of(record.exc_info[0]).removeprefix("builtins."),
            captured(record.exc_info, frames=20, longest=LONGEST),
        )
        if isinstance(error, TracebackException) and error.stack:
            place = _place(error.stack[-1].filename, error.stack[-1].name)
    fields = work() if (work := current_fields.get()) else {}
    if (request := getattr(record, "request", None)) is not None:
        fields = {**fields, **request_fields(request)}
    level = next((name for number, name in LEVELS.items() if record.levelno >= number), "DEBUG")
    context = [str(fields.get(name, "")) for name in ("path", "user", "job")]
    return Entry(
        record.created, Kind(level, record.name, template[:LONGEST], kind, place), message[:LONGEST], error, *context
    )


def stored(entry: Entry) -> bytes:
    """Return the text to store, at most 2048 bytes, without secrets and control characters."""
    kind, template = entry.kind, "" if entry.kind.template == entry.message else contained(_masked(entry.kind.template))
    texts = [(kind.logger, 100), (kind.fingerprint, 16), (kind.error, 100), (kind.place, 100)]
    texts += [(_masked(entry.path), 200), (entry.user, 64), (entry.job, 64)]
    head = [str(int(entry.created * 1000)), kind.level, *(cut_to_bytes(clean(text), size) for text, size in texts)]
    head.append(cut_to_bytes(template, 200))
    try:
        error = formatted(entry.error) if isinstance(entry.error, TracebackException) else contained(entry.error)
    except Exception:  # of the loader of a module, which has its source
        error = ""
    traceback, message = _masked(error), contained(_masked(entry.message))
    room = SIZE - len(SEPARATOR.join([*head, "", ""]).encode())
    message = cut_to_bytes(message, max(room - len(traceback.encode()), room // 2))
    traceback = cut_to_bytes(traceback, room - len(message.encode()), end=True)
    return SEPARATOR.join([*head, message, traceback]).encode()


def _message(record: logging.LogRecord) -> str:
    try:
        return str.__str__(record.getMessage())
    except Exception as error:  # a text and arguments that do not fit, or any error of a method of the project's
        template = record.msg if isinstance(record.msg, str) else ""
        return f"(the arguments can't be formatted: {type(error).__name__}) {template}"


@lru_cache(maxsize=1024)
def _place(path: str, function: str) -> str:
    """Return a function and the last two parts of its path, which are the same wherever a project is installed."""
    return f"{'/'.join(path.replace(chr(92), '/').split('/')[-2:])} {function}"


def _masked(text: str) -> str:
    if len(text) == LONGEST and (start := text.rfind("://")) > text.rfind(" "):
        text = text[:start]  # the password of an address may be cut before its end
    return without_secrets(text, is_hidden)
