"""Unique keys as they are stored: at most one job has a key at a time."""

import hashlib
from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import shortened
from redis_kit.queues import validation

Until = Literal["done", "queued"] | float | timedelta
ENDS = ("done", "queued")
LONGEST = 512  # bytes of UTF-8 in a key
ALLOWED = (
    f"'done', 'queued', or a time of more than 0 and at most {validation.LONGEST_DELAY:,} seconds, as a number or a "
    "timedelta"
)
PERIOD = 600_000  # ms for which Redis knows that it got a call, so that a repeat adds none


class UniqueKey(NamedTuple):
    """The unique key of a new job. ``until`` is ``done``, ``queued`` or a number of ms; see put() for ``replace``."""

    key: str
    until: str
    replace: bool = False


class PutResult(NamedTuple):
    """The job that is in the queue now: a new one if ``created``, else the job that held the unique key.

    ``replaced`` says whether that job took over the content of the new one.
    """

    id: str
    created: bool
    replaced: bool = False


def chosen(key: Any, until: Any, replace: Any) -> UniqueKey | None:
    """Return the unique key that a caller of put() chose; None without one. Raises InvalidValue."""
    if not isinstance(replace, bool) or (replace and key is None):
        raise InvalidValue(f"replace must be True or False, and True needs a unique key, not {shortened(replace)}.")
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "replace")) <= LONGEST:
        raise InvalidValue(f"unique must be text of 1 to {LONGEST} bytes, not {shortened(key)}.")
    return UniqueKey(digest("key", key), end("unique_until", until), replace)


def end(name: str, until: Any, allowed: str = ALLOWED) -> str:
    """Return until when a key is in use, as the script expects it. Raises InvalidValue naming what is allowed."""
    if isinstance(until, str) and until in ENDS:
        return until
    is_time = isinstance(until, (int, float, timedelta)) and not isinstance(until, bool)
    if is_time:
        with suppress(InvalidValue):
            return str(validation.milliseconds(until, name, positive=True))
    raise InvalidValue(f"{name} must be {allowed}, not {shortened(until)}.")


def digest(domain: str, text: str) -> str:
    """Return 22 characters that stand for a text in a key of Redis. Texts of two domains never share them."""
    hashed = hashlib.sha256(f"{domain}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return urlsafe_b64encode(hashed[:16])[:22].decode()


def key_of_call(job: str) -> UniqueKey:
    """Return a unique key by which Redis knows for some time that it got the call of this job, even if that is done."""
    return UniqueKey(digest("outbox", job), str(PERIOD))
