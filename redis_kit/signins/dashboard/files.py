"""The files of the page about sign-ins: the rows of each, with the names of their columns."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from redis_kit.signins.cohorts import counts, retention
from redis_kit.signins.cohorts.activity import MONTH, WEEK, Activity
from redis_kit.signins.dashboard import charts
from redis_kit.signins.database.rebuild import Rebuild
from redis_kit.signins.days import today

ACTIVE, COHORTS, DAYS = "active-users", "cohorts", "days"
WEEKS = 8  # of cohorts


def rows(name: str, model: Any, user: str) -> Iterable[Sequence[Any]] | None:
    """Return the rows of a file about a model, or about one of its users by primary key; None for other names."""
    if user:
        return _days(model, user) if name == DAYS else None
    of_all = {ACTIVE: _active, COHORTS: _cohorts}.get(name)
    return of_all(Activity(model)) if of_all else None


def last_weeks(last: date) -> retention.Grid:
    """Return the question for weekly cohorts up to a day."""
    monday = last - timedelta(last.weekday())
    return retention.Grid.of(monday - timedelta(WEEK * (WEEKS - 1)), last, last, WEEK, rolling=False)


def _active(activity: Activity) -> Iterator[Sequence[Any]]:
    last = today()
    windows = activity.run_flow(counts.by_windows(activity.encoded, charts.year_to(last), [1, WEEK, MONTH]))
    yield "day", "users", "in_7_days", "in_30_days", "partial"
    for same_day in zip(*windows, strict=True):
        day = same_day[0].day
        yield day, *(window.users for window in same_day), int(day == last)


def _cohorts(activity: Activity) -> Iterator[Sequence[Any]]:
    cohorts = activity.run_flow(retention.cohorts(activity.encoded, last_weeks(today())))
    yield "week_of", "new_users", *(f"week_{number}" for number in range(1, WEEKS)), "last_is_partial"
    for day, size, (_, *retained), partial in cohorts:
        yield day, size, *retained, *[""] * (WEEKS - 1 - len(retained)), int(partial)


def _days(model: Any, user: str) -> Iterator[Sequence[Any]]:
    yield "day", "kind"
    for _, days in Rebuild(model).days_of([user]):
        yield from days
