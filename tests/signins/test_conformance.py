from datetime import UTC, datetime, timedelta

from redis_kit.signins.users import SignIn
from tests.app.models import User
from tests.signins.people import numbers, saved

TODAY = datetime.now(UTC).date()


def test_sign_ins_are_the_same_on_every_server(any_kit, twin):
    users = [saved(next(numbers)) for _ in range(6)]
    for user in users:
        yesterday = twin(user.sign_in, TODAY - timedelta(1))
        assert yesterday == SignIn(True, 1, 1, 1, [], TODAY - timedelta(1))
        assert twin(user.sign_in) == SignIn(True, 2, 2, 2, [], TODAY)
        assert twin(user.sign_in) == SignIn(False, 2, 2, 2, [], TODAY)
    user = users[0]
    assert twin(user.sign_in_streak) == twin(user.longest_sign_in_streak) == twin(user.sign_in_count) == 2
    assert twin(user.sign_in_count, TODAY, TODAY) == 1
    assert twin(user.signed_in_on, TODAY)
    assert not twin(user.signed_in_on, TODAY - timedelta(2))
    assert twin(user.sign_in_calendar, TODAY.year, TODAY.month).marks[TODAY.day - 1]
    activity = User.sign_ins
    assert twin(activity.active) == twin(activity.active, TODAY) == 6
    both = activity.on(TODAY - timedelta(1)) & activity.on(TODAY)
    assert twin(both.count) == twin((both & ~activity.first_on(TODAY)).count) == 6
    assert twin((both & activity.first_on(TODAY)).count) == 0
    assert twin(activity.daily_active, TODAY - timedelta(1), TODAY) == [(TODAY - timedelta(1), 6), (TODAY, 6)]
