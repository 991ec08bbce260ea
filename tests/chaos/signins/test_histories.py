"""The answers about users are those of sets of days; the loop that says so finds a streak that ends too early."""

import pytest
from hypothesis import Phase

from redis_kit.signins import users
from tests.chaos.signins import histories


def test_answers_are_those_of_sets_of_days(kit):
    before = histories.met["histories"]
    histories.live(20)
    assert histories.met["histories"] >= before + 20


def test_loop_finds_a_streak_that_ends_a_day_too_early(kit, monkeypatch):
    summarized = users.summarized
    monkeypatch.setattr(
        "redis_kit.signins.mixin.summarized",
        lambda stored, today: summarized(stored, today + histories.DAY),
    )
    with pytest.raises(AssertionError):
        histories.live(100, phases=[Phase.generate])
