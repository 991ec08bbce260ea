"""The key beside a key of somebody else's choice."""

from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st
from redis.crc import key_slot

from redis_kit.locks.compat.lock import fence_key

NAMES = st.one_of(st.binary(max_size=40), st.text("ab{}:", max_size=12).map(str.encode))
ODD = [b"", b"{", b"}", b"{}", b"a}b", b"a{}b", b"{}{a}", b"}{", b"{a", b"{{a}}", b"a{b}c{d}", b"{\x00}", b"\xff\xfe"]


@given(NAMES)
@example(b"a{}")
@example(b"{}{a}")
@example(b"a{b}c")
def test_fence_is_in_the_slot_of_the_name(name):
    assert key_slot(fence_key(name)) == key_slot(name)


def test_fences_of_odd_names_are_in_their_slots():
    for name in [*ODD, *(b"}%d" % number for number in range(9))]:
        assert key_slot(fence_key(name)) == key_slot(name), name


@given(st.sets(NAMES, min_size=2, max_size=6))
@example({b"a", b"{a}"})
@example({b"", b"{}", b"}"})
def test_no_two_names_share_a_key(names):
    for one, other in combinations(names, 2):
        assert fence_key(other) not in {one, fence_key(one)}


def test_names_can_be_told_from_the_keys():
    assert fence_key(b"report:42") == b"{report:42}:lock:fence"
    assert fence_key(b"report:{42}") == b"report:{42}::lock:fence"
