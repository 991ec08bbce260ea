"""How many signed in on a day."""

from datetime import date
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Batch, Call
from redis_kit.signins import days
from redis_kit.signins.component import SignInSettings
from redis_kit.signins.history import BUCKETS, bucket_tag, label


class ActiveDay(NamedTuple):
    """A day and how many signed in on it."""

    day: date
    users: int


class Activity(Primitive):
    """The sign-ins of all instances of a model, by day. Each is counted on the day that it was for them."""

    component, settings = "signins", SignInSettings

    def __init__(self, model: Any) -> None:
        super().__init__(label(model), using=conf.section(SignInSettings).USING)

    def active(self, day: date | None = None) -> int:
        """Return how many signed in on a day, today without one. Exact; known for ``RETENTION``. One round trip."""
        return self._run(self._active(days.checked("day", day)))

    async def aactive(self, day: date | None = None) -> int:
        """See active()."""
        return await self._arun(self._active(days.checked("day", day)))

    def daily_active(self, start: date, end: date) -> list[ActiveDay]:
        """Return each day from start to end, both included, and how many signed in on it. One round trip.

        Raises InvalidValue unless these are 1 to 366 days.
        """
        return self._run(self._daily_active(days.between(start, end)))

    async def adaily_active(self, start: date, end: date) -> list[ActiveDay]:
        """See daily_active()."""
        return await self._arun(self._daily_active(days.between(start, end)))

    def _active(self, day: date) -> Flow[int]:
        found = yield from self._daily_active([day])
        return found[0].users

    def _daily_active(self, wanted: list[date]) -> Flow[list[ActiveDay]]:
        prefix = conf.section(KitSettings).PREFIX
        starts = [f"{prefix}:{{{bucket_tag(self.encoded, bucket)}}}:day:" for bucket in range(BUCKETS)]
        counts = yield Batch([Call("BITCOUNT", f"{start}{day}") for day in wanted for start in starts])
        parts = [counts[place : place + BUCKETS] for place in range(0, len(counts), BUCKETS)]
        return [ActiveDay(day, sum(part)) for day, part in zip(wanted, parts, strict=True)]
