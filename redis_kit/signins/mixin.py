"""Sign-ins as methods of a model, without a database field. The Redis client is loaded at the first use."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from django.apps import apps

from redis_kit.core.errors import RedisUnavailable
from redis_kit.signins import keys
from redis_kit.signins.calendar import Calendar
from redis_kit.signins.days import FIRST, aread, checked, moment, today
from redis_kit.signins.signals import signed_in

if TYPE_CHECKING:
    from redis_kit.signins.cohorts.activity import Activity
    from redis_kit.signins.users.base import History, Summary
    from redis_kit.signins.users.changes import Changes, SignIn


class SignIns:
    """The attribute ``sign_ins`` of a model's class: the sign-ins of all its instances."""

    def __get__(self, instance: Any, owner: type) -> "Activity":
        """Return the activity of the model."""
        if instance is not None:
            raise AttributeError(f"sign_ins is an attribute of {owner.__name__}, not of its instances.")
        from redis_kit.signins.cohorts.activity import Activity

        return Activity(owner)


class SignInMixin:
    """Let the instances of any model sign in once a day, whatever its primary key.

    Each method costs one round trip unless it says otherwise. All raise InvalidValue for an instance that is not saved,
    and RedisUnavailable while Redis is unavailable.
    """

    sign_ins = SignIns()

    def sign_in(self, at: datetime | date | None = None, *, token: str = "") -> "SignIn":
        """Sign in now, or at an earlier time or day. The first sign-in on a day is ``new``, and sends ``signed_in``.

        Two to four round trips for a day before others. Raises InvalidValue for a datetime without a time zone if
        ``USE_TZ`` is on, and for a day before 2000 or in the future. If the reply is lost, the call is repeated once.
        If RedisUnavailable is ``indeterminate``, sign in again: the day counts once. With the same ``token``, which is
        any text, the second call returns what the first one would have returned, with its milestones.
        """
        changes, when = _changes(self), moment(self, at)
        try:
            result = changes.run_flow(changes.sign_in(when, token))
        except RedisUnavailable:
            _record(self, when.day, "sign_in")  # rk_signins rebuild adds it later
            raise
        return _sent(self, result, "sign_in")

    async def asign_in(self, at: datetime | date | None = None, *, token: str = "") -> "SignIn":
        """See sign_in()."""
        changes, when = _changes(self), await aread(moment, self, at)
        try:
            result = await changes.arun_flow(changes.sign_in(when, token))
        except RedisUnavailable:
            await _arecord(self, when.day, "sign_in")
            raise
        return await _asent(self, result, "sign_in")

    def make_up_sign_in(self, day: date, *, token: str = "") -> "SignIn":
        """Sign in on a missed day, which then counts as others do. Two round trips at most; sends ``signed_in``.

        Raises NoneLeft after ``MAKE_UPS`` in the day's month, and InvalidValue for a day outside ``WINDOW``.
        """
        changes = _changes(self)
        return _sent(self, changes.run_flow(changes.make_up(checked("day", day), today(self), token)), "make_up")

    async def amake_up_sign_in(self, day: date, *, token: str = "") -> "SignIn":
        """See make_up_sign_in()."""
        changes = _changes(self)
        result = await changes.arun_flow(changes.make_up(checked("day", day), await aread(today, self), token))
        return await _asent(self, result, "make_up")

    def freeze_sign_ins(self, day: date, *, token: str = "") -> "SignIn":
        """Freeze a day: streaks continue over it without a sign-in, and it does not count. The first call is ``new``.

        Raises NoneLeft after ``FREEZES`` in the day's month, and InvalidValue for a day outside ``WINDOW``.
        """
        changes = _changes(self)
        result = changes.run_flow(changes.freeze(checked("day", day), today(self), token))
        if result.new:
            _record(self, day, "freeze")
        return result

    async def afreeze_sign_ins(self, day: date, *, token: str = "") -> "SignIn":
        """See freeze_sign_ins()."""
        changes = _changes(self)
        result = await changes.arun_flow(changes.freeze(checked("day", day), await aread(today, self), token))
        if result.new:
            await _arecord(self, day, "freeze")
        return result

    def sign_in_summary(self) -> "Summary":
        """Return the present streak, the longest one, the total and the first day."""
        history = _history(self)
        return history.run_flow(history.summary(today(self)))

    async def asign_in_summary(self) -> "Summary":
        """See sign_in_summary()."""
        history = _history(self)
        return await history.arun_flow(history.summary(await aread(today, self)))

    def sign_in_streak(self) -> int:
        """Return the number of days in a row up to today, or to yesterday if today has no sign-in yet."""
        return self.sign_in_summary().streak

    async def asign_in_streak(self) -> int:
        """See sign_in_streak()."""
        return (await self.asign_in_summary()).streak

    def longest_sign_in_streak(self) -> int:
        """Return the longest streak ever, in days."""
        return self.sign_in_summary().longest

    async def alongest_sign_in_streak(self) -> int:
        """See longest_sign_in_streak()."""
        return (await self.asign_in_summary()).longest

    def sign_in_count(self, start: date | None = None, end: date | None = None) -> int:
        """Return the number of days with a sign-in from start to end, both included; by default of all days.

        Raises InvalidValue if the end is before the start.
        """
        history = _history(self)
        return history.run_flow(history.count(*_range(start, end)))

    async def asign_in_count(self, start: date | None = None, end: date | None = None) -> int:
        """See sign_in_count()."""
        history = _history(self)
        return await history.arun_flow(history.count(*_range(start, end)))

    def signed_in_on(self, day: date) -> bool:
        """Return whether there was a sign-in on a day."""
        history = _history(self)
        return history.run_flow(history.marked(checked("day", day)))

    async def asigned_in_on(self, day: date) -> bool:
        """See signed_in_on()."""
        history = _history(self)
        return await history.arun_flow(history.marked(checked("day", day)))

    def first_sign_in(self, start: date | None = None, end: date | None = None) -> date | None:
        """Return the first day with a sign-in from start to end, both included; None if there is none.

        Raises InvalidValue if the end is before the start.
        """
        history = _history(self)
        return history.run_flow(history.first(*_range(start, end)))

    async def afirst_sign_in(self, start: date | None = None, end: date | None = None) -> date | None:
        """See first_sign_in()."""
        history = _history(self)
        return await history.arun_flow(history.first(*_range(start, end)))

    def sign_in_week(self, first: date) -> list[bool]:
        """Return for seven days, from the first on, whether there was a sign-in."""
        history = _history(self)
        return history.run_flow(history.week(checked("first", first)))

    async def asign_in_week(self, first: date) -> list[bool]:
        """See sign_in_week()."""
        history = _history(self)
        return await history.arun_flow(history.week(checked("first", first)))

    def sign_in_calendar(self, year: int, month: int) -> Calendar:
        """Return a month with its sign-ins. Raises InvalidValue for a month that does not exist or is before 2000."""
        history = _history(self)
        return history.run_flow(history.calendar(year, month, today(self)))

    async def asign_in_calendar(self, year: int, month: int) -> Calendar:
        """See sign_in_calendar()."""
        history = _history(self)
        return await history.arun_flow(history.calendar(year, month, await aread(today, self)))

    def erase_sign_ins(self) -> bool:
        """Delete all sign-ins of this instance, and return whether Redis had any. Two round trips and a query.

        The deletion of an instance does so by itself. Only the primary key is needed: ``User(pk=42).erase_sign_ins()``.
        Counts of active users keep it as a number without a name, for ``RETENTION``.
        """
        from redis_kit.signins.database.record import rows_of

        changes = _changes(self, saved=False)
        rows_of(self).delete()  # first, or they could be restored
        return changes.run_flow(changes.erase())

    async def aerase_sign_ins(self) -> bool:
        """See erase_sign_ins()."""
        from redis_kit.signins.database.record import rows_of

        changes = _changes(self, saved=False)
        await rows_of(self).adelete()
        return await changes.arun_flow(changes.erase())


