"""Windows of the clock: aligned, bounded, and in order again after the clock jumped."""

import pytest

from redis_kit.throttling import Throttle

KINDS = ["fixed_window", "sliding_counter"]
NOON = 1_760_011_200.0  # a whole number of hours since 1970


@pytest.fixture
def clock():
    return Clock()


class Clock:
    now = NOON

    def __call__(self):
        return self.now


def admitted(limit, number, cost=1):
    return sum(limit.hit("joe", cost=cost).allowed for _ in range(number))


def test_fixed_window_starts_at_a_whole_multiple_of_the_period(kit, clock):
    limit = Throttle("x", "10/h", strategy="fixed_window", clock=clock)
    clock.now = NOON + 3599.999
    assert admitted(limit, 20) == 10
    assert limit.hit("joe").retry_after == pytest.approx(0.001, abs=1e-6)
    clock.now = NOON + 3600
    assert admitted(limit, 20) == 10


def test_sliding_counter_weighs_the_last_window_by_what_is_left_of_it(kit, clock):
    limit = Throttle("x", "10/h", strategy="sliding_counter", clock=clock)
    assert admitted(limit, 20) == 10
    clock.now = NOON + 3600 + 900
    assert admitted(limit, 20) == 2  # 7.5 of the last window, and no half calls
    clock.now = NOON + 7200
    assert admitted(limit, 20) == 8


@pytest.mark.parametrize("strategy", KINDS)
@pytest.mark.parametrize("rates", ["10/m", "10/m; 30/h", "30/h; 10/m"])
@pytest.mark.parametrize("jump", [1, 60, 3599, 86_400 * 365])
def test_clock_set_back_refunds_nothing_and_blocks_only_its_windows(kit, clock, strategy, rates, jump):
    limit = Throttle("x", rates, strategy=strategy, clock=clock)
    longest = max(rate.period for rate in limit.rates)
    assert admitted(limit, 40) == 10
    clock.now -= jump
    refused = limit.hit("joe")
    assert not refused
    assert refused.retry_after <= 2 * longest if strategy == "sliding_counter" else refused.retry_after <= longest
    assert refused.reset_after <= 2 * longest
    clock.now += refused.retry_after
    assert limit.hit("joe")


@pytest.mark.parametrize("strategy", KINDS)
def test_clock_that_jumps_ahead_and_back_allows_one_more_window(kit, clock, strategy):
    limit = Throttle("x", "10/h", strategy=strategy, clock=clock)
    assert admitted(limit, 20) == 10
    clock.now += 86_400
    assert admitted(limit, 20) == 10
    clock.now -= 86_400
    assert admitted(limit, 20) == 0


def test_counts_of_large_numbers_lose_nothing(kit, clock):
    for strategy in KINDS:
        limit = Throttle("x", [(1_000_000, 31_536_000)], strategy=strategy, clock=clock)
        assert limit.hit("joe", cost=999_999).remaining == 1
        assert limit.hit("joe")
        refused = limit.hit("joe", cost=3)
        clock.now += refused.retry_after - 0.001
        assert not limit.peek("joe", cost=3)
        clock.now += 0.001
        assert limit.peek("joe", cost=3)
        clock.now = NOON
