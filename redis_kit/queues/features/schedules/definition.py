"""The settings of a schedule, how they are read and checked, and which of its ticks run now."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings

from redis_kit.core import dates
from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import encode
from redis_kit.core.text import did_you_mean, number, shortened
from redis_kit.core.values.numbers import is_number, is_whole
from redis_kit.queues import validation
from redis_kit.queues.engine import payload
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import cron

Kind = Literal["task", "celery"]
OVERLAPS = ("skip", "queue_one", "allow")
LONGEST_EVERY = 366 * 86_400  # seconds
SHORTEST_EVERY = 0.1
LONGEST_JITTER = 86_400
MOST_CAUGHT_UP = 100
LONGEST_NAME = 200
TIMING = ("every", "cron", "at", "timezone", "start", "end", "jitter", "enabled")
WHENS = ("every", "cron", "at")
LATE = 60_000  # ms: a tick that is later counts as missed
FEW = 4  # ticks that are found one after the other
MOST = 4  # times as many as are wanted: no more are looked at
MINUTE = 60_000  # ms


def share(name: str, limit: int) -> int:
    """Return a number from 0 to below ``limit`` that is always the same for a name, and even over many names."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % limit if limit > 0 else 0


class Plan(NamedTuple):
    """The ticks to run now, the oldest first, and how many more were missed.

    No tick up to ``last`` runs any more; ``tick`` is the next one and ``due`` when it is to run, with its jitter, both
    None if there is none. That is later than now.
    """

    run: list[int]
    missed: int
    last: int | None
    tick: int | None
    due: int | None


