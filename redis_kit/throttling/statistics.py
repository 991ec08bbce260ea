"""How many calls throttles allow and refuse, which identities they refuse, and the report on shadow mode."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from struct import Struct
from typing import NamedTuple

from redis_kit.core import scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, twin
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.rates import Rate
from redis_kit.throttling.engine.base import AnyThrottle, Asked, BaseThrottle, asking, checked_throttle, read_together
from redis_kit.throttling.keys import DEMAND

__all__ = ["ThrottleCalls", "arecent", "athrottle_history", "recent", "throttle_history"]

MINUTES = scripts.load("redis_kit.throttling", "minutes")
BY_HOUR = scripts.load("redis_kit.throttling", "hours")
DAY = 1440  # minutes
MOST = 4320  # minutes that can be read
HOURS = 90 * 24  # that can be read
WEEK = 7 * 24  # hours
CALLS = 2**26  # see minutes.lua
NUMBER, SLOT = Struct("<I"), Struct("<BII")  # of a block
OFFENDERS = 100  # identities whose refusals a throttle counts
SHARE = 0.999  # of the windows that a proposed rate does not limit

Calls = Iterator[tuple[int, int, int]]  # a minute or an hour, allowed, refused


class ThrottleCalls(NamedTuple):
    """The calls of a minute or an hour, which begins at ``start`` by the server's clock."""

    start: datetime
    allowed: int
    refused: int


