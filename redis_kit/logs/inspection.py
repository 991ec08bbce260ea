"""The stored records, and the most common messages."""

from collections.abc import Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.values.numbers import whole_number
from redis_kit.logs import keys
from redis_kit.logs.batch import RETENTION
from redis_kit.logs.keys import DROPPED, HOUR, OTHER, OTHER_GROUP
from redis_kit.logs.record import LEVELS, About, StoredRecord
from redis_kit.logs.settings import LogSettings

NAMES = tuple(LEVELS.values())


class Message(NamedTuple):
    """A message that was logged ``count`` times. ``about`` and ``sample`` are None for the rest beyond the limit.

    ``first_seen`` is the time of its first record, unless two days without one followed.
    """

    fingerprint: str
    count: int
    first_seen: datetime | None
    about: About | None
    sample: StoredRecord | None

    @property
    def is_new(self) -> bool:
        """Return whether it was first seen in the present hour."""
        return self.first_seen is not None and self.first_seen.timestamp() // HOUR == time() // HOUR


class LogHour(NamedTuple):
    """The records of an hour: their number by level, and that of records that were dropped."""

    start: datetime
    levels: dict[str, int]
    dropped: int

    def count(self, *levels: str) -> int:
        """Return the number of records of some levels."""
        return sum(self.levels.get(level, 0) for level in levels)


class Logs(Primitive):
    """What is stored of logs. ``Logs()`` reads it on the connection in the settings."""

    component, settings = "logs", LogSettings

    def __init__(self) -> None:
        super().__init__("logs", using=conf.section(LogSettings).USING)

    def recent(self, level: str = "", *, text: str = "", limit: int = 100) -> list[StoredRecord]:
        """Return the last records of a level, or of all, the latest first. ``text`` is searched in all that is shown.

        Two round trips. Raises InvalidValue for an unknown level.
        """
        return self.run_flow(read_recent(level, text, limit))

    async def arecent(self, level: str = "", *, text: str = "", limit: int = 100) -> list[StoredRecord]:
        """See recent()."""
        return await self.arun_flow(read_recent(level, text, limit))

    def common(self, hours: int = 1, *, limit: int = 100) -> list[Message]:
        """Return the most common messages of the last hours, with the present one. ``hours`` is 1 to 48.

        Two round trips. Raises InvalidValue.
        """
        return self.run_flow(read_common(hours, limit))

    async def acommon(self, hours: int = 1, *, limit: int = 100) -> list[Message]:
        """See common()."""
        return await self.arun_flow(read_common(hours, limit))

    def fingerprint(self, fingerprint: str) -> tuple[Message | None, list[int]]:
        """Return a message, or None if it is not known, and the number of its records in each of the last 48 hours.

        One round trip.
        """
        return self.run_flow(read_fingerprint(fingerprint))

    async def afingerprint(self, fingerprint: str) -> tuple[Message | None, list[int]]:
        """See fingerprint()."""
        return await self.arun_flow(read_fingerprint(fingerprint))

    def hours(self, hours: int = RETENTION) -> list[LogHour]:
        """Return the numbers of the last hours, the present one last. ``hours`` is 1 to 48. One round trip."""
        return self.run_flow(read_hours(hours))

    async def ahours(self, hours: int = RETENTION) -> list[LogHour]:
        """See hours()."""
        return await self.arun_flow(read_hours(hours))


def last_hours(count: int) -> list[int]:
    """Return the last hours since 1970, the present one last. Raises InvalidValue."""
    now = int(time() // HOUR)
    return list(range(now + 1 - whole_number("hours", count, (1, RETENTION)), now + 1))


def read_recent(level: str, text: str, limit: int) -> Flow[list[StoredRecord]]:
    """See Logs.recent()."""
    if level and level not in NAMES:
        raise InvalidValue(f"There is no level {shortened(level)}. {did_you_mean(level, NAMES)}".strip())
    groups = [each.decode() for each in (yield Call("ZRANGE", keys.groups(), 0, -1))]
    lists = [keys.recent(name, each) for name in ([level] if level else NAMES) for each in (*groups, OTHER_GROUP)]
    replies = yield Batch([Call("LRANGE", key, 0, -1 if text else limit - 1) for key in lists])
    records = [StoredRecord.parse(each) for reply in replies for each in reply]
    if text := text.casefold():
        records = [record for record in records if any(text in str(each).casefold() for each in record[1:])]
    return sorted(records, key=lambda record: record.time, reverse=True)[:limit]


def read_common(hours: int, limit: int) -> Flow[list[Message]]:
    """See Logs.common()."""
    counted = [keys.counts(hour) for hour in last_hours(hours)]
    replies = yield Call("ZUNION", len(counted), *counted, "WITHSCORES")
    ranked = [(fingerprint.decode(), int(float(count))) for fingerprint, count in _pairs(replies)][: -limit - 1 : -1]
    if not ranked:
        return []
    stored = yield Batch([_message_call(fingerprint) for fingerprint, _ in ranked])
    return [_message(fingerprint, count, reply) for (fingerprint, count), reply in zip(ranked, stored, strict=True)]


def read_fingerprint(fingerprint: str) -> Flow[tuple[Message | None, list[int]]]:
    """See Logs.fingerprint()."""
    calls = [Call("ZSCORE", keys.counts(hour), fingerprint) for hour in last_hours(RETENTION)]
    stored, *scores = yield Batch([_message_call(fingerprint), *calls])
    counts = [int(float(score or 0)) for score in scores]
    return (_message(fingerprint, sum(counts), stored) if any(counts) else None), counts


def read_hours(count: int) -> Flow[list[LogHour]]:
    """See Logs.hours()."""
    hours = last_hours(count)
    fields = (*NAMES, DROPPED)
    replies = yield Batch([Call("HMGET", keys.levels(hour), *fields) for hour in hours])
    result = []
    for hour, reply in zip(hours, replies, strict=True):
        levels = {name: int(number) for name, number in zip(fields, reply, strict=True) if number}
        result.append(LogHour(datetime.fromtimestamp(hour * HOUR, UTC), levels, levels.pop(DROPPED, 0)))
    return result


def _message_call(fingerprint: str) -> Call:
    return Call("HMGET", keys.message(fingerprint), "first", "about", "record")


def _message(fingerprint: str, count: int, stored: Sequence[bytes | None]) -> Message:
    first, about, record = stored
    if fingerprint == OTHER or first is None or about is None or record is None:
        return Message(fingerprint, count, None, None, None)
    seen = datetime.fromtimestamp(int(first) / 1000, UTC)
    return Message(fingerprint, count, seen, About.parse(about), StoredRecord.parse(record))


def _pairs(reply: Sequence[Any]) -> list[tuple[bytes, Any]]:
    if reply and isinstance(reply[0], (list, tuple)):  # RESP3
        return [(member, score) for member, score in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
