"""A batch of log records on its way to the server, which recognises a repeated one."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from time import time
from typing import Any

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument
from redis_kit.core.text import clean
from redis_kit.logs import keys
from redis_kit.logs.keys import key
from redis_kit.logs.record import HOUR, Entry, stored
from redis_kit.logs.settings import LogSettings

STORE = scripts.load("redis_kit.logs", "store")
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
    places: dict[str, int] = {}  # of keys
    kinds: dict[tuple[Any, ...], tuple[Argument, ...]] = {}
    seen, rows = Counter[Argument](), list[tuple[Argument, ...]]()
    for entry in reversed(entries):
        if (kind := kinds.get(entry[1:6])) is None:
            kind = kinds[entry[1:6]] = _kind(entry, places)
        # Of many records only the last ones of each list are stored, so the others need not be made safe.
        is_last = seen[kind[0]] < options.RECENT or seen[kind[1]] < share or not seen[kind[3]]
        seen.update(kind[:4])
        rows.append((*kind, stored(entry) if is_last else ""))
    named = [
        key(keys.BATCH, writer),
        key(keys.GROUPS),
        key(keys.COUNTS, hour),
        key(keys.LEVELS, hour),
        key(keys.TOTALS),
    ]
    args = [number, MEMORY * 1000, TTL_MS, RECENT_TTL_MS, GROUPS, options.FINGERPRINTS, options.RECENT, share, dropped]
    return STORE([*named, *places], [*args, *(value for row in reversed(rows) for value in row)])


def _kind(entry: Entry, places: dict[str, int]) -> tuple[Argument, ...]:
    """Return the places of the keys of an entry, its level, its group of loggers and its fingerprint."""
    group, fingerprint = clean(entry.logger.partition(".")[0])[:64] or "root", entry.fingerprint
    lists = (key(keys.RECENT, entry.level, *names) for names in ((), (group,), (OTHER_GROUP,)))
    found = [places.setdefault(name, len(places) + 1) for name in (*lists, key(keys.MESSAGE, fingerprint))]
    return (*found, entry.level, group, fingerprint)
