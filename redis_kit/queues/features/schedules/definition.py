"""The settings of a schedule: its task, arguments and times, and the policies for ticks that come at a bad time."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings

from redis_kit.core import dates
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.keys import encode
from redis_kit.core.text import did_you_mean, number, shortened
from redis_kit.core.values.numbers import is_number, is_whole
from redis_kit.queues import validation
from redis_kit.queues.engine import message, payload
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import cron

Kind = Literal["task", "celery"]
OVERLAPS = ("skip", "queue_one", "allow")
KINDS = ("task", "celery")
LONGEST_EVERY = 366 * 86_400  # seconds
SHORTEST_EVERY = 0.1
LONGEST_JITTER = 86_400
MOST_CAUGHT_UP = 100
LONGEST_NAME = 200
TIMING = ("every", "cron", "at", "timezone", "start", "end", "jitter", "enabled")
WHENS = ("every", "cron", "at")


@dataclass(frozen=True)
class Every:
    """Times that are ``interval`` ms apart, whatever a clock on the wall shows. One of them is at ``anchor``."""

    interval: int
    anchor: int = 0

    def after(self, moment: int) -> int:
        """Return the first time later than a moment."""
        return moment - (moment - self.anchor) % self.interval + self.interval

    def until(self, moment: int, count: int) -> list[int]:
        """Return the last times that are not later than a moment, the latest first, ``count`` at most."""
        latest = moment - (moment - self.anchor) % self.interval
        return [latest - place * self.interval for place in range(count)]


@dataclass(frozen=True)
class Once:
    """One time only."""

    moment: int

    def after(self, moment: int) -> int | None:
        """See Every.after(). None if there is none."""
        return self.moment if self.moment > moment else None

    def until(self, moment: int, count: int) -> list[int]:
        """See Every.until()."""
        return [self.moment][:count] if self.moment <= moment else []


Times = Every | cron.Cron | Once


def share(name: str, limit: int) -> int:
    """Return a number from 0 to below ``most`` that is always the same for a name, and even over many names."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % limit if limit > 0 else 0


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

    @cached_property
    def times(self) -> Times:
        """Return when it ticks, without regard to ``start`` and ``end``."""
        if self.every:
            # Schedules of one interval are spread over it, unless a start says when they tick.
            return Every(self.every, self.start or share(self.name, self.every))
        return cron.Cron(self.cron, self.zone) if self.cron else Once(self.at)

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
        plain = Definition(self.name, self.task)
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = {key: value for key, value in options.items() if key != "name" and value != getattr(plain, key)}
        changed |= {"task": self.task, "timezone": self.zone if self.cron else ""}
        return encoded(changed)


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


def made(
    *,
    name: Any,
    task: str,
    kind: Kind = "task",
    args: Any = (),
    kwargs: Any = None,
    queue: str = "",
    every: Any = None,
    cron: Any = None,
    at: Any = None,
    timezone: Any = None,
    overlap: Any = None,
    catch_up: Any = "last",
    jitter: Any = 0,
    enabled: Any = True,
    start: Any = None,
    end: Any = None,
) -> Definition:
    """Return a checked definition. Raises InvalidSchedule, whose ``field`` names what is wrong."""
    _check_when(every, cron, at, timezone)
    definition = Definition(
        name=checked_name(name),
        task=task,
        kind=kind,
        args=_arguments("args", args, list),
        kwargs=_arguments("kwargs", {} if kwargs is None else kwargs, dict),
        queue=_queue(queue),
        every=0 if every is None else _duration("every", every, SHORTEST_EVERY, LONGEST_EVERY),
        cron="" if cron is None else _cron(cron),
        at=_moment("at", at),
        timezone=_zone(timezone),
        overlap=_one_of("overlap", "skip" if overlap is None else overlap, OVERLAPS),
        catch_up=caught_up(catch_up),
        jitter=_duration("jitter", jitter, 0, LONGEST_JITTER),
        enabled=enabled,
        start=_moment("start", start),
        end=_moment("end", end),
    )
    if overlap:
        check_overlap(overlap, is_ours=kind == "task", task=task)
    _check_jitter(definition)
    if not isinstance(enabled, bool):
        raise InvalidSchedule(f"enabled must be True or False, not {shortened(enabled)}.", "enabled")
    if definition.end and definition.end <= definition.start:
        raise InvalidSchedule("end must be later than start.", "end")
    return definition