@dataclass(frozen=True)
class Definition:
    """A schedule. Times and durations are in ms; ``at``, ``start`` and ``end`` since 1970. "" and 0 mean none.

    ``kind`` says whose task it is, ``queue`` is that of its jobs, "" for the task's own.
    """

    name: str
    task: str
    kind: Kind = "task"
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    queue: str = ""
    every: int = 0
    cron: str = ""
    at: int = 0
    timezone: str = ""
    overlap: str = "skip"
    catch_up: int = 1
    jitter: int = 0
    enabled: bool = True
    start: int = 0
    end: int = 0

    def after(self, moment: int) -> int | None:
        """Return the first tick later than a moment; None if there is none."""
        moment = max(moment, self.start - 1)
        if self.every:
            # Schedules of one interval are spread over it, unless a start says when they tick.
            anchor = self.start or share(self.name, self.every)
            tick: int | None = moment - (moment - anchor) % self.every + self.every
        elif self.cron:
            tick = cron.Cron(self.cron, self.zone).after(moment)
        else:
            tick = self.at if self.at > moment else None
        return None if tick is None or (self.end and tick > self.end) else tick

    @property
    def zone(self) -> str:
        """Return the name of its time zone."""
        return self.timezone or settings.TIME_ZONE

    @property
    def timing(self) -> str:
        """Return a short text that changes when its times do."""
        values = json.dumps([getattr(self, name) for name in TIMING])
        return hashlib.sha256(values.encode()).hexdigest()[:12]

    def delay(self, tick: int) -> int:
        """Return by how many ms a tick is put off: always the same for a tick, and at random over many."""
        return share(f"{self.name} {tick}", self.jitter + 1)

    def stored(self) -> str:
        """Return its fields as JSON, without the name and those that have their defaults. Raises NotSerializable."""
        plain = vars(Definition(self.name, ""))
        return encoded({key: value for key, value in vars(self).items() if value != plain[key]})

    def plan(self, last: int | None, now: int, *, waiting: bool = False) -> Plan:
        """Plan a schedule whose ticks up to ``last`` are over; None for a new one, which begins now. Times are in ms.

        ``waiting`` says that a tick waits for a running job: the latest one does so, and no more.
        """
        if not self.enabled:
            return Plan([], 0, last, None, None)
        base = last if last is not None else now - (LATE if self.at else 0)
        base = max(base, self.start - 1)
        due, total, over = self._due(base, now)
        is_late = bool(due) and (waiting or now - due[0] - self.delay(due[0]) <= LATE)
        run = due[: max(int(is_late), 0 if waiting else self.catch_up)]
        tick = self.after(over)
        later = None if tick is None else tick + self.delay(tick)
        return Plan(run[::-1], total - len(run), over, tick, later)

    def upcoming(self, after: int, until: int, count: int) -> list[int]:
        """Return the next ticks between two moments, ``count`` at most, as they are due."""
        ticks = self._between(after, until) if self.enabled else ()
        return [tick + self.delay(tick) for tick in islice(ticks, count)]

    def latest(self, base: int, now: int, count: int) -> list[int]:
        """Return the last ticks after ``base`` up to ``now``, in their order, ``count`` at most.

        To walk through all would take as long as there are many, so it looks back further and further, and less far
        again if there are far too many.
        """
        now = min(now, self.end or now)
        span = count * (self.every or MINUTE)
        short, long = 0, 0  # times back in which there are too few, and too many
        while True:
            begin = max(base, now - span)
            ticks = list(islice(self._between(begin, now), MOST * count + 1))
            if len(ticks) > MOST * count:
                long = span
            elif len(ticks) >= count or begin == base:
                return ticks[-count:]
            else:
                short = span
            span = (short + long) // 2 if long else 4 * span

    def _due(self, base: int, now: int) -> tuple[list[int], int, int]:
        """Return the ticks after ``base`` that are due, the latest first, as many as may run; how many; up to when."""
        ticks = list(islice(self._between(base, now), FEW + 1))
        total = len(ticks)
        if total > FEW:
            ticks = self.latest(base, now, max(FEW, self.catch_up + 1))
            total = max(len(ticks), (ticks[-1] - base) // self.every if self.every else 0)
            base = ticks[0] - 1
        # In their order: a tick that is put off holds up those after it, so that none is passed over.
        due = list(takewhile(lambda each: each + self.delay(each) <= now, ticks))
        return due[::-1], total - (len(ticks) - len(due)), due[-1] if due else base

    def _between(self, after: int, until: int) -> Iterator[int]:
        tick = self.after(after)
        while tick is not None and tick <= until:
            yield tick
            tick = self.after(tick)


def encoded(values: Mapping[str, Any]) -> str:
    """Return fields of a definition as JSON. Raises NotSerializable for arguments that are not JSON."""
    plain = {key: payload.plain(value, key) for key, value in values.items()}
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def loaded(name: str, *layers: str) -> Definition:
    """Return the schedule of stored fields; those of a later layer replace those of an earlier one.

    Raises InvalidSchedule if they make none, as when a newer release stored them.
    """
    merged: dict[str, Any] = {}
    for layer in filter(None, layers):
        values = payload.loads(layer.encode())
        if not isinstance(values, dict):
            raise InvalidSchedule(f"Schedule {shortened(name)}: something else wrote to its stored definition.")
        if any(values.get(key) for key in WHENS):
            merged = {key: value for key, value in merged.items() if key not in (*WHENS, "timezone")}
        merged |= values
    allowed = {each.name for each in fields(Definition)}
    if unknown := sorted(merged.keys() - allowed):
        raise InvalidSchedule(f"Schedule {shortened(name)} has {', '.join(unknown)}, which this release does not know.")
    if not merged.get("task"):
        raise InvalidSchedule(f"Schedule {shortened(name)} names no task, and no code declares it.", "task")
    if not any(merged.get(key) for key in WHENS):
        raise InvalidSchedule(f"Schedule {shortened(name)} has no time. It needs one of every, cron and at.", "every")
    definition = Definition(name, **merged)
    _check_jitter(definition)  # a layer may have the time, and another one the jitter
    return definition


def made(**options: Any) -> Definition:
    """Return a checked definition, given its fields as periodic() takes them. Raises InvalidSchedule; see read()."""
    values = read(options)
    if not any(name in values for name in WHENS):
        raise _wrong_times("it has no time")
    return Definition(**values)


def read(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as a definition has them, given some as periodic() takes them; None says nothing.

    Raises InvalidSchedule, whose ``field`` names what is wrong.
    """
    values: dict[str, Any] = {}
    for name, value in options.items():
        if value is not None:
            try:
                values[name] = READERS[name](name, value) if name in READERS else value
            except (TypeError, ValueError) as error:
                raise InvalidSchedule(str(error), name) from error
    times = [name for name in WHENS if name in values]
    if len(times) > 1:
        raise _wrong_times(f"{' and '.join(times)} exclude each other")
    if "cron" in values:
        values["timezone"] = values.get("timezone") or settings.TIME_ZONE
    elif values.get("timezone"):
        raise InvalidSchedule("timezone belongs to cron; every counts real seconds.", "timezone")
    if values.get("end") and values["end"] <= values.get("start", 0):
        raise InvalidSchedule("end must be later than start.", "end")
    if "overlap" in values:
        check_overlap(values["overlap"], is_ours=values.get("kind") != "celery", task=values.get("task", ""))
    if times:
        _check_jitter(Definition(**{"name": "", "task": "", **values}))
    return values


def check_overlap(overlap: str, *, is_ours: bool, task: str) -> None:
    """Raise InvalidSchedule for a policy that needs to know when a job of a task ends, if other workers run it."""
    if not is_ours and overlap != "allow":
        wrong = f"overlap={overlap!r} needs to know when a job ends, and {task or 'the task'} runs on other workers."
        hint = "Leave it out, and let the task itself run once at a time, as SingletonTask and @locked do."
        raise InvalidSchedule(f"{wrong} {hint}", "overlap")


def _check_jitter(definition: Definition) -> None:
    if not definition.jitter or definition.at:
        return
    what, distance = "every", definition.every
    if not distance:
        distance = cron.shortest_distance(definition.cron)
        what = f"the shortest time between two ticks, {number(distance / 1000)} s"
    if definition.jitter >= distance:
        raise InvalidSchedule(f"jitter must be shorter than {what}, or ticks would overtake each other.", "jitter")


def _wrong_times(what: str) -> InvalidSchedule:
    example = "every=5, in seconds, or cron='0 4 * * *', and timezone='Europe/Berlin' if the project has another"
    return InvalidSchedule(f"A schedule needs one of every and cron, but {what}. Write {example}.", "every")


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise InvalidValue(f"name must be text of 1 to {LONGEST_NAME} printable characters, not {shortened(value)}.")
    return value


def _arguments(name: str, value: Any) -> Any:
    kind = list if name == "args" else dict
    if not isinstance(value, (list, tuple) if kind is list else dict):
        raise InvalidValue(f"{name} must be a {kind.__name__}, not {shortened(value)}.")
    values = kind(value)
    payload.encoded(payload.plain(values, name), name)
    return values


def _queue(name: str, value: Any) -> str:
    if value:
        encode(value)
    return value or ""


def _duration(minimum: float, maximum: float, name: str, value: Any) -> int:
    time = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(time) or not minimum <= time <= maximum:
        allowed = f"{number(minimum)} to {number(maximum)} seconds, as a number or a timedelta"
        raise InvalidValue(f"{name} must be {allowed}, not {shortened(value)}.")
    return round(time * 1000)


def _cron(name: str, expression: Any) -> str:
    if not isinstance(expression, str):
        raise InvalidValue(f"cron must be text, not {shortened(expression)}. {cron.GRAMMAR}.")
    cron.check(text := " ".join(expression.split()))
    return text


def _moment(name: str, value: Any) -> int:
    return max(1, round(dates.aware(name, value).timestamp() * 1000))


def _zone(name: str, zone: Any) -> str:
    zone = zone.key if isinstance(zone, ZoneInfo) else zone
    try:
        return ZoneInfo(zone).key if zone else ""
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        hint = did_you_mean(zone, available_timezones(), "For instance 'Europe/Berlin' or 'UTC'.")
        wrong = f"timezone is {shortened(zone)}, which is not the name of a time zone. {hint}"
        raise InvalidValue(wrong) from error


def _catch_up(name: str, value: Any) -> int:
    """Return how many ticks that were missed run later, given ``none``, ``last`` or a number."""
    words = {"none": 0, "last": 1}
    if isinstance(value, str) and value in words:
        return words[value]
    if is_whole(value) and 0 <= value <= MOST_CAUGHT_UP:
        return value
    allowed = f"'none', 'last' or a whole number up to {MOST_CAUGHT_UP}"
    raise InvalidValue(f"catch_up must be {allowed}, not {shortened(value)}.")


def _enabled(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"enabled must be True or False, not {shortened(value)}.")
    return value


#: What reads the fields that are not taken as they are.
READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "name": _name,
    "args": _arguments,
    "kwargs": _arguments,
    "queue": _queue,
    "every": partial(_duration, SHORTEST_EVERY, LONGEST_EVERY),
    "cron": _cron,
    "at": _moment,
    "timezone": _zone,
    "overlap": partial(validation.one_of, allowed=OVERLAPS),
    "catch_up": _catch_up,
    "jitter": partial(_duration, 0, LONGEST_JITTER),
    "enabled": _enabled,
    "start": _moment,
    "end": _moment,
}
