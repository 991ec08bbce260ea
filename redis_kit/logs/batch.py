"""A batch of log records on its way to the server, which recognises a repeated one."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from time import time

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.logs import keys
from redis_kit.logs.keys import HOUR
from redis_kit.logs.record import Entry, about, stored
from redis_kit.logs.settings import LogSettings

STORE = scripts.load("redis_kit.logs", "store")
RETENTION = 48  # hours
TTL_MS = (RETENTION + 1) * HOUR * 1000
RECENT_TTL_MS = 7 * 24 * HOUR * 1000
MEMORY = 12 * HOUR  # seconds for which the server recognises a repeated batch
GROUPS = 30  # of loggers; a site with more has the rest in one
MAX_AGE = 24 * HOUR  # seconds


def hour_of(created: float) -> int:
    """Return the hour since 1970 in which a record counts: the present one if its time can't be right."""
    now = time()
    return int((created if now - MAX_AGE < created <= now else now) // HOUR)


def calls_of(entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> Iterator[tuple[ScriptCall, int]]:
    """Yield a call for each hour of some entries, and the number of its records. The first one adds the dropped."""
    by_hour: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_hour[hour_of(entry.created)].append(entry)
    for more, (hour, of_hour) in enumerate((by_hour or {hour_of(0): []}).items()):
        call = _call(hour, of_hour, dropped if not more else 0, writer=writer, number=number + more)
        yield call, len(of_hour)


def _call(hour: int, entries: Sequence[Entry], dropped: int, *, writer: str, number: int) -> ScriptCall:
    options = conf.section(LogSettings)
    levels: Counter[str] = Counter({keys.DROPPED: dropped} if dropped else {})
    recent: dict[tuple[str, str], deque[int]] = defaultdict(lambda: deque(maxlen=options.RECENT))
    counts = Counter(map(about, entries))
    latest: dict[str, int] = {}
    for place, entry in enumerate(entries):
        kind = about(entry)
        levels[kind.level] += 1
        recent[kind.level, kind.logger.partition(".")[0][:64] or "root"].append(place)
        latest[kind.fingerprint] = place
    # Of many records only the last ones of each list are stored, so the others need not be made safe.
    needed = {*latest.values(), *(place for places in recent.values() for place in places)}
    texts = {place: stored(entries[place], about(entries[place]).fingerprint) for place in needed}

    parts: list[str] = []
    args: list[Argument] = [number, MEMORY * 1000, TTL_MS, RECENT_TTL_MS, GROUPS, options.FINGERPRINTS, options.RECENT]
    args += [len(levels), *(value for pair in levels.items() for value in pair), len(recent)]
    for (level, group), places in recent.items():
        parts += [keys.recent(level, group), keys.recent(level, keys.OTHER_GROUP)]
        args += [group, len(places), *(texts[place] for place in places)]
    args.append(len(counts))
    for kind, count in counts.items():
        parts.append(keys.message(kind.fingerprint))
        args += [kind.fingerprint, count, kind.stored, texts[latest[kind.fingerprint]]]
    return STORE([keys.batch(writer), keys.groups(), keys.counts(hour), keys.levels(hour), *parts], args)