def check_overlap(overlap: str, *, is_ours: bool, task: str) -> None:
    """Raise InvalidSchedule for a policy that needs to know when a job of a task ends, if other workers run it."""
    if not is_ours and overlap != "allow":
        wrong = f"overlap={overlap!r} needs to know when a job ends, and {task or 'the task'} runs on other workers."
        hint = "Leave it out, and let the task itself run once at a time, as SingletonTask and @locked do."
        raise InvalidSchedule(f"{wrong} {hint}", "overlap")


def caught_up(value: Any) -> int:
    """Return how many ticks that were missed run later, given ``none``, ``last`` or a number."""
    words = {"none": 0, "last": 1}
    if isinstance(value, str) and value in words:
        return words[value]
    if is_whole(value) and 0 <= value <= MOST_CAUGHT_UP:
        return value
    allowed = f"'none', 'last' or a whole number up to {MOST_CAUGHT_UP}"
    raise InvalidSchedule(f"catch_up must be {allowed}, not {shortened(value)}.", "catch_up")


def checked_name(name: Any) -> str:
    """Return the name of a schedule. Raises InvalidSchedule."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        wrong = f"name must be text of 1 to {LONGEST_NAME} printable characters, not {shortened(name)}."
        raise InvalidSchedule(wrong, "name")
    return name


def _check_jitter(definition: Definition) -> None:
    if not definition.jitter or definition.at:
        return
    what, distance = "every", definition.every
    if not distance:
        distance = cron.shortest_distance(definition.cron)
        what = f"the shortest time between two ticks, {number(distance / 1000)} s"
    if definition.jitter >= distance:
        raise InvalidSchedule(f"jitter must be shorter than {what}, or ticks would overtake each other.", "jitter")


def _check_when(every: Any, cron: Any, at: Any, timezone: Any) -> None:
    names = [name for name, value in zip(WHENS, (every, cron, at), strict=True) if value is not None]
    if len(names) != 1:
        what = f"{' and '.join(names)} exclude each other" if names else "it has no time"
        example = "every=5, in seconds, or cron='0 4 * * *', and timezone='Europe/Berlin' if the project has another"
        raise InvalidSchedule(f"A schedule needs one of every and cron, but {what}. Write {example}.", "every")
    if timezone and cron is None:
        raise InvalidSchedule("timezone belongs to cron; every counts real seconds.", "timezone")


def _arguments(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, (list, tuple) if kind is list else dict):
        raise InvalidSchedule(f"{name} must be a {kind.__name__}, not {shortened(value)}.", name)
    values = kind(value)
    try:
        message.dumps("", *(([], values) if kind is dict else (values, {})))
    except (InvalidValue, TypeError, ValueError) as error:
        raise InvalidSchedule(str(error), name) from error
    return values


def _queue(name: str) -> str:
    if not name:
        return ""
    try:
        encode(name)
    except InvalidName as error:
        raise InvalidSchedule(str(error), "queue") from error
    return name


def _duration(name: str, value: Any, minimum: float, maximum: float) -> int:
    time = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(time) or not minimum <= time <= maximum:
        allowed = f"{number(minimum)} to {number(maximum)} seconds, as a number or a timedelta"
        raise InvalidSchedule(f"{name} must be {allowed}, not {shortened(value)}.", name)
    return round(time * 1000)


def _cron(expression: Any) -> str:
    if not isinstance(expression, str):
        raise InvalidSchedule(f"cron must be text, not {shortened(expression)}. {cron.GRAMMAR}.", "cron")
    cron.check(text := " ".join(expression.split()))
    return text


def _moment(name: str, value: Any) -> int:
    if value is None:
        return 0
    try:
        moment = dates.aware(name, value)
    except InvalidValue as error:
        raise InvalidSchedule(str(error), name) from error
    return max(1, round(moment.timestamp() * 1000))


def _zone(name: Any) -> str:
    if not name:
        return ""
    name = name.key if isinstance(name, ZoneInfo) else name
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        hint = did_you_mean(name, available_timezones(), "For instance 'Europe/Berlin' or 'UTC'.")
        wrong = f"timezone is {shortened(name)}, which is not the name of a time zone. {hint}"
        raise InvalidSchedule(wrong, "timezone") from error


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    try:
        return validation.one_of(name, value, allowed)
    except InvalidValue as error:
        raise InvalidSchedule(str(error), name) from error
