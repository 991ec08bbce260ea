"""Schedules in Redis, as flows: what code and database say about them, their due times, and what became of ticks."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.queues.engine.calls import QueueScript
from redis_kit.queues.features.schedules.definition import Definition, loaded
from redis_kit.queues.settings import QueueSettings

CLAIMED = 100  # schedules in one call
LEASE = 5000  # ms that a claim lasts
WATCH = 6000  # ms for which a supervisor wakes up for ticks; it says so again every 2 s
WATCHERS = 2  # supervisors that wake up for ticks. The others look every 2 s.
REPLACED = 30_000  # ms without a sign of a release of the code after which another one may change its schedules
UNDECLARED = 3_600_000  # ms without a sign of a release after which it is forgotten with its schedules
CHUNK = 200  # schedules in one call
DECLARED = 5000  # of a release in one call: once that is known, a schedule that it did not declare is forgotten
NOW = 1  # a due time that has passed
SOME_DAY = 86_400_000  # ms to the next look at a schedule that does not tick: it is forgotten with its code
STORED = "stored"  # when all rows of the database were stored, among the versions
OVERDUE = 10_000  # ms: a claim whose supervisor has died is over before that
ADDED, RETRIED, SKIPPED, WAITS, MISSED = "added", "retried", "skipped", "waits", "missed"  # what became of a tick
REPEATED = "repeated"  # what put_tick says of a tick that another supervisor added, and died before it counted it
CLAIM_TICKS, CONFIRM_TICKS, PUT_TICK, DECLARE_SCHEDULES, STORE_SCHEDULES, LIST_SCHEDULES = (
    QueueScript(name, __package__)
    for name in ("claim_ticks", "confirm_ticks", "put_tick", "declare_schedules", "store_schedules", "list_schedules")
)


class State(NamedTuple):
    """Up to when ticks are over, and the latest one: when it was, its outcome, how late it was, and its job.

    Times are in ms. ``timing`` changes with the times of the schedule; ``next`` is the next tick; ``runs``,
    ``skips`` and ``missed`` count ticks; ``problem`` is why it can't run.
    """

    timing: str = ""
    last: int | None = None
    next: int | None = None
    tick: int = 0
    outcome: str = ""
    late: int = 0
    job: str = ""
    queue: str = ""
    runs: int = 0
    skips: int = 0
    missed: int = 0
    problem: str = ""

    def dumps(self) -> str:
        """Return it as JSON."""
        plain = State()
        values = {name: value for name, value in self._asdict().items() if value != getattr(plain, name)}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def read_state(stored: str) -> State:
    """Return a stored state; an empty one for anything that is none, as of a newer release."""
    with suppress(ValueError, TypeError):
        return State(**{name: value for name, value in json.loads(stored).items() if name in State._fields})
    return State()


@dataclass(frozen=True)
class StoredSchedule:
    """A schedule as it is stored. ``look`` is when to look at it, in ms, None for never.

    ``code`` declares it, and ``row`` is what the database says. Both are JSON, "" for nothing.
    """

    name: str
    look: int | None
    code: str
    row: str
    state: State

    def load(self) -> Definition:
        """Return its definition. Raises what keeps it from being one here."""
        return loaded(self.name, self.code, self.row)

    @cached_property
    def _loaded(self) -> tuple[Definition | None, str]:
        try:
            return self.load(), self.state.problem
        except (ConfigurationError, ValueError, TypeError) as error:
            return None, str(error)

    @property
    def definition(self) -> Definition | None:
        """Return its definition; None if it can't be read."""
        return self._loaded[0]

    @property
    def problem(self) -> str:
        """Return why it does not run; "" if it does."""
        return self._loaded[1]

    @property
    def source(self) -> Literal["code", "database", "both"]:
        """Return who says how it is."""
        return "both" if self.code and self.row else "database" if self.row else "code"

    @property
    def paused(self) -> bool:
        """Return whether it is off."""
        return self.definition is not None and not self.definition.enabled

    @property
    def new(self) -> bool:
        """Return whether no worker has planned it yet."""
        return not (self.look or self.problem) and self.state == State()

    @property
    def due(self) -> int | None:
        """Return when its next tick is due, in ms; None without one."""
        tick = self.state.next
        if self.definition is None or tick is None or self.paused:
            return None
        return tick + self.definition.delay(tick)

    def overdue(self, now: int) -> int:
        """Return for how many ms its next tick has been due if that is too long, else 0."""
        late = 0 if self.due is None else now - self.due
        return late if late >= OVERDUE else 0


class Schedules(Primitive):
    """All schedules of a server."""

    component, settings = "queues", QueueSettings

    def tag(self) -> str:
        """Return the hash tag. The tag of a queue begins with ``queues:``."""
        return "queues-schedules"


