from itertools import count

import pytest
from django.utils.functional import lazystr

from redis_kit.core.errors import InvalidValue
from redis_kit.core.values.sequences import batched, several


def test_last_batch_has_what_remains():
    assert list(batched("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batched(range(4), 2)) == [[0, 1], [2, 3]]
    assert list(batched([], 2)) == []


def test_no_more_items_are_read_than_a_batch_has():
    numbers = count()
    assert next(batched(numbers, 3)) == [0, 1, 2]
    assert next(numbers) == 3


def test_single_value_is_not_taken_for_several():
    assert several(["a"]) == ["a"]
    for value in ("ab", b"ab", lazystr("ab"), 3, None):
        with pytest.raises(InvalidValue, match="Give a list of names, not "):
            several(value, "names")
