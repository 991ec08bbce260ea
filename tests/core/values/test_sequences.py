from itertools import count

from redis_kit.core.values.sequences import batched


def test_last_batch_has_what_remains():
    assert list(batched("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batched(range(4), 2)) == [[0, 1], [2, 3]]
    assert list(batched([], 2)) == []


def test_no_more_items_are_read_than_a_batch_has():
    numbers = count()
    assert next(batched(numbers, 3)) == [0, 1, 2]
    assert next(numbers) == 3