SCHEDULES = Schedules("all")


class ClaimedTicks(NamedTuple):
    """Schedules that were claimed, and what there is to know. Times in ms; ``next`` is from ``now``, -1 for never.

    ``versions`` says when a worker last had each release of the code, and under STORED when all rows were stored.
    """

    now: int
    watches: bool
    next: int
    total: int
    versions: dict[str, int]
    claim: bytes
    schedules: list[StoredSchedule]


class Page(NamedTuple):
    """Some of ``total`` schedules. ``watched`` says whether a worker runs ticks; ``now`` is in ms."""

    now: int
    total: int
    watched: bool
    schedules: list[StoredSchedule]


class Confirmation(NamedTuple):
    """The outcome of a claimed schedule: when to look at it again, in ms; its state, if it changed."""

    name: str
    due: int
    state: State | None = None


def declare(version: str, definitions: Mapping[str, str]) -> Flow[int]:
    """Store what code declares, and return how many schedules are planned again. One round trip for 5,000."""
    planned = 0
    for chunk in batched(definitions.items(), DECLARED):
        rows = [part for pair in chunk for part in pair]
        planned += yield DECLARE_SCHEDULES(SCHEDULES.key(""), version, REPLACED, UNDECLARED, *rows)
    return planned


def store(rows: Sequence[tuple[str, str]], *, read: int = 0) -> Flow[int]:
    """Store rows of the database, "" for a deleted one, and return how many have changed. One round trip for 200.

    ``read`` says that these are all, and when they were read, as stored() returned it; 0: they were just saved.
    """
    changed = 0
    chunks = list(batched(rows, CHUNK)) or [[]]
    for number, chunk in enumerate(chunks, 1):
        parts = [part for row in chunk for part in row]
        is_last = read > 0 and number == len(chunks)
        changed += yield STORE_SCHEDULES(SCHEDULES.key(""), read, int(is_last), *parts)
    return changed


def stored() -> Flow[tuple[int, list[str]]]:
    """Return the server's time in ms, and the names of the schedules that rows of the database were stored for."""
    (seconds, microseconds), names = yield Batch([Call("TIME"), Call("HKEYS", SCHEDULES.key("stored"))])
    return int(seconds) * 1000 + int(microseconds) // 1000, [_text(name) for name in names]


def claim(supervisor: str, version: str, skipped: Sequence[str]) -> Flow[ClaimedTicks]:
    """Claim schedules that are due, but those that are skipped."""
    args = (supervisor, version, CLAIMED, LEASE, WATCH, WATCHERS, UNDECLARED, *skipped)
    now, watches, coming, total, versions, token, *rows = yield CLAIM_TICKS(SCHEDULES.key(""), *args)
    return ClaimedTicks(now, bool(watches), coming, total, _versions(versions), token, _schedules(rows))


def confirm(claim: bytes, rows: Sequence[Confirmation]) -> Flow[int]:
    """Record what became of claimed schedules. The server leaves those alone that another one has claimed since."""
    parts = [(row.name, max(NOW, row.due), row.state.dumps() if row.state else "") for row in rows]
    count: int = yield CONFIRM_TICKS(SCHEDULES.key(""), claim, *chain.from_iterable(parts))
    return count


def put(steps: Sequence[ScriptCall]) -> Flow[list[tuple[str, str] | RedisFailure]]:
    """Add the jobs of ticks: for each its outcome and the id of the job that there is, or an error of its queue."""
    replies = yield Batch(steps, lenient=True)
    return [reply if isinstance(reply, RedisFailure) else (_text(reply[0]), _text(reply[1])) for reply in replies]


def page(order: Literal["due", "names"], offset: int, limit: int, *, beginning: str = "") -> Flow[Page]:
    """Read schedules, by name or the next ones; by name also those whose names begin with a text."""
    step = LIST_SCHEDULES(SCHEDULES.key(""), order, offset, limit, beginning)
    now, total, watchers, *rows = yield step
    return Page(now, total, watchers > 0, _schedules(rows))


def find(name: str) -> Flow[StoredSchedule | None]:
    """Read one schedule; None if there is none of this name."""
    listed = (yield from page("names", 0, 1, beginning=name)).schedules
    return next((each for each in listed if each.name == name and (each.code or each.row)), None)


def _versions(flat: Sequence[bytes]) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {_text(name): int(last) for name, value in pairs if (last := value.rpartition(b" ")[2]).isdigit()}


def _schedules(rows: Sequence[bytes]) -> list[StoredSchedule]:
    return [
        StoredSchedule(
            _text(name),
            int(float(due)) if due else None,
            _text(code).partition("\n")[2],
            _text(row).partition("\n")[2],
            read_state(_text(became)),
        )
        for name, due, code, row, became in batched(rows, 5)
    ]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
