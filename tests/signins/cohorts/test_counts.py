from datetime import date, timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from tests.app.models import User


@pytest.mark.parametrize(("name", "window"), [("daily_active", 1), ("weekly_active", 7), ("monthly_active", 30)])
def test_each_user_counts_once_in_a_window(crowd, trips, name, window):
    User.sign_ins.active()  # loads the script
    trips.clear()
    found = getattr(User.sign_ins, name)(crowd.last - timedelta(9), crowd.last)
    assert len(trips) == 1
    assert [one.day for one in found] == [crowd.last - timedelta(ago) for ago in range(9, -1, -1)]
    assert [one.users for one in found] == [len(crowd.on(day - timedelta(window - 1), day)) for day, _ in found]


def test_nothing_is_written_on_the_server(crowd, kit):
    def written():
        return kit.client.info("persistence")["rdb_changes_since_last_save"]

    before = written()
    User.sign_ins.monthly_active(crowd.first, crowd.last)
    User.sign_ins.daily_active(crowd.first, crowd.last)
    assert written() == before


def test_range_of_over_a_year_is_refused(kit):
    with pytest.raises(InvalidValue, match="366"):
        User.sign_ins.weekly_active(date(2025, 1, 1), date(2026, 1, 2))
