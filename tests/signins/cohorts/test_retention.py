from datetime import date, timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.signins.days import today
from tests.app.models import User


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("period", [1, 7])
def test_grid_is_that_of_sets(crowd, trips, rolling, period):
    trips.clear()
    grid = User.sign_ins.retention_grid(crowd.first, crowd.last, period=period, rolling=rolling)
    assert len(trips) == 2
    assert [cohort.day for cohort in grid] == [crowd.first + timedelta(at) for at in range(0, 20, period)]
    for cohort in grid:
        users = crowd.first_on(cohort.day, cohort.day + timedelta(period - 1))
        starts = [cohort.day + timedelta(at) for at in range(0, (crowd.last - cohort.day).days + 1, period)]
        ends = [crowd.last if rolling else start + timedelta(period - 1) for start in starts]
        expected = [len(users & crowd.on(start, end)) for start, end in zip(starts, ends, strict=True)]
        assert (cohort.size, cohort.retained, cohort.partial) == (len(users), expected, True)


def test_one_cohort_is_followed_until_today(crowd, twin):
    day = crowd.last - timedelta(9)
    cohort = twin(User.sign_ins.retention, day, 5)
    assert cohort.size == cohort.retained[0] == len(crowd.first_on(day)) > 0
    assert len(cohort.retained) == 6
    assert len(twin(User.sign_ins.retention, day, 30).retained) == 10


@pytest.mark.parametrize(
    ("length", "until", "period", "partial"),
    [(1, 14, 7, False), (1, 15, 7, True), (15, 15, 7, True), (1, 9, 1, False), (1, 0, 1, True)],
)
def test_last_period_that_is_not_all_there_is_partial(kit, length, until, period, partial):
    start = today() - timedelta(30)
    last = start + timedelta(until - 1) if until else today()
    grid = User.sign_ins.retention_grid(start, start + timedelta(length - 1), until=last, period=period)
    assert {cohort.partial for cohort in grid} == {partial}


def test_earlier_day_moves_a_user_to_another_cohort(kit):
    from tests.signins.people import saved

    day = date(2026, 3, 10)
    saved(1).sign_in(day)
    saved(1).sign_in(day - timedelta(1))
    sign_ins = User.sign_ins
    assert (sign_ins.first_on(day).count(), sign_ins.first_on(day - timedelta(1)).count()) == (0, 1)
    saved(1).sign_in(date(2024, 1, 1))
    assert (sign_ins.first_on(day - timedelta(1)).count(), sign_ins.first_on(date(2024, 1, 1)).count()) == (0, 1)


@pytest.mark.parametrize("wrong", [{"period": 2}, {"period": True}, {"until": "2026-01-01"}])
def test_wrong_questions_are_refused(kit, wrong):
    with pytest.raises(InvalidValue):
        User.sign_ins.retention_grid(date(2026, 1, 1), date(2026, 1, 5), **wrong)
    with pytest.raises(InvalidValue, match="number"):
        User.sign_ins.retention(date(2026, 1, 1), 0)
