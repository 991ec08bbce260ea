"""The attribute ``sign_ins`` of a model's class: active users, streaks and cohorts of all its instances.

The functions are flows for several questions at once. A question writes nothing on the server.
"""

import operator
import struct
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import reduce
from itertools import accumulate, pairwise
from math import ceil
from typing import Any, NamedTuple

from redis_kit.core import conf, dates, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.core.values.sequences import batched
from redis_kit.signins import days, keys
from redis_kit.signins.segments import Segment, SignInModel, read_joined
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users import SignInUser, summarized

COUNT = scripts.load("redis_kit.signins", "count_active")
LIST = scripts.load("redis_kit.signins", "list_streaks")
BUCKETS_AT_ONCE = 8  # in one round trip, so that not all bitmaps are in memory at the same time
WEEK, MONTH = 7, 30
MOST, MOST_USERS = 1000, 10_000
LONGEST = 99_999  # days: the last day of a streak is that many times its score; see scripts/sign_in.lua


class ActiveDay(NamedTuple):
    """A day and the number of users who signed in on it, or in the week or the month that ends on it."""

    day: date
    users: int


class Cohort(NamedTuple):
    """The users whose first sign-in was on a day, or in the week that begins then, and how many of them came back.

    ``partial`` is True if the last of its days or weeks goes on, or is not all in the range: its number may grow.
    """

    day: date
    size: int
    retained: list[int]
    partial: bool


class Standing(NamedTuple):
    """A user by primary key, and the length of the streak."""

    id: Any
    streak: int


