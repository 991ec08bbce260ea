"""Unique keys as values: at most one job has a key at a time."""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, NamedTuple

Until = Literal["done", "queued"] | float | timedelta
By = tuple[str, ...] | Callable[..., str] | None
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


def digest(domain: str, text: str) -> str:
    """Return 22 characters that stand for a text in a key of Redis. Texts of two domains never share them."""
    hashed = hashlib.sha256(f"{domain}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return urlsafe_b64encode(hashed[:16])[:22].decode()


def key_of_call(job: str) -> UniqueKey:
    """Return a unique key by which Redis knows for some time that it got the call of this job, even if that is done."""
    return UniqueKey(digest("outbox", job), str(PERIOD))
