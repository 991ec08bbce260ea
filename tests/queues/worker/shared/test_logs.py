"""Jobs as a worker's log names them."""

import pytest

from redis_kit.queues.worker.shared.logs import named


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        *(([], ""), ([""], ""), (["a"], "'a'"), (["a\n", "b"], "'a\\n', 'b'"), (["a", ""], "'a' and 1 more")),
        (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
    ],
)
def test_five_jobs_are_named_and_the_others_counted(ids, words):
    assert named(ids) == words
