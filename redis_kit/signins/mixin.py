"""Sign-ins as methods of a model, without a database field. The Redis client is loaded at the first use."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from redis_kit.signins.calendar import Calendar
from redis_kit.signins.days import FIRST, checked, logical_day, today
from redis_kit.signins.signals import signed_in

if TYPE_CHECKING:
    from redis_kit.signins.activity import Activity
    from redis_kit.signins.history import History, SignIn


class SignIns:
    """The attribute ``sign_ins`` of a model's class: the sign-ins of all its instances."""

    def __get__(self, instance: Any, owner: type) -> "Activity":
        """Return the activity of the model."""
        if instance is not None:
            raise AttributeError(f"sign_ins is an attribute of {owner.__name__}, not of its instances.")
        from redis_kit.signins.activity import Activity

        return Activity(owner)


class SignInMixin:
    """Let the instances of any model sign in once a day, whatever its primary key.

    Each method costs one round trip. All raise InvalidValue for an instance that is not saved, and RedisUnavailable
    while Redis is unavailable.
    """

    sign_ins = SignIns()

    def sign_in(self, at: datetime | date | None = None) -> "SignIn":
        """Sign in now, or at an earlier time or day. The first sign-in on a day is ``new``, and sends ``signed_in``.

        Raises InvalidValue for a datetime without a time zone if ``USE_TZ`` is on, and for a day before 2000 or in the
        future. If RedisUnavailable is ``indeterminate``, sign in again: the day counts once.
        """
        result = _history(self).sign_in(logical_day(self, at))
        if result.new:
            signed_in.send_robust(type(self), instance=self, result=result)
        return result

    async def asign_in(self, at: datetime | date | None = None) -> "SignIn":
        """See sign_in()."""
        result = await _history(self).asign_in(logical_day(self, at))
        if result.new:
            await signed_in.asend_robust(type(self), instance=self, result=result)
        return result

    def sign_in_streak(self) -> int:
        """Return the number of days in a row up to today, or to yesterday if today has no sign-in yet."""
        return _history(self).streak(today(self))

    async def asign_in_streak(self) -> int:
        """See sign_in_streak()."""
        return await _history(self).astreak(today(self))

    def longest_sign_in_streak(self) -> int:
        """Return the longest streak ever, in days."""
        return _history(self).longest()

    async def alongest_sign_in_streak(self) -> int:
        """See longest_sign_in_streak()."""
        return await _history(self).alongest()

    def sign_in_count(self, start: date | None = None, end: date | None = None) -> int:
        """Return the number of days with a sign-in from start to end, both included; by default of all days.

        Raises InvalidValue if the end is before the start.
        """
        return _history(self).count(*_range(start, end))

    async def asign_in_count(self, start: date | None = None, end: date | None = None) -> int:
        """See sign_in_count()."""
        return await _history(self).acount(*_range(start, end))

    def signed_in_on(self, day: date) -> bool:
        """Return whether there was a sign-in on a day."""
        return _history(self).marked(checked("day", day))

    async def asigned_in_on(self, day: date) -> bool:
        """See signed_in_on()."""
        return await _history(self).amarked(checked("day", day))

    def sign_in_calendar(self, year: int, month: int) -> Calendar:
        """Return a month with its sign-ins. Raises InvalidValue for a month that does not exist or is before 2000."""
        return _history(self).calendar(year, month, today(self))

    async def asign_in_calendar(self, year: int, month: int) -> Calendar:
        """See sign_in_calendar()."""
        return await _history(self).acalendar(year, month, today(self))


def _history(instance: Any) -> "History":
    from redis_kit.signins.history import History

    return History(instance)


def _range(start: date | None, end: date | None) -> tuple[date, date]:
    return (
        FIRST if start is None else checked("start", start),
        date.max if end is None else checked("end", end),
    )
