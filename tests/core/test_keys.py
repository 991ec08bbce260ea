"""Names inside keys: any text, and none leaves its slot, collides or acts as a glob."""

from collections import Counter
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from redis_kit.core.errors import InvalidName
from redis_kit.core.keys import BUCKETS, bucket_of, encode, hashed

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)


@given(names)
def test_decoding_returns_the_name(name):
    assert unquote(encode(name)) == name


@given(names, names)
def test_no_two_names_share_a_part(one, other):
    assert (encode(one) == encode(other)) == (one == other)


@given(names, names)
def test_a_name_stays_in_its_slot(name, part):
    assert key_slot(f"rk:{{locks:{encode(name)}}}:a".encode()) == key_slot(f"rk:{{locks:{encode(name)}}}:b".encode())
    assert not set(encode(name)) & set("{}*?[]:\\\0\r\n ")


@given(names, st.sampled_from([2, 4, 8, 16]))
def test_each_part_of_the_slots_has_one_bucket(before, count):
    tags = [f"{{{encode(before)}:{bucket}}}" for bucket in BUCKETS[:count]]
    assert {key_slot(tag.encode()) * count // 16_384 for tag in tags} == set(range(count))


def test_names_are_spread_evenly_over_the_buckets():
    counts = Counter(bucket_of(f"invoice:{number}") for number in range(16_000))
    assert set(counts) == set(BUCKETS)
    assert max(counts.values()) < 1200


@pytest.mark.parametrize("name", ["", None, b"x", 3, True, ("a",), ["a"], {}, "x" * 513, "é" * 257, "\ud800"])
def test_wrong_names_are_refused(name):
    with pytest.raises(InvalidName):
        encode(name)


def test_message_shows_a_long_name_cut():
    with pytest.raises(InvalidName) as caught:
        encode("x" * 100_000)
    assert len(str(caught.value)) < 250


def test_hash_is_short_keyed_and_stable(settings):
    first = hashed("203.0.113.7")
    assert len(first) == 22
    assert first == hashed("203.0.113.7") != hashed("203.0.113.8")
    settings.SECRET_KEY = "another"
    assert hashed("203.0.113.7") != first
