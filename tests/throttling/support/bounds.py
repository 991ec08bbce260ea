"""The promise of each strategy, checked exactly on the times of the calls that were allowed, for every period."""

from collections import Counter


def excess(strategy, stamps, limit, period):
    """Return how many of the calls, in microseconds and in order, were too many, under one rate without a burst."""
    return CHECKS[strategy](stamps, limit, period)


def _log(stamps, limit, period):
    """Count the calls that come less than a period after the one ``limit`` calls before them."""
    return sum(late - early < period for early, late in zip(stamps, stamps[limit:], strict=False))


def _bucket(stamps, limit, period):
    """Count the calls that overfill a bucket: if none does, no two calls are nearer than burst and rate allow."""
    level, then, over = 0, 0, 0
    for stamp in stamps:
        level = max(0, level - (stamp - then) * limit) + period
        then = stamp
        over += level > limit * period
    return over


def _window(stamps, limit, period):
    return sum(max(0, count - limit) for count in Counter(stamp // period for stamp in stamps).values())


def _counter(stamps, limit, period):
    counts, over = Counter(), 0
    for stamp in stamps:
        window, rest = stamp // period, period - stamp % period
        counts[window] += 1
        over += counts[window] * period + counts[window - 1] * rest > limit * period
    return over


CHECKS = {
    "gcra": _bucket,
    "token_bucket": _bucket,
    "fixed_window": _window,
    "sliding_counter": _counter,
    "sliding_log": _log,
}
