"""The number of users who signed in on a day."""

from datetime import date
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow
from redis_kit.core.keys import BUCKETS
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import CombinedBatch
from redis_kit.signins import days, keys
from redis_kit.signins.settings import SignInSettings

COUNT = scripts.load("redis_kit.signins", "count_sign_ins")


class ActiveDay(NamedTuple):
    """A day and the number of users who signed in on it."""

    day: date
    users: int


class Activity(Primitive):
    """The sign-ins of all instances of a model, by day. Each counts on the day in the instance's time zone."""

    component, settings = "signins", SignInSettings

    def __init__(self, model: Any) -> None:
        super().__init__(keys.label(model), using=conf.section(SignInSettings).USING)

    def active(self, day: date | None = None) -> int:
        """Return the number of users who signed in on a day, by default today. Exact; one round trip.

        Days are stored for ``RETENTION``.
        """
        return self.run_flow(self._active(days.checked("day", day)))

    async def aactive(self, day: date | None = None) -> int:
        """See active()."""
        return await self.arun_flow(self._active(days.checked("day", day)))

    def daily_active(self, start: date, end: date) -> list[ActiveDay]:
        """Return the number of users on each day from start to end, both included. One round trip.

        Raises InvalidValue unless these are 1 to 366 days.
        """
        return self.run_flow(self._daily_active(days.between(start, end)))

    async def adaily_active(self, start: date, end: date) -> list[ActiveDay]:
        """See daily_active()."""
        return await self.arun_flow(self._daily_active(days.between(start, end)))

    def _active(self, day: date) -> Flow[int]:
        days_active = yield from self._daily_active([day])
        return days_active[0].users

    def _daily_active(self, wanted: list[date]) -> Flow[list[ActiveDay]]:
        counts = yield CombinedBatch([COUNT([key]) for key in keys.active_days(self.encoded, wanted)], most=500)
        parts = [counts[place : place + len(BUCKETS)] for place in range(0, len(counts), len(BUCKETS))]
        return [ActiveDay(day, sum(part)) for day, part in zip(wanted, parts, strict=True)]