@asking
def recent(throttles: Sequence[AnyThrottle], *, minutes: int = 30) -> Flow[dict[AnyThrottle, list[ThrottleCalls]]]:
    """Return the calls of each throttle in the last minutes, the current minute last.

    ``minutes`` is from 1 to 4320. One round trip for each connection. Refusals that a process repeated from memory are
    counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    return read_together(throttles, lambda of_connection: read_minutes(of_connection, minutes))


@asking
def throttle_history(throttle: BaseThrottle, *, hours: int = WEEK) -> Flow[list[ThrottleCalls]]:
    """Return the calls of a throttle in each of the last hours, the current hour last.

    ``hours`` is from 1 to 2160. One round trip, with a reply of up to 75 KB. Refusals that a process repeated from
    memory are counted with its next call that reaches the server. Raises RedisUnavailable and InvalidValue.
    """
    calls: list[ThrottleCalls] = yield Asked(checked_throttle(throttle), read_hours(throttle, hours))
    return calls


arecent = twin(recent)
athrottle_history = twin(throttle_history)


def read_minutes(throttles: Sequence[AnyThrottle], minutes: int) -> Flow[dict[AnyThrottle, list[ThrottleCalls]]]:
    """Read the minutes of throttles of one connection. One round trip. Raises InvalidValue."""
    whole_number("minutes", minutes, (1, MOST))
    replies = yield Batch([_minutes_step(throttle, minutes) for throttle in throttles])
    return {throttle: _minutes(minutes, *reply) for throttle, reply in zip(throttles, replies, strict=True)}


def read_hours(throttle: BaseThrottle, hours: int) -> Flow[list[ThrottleCalls]]:
    """Read the hours of a throttle. One round trip. Raises InvalidValue."""
    whole_number("hours", hours, (1, HOURS))
    keys = throttle.keys_of("")
    last, latest, flat = yield BY_HOUR([keys.counts, keys.latest])
    blocks = dict(zip(flat[::2], flat[1::2], strict=True))
    refused = blocks.pop(b"refused", b"0")
    parts = [_by_hour(_latest(latest, int(refused) if refused.isdigit() else 0))]
    for field, block in blocks.items():
        parts.append(_calls_of(block, 24) if field.startswith(b"d") else _by_hour(_calls_of(block, 60)))
    return _summed(parts, last, hours, 3600)


def _minutes_step(throttle: BaseThrottle, minutes: int) -> ScriptCall:
    keys = throttle.keys_of("")
    return MINUTES([keys.counts, keys.latest], [minutes])


def _minutes(wanted: int, last: int, latest: int, refused: int, blocks: Sequence[bytes | None]) -> list[ThrottleCalls]:
    """Return the calls of the last minutes, given a reply of minutes.lua."""
    parts = [_calls_of(block or b"", 60) for block in blocks]
    return _summed([*parts, _latest(latest, refused)], last, wanted, 60)


def _calls_of(block: bytes, slots: int) -> Calls:
    """Yield the calls of each minute of a block of an hour; for that of a day, of each hour."""
    size = (len(block) - NUMBER.size) // SLOT.size * SLOT.size
    if size > 0:
        (number,) = NUMBER.unpack_from(block)
        for slot, allowed, refused in SLOT.iter_unpack(block[NUMBER.size : NUMBER.size + size]):
            yield number * slots + slot, allowed, refused


def _latest(latest: int, refused: int) -> Calls:
    """Yield the calls of the last minute with allowed and of that with refused calls, given the counters."""
    yield latest // CALLS, latest % CALLS, 0
    yield refused // CALLS, 0, refused % CALLS


def _by_hour(calls: Calls) -> Calls:
    return ((minute // 60, allowed, refused) for minute, allowed, refused in calls)


def _summed(parts: Iterable[Calls], last: int, wanted: int, seconds: int) -> list[ThrottleCalls]:
    """Return the sums of the last minutes or hours, of as many ``seconds`` each."""
    sums = {time: [0, 0] for time in range(last - wanted + 1, last + 1)}
    for calls in parts:
        for time, allowed, refused in calls:
            if time in sums:
                sums[time][0] += allowed
                sums[time][1] += refused
    return [ThrottleCalls(datetime.fromtimestamp(time * seconds, UTC), *both) for time, both in sums.items()]


class Offender(NamedTuple):
    """An identity and how often it was refused: its hash, and what ``OFFENDERS`` allows to store of it.

    Refusals are counted for a day from the first one. With more than 100 identities the counts are estimates that are
    never too low (Metwally's space saving, 2005).
    """

    identity_hash: str
    shown: str
    refusals: int


def read_offenders(throttle: BaseThrottle, limit: int) -> Flow[list[Offender]]:
    """Return the identities that were refused most often. One round trip. Raises InvalidValue."""
    whole_number("limit", limit, (1, OFFENDERS))
    flat = yield Call("ZREVRANGE", throttle.keys_of("").offenders, 0, OFFENDERS - 1, "WITHSCORES")
    by_hash: dict[str, Offender] = {}
    for entry, refusals in zip(flat[::2], flat[1::2], strict=True):
        identity_hash, _, shown = entry.decode().partition(" ")
        # For a day after a change of OFFENDERS an identity has two entries.
        other = by_hash.get(identity_hash, Offender(identity_hash, shown, 0))
        by_hash[identity_hash] = Offender(identity_hash, other.shown or shown, other.refusals + int(float(refusals)))
    return sorted(by_hash.values(), key=lambda offender: -offender.refusals)[:limit]


class ShadowReport(NamedTuple):
    """The counts of a throttle in shadow mode, in up to seven days.

    A window is a period of the throttle's first ``rate`` in which an identity made calls.

    - ``allowed`` and ``refused``: calls of the last day.
    - ``windows``: the number of windows.
    - ``usual``, ``high`` and ``highest``: the largest number of calls in 50 %, 99.9 % and all of the windows. Above 100
      they are rounded to two digits.
    - ``proposed``: a rate of the same period that limits none of 99.9 % of the windows; None without windows.
    """

    rate: Rate
    allowed: int
    refused: int
    windows: int
    usual: int
    high: int
    highest: int
    proposed: Rate | None

    @property
    def share(self) -> float:
        """Return the share of the calls that would have been refused, 0 to 1."""
        return self.refused / ((self.allowed + self.refused) or 1)


@asking
def shadow_report(throttle: BaseThrottle) -> Flow[ShadowReport]:
    """Return the report on a throttle in shadow mode. One round trip.

    Raises InvalidValue if the throttle is not in shadow mode or has no rate, and RedisUnavailable.
    """
    report: ShadowReport | None = yield Asked(checked_throttle(throttle), read_report(throttle))
    if report is None:
        raise InvalidValue(f"The throttle {throttle.name!r} has no report: it needs shadow=True and a rate.")
    return report


ashadow_report = twin(shadow_report)


def read_report(throttle: BaseThrottle) -> Flow[ShadowReport | None]:
    """Read the report of a throttle; None if it has none. One round trip, or none."""
    if not (throttle.shadow and throttle.counted_rates):
        return None
    minutes, fields = yield Batch([_minutes_step(throttle, DAY), Call("HGETALL", throttle.key(DEMAND))])
    day, rate = _minutes(DAY, *minutes), throttle.counted_rates[0]
    counts = sorted((int(calls), int(windows)) for calls, windows in zip(fields[::2], fields[1::2], strict=True))
    windows = sum(number for _, number in counts)
    usual, high, highest = (_quantile(counts, share * windows) for share in (0.5, SHARE, 1.0))
    return ShadowReport(
        rate,
        sum(minute.allowed for minute in day),
        sum(minute.refused for minute in day),
        windows,
        usual,
        high,
        highest,
        Rate(high, rate.period) if windows else None,
    )


def _quantile(counts: Sequence[tuple[int, int]], rank: float) -> int:
    passed = 0
    for calls, windows in counts:
        passed += windows
        if passed >= rank:
            return calls
    return 0
