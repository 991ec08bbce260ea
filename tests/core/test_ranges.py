"""The ranges of time that pages offer."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from redis_kit.core.panels import RANGES, range_of

LAST = 29_700_059


@pytest.mark.parametrize("hours", RANGES)
def test_range_has_a_label_for_each_bar(hours):
    chosen = RANGES[hours]
    numbers = list(range(chosen.hours if chosen.by_hour else chosen.minutes))
    bars = chosen.bars(numbers, LAST)
    assert [number for bar in bars for number in bar] == numbers
    assert len({len(bar) for bar in bars[1:-1]}) == 1
    assert 0 < len(bars[0]) <= len(bars[1]) >= len(bars[-1]) > 0
    labels = chosen.labels(LAST)
    assert len(labels) == len(bars) <= 100
    with timezone.override(UTC):
        first = datetime.fromtimestamp((LAST + 1 - chosen.minutes) * 60, UTC)
        assert chosen.labels(LAST)[0].endswith(first.strftime("%m-%d" if hours == 2160 else "%H:%M"))


@pytest.mark.parametrize(
    ("hours", "labels"),
    [
        (1, ["23:08", "00:07"]),
        (6, ["18:08", "00:00"]),
        (24, ["11-23 00:08", "11-24 00:00"]),
        (72, ["11-21 01:00", "11-24 00:00"]),
        (720, ["10-25 01:00", "11-24 00:00"]),
        (2160, ["08-26", "11-24"]),
    ],
)
def test_bars_begin_at_full_hours_and_days(hours, labels):
    last = int(datetime(2026, 11, 24, 0, 7, tzinfo=UTC).timestamp()) // 60
    with timezone.override(UTC):
        shown = RANGES[hours].labels(last + 52 if RANGES[hours].by_hour else last)
        assert [shown[0], shown[-1]] == labels
    with timezone.override(ZoneInfo("Asia/Kolkata")):  # hours of UTC begin there at half an hour
        assert sum(map(len, RANGES[720].bars([1] * 720, last + 52))) == 720


@pytest.mark.parametrize("asked", ["", "1", "2", "-6", "6.0", "<b>", "x" * 5000, "٦"])
def test_range_that_is_not_offered_is_an_hour(asked):
    assert range_of(asked) is RANGES[1]


def test_choice_keeps_the_search():
    choice = range_of("168").choice("throttles", {"throttle": "login"})
    assert (choice.slug, choice.chosen, choice.asked) == ("throttles", 168, {"throttle": "login"})
    assert [hours for _label, hours in choice.ranges] == list(RANGES)
