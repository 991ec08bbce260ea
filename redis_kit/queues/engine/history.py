"""The history of a job whose result is stored: a line before its message.

``~<enqueued>/<run_after>/<backend>``, the backend "" for ``default``, then `` <begun>/<worker>`` for each attempt,
which claims add. The first two are in microseconds since 1970, as the caller saw them; the others in milliseconds on
the server's clock.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote, unquote

from django.conf import settings
from django.utils.timezone import is_naive, make_aware, make_naive

DEFAULT = "default"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers of these lengths are times that datetime can hold.
_LAST = re.compile(rb" (\d{1,13})/[^/ ]+$")
_LINE = re.compile(rb"~(\d{1,16})/(\d{0,16})/([^/ ]*)((?: \d{1,13}/[^/ ]+)*)")


class History(NamedTuple):
    """When a call was enqueued, when it was to run, for which backend; when its attempts began, and their workers."""

    enqueued_at: datetime
    run_after: datetime | None
    backend: str
    begun: list[datetime]
    workers: list[str]


def line(enqueued_at: datetime, run_after: datetime | None, backend: str) -> bytes:
    """Return the line of a new job."""
    after = "" if run_after is None else _microseconds(run_after)
    alias = "" if backend == DEFAULT else quote(backend, safe="")  # most are, and a queue may hold millions
    return f"~{_microseconds(enqueued_at)}/{after}/{alias}\n".encode()


def read(text: bytes) -> History | None:
    """Return the history in a line; None if the line is damaged."""
    if not (match := _LINE.fullmatch(text)):
        return None
    enqueued, after, alias, attempts = (part.decode("utf-8", "replace") for part in match.groups())
    tries = [attempt.split("/") for attempt in attempts.split(" ")[1:]]
    enqueued_at = _moment(int(enqueued))
    return History(
        enqueued_at,
        _moment(int(after)) if after else None,
        _alias(alias),
        [max(enqueued_at, milliseconds(int(begun))) for begun, _ in tries],
        [worker for _, worker in tries],
    )


def backend(text: bytes) -> str | None:
    """Return only the backend of a job, in a tenth of the time; None if the line is damaged."""
    match = _LINE.fullmatch(text)
    return _alias(match[3].decode("utf-8", "replace")) if match else None


def last_begun(text: bytes) -> float | None:
    """Return when the last attempt began, in seconds since 1970; None before the first one."""
    match = _LAST.search(text)
    return int(match[1]) / 1000 if match else None


def _alias(written: str) -> str:
    return unquote(written) if written else DEFAULT


def milliseconds(number: int) -> datetime:
    """Return a time given in ms since 1970, aware or naive as ``USE_TZ`` says."""
    return _moment(number * 1000)


def ended_at(stored: bytes) -> datetime:
    """Return the time at which a call ended, as its result has it. Raises ValueError and OverflowError."""
    return milliseconds(int(float(stored)))


def _moment(microseconds: int) -> datetime:
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment if settings.USE_TZ else make_naive(moment)


def _microseconds(moment: datetime) -> int:
    since = (make_aware(moment) if is_naive(moment) else moment) - EPOCH
    return max(0, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
