import re
import uuid
from datetime import UTC, date, datetime, timedelta

import pytest

from redis_kit.core.errors import InvalidValue
from tests.app.models import Device, User
from tests.signins.people import saved

TODAY = datetime.now(UTC).date()


def test_each_day_counts_every_user_once(kit):
    expected = {}
    for number in range(200):
        for ago in range(number % 5):
            saved(number).sign_in(TODAY - timedelta(ago))
            saved(number).sign_in(TODAY - timedelta(ago))
            expected[ago] = expected.get(ago, 0) + 1
    assert User.sign_ins.active() == expected[0] == 160
    found = User.sign_ins.daily_active(TODAY - timedelta(4), TODAY)
    assert [(TODAY - one.day).days for one in found] == [4, 3, 2, 1, 0]
    assert [one.users for one in found] == [0, 40, 80, 120, 160]


def test_primary_keys_that_are_not_numbers_take_one_bit_each(kit):
    for _ in range(500):
        saved(uuid.uuid4(), Device).sign_in()
    assert Device.sign_ins.active(TODAY) == 500
    assert User.sign_ins.active(TODAY) == 0
    maps = list(filter(re.compile(":day:").search, kit.keys()))
    assert len(maps) == 16
    assert sum(kit.client.strlen(key) for key in maps) < 120


def test_range_of_a_year_is_read_at_once(kit, commands):
    saved(7).sign_in(date(2024, 2, 29))
    User.sign_ins.daily_active(date(2024, 1, 1), date(2024, 12, 31))
    with commands(kit) as sent:
        found = User.sign_ins.daily_active(date(2024, 1, 1), date(2024, 12, 31))
    assert sum(one.users for one in found) == 1
    assert found[59] == (date(2024, 2, 29), 1)
    assert sent == ["EVALSHA"] * 16  # one for each bucket


def test_wrong_ranges_are_refused(kit):
    for start, end in ((TODAY, TODAY - timedelta(1)), (TODAY - timedelta(366), TODAY), ("2026-01-01", TODAY)):
        with pytest.raises(InvalidValue):
            User.sign_ins.daily_active(start, end)
