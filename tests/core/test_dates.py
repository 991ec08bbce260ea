"""Days and ranges of days as arguments."""

from datetime import UTC, date, datetime

import pytest

from redis_kit.core.dates import between, checked
from redis_kit.core.errors import InvalidValue
from redis_kit.pageviews import periods


def test_range_has_both_of_its_ends():
    assert between(date(2024, 2, 28), date(2024, 3, 1)) == [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]
    assert between(date.max, date.max) == [date.max]


def test_range_of_over_a_year_or_that_ends_first_is_refused():
    assert len(between(date(2024, 1, 1), date(2024, 12, 31))) == 366
    for start, end in [(date(2024, 1, 1), date(2025, 1, 1)), (date(2024, 1, 2), date(2024, 1, 1))]:
        with pytest.raises(InvalidValue, match=f"start and end are {start} and {end}; a range has 1 to 366 days"):
            between(start, end)


def test_wrong_start_is_named_before_a_wrong_end():
    with pytest.raises(InvalidValue, match="start must be a date, not '2026-11-01'"):
        between("2026-11-01", "2026-11-02")
    with pytest.raises(InvalidValue, match="start must be a date, not '2026-11-01'"):
        periods.days("2026-11-01", "2026-11-02")
    with pytest.raises(InvalidValue, match="end must be a date"):
        periods.days(None, "2026-11-02")


@pytest.mark.parametrize("day", [None, "2024-01-01", 20240101, datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)])
def test_only_a_date_is_a_day(day):
    with pytest.raises(InvalidValue, match="start must be a date, not"):
        checked("start", day)
