"""How long to wait before the next try."""

from redis_kit.core.client.backoff import full_jitter


def test_pause_is_anything_up_to_a_time_that_doubles_up_to_the_longest():
    for attempt, most in [(0, 0.1), (1, 0.2), (3, 0.8), (5, 2.0), (10**6, 2.0)]:
        pauses = [full_jitter(attempt, first=0.1, longest=2.0) for _ in range(1000)]
        assert 0 <= min(pauses) < most * 0.1
        assert most * 0.9 < max(pauses) <= most
