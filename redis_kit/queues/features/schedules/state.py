"""The state of a schedule as it is stored in Redis: its last tick and its counts."""

import json
from contextlib import suppress
from typing import NamedTuple

from redis_kit.queues.features.schedules.definition import Definition

ADDED, RETRIED, SKIPPED, WAITS, MISSED = "added", "retried", "skipped", "waits", "missed"


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

    def last_for(self, definition: Definition) -> int | None:
        """Return up to when ticks are over; None if the schedule is new, or its times have changed."""
        return self.last if self.timing == definition.timing else None


def read(stored: str) -> State:
    """Return a stored state; an empty one for anything that is none, as of a newer release."""
    with suppress(ValueError, TypeError):
        return State(**{name: value for name, value in json.loads(stored).items() if name in State._fields})
    return State()
