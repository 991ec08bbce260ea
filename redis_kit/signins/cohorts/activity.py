"""The attribute ``sign_ins`` of a model's class: what is asked about all its instances."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.values.numbers import whole_number
from redis_kit.signins import days
from redis_kit.signins.cohorts import counts, standings
from redis_kit.signins.cohorts.counts import ActiveDay, Cohort
from redis_kit.signins.cohorts.segments import DAY, FIRST, Part, Segment, SignInModel
from redis_kit.signins.cohorts.standings import Standing

WEEK, MONTH = 7, 30


class Activity(SignInModel):
    """The sign-ins of all instances of a model. Each counts on the day in the instance's time zone.

    Days are stored for ``RETENTION``. Counts are exact. Each method is one round trip unless it says otherwise.
    """

    @operation
    def active(self, day: date | None = None) -> Flow[int]:
        """Return the number of users who signed in on a day, by default today."""
        (found,) = yield from counts.by_day(self.encoded, [days.checked("day", day)])
        return found.users

    @operation
    def daily_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return the number of users on each day from start to end, both included.

        Raises InvalidValue unless these are 1 to 366 days.
        """
        return counts.by_day(self.encoded, days.between(start, end))

    @operation
    def weekly_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return for each day from start to end the number of different users in the 7 days that end on it.

        It transfers one bit for each user and day. Raises InvalidValue unless the range has 1 to 366 days.
        """
        return (yield from counts.by_windows(self.encoded, days.between(start, end), [WEEK]))[0]

    @operation
    def monthly_active(self, start: date, end: date) -> Flow[list[ActiveDay]]:
        """Return for each day from start to end the number of different users in the 30 days that end on it.

        See weekly_active().
        """
        return (yield from counts.by_windows(self.encoded, days.between(start, end), [MONTH]))[0]

    @operation
    def streaks(self, users: Iterable[Any]) -> Flow[dict[Any, int]]:
        """Return the present streak of each of these instances, by primary key. Raises InvalidValue for over 10,000."""
        dated = yield days.reading(standings.with_today, list(users))
        return (yield from standings.streaks_of(dated))

    @operation
    def leaderboard(self, limit: int = 10, day: date | None = None) -> Flow[list[Standing]]:
        """Return the longest streaks that go on, the longest first. ``limit`` is 1 to 1000.

        It needs no clean-up: a streak leaves it two days after its last sign-in.
        """
        return standings.leaders(self.model, days.checked("day", day), limit)

    @operation
    def at_risk(self, streak: int = 3, *, limit: int = 1000, day: date | None = None) -> Flow[list[Standing]]:
        """Return streaks of this length or more that end today unless the user signs in, the longest first.

        ``limit`` is 1 to 1000. Their ids are primary keys: ``User.objects.filter(pk__in=[...])``.
        """
        return standings.at_risk(self.model, days.checked("day", day), streak, limit)

    @operation
    def count_at_risk(self, streak: int = 3, *, day: date | None = None) -> Flow[int]:
        """Return the number of streaks that at_risk() would list without a limit."""
        return standings.count_at_risk(self.encoded, days.checked("day", day), streak)

    @operation
    def retention(self, cohort_day: date, number: int = 30, *, rolling: bool = False) -> Flow[Cohort]:
        """Return the number of new users of a day, and how many of them signed in on each of the days after it.

        See retention_grid().
        """
        last = days.checked("cohort_day", cohort_day) + timedelta(whole_number("number", number, (1, 365)))
        until = min(last, max(days.today(), cohort_day))
        grid = counts.Grid.of(cohort_day, cohort_day, until, 1, rolling)
        return (yield from counts.cohorts(self.encoded, grid))[0]

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
        grid = counts.Grid.of(start, end, days.checked("until", until), period, rolling)
        return counts.cohorts(self.encoded, grid)

    def on(self, start: date, end: date | None = None) -> Segment:
        """Return the users who signed in on a day, or on at least one day from start to end. No round trip."""
        return self._segment(DAY, start, end)

    def first_on(self, start: date, end: date | None = None) -> Segment:
        """Return the users whose first sign-in was on a day, or from start to end. No round trip."""
        return self._segment(FIRST, start, end)

    def _segment(self, kind: str, start: date, end: date | None) -> Segment:
        chosen = days.between(start, start if end is None else end)
        return Segment.any_of(self, [Part(kind, day) for day in chosen])

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
