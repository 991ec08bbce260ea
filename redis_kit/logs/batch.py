"""A batch of log records on its way to the server, which recognises a repeated one."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from time import time

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.core.text import clean
from redis_kit.logs import keys
from redis_kit.logs.keys import key
from redis_kit.logs.record import Entry, Kind, stored
from redis_kit.logs.settings import LogSettings

STORE = scripts.load("redis_kit.logs", "store")
HOUR = 3600  # seconds
RETENTION = 48  # hours
TTL_MS = (RETENTION + 1) * HOUR * 1000
RECENT_TTL_MS = 7 * 24 * HOUR * 1000
MEMORY = 12 * HOUR  # seconds for which the server recognises a repeated batch
GROUPS = 30  # of loggers; a site with more has the rest in one
OTHER_GROUP = "(other)"  # of loggers beyond the limit
SHARE = 10  # a group of loggers has a tenth of the records of a level for itself, so that no other displaces them


def calls_of(entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> list[tuple[ScriptCall, int, int]]:
    """Return a call for each hour of some entries, the number of its records, and that of the dropped that it adds."""
    now, by_hour = time(), defaultdict[int, list[Entry]](list)
    for entry in entries:
        by_hour[int(min(max(entry.created, now - 24 * HOUR), now) // HOUR)].append(entry)
    calls = []
    for hour, of_hour in (by_hour or {int(now // HOUR): []}).items():
        calls.append((_call(hour, of_hour, dropped, writer=writer, number=number), len(of_hour), dropped))
        number, dropped = number + 1, 0
    return calls


def _call(hour: int, entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> ScriptCall:
    options = conf.section(LogSettings)
    share = max(1, options.RECENT // SHARE)
    counts: Counter[str] = Counter({keys.DROPPED: dropped} if dropped else {})
    of_levels: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=options.RECENT))
    of_groups: dict[tuple[str, str], deque[int]] = defaultdict(lambda: deque(maxlen=share))
    kinds = [entry.kind for entry in entries]
    latest: dict[Kind, int] = {}
    for place, kind in enumerate(kinds):
        counts[kind.level] += 1
        of_levels[kind.level].append(place)
        of_groups[kind.level, clean(kind.logger.partition(".")[0])[:64] or "root"].append(place)
        latest[kind] = place
    # Of many records only the last ones of each list are stored, so the others need not be made safe.
    listed = {place for places in (*of_levels.values(), *of_groups.values()) for place in places}
    texts = {place: stored(entries[place]) for place in listed | {*latest.values()}}

    parts: list[str] = []
    args: list[Argument] = [number, MEMORY * 1000, TTL_MS, RECENT_TTL_MS]
    args += [GROUPS, options.FINGERPRINTS, options.RECENT, share]
    args += [len(counts), *(value for pair in counts.items() for value in pair), len(of_levels)]
    for level, places in of_levels.items():
        parts.append(key(keys.RECENT, level))
        args += [len(places), *(texts[place] for place in places)]
    args.append(len(of_groups))
    for (level, group), places in of_groups.items():
        parts += [key(keys.RECENT, level, group), key(keys.RECENT, level, OTHER_GROUP)]
        args += [group, len(places), *(texts[place] for place in places)]
    args.append(len(latest))
    for kind, count in Counter(kinds).items():
        parts.append(key(keys.MESSAGE, kind.fingerprint))
        args += [kind.fingerprint, count, texts[latest[kind]]]
    named = [
        key(keys.BATCH, writer),
        key(keys.GROUPS),
        key(keys.COUNTS, hour),
        key(keys.LEVELS, hour),
        key(keys.TOTALS),
    ]
    return STORE([*named, *parts], args)
