"""Sign-ins as methods of a model, without a database field. The Redis client is loaded at the first use."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.apps import apps

from redis_kit.core.awaitables import LocalCall, sending
from redis_kit.core.errors import InvalidValue, RedisUnavailable
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.steps import Batch, Call
from redis_kit.signins import keys
from redis_kit.signins.days import FIRST, Calendar, checked, moment, month_length, reading, today
from redis_kit.signins.signals import signed_in
from redis_kit.signins.users import BYTES, SignIn, SignInUser, Summary, days_in, offset, summarized

if TYPE_CHECKING:
    from redis_kit.signins.activity import Activity


WEEK = 7  # days


class SignIns:
    """The attribute ``sign_ins`` of a model's class: the sign-ins of all its instances."""

    def __get__(self, instance: Any, owner: type) -> "Activity":
        """Return the activity of the model."""
        if instance is not None:
            raise AttributeError(f"sign_ins is an attribute of {owner.__name__}, not of its instances.")
        from redis_kit.signins.activity import Activity

        return Activity(owner)


def store(using: str) -> Any:
    """Return what carries out a flow, on the connection of the settings."""
    from redis_kit.signins.segments import SignInStore

    return SignInStore()


class SignInMixin:
    """Let the instances of any model sign in once a day, whatever its primary key.

    Each method costs one round trip unless it says otherwise. All raise InvalidValue for an instance that is not saved,
    and RedisUnavailable while Redis is unavailable.
    """

    sign_ins = SignIns()

    @operation(over=store)
    def sign_in(self, at: datetime | date | None = None, *, token: str = "") -> Flow[SignIn]:
        """Sign in now, or at an earlier time or day. The first sign-in on a day is ``new``, and sends ``signed_in``.

        Two to four round trips for a day before others. Raises InvalidValue for a datetime without a time zone if
        ``USE_TZ`` is on, and for a day before 2000 or in the future. If the reply is lost, the call is repeated once.
        If RedisUnavailable is ``indeterminate``, sign in again: the day counts once. With the same ``token``, which is
        any text, the second call returns what the first one would have returned, with its milestones.
        """
        user, when = SignInUser.of(self), (yield reading(moment, self, at))
        try:
            result = yield from user.sign_in(when, token)
        except RedisUnavailable:
            yield _recording(self, when.day, "sign_in")  # rk_signins rebuild adds it later
            raise
        return (yield from _announced(self, result, "sign_in"))

    @operation(over=store)
    def make_up_sign_in(self, day: date, *, token: str = "") -> Flow[SignIn]:
        """Sign in on a missed day, which then counts as others do. Two round trips at most; sends ``signed_in``.

        Raises NoneLeft after ``MAKE_UPS`` in the day's month, and InvalidValue for a day outside ``WINDOW``.
        """
        user, now = SignInUser.of(self), (yield reading(today, self))
        result = yield from user.cover("make_up", checked("day", day), now, token)
        return (yield from _announced(self, result, "make_up"))

    @operation(over=store)
    def freeze_sign_ins(self, day: date, *, token: str = "") -> Flow[SignIn]:
        """Freeze a day: streaks continue over it without a sign-in, and it does not count. The first call is ``new``.

        Raises NoneLeft after ``FREEZES`` in the day's month, and InvalidValue for a day outside ``WINDOW``.
        """
        user, now = SignInUser.of(self), (yield reading(today, self))
        result = yield from user.cover("freeze", checked("day", day), now, token)
        if result.new:
            yield _recording(self, day, "freeze")
        return result

    @operation(over=store)
    def sign_in_summary(self) -> Flow[Summary]:
        """Return the present streak, the longest one, the total and the first day."""
        return _summary(self)

    @operation(over=store)
    def sign_in_streak(self) -> Flow[int]:
        """Return the number of days in a row up to today, or to yesterday if today has no sign-in yet."""
        return (yield from _summary(self)).streak

    @operation(over=store)
    def longest_sign_in_streak(self) -> Flow[int]:
        """Return the longest streak ever, in days."""
        return (yield from _summary(self)).longest

    @operation(over=store)
    def sign_in_count(self, start: date | None = None, end: date | None = None) -> Flow[int]:
        """Return the number of days with a sign-in from start to end, both included; by default of all days.

        Raises InvalidValue if the end is before the start.
        """
        user = SignInUser.of(self)
        calls = [Call("BITCOUNT", user.year_key(year), *bits, "BIT") for year, *bits in _years(start, end)]
        return sum((yield Batch(calls))) if calls else 0

    @operation(over=store)
    def signed_in_on(self, day: date) -> Flow[bool]:
        """Return whether there was a sign-in on a day."""
        day = checked("day", day)
        return bool((yield Call("GETBIT", SignInUser.of(self).year_key(day.year), offset(day))))

    @operation(over=store)
    def first_sign_in(self, start: date | None = None, end: date | None = None) -> Flow[date | None]:
        """Return the first day with a sign-in from start to end, both included; None if there is none.

        Raises InvalidValue if the end is before the start.
        """
        user, years = SignInUser.of(self), list(_years(start, end))
        calls = [Call("BITPOS", user.year_key(year), 1, *bits, "BIT") for year, *bits in years]
        places = (yield Batch(calls)) if calls else []
        found = (date(year, 1, 1) + timedelta(at) for at, (year, *_) in zip(places, years, strict=True) if at >= 0)
        return next(found, None)

    @operation(over=store)
    def sign_in_week(self, first: date) -> Flow[list[bool]]:
        """Return for seven days, from the first on, whether there was a sign-in."""
        user, first = SignInUser.of(self), checked("first", first)
        rest = (date(first.year, 12, 31) - first).days + 1
        slices = [(first, min(WEEK, rest))]
        if rest < WEEK:
            slices.append((date(first.year + 1, 1, 1), WEEK - rest))
        replies = yield Batch([_slice(user, *each) for each in slices])
        return [bit for (bits,), (_, length) in zip(replies, slices, strict=True) for bit in _bits_of(bits, length)]

    @operation(over=store)
    def sign_in_calendar(self, year: int, month: int) -> Flow[Calendar]:
        """Return a month with its sign-ins. Raises InvalidValue for a month that does not exist or is before 2000."""
        user, now = SignInUser.of(self), (yield reading(today, self))
        length, first = month_length(year, month), date(year, month, 1)
        covered_from = Call("GETRANGE", user.year_key(year), BYTES, -1)
        (marks,), behind = yield Batch([_slice(user, first, length), covered_from])
        covered = set(days_in(year, behind))
        is_covered = [first + timedelta(at) in covered for at in range(length)]
        return Calendar(year, month, _bits_of(marks, length), now, is_covered)

    @operation(over=store)
    def erase_sign_ins(self) -> Flow[bool]:
        """Delete all sign-ins of this instance, and return whether Redis had any. Two round trips and a query.

        The deletion of an instance does so by itself. Only the primary key is needed: ``User(pk=42).erase_sign_ins()``.
        Counts of active users keep it as a number without a name, for ``RETENTION``.
        """
        from redis_kit.signins.database.record import rows_of

        user, rows = SignInUser.of(self, saved=False), rows_of(self)
        yield LocalCall(rows.delete, rows.adelete)  # first, or they could be restored
        return (yield from user.erase())

    asign_in = twin(sign_in)
    amake_up_sign_in = twin(make_up_sign_in)
    afreeze_sign_ins = twin(freeze_sign_ins)
    asign_in_summary = twin(sign_in_summary)
    asign_in_streak = twin(sign_in_streak)
    alongest_sign_in_streak = twin(longest_sign_in_streak)
    asign_in_count = twin(sign_in_count)
    asigned_in_on = twin(signed_in_on)
    afirst_sign_in = twin(first_sign_in)
    asign_in_week = twin(sign_in_week)
    asign_in_calendar = twin(sign_in_calendar)
    aerase_sign_ins = twin(erase_sign_ins)


