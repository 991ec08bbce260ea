"""The ranges of time that pages offer."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from redis_kit.core.panels.ranges import RANGES, range_of

LAST = 29_700_059


@pytest.mark.parametrize("hours", RANGES)
def test_range_has_a_label_for_each_bar(hours):
    chosen = RANGES[hours]
    numbers = list(range(chosen.hours if chosen.by_hour else chosen.minutes))
    bars = chosen.bars(numbers)
    assert [number for bar in bars for number in bar] == numbers
    assert len({len(bar) for bar in bars}) == 1
    labels = chosen.labels(LAST)
    assert len(labels) == len(bars) <= 100
    with timezone.override(UTC):
        first = datetime.fromtimestamp((LAST + 1 - chosen.minutes) * 60, UTC)
        assert chosen.labels(LAST)[0].endswith(first.strftime("%H:%M"))


@pytest.mark.parametrize("asked", ["", "1", "2", "-6", "6.0", "<b>", "x" * 5000, "٦"])
def test_range_that_is_not_offered_is_an_hour(asked):
    assert range_of(asked) is RANGES[1]


def test_choice_keeps_the_search():
    choice = range_of("168").choice("throttles", {"throttle": "login"})
    assert (choice.slug, choice.chosen, choice.asked) == ("throttles", 168, {"throttle": "login"})
    assert [hours for _label, hours in choice.ranges] == list(RANGES)
