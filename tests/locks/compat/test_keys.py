"""Keys beside a key of somebody else's choice."""

from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st
from redis.crc import key_slot

from redis_kit.locks.compat.lock import side_keys

NAMES = st.one_of(st.binary(max_size=40), st.text("ab{}:", max_size=12).map(str.encode))
ODD = [b"", b"{", b"}", b"{}", b"a}b", b"a{}b", b"{}{a}", b"}{", b"{a", b"{{a}}", b"a{b}c{d}", b"{\x00}", b"\xff\xfe"]


@given(NAMES)
@example(b"a{}")
@example(b"{}{a}")
@example(b"a{b}c")
def test_side_keys_are_in_the_slot_of_the_name(name):
    assert {key_slot(key) for key in side_keys(name)} == {key_slot(name)}


def test_side_keys_of_odd_names_are_in_their_slots():
    for name in [*ODD, *(b"}%d" % number for number in range(9))]:
        assert {key_slot(key) for key in side_keys(name)} == {key_slot(name)}, name


@given(st.sets(NAMES, min_size=2, max_size=6))
@example({b"a", b"{a}"})
@example({b"", b"{}", b"}"})
def test_no_two_names_share_a_key(names):
    for one, other in combinations(names, 2):
        assert not {one, *side_keys(one)} & set(side_keys(other))


def test_names_can_be_told_from_the_keys():
    assert side_keys(b"report:42").fence == b"{report:42}:lock:fence"
    assert side_keys(b"report:{42}").fence == b"report:{42}::lock:fence"
