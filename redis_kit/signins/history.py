"""The sign-ins of one user."""

from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode, hashed
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.signins.calendar import Calendar, month_length
from redis_kit.signins.component import SignInSettings
from redis_kit.signins.days import FIRST

SIGN_IN = scripts.load("redis_kit.signins", "sign_in")
# A user's keys share their slot with a part of the day's map, so that one script writes both. Never to be changed:
# the number decides where everything is.
BUCKETS = 16
LONGEST_ID = 64


class SignIn(NamedTuple):
    """What a sign-in came to: ``streak`` counts the days in a row around its day, ``milestones`` were reached now."""

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
            raise InvalidValue(f"{instance!r} is not saved, so nobody could find its sign-ins again; save it first.")
        super().__init__(label(type(instance)), using=conf.section(SignInSettings).USING)
        self.id = str(instance.pk)
        # encode() leaves no "^", so a hash can't be mistaken for an id.
        self.member = encode(self.id) if len(self.id) <= LONGEST_ID else f"^{hashed(self.id)}"
        self.bucket = crc32(self.member.encode()) % BUCKETS

    def tag(self) -> str:
        """Return what decides the slot: the user's bucket."""
        return bucket_tag(self.encoded, self.bucket)

    def sign_in(self, day: date) -> SignIn:
        """Mark a day. One round trip; two for a day filled into a streak that goes on over several years."""
        return self._run(self._sign_in(day))

    async def asign_in(self, day: date) -> SignIn:
        """See sign_in()."""
        return await self._arun(self._sign_in(day))

    def streak(self, today: date) -> int:
        """Return the number of days in a row up to today, or to yesterday where today may still come."""
        return self._run(self._streak(today))

    async def astreak(self, today: date) -> int:
        """See streak()."""
        return await self._arun(self._streak(today))

    def longest(self) -> int:
        """Return the largest number of days in a row ever."""
        return self._run(self._longest())

    async def alongest(self) -> int:
        """See longest()."""
        return await self._arun(self._longest())

    def count(self, start: date, end: date) -> int:
        """Return the number of days with a sign-in from start to end, both included.

        Raises InvalidValue when the end is before the start.
        """
        return self._run(self._count(start, end))

    async def acount(self, start: date, end: date) -> int:
        """See count()."""
        return await self._arun(self._count(start, end))

    def marked(self, day: date) -> bool:
        """Return whether there was a sign-in on a day."""
        return self._run(self._marked(day))

    async def amarked(self, day: date) -> bool:
        """See marked()."""
        return await self._arun(self._marked(day))

    def calendar(self, year: int, month: int, today: date) -> Calendar:
        """Return a month, read by one command. Raises InvalidValue for a month that does not exist."""
        return self._run(self._calendar(year, month, today))

    async def acalendar(self, year: int, month: int, today: date) -> Calendar:
        """See calendar()."""
        return await self._arun(self._calendar(year, month, today))

    def _sign_in(self, day: date) -> Flow[SignIn]:
        options = conf.section(SignInSettings)
        # A year on each side, without a mark, ends every streak inside the second range.
        for years in (range(day.year - 1, day.year + 2), range(FIRST.year - 1, max(date.today().year, day.year) + 2)):
            starts = [date(year, 1, 1).toordinal() for year in (*years, years.stop)]
            lengths = [later - start for start, later in pairwise(starts)]
            keys = [self._user, self.key("members"), self.key(f"day:{day}"), *map(self._year, years)]
            kept = int(options.RETENTION * 1000)
            reply = yield SIGN_IN(keys, [day.toordinal(), starts[0], self.id, kept, *lengths])
            if reply:
                break
        new, streak, longest, total, before = reply
        milestones = sorted(days for days in options.MILESTONES if before < days <= longest)
        return SignIn(bool(new), streak, longest, total, milestones, day)

    def _streak(self, today: date) -> Flow[int]:
        last, streak = yield Call("HMGET", self._user, "last", "streak")
        # After a journey to the west the last day may be tomorrow.
        return int(streak) if last is not None and int(last) >= today.toordinal() - 1 else 0

    def _longest(self) -> Flow[int]:
        return int((yield Call("HGET", self._user, "longest")) or 0)

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

    @property
    def _user(self) -> str:
        return self.key(f"user:{self.member}")

    def _year(self, year: int) -> str:
        return self.key(f"year:{self.member}:{year}")


def label(model: Any) -> str:
    """Return the name of a model in keys, such as ``shop.user``; that of its parent for a proxy."""
    found: str = model._meta.concrete_model._meta.label_lower
    return found


def bucket_tag(name: str, bucket: int) -> str:
    """Return what decides the slot of a bucket of a model's users."""
    return f"signins:{name}:{bucket}"


def offset(day: date) -> int:
    """Return the place of a day in its year, from 0."""
    return day.timetuple().tm_yday - 1