class Activity(SignInModel):
    """The sign-ins of all instances of a model. Each counts on the day in the instance's time zone.

    Days are stored for ``RETENTION``. Counts are exact. Each method is one round trip unless it says otherwise.
    """

    @operation
    def active(self, day: date | None = None) -> Flow[int]:
        """Return the number of users who signed in on a day, by default today."""
        (found,) = yield from by_day(self.encoded, [days.checked("day", day)])
        return found.users

    @operation
    def daily_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return the number of users on each day from start to end, both included.

        Raises InvalidValue unless these are 1 to 366 days.
        """
        return by_day(self.encoded, days.between(start, end))

    @operation
    def weekly_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return for each day from start to end the number of different users in the 7 days that end on it.

        It transfers one bit for each user and day. Raises InvalidValue unless the range has 1 to 366 days.
        """
        return (yield from by_windows(self.encoded, days.between(start, end), [WEEK]))[0]

    @operation
    def monthly_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return for each day from start to end the number of different users in the 30 days that end on it.

        See weekly_active().
        """
        return (yield from by_windows(self.encoded, days.between(start, end), [MONTH]))[0]

    @operation
    def streaks(self, users: Iterable[Any]) -> Flow[dict[Any, int]]:
        """Return the present streak of each of these instances, by primary key. Raises InvalidValue for over 10,000."""
        dated: list[tuple[SignInUser, date]] = yield days.reading(_with_today, list(users))
        states = (yield Batch([Call("GET", user.state_key()) for user, _ in dated])) if dated else []
        return {user.pk: summarized(state, day).streak for (user, day), state in zip(dated, states, strict=True)}

    @operation
    def leaderboard(self, limit: int = 10, day: date | None = None) -> Flow[list[Standing]]:
        """Return the longest streaks that go on, the longest first. ``limit`` is 1 to 1000.

        It needs no clean-up: a streak leaves it two days after its last sign-in.
        """
        return leaders(self.model, days.checked("day", day), limit)

    @operation
    def at_risk(self, streak: int = 3, *, limit: int = 1000, day: date | None = None) -> Flow[list[Standing]]:
        """Return streaks of this length or more that end today unless the user signs in, the longest first.

        ``limit`` is 1 to 1000. Their ids are primary keys: ``User.objects.filter(pk__in=[...])``.
        """
        yesterday = days.checked("day", day).toordinal() - 1
        return _listed(self.model, (yesterday, yesterday), whole_number("streak", streak, (1, LONGEST)), limit)

    @operation
    def count_at_risk(self, streak: int = 3, *, day: date | None = None) -> Flow[int]:
        """Return the number of streaks that at_risk() would list without a limit."""
        return count_at_risk(self.encoded, days.checked("day", day), streak)

    @operation
    def retention(self, cohort_day: date, number: int = 30, *, rolling: bool = False) -> Flow[Cohort]:
        """Return the number of new users of a day, and how many of them signed in on each of the days after it.

        See retention_grid().
        """
        last = days.checked("cohort_day", cohort_day) + timedelta(whole_number("number", number, (1, 365)))
        until = min(last, max(days.today(), cohort_day))
        return (yield from cohorts(self.encoded, cohort_day, cohort_day, until, rolling=rolling))[0]

    @operation
    def retention_grid(
        self, start: date, end: date, *, until: date | None = None, period: int = 1, rolling: bool = False
    ) -> Flow[list[Cohort]]:
        """Return a cohort for each day from start to end: the users whose first sign-in was on it.

        ``retained[n]`` counts those with a sign-in on the n-th day after it, up to ``until``, by default today. With
        ``rolling`` it counts those with one on that day or later. With a ``period`` of 7 days in place of 1, cohorts
        and their days are weeks, the first of which begins at start. Cohorts are ``partial`` if the last period is not
        over. Two round trips, which transfer one bit for each user and day, twice for the days of cohorts. Raises
        InvalidValue for over 366 days.
        """
        until = days.checked("until", until)
        return cohorts(self.encoded, start, end, until, period=period, rolling=rolling)

    def on(self, start: date, end: date | None = None) -> Segment:
        """Return the users who signed in on a day, or on at least one day from start to end. No round trip."""
        return Segment.any_of(self, map(keys.active_part, days.between(start, start if end is None else end)))

    def first_on(self, start: date, end: date | None = None) -> Segment:
        """Return the users whose first sign-in was on a day, or from start to end. No round trip."""
        return Segment.any_of(self, map(keys.first_part, days.between(start, start if end is None else end)))

    aactive = twin(active)
    adaily_active = twin(daily_active)
    aweekly_active = twin(weekly_active)
    amonthly_active = twin(monthly_active)
    astreaks = twin(streaks)
    aleaderboard = twin(leaderboard)
    aat_risk = twin(at_risk)
    acount_at_risk = twin(count_at_risk)
    aretention = twin(retention)
    aretention_grid = twin(retention_grid)


def by_day(model: str, days: Sequence[date]) -> Flow[list[ActiveDay]]:
    """Return the users of each of these days. The server counts them."""
    parts = [keys.active_part(day) for day in days]
    packed = yield Batch([COUNT(keys.in_bucket(tag, parts)) for tag in keys.tags(model)])
    by_bucket = [struct.unpack(f"<{len(parts)}I", each) for each in packed]
    return [ActiveDay(day, sum(users)) for day, users in zip(days, zip(*by_bucket, strict=True), strict=True)]


def by_windows(model: str, days: Sequence[date], windows: Sequence[int]) -> Flow[list[list[ActiveDay]]]:
    """Return for each window, a number of days in a row, the users in those that end on each day.

    The days follow each other. This process joins their bitmaps: the server would have to store each union.
    """
    earlier = max(windows) - 1
    read = [days[0] - timedelta(ago) for ago in range(earlier, 0, -1)] + list(days)
    users = yield from read_joined(list(map(keys.active_part, read)), keys.tags(model))
    return [
        [
            ActiveDay(day, reduce(operator.or_, users[at - window + 1 : at + 1]).bit_count())
            for at, day in enumerate(days, earlier)
        ]
        for window in windows
    ]


def cohorts(
    model: str, start: date, end: date, until: date, *, period: int = 1, rolling: bool = False
) -> Flow[list[Cohort]]:
    """Return the cohorts of all users: see Activity.retention_grid()."""
    if isinstance(period, bool) or period not in (1, 7):
        raise InvalidValue(f"period is {period!r}; it must be 1 for days or 7 for weeks.")
    firsts, active_days = dates.between(start, end), dates.between(start, max(end, until))
    parts, tables = [*map(keys.first_part, firsts), *map(keys.active_part, active_days)], []
    for tags in batched(keys.tags(model), BUCKETS_AT_ONCE):
        users = yield from read_joined(parts, tags)
        new, active = _periods(users[: len(firsts)], period), _periods(users[len(firsts) :], period)
        tables.append(_table(new, active, rolling=rolling))
    rows = [[sum(cells) for cells in zip(*row, strict=True)] for row in zip(*tables, strict=True)]
    last = start + timedelta(ceil(len(active_days) / period) * period - 1)
    partial = last > active_days[-1] or last >= days.today()
    return [Cohort(day, size, retained, partial) for day, (size, *retained) in zip(firsts[::period], rows, strict=True)]


def _periods(users: Sequence[int], period: int) -> list[int]:
    return [reduce(operator.or_, some) for some in batched(users, period)]


def _table(new: Sequence[int], active: Sequence[int], *, rolling: bool) -> list[list[int]]:
    """Return a row for each cohort: its size, and how many were active in each period from its own on."""
    if rolling:
        active = [*accumulate(reversed(active), operator.or_)][::-1]
    return [
        [users.bit_count(), *((users & later).bit_count() for later in active[at:])] for at, users in enumerate(new)
    ]


def _with_today(users: Sequence[Any]) -> list[tuple[SignInUser, date]]:
    """Return the user of each instance, and the present day in its zone."""
    if len(users) > MOST_USERS:
        raise InvalidValue(f"users are {len(users):,}; at most {MOST_USERS:,} are read at once.")
    return [(SignInUser.of(instance), days.today(instance)) for instance in users]


def leaders(model: Any, day: date, limit: int) -> Flow[list[Standing]]:
    """Return the longest streaks that go on."""
    number = day.toordinal()
    # Users in zones ahead are a day further, and frozen days may lie before others.
    ahead = conf.section(SignInSettings).WINDOW + 1
    return (yield from _listed(model, (number - 1, number + ahead), 1, limit))


def count_at_risk(model: str, day: date, streak: int) -> Flow[int]:
    """Return the number of streaks whose last day is the day before."""
    begin = (day.toordinal() - 1) * (LONGEST + 1)
    least, most = begin + whole_number("streak", streak, (1, LONGEST)), begin + LONGEST
    return sum((yield Batch([Call("ZCOUNT", keys.streaks(tag), least, most) for tag in keys.tags(model)])))


def _listed(model: Any, last_days: tuple[int, int], least: int, limit: int) -> Flow[list[Standing]]:
    args = [*last_days, least, whole_number("limit", limit, (1, MOST))]
    tags = keys.tags(keys.label(model))
    listed = yield Batch([LIST([keys.streaks(tag), keys.members(tag)], args) for tag in tags])
    pairs = [pair for ids in listed for pair in list(pairwise(ids))[::2]]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    to_python = model._meta.pk.to_python
    return [Standing(to_python(id.decode()), length) for id, length in pairs[:limit]]
