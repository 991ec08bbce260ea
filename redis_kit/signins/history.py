"""The sign-ins of one user."""

from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.signins import keys
from redis_kit.signins.calendar import Calendar, month_length
from redis_kit.signins.days import FIRST
from redis_kit.signins.settings import SignInSettings

SIGN_IN = scripts.load("redis_kit.signins", "sign_in")


class SignIn(NamedTuple):
    """The result of a sign-in: ``streak`` is the length of the streak around it, ``milestones`` are newly reached."""

    new: bool
    streak: int
    longest: int
    total: int
    milestones: list[int]
    day: date


class History(Primitive):
    """The days on which one instance of a model signed in: a bitmap per year with the day of the year as offset."""

    component, settings = "signins", SignInSettings

    def __init__(self, instance: Any) -> None:
        if instance.pk is None or instance._state.adding:
            raise InvalidValue(f"{instance!r} is not saved. Save it before it signs in.")
        super().__init__(keys.label(type(instance)), using=conf.section(SignInSettings).USING)
        self.id = str(instance.pk)
        self.member = keys.member_of(self.id)
        self.bucket = bucket_of(self.member)

    def tag(self) -> str:
        """Return the hash tag of the user's bucket."""
        return keys.tag(self.encoded, self.bucket)

    def sign_in(self, day: date) -> SignIn:
        """Record a sign-in. One round trip; two for a day that is filled into a streak over several years."""
        return self.run_flow(self._sign_in(day))

    async def asign_in(self, day: date) -> SignIn:
        """See sign_in()."""
        return await self.arun_flow(self._sign_in(day))

    def streak(self, today: date) -> int:
        """Return the number of days in a row up to today, or to yesterday if today has no sign-in yet."""
        return self.run_flow(self._streak(today))

    async def astreak(self, today: date) -> int:
        """See streak()."""
        return await self.arun_flow(self._streak(today))

    def longest(self) -> int:
        """Return the longest streak ever, in days."""
        return self.run_flow(self._longest())

    async def alongest(self) -> int:
        """See longest()."""
        return await self.arun_flow(self._longest())

    def count(self, start: date, end: date) -> int:
        """Return the number of days with a sign-in from start to end, both included.

        Raises InvalidValue if the end is before the start.
        """
        return self.run_flow(self._count(start, end))

    async def acount(self, start: date, end: date) -> int:
        """See count()."""
        return await self.arun_flow(self._count(start, end))

    def marked(self, day: date) -> bool:
        """Return whether there was a sign-in on a day."""
        return self.run_flow(self._marked(day))

    async def amarked(self, day: date) -> bool:
        """See marked()."""
        return await self.arun_flow(self._marked(day))

    def calendar(self, year: int, month: int, today: date) -> Calendar:
        """Return a month, by one command. Raises InvalidValue for a month that does not exist."""
        return self.run_flow(self._calendar(year, month, today))

    async def acalendar(self, year: int, month: int, today: date) -> Calendar:
        """See calendar()."""
        return await self.arun_flow(self._calendar(year, month, today))

    def _sign_in(self, day: date) -> Flow[SignIn]:
        options = conf.section(SignInSettings)
        # The second range has a year without sign-ins on each side, which ends every streak.
        for years in (range(day.year - 1, day.year + 2), range(FIRST.year - 1, max(date.today().year, day.year) + 2)):
            starts = [date(year, 1, 1).toordinal() for year in (*years, years.stop)]
            lengths = [later - start for start, later in pairwise(starts)]
            named = [self._user(), keys.members(self.tag()), keys.active(self.tag(), day), *map(self._year, years)]
            ttl_ms = int(options.RETENTION * 1000)
            reply = yield SIGN_IN(named, [day.toordinal(), starts[0], self.id, ttl_ms, *lengths])
            if reply:
                break
        new, streak, longest, total, before = reply
        milestones = sorted(days for days in options.MILESTONES if before < days <= longest)
        return SignIn(bool(new), streak, longest, total, milestones, day)

    def _streak(self, today: date) -> Flow[int]:
        last, streak = yield Call("HMGET", self._user(), "last", "streak")
        # After a journey to the west the last day may be tomorrow.
        return int(streak) if last is not None and int(last) >= today.toordinal() - 1 else 0

    def _longest(self) -> Flow[int]:
        return int((yield Call("HGET", self._user(), "longest")) or 0)

    def _count(self, start: date, end: date) -> Flow[int]:
        if end < start:
            raise InvalidValue(f"start and end are {start} and {end}; a range must not end before it starts.")
        first, last = max(start, FIRST), min(end, date(date.today().year + 1, 12, 31))
        calls = []
        for year in range(first.year, last.year + 1):
            bits = [offset(max(first, date(year, 1, 1))), offset(min(last, date(year, 12, 31)))]
            calls.append(Call("BITCOUNT", self._year(year), *bits, "BIT"))
        return sum((yield Batch(calls))) if calls else 0

    def _marked(self, day: date) -> Flow[bool]:
        return bool((yield Call("GETBIT", self._year(day.year), offset(day))))

    def _calendar(self, year: int, month: int, today: date) -> Flow[Calendar]:
        length = month_length(year, month)
        place = offset(date(year, month, 1))
        (bits,) = yield Call("BITFIELD_RO", self._year(year), "GET", f"u{length}", place)
        return Calendar(year, month, [mark == "1" for mark in f"{bits:0{length}b}"], today)

    def _user(self) -> str:
        return keys.user(self.tag(), self.member)

    def _year(self, year: int) -> str:
        return keys.year(self.tag(), self.member, year)


def offset(day: date) -> int:
    """Return the offset of a day in its year, from 0."""
    return day.timetuple().tm_yday - 1
