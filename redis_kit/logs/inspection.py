"""The stored records, and the most common messages."""

from collections import Counter
from datetime import UTC, datetime
from time import time
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.logs import keys
from redis_kit.logs.keys import HOUR, RETENTION, key
from redis_kit.logs.record import NAMES, SEPARATOR, StoredRecord
from redis_kit.logs.settings import LogSettings

LIMITS = 1, 10_000  # of the records or messages that are returned


class Message(NamedTuple):
    """A message and its number of ``records``. ``other`` stands for all messages beyond the limit of an hour.

    ``first_seen`` is the time of its first record since two days without one, and ``sample`` its last one, or None.
    """

    fingerprint: str
    records: int
    first_seen: datetime | None
    sample: StoredRecord | None

    @property
    def is_new(self) -> bool:
        """Return whether it was first seen in the present hour."""
        return self.first_seen is not None and self.first_seen.timestamp() // HOUR == time() // HOUR


class Logs(Primitive):
    """The stored records and messages."""

    component, settings = "logs", LogSettings

    def __init__(self) -> None:
        super().__init__("logs", using=conf.section(LogSettings).USING)

    def tag(self) -> str:
        """Return the hash tag. All logs share a slot, so that one script stores a batch."""
        return self.component

    @operation
    def recent(self, level: str = "", *, text: str = "", limit: int = 100) -> Flow[list[StoredRecord]]:
        """Return the last records of a level, or of all, the latest first. ``text`` is part of what they show.

        One round trip; two with a text or a limit above ``RECENT``. Raises InvalidValue for another level or limit.
        """
        return read_recent(level, text, limit)

    @operation
    def common(self, hours: int = 1, *, limit: int = 100) -> Flow[list[Message]]:
        """Return the most common messages of the last hours, 1 to 48, with the present one. Two round trips.

        Of messages with as many records the severest comes first. ``limit`` is 1 to 10,000.
        """
        return (yield from read_common(hours, limit))[1]

    @operation
    def fingerprint(self, fingerprint: str) -> Flow[tuple[Message, list[int]]]:
        """Return a message, and the number of its records in each of the last 48 hours. One round trip.

        Raises InvalidValue for a fingerprint that no message of these hours has.
        """
        return read_fingerprint(fingerprint)

    arecent = twin(recent)
    acommon = twin(common)
    afingerprint = twin(fingerprint)


def last_hours(count: int) -> range:
    """Return the last hours since 1970, the present one last. Raises InvalidValue unless they are 1 to 48."""
    now = int(time() // HOUR)
    return range(now + 1 - whole_number("hours", count, (1, RETENTION)), now + 1)


def read_levels(hours: int) -> Flow[list[Counter[str]]]:
    """Read the number of records of each level, and of those ``dropped``, in each of the last hours."""
    fields = (*NAMES, keys.DROPPED)
    replies = yield Batch([Call("HMGET", key(keys.LEVELS, hour), *fields) for hour in last_hours(hours)])
    return [Counter(dict(zip(fields, (int(number or 0) for number in reply), strict=True))) for reply in replies]


def read_recent(level: str, text: str, limit: int) -> Flow[list[StoredRecord]]:
    """See Logs.recent()."""
    whole_number("limit", limit, LIMITS)
    text, levels = str(text).casefold(), [str(level).upper()] if level else NAMES
    if levels[0] not in NAMES:
        raise InvalidValue(f"There is no level {shortened(level)}. {did_you_mean(level, NAMES)}".strip())
    lists = [key(keys.RECENT, each) for each in levels]
    if text or limit > conf.section(LogSettings).RECENT:
        groups = [each.decode() for each in (yield Call("ZRANGE", key(keys.GROUPS), 0, -1))]
        lists += [key(keys.RECENT, each, group) for each in levels for group in groups]
    replies = yield Batch([Call("LRANGE", each, 0, -1 if text else limit - 1) for each in lists])
    stored = dict.fromkeys(record for reply in replies for record in reply)  # in the list of its group, too
    matching = [each for each in stored if text in each.decode(errors="replace").partition(SEPARATOR)[2].casefold()]
    records = filter(None, map(StoredRecord.parse, matching if text else stored))
    return sorted(records, key=lambda record: record.time, reverse=True)[:limit]


def read_common(hours: int, limit: int, start: int = 0) -> Flow[tuple[int, list[Message]]]:
    """Read how many messages there are, and those from a place on. See Logs.common()."""
    whole_number("limit", limit, LIMITS)
    counted = [key(keys.COUNTS, hour) for hour in last_hours(hours)]
    reply: list[Any] = yield Call("ZUNION", len(counted), *counted, "WITHSCORES")
    scores = {fingerprint.decode(): int(float(score)) for fingerprint, score in zip(*[iter(reply)] * 2, strict=True)}
    ranked = [*scores][::-1][start : start + limit]
    calls = [Call("HMGET", key(keys.MESSAGE, fingerprint), "first", "record") for fingerprint in ranked]
    stored = (yield Batch(calls)) if calls else []
    return len(scores), [_message(name, scores[name], each) for name, each in zip(ranked, stored, strict=True)]


def read_fingerprint(fingerprint: str, *, required: bool = True) -> Flow[tuple[Message, list[int]]]:
    """See Logs.fingerprint(). Records beyond the limit of an hour, or older than 48 hours, have an unknown message."""
    calls = [Call("ZSCORE", key(keys.COUNTS, hour), str(fingerprint)) for hour in last_hours(RETENTION)]
    stored, *scores = yield Batch([Call("HMGET", key(keys.MESSAGE, fingerprint), "first", "record"), *calls])
    counts = [int(float(score or 0)) for score in scores]
    if required and not any((*stored, *counts)):
        raise InvalidValue(_("No message of the last 48 hours has the fingerprint %s.") % shortened(fingerprint))
    return _message(fingerprint, sum(counts), stored), counts


def _message(fingerprint: str, count: int, stored: list[bytes | None]) -> Message:
    first, record = stored
    seen = datetime.fromtimestamp(int(first) / 1000, UTC) if first else None
    return Message(fingerprint, count, seen, StoredRecord.parse(record) if record else None)
