"""Log records: as entries that wait, made by the thread that logs, and as text to store, made by the one that sends."""

import hashlib
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from time import time
from traceback import TracebackException
from typing import NamedTuple

from redis_kit.core.activity import current_fields
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.logs.filters import captured, formatted
from redis_kit.core.logs.masking import HIDDEN, is_hidden, without_secrets
from redis_kit.core.text import clean, contained, cut_to_bytes
from redis_kit.core.web.log_fields import request_fields

LONGEST = 4000  # characters of a text that waits
LONGEST_ERROR = 400  # characters of the text of an error, so that its frames have room
SIZE = 2048  # bytes of a stored record
SEPARATOR = "\x1f"  # of fields: in their text it is escaped
DAY = 24 * 3600  # seconds
# A value in a text such as "login %(password)s", or a percent sign.
ARGUMENT = re.compile(r"%%|%\(([^()]*)\)[-#0 +]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[a-zA-Z]")
LEVELS = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 10: "DEBUG"}
NUMBERS = {name: number for number, name in LEVELS.items()}


class Kind(NamedTuple):
    """The common part of records that are counted together; ``error`` is the path of an exception's class, or ""."""

    level: str
    logger: str
    template: str
    error: str
    place: str

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint. Its first digit is the level, so that of equal counts the severest comes first."""
        common = SEPARATOR.join(self).encode("utf-8", "surrogatepass")
        return f"{NUMBERS[self.level] // 10}{hashlib.blake2b(common, digest_size=7).hexdigest()}"


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
    def parse(cls, stored: bytes) -> "StoredRecord | None":
        """Return the record from its stored text; None if it can't be read, such as one of another release."""
        try:
            time, *texts = stored.decode().split(SEPARATOR)
            return cls(datetime.fromtimestamp(int(time) / 1e6, UTC), *texts)
        except (TypeError, ValueError, OverflowError, OSError):
            return None

    @property
    def id(self) -> str:
        """Return its fingerprint and its time in microseconds."""
        return f"{self.fingerprint}.{self.time:%Y%m%d%H%M%S%f}"


def entry_of(record: logging.LogRecord) -> Entry:
    """Return the entry of a record. Called by the thread that logs: nothing here asks a database or a server."""
    message = _message(record)
    template = record.msg if isinstance(record.msg, str) else message
    if isinstance(record.msg, BaseException):
        template = path_of(type(record.msg))
    kind, place = "", _place(str(record.pathname), str(record.funcName or ""))
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
    created, now = record.created, time()
    if not (isinstance(created, (int, float)) and now - DAY < created <= now):  # neither is NaN
        created = now
    common = Kind(level, str(record.name), template[:LONGEST], kind, place)
    return Entry(created, common, message[:LONGEST], error, *context)


def stored(entry: Entry) -> bytes:
    """Return the text to store, at most 2048 bytes, without secrets and control characters."""
    kind, template = entry.kind, "" if entry.kind.template == entry.message else contained(_masked(entry.kind.template))
    texts = [(kind.logger, 100), (kind.fingerprint, 16), (kind.error, 100), (kind.place, 100)]
    texts += [(_masked(entry.path), 200), (entry.user, 64), (entry.job, 64)]
    head = [str(int(entry.created * 1e6)), kind.level, *(cut_to_bytes(clean(text), size) for text, size in texts)]
    head.append(cut_to_bytes(template, 200))
    traceback, message = _masked(_traceback(entry.error)), contained(_masked(entry.message))
    room = SIZE - len(SEPARATOR.join([*head, "", ""]).encode())
    message = cut_to_bytes(message, max(room - len(traceback.encode()), room // 2))
    traceback = cut_to_bytes(traceback, room - len(message.encode()), end=True)
    return SEPARATOR.join([*head, message, traceback]).encode()


def _message(record: logging.LogRecord) -> str:
    try:
        if isinstance(record.args, Mapping) and "%(" in (text := str(record.msg)):
            return str.__str__(ARGUMENT.sub(_shown, text) % record.args)
        return str.__str__(record.getMessage())
    except Exception as error:  # a text and arguments that do not fit, or any error of a method of the project's
        template = record.msg if isinstance(record.msg, str) else ""
        return f"(the arguments can't be formatted: {type(error).__name__}) {template}"


def _shown(argument: re.Match[str]) -> str:
    return HIDDEN if argument[1] and is_hidden(argument[1]) else argument[0]


def _traceback(error: TracebackException | str) -> str:
    if isinstance(error, str):
        return contained(error)
    try:
        return formatted(error, _error_text)
    except Exception:  # of the loader of a module, which has its source
        return ""


def _error_text(text: str) -> str:
    masked = _masked(text)
    return masked if len(masked) <= LONGEST_ERROR else f"{masked[:LONGEST_ERROR]}…"


@lru_cache(maxsize=1024)
def _place(path: str, function: str) -> str:
    """Return a function and the last two parts of its path, which are the same wherever a project is installed."""
    return f"{'/'.join(path.replace(chr(92), '/').split('/')[-2:])} {function}"


def _masked(text: str) -> str:
    if len(text) == LONGEST and (start := text.rfind("://")) > text.rfind(" "):
        text = text[:start]  # the password of an address may be cut before its end
    return without_secrets(text, is_hidden)
