"""Times and jobs as a worker's log names them."""

import pytest

from redis_kit.queues.worker.shared.logs import lasting, named


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.0, "0.0 s"), (1.04, "1.0 s"), (119.9, "119.9 s"), (120, "2 min"), (404.2, "6 min 44 s")),
        *((3599.7, "1 h"), (3600, "1 h"), (5400, "1 h 30 min"), (86_399, "24 h"), (86_400, "24 h")),
        *((172_800, "2 d"), (200_000, "2 d 7 h")),
    ],
)
def test_times_from_two_minutes_on_are_in_minutes_without_zero_parts(seconds, words):
    assert lasting(seconds) == words


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        *(([], ""), ([""], ""), (["a"], "'a'"), (["a\n", "b"], "'a\\n', 'b'"), (["a", ""], "'a' and 1 more")),
        (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
    ],
)
def test_five_jobs_are_named_and_the_others_counted(ids, words):
    assert named(ids) == words