def _announced(instance: Any, result: SignIn, kind: str) -> Flow[SignIn]:
    if result.new:
        yield _recording(instance, result.day, kind)
        yield sending(signed_in, type(instance), instance=instance, result=result)
    return result


# The table is imported late, as the models of a project import this module.
def _recording(instance: Any, day: date, kind: str) -> LocalCall:
    from redis_kit.signins.database.record import arecord, record

    return LocalCall(record, arecord, instance, day, kind)


def _summary(instance: Any) -> Flow[Summary]:
    user, now = SignInUser.of(instance), (yield reading(today, instance))
    return summarized((yield Call("GET", user.state_key())), now)


def _slice(user: SignInUser, first: date, length: int) -> Call:
    return Call("BITFIELD_RO", user.year_key(first.year), "GET", f"u{length}", offset(first))


def _bits_of(number: int, length: int) -> list[bool]:
    return [bit == "1" for bit in f"{number:0{length}b}"]


def _years(start: date | None, end: date | None) -> Iterator[tuple[int, int, int]]:
    """Yield each year of a range with the offsets of its first and its last day there."""
    start = FIRST if start is None else checked("start", start)
    end = date.max if end is None else checked("end", end)
    if end < start:
        raise InvalidValue(f"start and end are {start} and {end}; a range must not end before it starts.")
    first, last = max(start, FIRST), min(end, date(date.today().year + 1, 12, 31))
    for year in range(first.year, last.year + 1):
        yield year, offset(max(first, date(year, 1, 1))), offset(min(last, date(year, 12, 31)))


def models() -> list[Any]:
    """Return the models that can sign in. Models that share their sign-ins are one: if possible, not a proxy."""
    by_label: dict[str, Any] = {}
    for model in sorted(apps.get_models(), key=lambda model: model._meta.proxy):
        if issubclass(model, SignInMixin):
            by_label.setdefault(keys.label(model), model)
    return list(by_label.values())
