from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone as django_timezone
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.signins.days import between, checked, moment, today, zone


class Person:
    def __init__(self, timezone):
        self.profile = type("Profile", (), {"timezone": timezone})


@pytest.fixture
def options(settings):
    def set_options(**options):
        settings.REDIS_KIT = {**settings.REDIS_KIT, "SIGNINS": options}

    set_options(TIMEZONE="profile.timezone")
    return set_options


@pytest.mark.parametrize(
    ("timezone", "instant", "day"),
    [
        ("Pacific/Kiritimati", "2026-11-20T09:59:59+00:00", "2026-11-20"),
        ("Pacific/Kiritimati", "2026-11-20T10:00:00+00:00", "2026-11-21"),
        ("Pacific/Pago_Pago", "2026-11-20T10:59:59+00:00", "2026-11-19"),
        ("Pacific/Pago_Pago", "2026-11-20T11:00:00+00:00", "2026-11-20"),
        ("Asia/Kathmandu", "2024-02-28T18:15:00+00:00", "2024-02-29"),
        ("Europe/Berlin", "2025-12-31T22:59:59+00:00", "2025-12-31"),
        ("Europe/Berlin", "2025-12-31T23:00:00+00:00", "2026-01-01"),
    ],
)
def test_day_is_in_the_time_zone_of_the_instance(options, timezone, instant, day):
    assert moment(Person(timezone), datetime.fromisoformat(instant)).day == date.fromisoformat(day)


@pytest.mark.parametrize(
    ("instant", "day"),
    [
        # On 29 March 2026 the clock of Berlin went from 02:00 to 03:00, on 25 October from 03:00 back to 02:00.
        ("2026-03-29T00:59:59+00:00", "2026-03-28"),
        ("2026-03-29T01:59:59+00:00", "2026-03-28"),
        ("2026-03-29T02:00:00+00:00", "2026-03-29"),
        ("2025-10-26T00:30:00+00:00", "2025-10-25"),
        ("2025-10-26T01:30:00+00:00", "2025-10-25"),
        ("2025-10-26T02:59:59+00:00", "2025-10-25"),
        ("2025-10-26T03:00:00+00:00", "2025-10-26"),
    ],
)
def test_day_begins_at_the_same_hour_of_the_clock_when_the_clock_changes(options, instant, day):
    options(TIMEZONE="profile.timezone", DAY_START_HOUR=4)
    assert moment(Person("Europe/Berlin"), datetime.fromisoformat(instant)).day == date.fromisoformat(day)


def test_zone_comes_from_an_attribute_a_callable_or_django(options, settings):
    person = Person("Asia/Tokyo")
    assert str(zone(person)) == "Asia/Tokyo"
    options(TIMEZONE=lambda instance: ZoneInfo("Asia/Seoul"))
    assert str(zone(person)) == "Asia/Seoul"
    options()
    with django_timezone.override("Asia/Dubai"):
        assert str(zone(person)) == "Asia/Dubai"
    options(TIMEZONE="profile.timezone")
    assert zone(Person("")) == django_timezone.get_current_timezone()


def test_attribute_that_does_not_exist_names_the_setting(options):
    options(TIMEZONE="profile.timezon")
    words = r"\['TIMEZONE'\] is 'profile.timezon', which can't be read: .* no attribute 'timezon'. Name an attribute"
    with pytest.raises(ConfigurationError, match=words):
        zone(Person("Asia/Tokyo"))


@pytest.mark.parametrize("name", ["Mars/Olympus_Mons", "../../etc/passwd", "Europe", "\0", "x" * 10_000])
def test_zone_that_does_not_exist_is_refused(options, name):
    with pytest.raises(InvalidValue, match="time zone"):
        today(Person(name))


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 1),
        date(1999, 12, 31),
        datetime(1999, 12, 31, tzinfo=UTC),
        date.max,
        datetime.now(UTC) + timedelta(days=2),
        "2026-01-01",
        20260101,
        0.5,
    ],
)
def test_time_without_a_zone_too_early_or_in_the_future_is_refused(at):
    with pytest.raises(InvalidValue, match="at"):
        moment(None, at)


def test_time_without_a_zone_is_in_the_sites_zone_without_use_tz(options, settings):
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Tokyo"
    assert moment(Person("America/New_York"), datetime(2026, 1, 5, 10)).day == date(2026, 1, 4)


@given(st.datetimes(datetime(2000, 1, 3), datetime(2025, 1, 1)), st.integers(-1439, 1439), st.integers(0, 23))
def test_hours_of_one_logical_day_are_one_day(instant, offset, start):
    zone = timezone(timedelta(minutes=offset))
    wall = instant.replace(tzinfo=zone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django.conf.settings.REDIS_KIT", {"SIGNINS": {"DAY_START_HOUR": start, "TIMEZONE": lambda _: zone}}
        )
        from redis_kit.core import conf

        conf._cache.clear()
        day = moment(object(), wall).day
    conf._cache.clear()
    begin = datetime(day.year, day.month, day.day, start, tzinfo=zone)
    assert begin <= wall < begin + timedelta(days=1)


def test_range_is_a_year_at_most_and_ends_last():
    assert len(between(date(2024, 1, 1), date(2024, 12, 31))) == 366
    with pytest.raises(InvalidValue):
        between(date(2024, 1, 1), date(2025, 1, 1))
    with pytest.raises(InvalidValue):
        between(date(2024, 1, 2), date(2024, 1, 1))
    with pytest.raises(InvalidValue, match="start"):
        checked("start", datetime(2024, 1, 1, tzinfo=UTC))
