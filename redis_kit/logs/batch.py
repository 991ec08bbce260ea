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


def calls_of(entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> list[tuple[ScriptCall, int, int]]:
    """Return a call for each hour of some entries, the number of its records, and that of the dropped that it adds."""
    now, by_hour = time(), defaultdict[int, list[Entry]](list)
    for entry in entries:
        is_right = now - 24 * HOUR < entry.created <= now  # else it counts in the present hour
        by_hour[int((entry.created if is_right else now) // HOUR)].append(entry)
    calls = []
    for hour, of_hour in (by_hour or {int(now // HOUR): []}).items():
        calls.append((_call(hour, of_hour, dropped, writer=writer, number=number), len(of_hour), dropped))
        number, dropped = number + 1, 0
    return calls


def _call(hour: int, entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> ScriptCall:
    options = conf.section(LogSettings)
    levels: Counter[str] = Counter({keys.DROPPED: dropped} if dropped else {})
    recent: dict[tuple[str, str], deque[int]] = defaultdict(lambda: deque(maxlen=options.RECENT))
    kinds = [entry.kind for entry in entries]
    latest: dict[Kind, int] = {}
    for place, kind in enumerate(kinds):
        levels[kind.level] += 1
        recent[kind.level, clean(kind.logger.partition(".")[0])[:64] or "root"].append(place)
        latest[kind] = place
    # Of many records only the last ones of each list are stored, so the others need not be made safe.
    needed = {*latest.values(), *(place for places in recent.values() for place in places)}
    texts = {place: stored(entries[place]) for place in needed}

    parts: list[str] = []
    args: list[Argument] = [number, MEMORY * 1000, TTL_MS, RECENT_TTL_MS, GROUPS, options.FINGERPRINTS, options.RECENT]
    args += [len(levels), *(value for pair in levels.items() for value in pair), len(recent)]
    for (level, group), places in recent.items():
        parts += [key(keys.RECENT, level, group), key(keys.RECENT, level, OTHER_GROUP)]
        args += [group, len(places), *(texts[place] for place in places)]
    args.append(len(latest))
    for kind, count in Counter(kinds).items():
        parts.append(key(keys.MESSAGE, kind.fingerprint))
        args += [kind.fingerprint, count, texts[latest[kind]]]
    named = [key(keys.BATCH, writer), key(keys.GROUPS), key(keys.COUNTS, hour), key(keys.LEVELS, hour)]
    return STORE([*named, *parts], args)
