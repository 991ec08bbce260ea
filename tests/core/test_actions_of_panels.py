"""What may be entered for the buttons of a panel, and which methods are buttons."""

import pytest

from redis_kit.core.errors import InvalidValue
from redis_kit.core.panels import Panel, action, duration


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("15m", 900), ("7 days", 604800), ("0.5", 0.5)])
def test_duration_is_entered_in_seconds_or_with_a_unit(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "soon", "5 fortnights", "-3"])
def test_other_duration_is_refused_with_what_is_allowed(text):
    with pytest.raises(InvalidValue, match="such as 15m, 2h or 7d"):
        duration(text)


class Shop(Panel):
    @action("Sell", permission="shop.sell", asks=None)
    def sell(self, name):
        return name

    def count(self):
        return 1


def test_methods_with_the_mark_are_buttons():
    assert list(Shop().actions()) == ["sell"]
    assert Shop().actions()["sell"].has_value
    assert not Shop().actions()["sell"].confirms
