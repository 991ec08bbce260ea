"""Schedules as they are stored in Redis: what code and database say, and what became of their ticks."""

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.features.schedules.definition import Definition, loaded

ADDED, RETRIED, SKIPPED, WAITS, MISSED = "added", "retried", "skipped", "waits", "missed"
OVERDUE = 10_000  # ms: a claim whose supervisor has died is over before that


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


def read(stored: str) -> State:
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
