"""What is kept of a log record: an entry by the thread that logs, and what is stored of it by the one that sends."""

import hashlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from traceback import TracebackException
from typing import Any, NamedTuple

from django.utils.functional import LazyObject, empty

from redis_kit.core import conf
from redis_kit.core.activity import current_fields
from redis_kit.core.logs.error_text import path_of
from redis_kit.core.logs.filters import formatted
from redis_kit.core.logs.masking import is_secret, without_secrets
from redis_kit.core.text import clean, contained
from redis_kit.logs.middleware import current_request

LONGEST = 4000  # characters of a text that waits
SIZE = 2048  # bytes of a stored record
FRAMES = 20  # of a traceback, the last ones
SEPARATOR = "\x1f"  # of fields: in their text it is escaped
LEVELS = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 0: "DEBUG"}
CUT = "…"


class Entry(NamedTuple):
    """A record that waits. Arguments and frames are not kept, as they may change and hold memory."""

    created: float
    level: int
    logger: str
    template: str
    message: str
    place: str
    error: TracebackException | str | None
    path: str
    user: str
    job: str


class StoredRecord(NamedTuple):
    """A stored record. ``group`` is the first part of the logger's name; texts that are not known are empty."""

    time: datetime
    level: str
    logger: str
    fingerprint: str
    path: str
    user: str
    job: str
    message: str
    traceback: str

    @classmethod
    def parse(cls, stored: bytes) -> "StoredRecord":
        """Return the record from its stored text."""
        time, *texts = stored.decode().split(SEPARATOR)
        return cls(datetime.fromtimestamp(int(time) / 1000, UTC), *texts)


class About(NamedTuple):
    """What the records of a fingerprint have in common: ``error`` is the path of an exception's class, or empty."""

    level: str
    logger: str
    template: str
    error: str
    place: str

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint."""
        return _digest(self)

    @property
    def stored(self) -> bytes:
        """Return the text to store."""
        template = contained(_masked(self.template))
        return SEPARATOR.join(_cut(text, 500) for text in self._replace(template=template)).encode()

    @classmethod
    def parse(cls, stored: bytes) -> "About":
        """Return it from its stored text."""
        return cls(*stored.decode().split(SEPARATOR))


def entry_of(record: logging.LogRecord) -> Entry:
    """Return what is kept of a record. Called by the thread that logs: nothing here asks a database or a server."""
    message = _message(record)
    template = record.msg if isinstance(record.msg, str) else message
    if isinstance(record.msg, BaseException):
        template = path_of(type(record.msg))
    request = getattr(record, "request", None) or current_request.get()
    path, user = (str(getattr(request, "path", ""))[:LONGEST], _user(request)) if request is not None else ("", "")
    job = str(work().get("job", "")) if (work := current_fields.get()) else ""
    place = f"{_end(record.pathname)} {record.funcName or ''}"
    return Entry(
        *(record.created, record.levelno, record.name, template[:LONGEST], message[:LONGEST], place),
        *(_error(record), path, user, job),
    )


def about(entry: Entry) -> About:
    """Return what an entry has in common with others of its kind."""
    error, place = "", entry.place
    if isinstance(entry.error, TracebackException):
        error = path_of(kind) if (kind := entry.error.exc_type) else ""
        if entry.error.stack:
            place = f"{_end(entry.error.stack[-1].filename)} {entry.error.stack[-1].name}"
    return About(level_of(entry.level), clean(entry.logger), entry.template, error, clean(place))


def stored(entry: Entry, fingerprint: str) -> bytes:
    """Return the text to store, at most 2048 bytes, without secrets and control characters."""
    head = [str(int(entry.created * 1000)), level_of(entry.level), _cut(clean(entry.logger), 100), fingerprint]
    head += [_cut(clean(_masked(entry.path)), 200), _cut(clean(entry.user), 64), _cut(clean(entry.job), 64)]
    traceback = _masked(_formatted(entry.error))
    message = contained(_masked(entry.message))
    room = SIZE - len(SEPARATOR.join([*head, "", ""]).encode())
    message = _cut(message, max(room - len(traceback.encode()), room // 2))
    traceback = _cut(traceback, room - len(message.encode()), end=True)
    return SEPARATOR.join([*head, message, traceback]).encode()


def level_of(number: int) -> str:
    """Return the name of the highest of Python's levels that is not above a number."""
    return next((name for level, name in LEVELS.items() if number >= level), "DEBUG")


def _message(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
        return message if type(message) is str else str.__str__(message)
    except Exception as error:  # a text and arguments that do not fit, or any error of a method of the project's
        template = record.msg if type(record.msg) is str else ""
        return f"(the arguments can't be formatted: {type(error).__name__}) {template}"


def _error(record: logging.LogRecord) -> TracebackException | str | None:
    if not (isinstance(record.exc_info, tuple) and record.exc_info[0]):
        return (record.exc_text or record.stack_info or "")[-LONGEST:]
    try:
        # Lines of code are looked up by the thread that sends.
        error = TracebackException(*record.exc_info, limit=-FRAMES, lookup_lines=False, compact=True)
        for each in _chain(error):
            each._str = str(each._str)[:LONGEST]
        return error
    except Exception:  # of a method of the error
        return f"{path_of(record.exc_info[0])}: (its text can't be read)"


def _formatted(error: TracebackException | str | None) -> str:
    try:
        return formatted(error) if isinstance(error, TracebackException) else contained(error or "")
    except Exception:  # of the loader of a module, which has its source
        return "(the traceback can't be read)"


def _chain(error: TracebackException) -> Iterator[TracebackException]:
    waiting = [error]
    while waiting:
        error = waiting.pop()
        yield error
        waiting += [each for each in (error.__cause__, error.__context__, *(error.exceptions or ())) if each]


def _user(request: Any) -> str:
    """Return the id of the user of a request if it is loaded already: nothing may load it here."""
    known = getattr(request, "__dict__", {})
    for name in ("_cached_user", "_acached_user", "user"):
        user = known.get(name)
        if isinstance(user, LazyObject):
            user = user.__dict__["_wrapped"]
        if user is not None and user is not empty and (pk := getattr(user, "pk", None)) is not None:
            return str(pk)[:LONGEST]
    return ""


@lru_cache(maxsize=1024)
def _end(path: str) -> str:
    """Return the last two parts of a path, which are the same wherever a project is installed."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _cut(text: str, size: int, *, end: bool = False) -> str:
    """Return the beginning of a text, or its end, in at most some bytes of UTF-8."""
    encoded = text.encode()
    if len(encoded) <= size:
        return text
    room = size - len(CUT.encode())
    return CUT + encoded[-room:].decode(errors="ignore") if end else encoded[:room].decode(errors="ignore") + CUT


def _masked(text: str) -> str:
    if len(text) == LONGEST and (start := text.rfind("://")) > text.rfind(" "):
        text = text[:start]  # the password of an address may be cut before its end
    return without_secrets(text, _is_hidden)


@lru_cache(maxsize=4096)
def _is_hidden(name: str) -> bool:
    """Tell whether the kit or the project's filter of Django's error reports hides the values of a name."""
    from django.views.debug import get_exception_reporter_filter

    if is_secret(name):
        return True
    try:
        shown = get_exception_reporter_filter(None).cleanse_setting(name, CUT)
    except Exception:  # of a class of the project's
        return True
    return shown != CUT and not name.lower().endswith("error")


@lru_cache(maxsize=4096)
def _digest(about: About) -> str:
    text = SEPARATOR.join(about).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


conf.on_change(_is_hidden.cache_clear, "DEFAULT_EXCEPTION_REPORTER_FILTER")