def _sent(instance: Any, result: "SignIn", kind: str) -> "SignIn":
    if result.new:
        _record(instance, result.day, kind)
        signed_in.send_robust(type(instance), instance=instance, result=result)
    return result


async def _asent(instance: Any, result: "SignIn", kind: str) -> "SignIn":
    if result.new:
        await _arecord(instance, result.day, kind)
        await signed_in.asend_robust(type(instance), instance=instance, result=result)
    return result


# The table is imported late, as the models of a project import this module.
def _record(instance: Any, day: date, kind: str) -> None:
    from redis_kit.signins.database.record import record

    record(instance, day, kind)


async def _arecord(instance: Any, day: date, kind: str) -> None:
    from redis_kit.signins.database.record import arecord

    await arecord(instance, day, kind)


def _history(instance: Any) -> "History":
    from redis_kit.signins.users.base import History, pk_of

    return History(type(instance), pk_of(instance))


def _changes(instance: Any, *, saved: bool = True) -> "Changes":
    from redis_kit.signins.users.base import pk_of
    from redis_kit.signins.users.changes import Changes

    return Changes(type(instance), pk_of(instance, saved=saved))


def _range(start: date | None, end: date | None) -> tuple[date, date]:
    return (
        FIRST if start is None else checked("start", start),
        date.max if end is None else checked("end", end),
    )


def models() -> list[Any]:
    """Return the models that can sign in. Models that share their sign-ins are one: if possible, not a proxy."""
    by_label: dict[str, Any] = {}
    for model in sorted(apps.get_models(), key=lambda model: model._meta.proxy):
        if issubclass(model, SignInMixin):
            by_label.setdefault(keys.label(model), model)
    return list(by_label.values())
