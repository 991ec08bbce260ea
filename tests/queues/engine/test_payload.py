"""Arguments as JSON: what comes out is what went in, or an error that names the place."""

import contextlib
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.queues import CorruptMessage, NotSerializable, PayloadTooLarge
from redis_kit.queues.engine.payload import dumps, loads
from tests.app.models import User

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.dates()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.binary(max_size=50)
)
KEYS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["$date", "$bytes", "$$x", "$", "$unknown"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


def test_number_that_nothing_can_be_compared_with_is_refused_on_both_ways():
    with pytest.raises(NotSerializable, match=r"payload\['x'\] is sNaN"):
        dumps({"x": Decimal("sNaN")})
    for text in ("sNaN", "-snan", "sNaN123"):
        with pytest.raises(CorruptMessage, match="signaling"):
            loads(b'{"v":{"$decimal":"%s"}}' % text.encode())
    assert loads(dumps(Decimal("NaN"))).is_qnan()


@given(VALUES)
def test_what_comes_out_is_what_went_in(value):
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 11, 20, 12, tzinfo=timezone(timedelta(hours=8))),
        datetime(2026, 11, 20, 12, 0, 0, 5),
        date(2026, 2, 28),
        Decimal("1.10"),
        UUID(int=7),
        b"\x00\xff",
    ],
    ids=repr,
)
def test_types_beyond_json_come_back_as_themselves(value):
    back = loads(dumps([value]))[0]
    assert back == value
    assert type(back) is type(value)
    assert str(back) == str(value)


def test_tuple_becomes_a_list_and_safe_text_is_text():
    assert loads(dumps((1, (2,)))) == [1, [2]]
    assert loads(dumps(mark_safe("<b>"))) == "<b>"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({1, 2}, r"payload is \{1, 2\}"),
        ([0, {"x": object()}], r"payload\[1\]\['x'\]"),
        ({"x": {1: 2}}, r"payload\['x'\] has the key 1"),
        ({"a": float("nan")}, r"payload\['a'\] is nan"),
        ([float("-inf")], r"payload\[0\] is -inf"),
        ([2**63], "64 bits"),
        ([-(2**63) - 1], "64 bits"),
        ([10**5000], "64 bits"),
        (["\ud800"], r"payload\[0\] is '\\ud800'"),
        ({"\ud800": 1}, "not valid Unicode"),
        (lambda: 1, "function"),
        (User(pk=5), "Pass its primary key"),
        (gettext_lazy("Yes"), r"It is a lazy text: pass str\(\) of it"),
        (1j, "payload is 1j"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_can_not_hold_is_refused_by_its_place(value, place):
    with pytest.raises(NotSerializable, match=place):
        dumps(value)


def test_deep_and_endless_values_are_refused():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(NotSerializable, match="100 deep"):
        dumps(deep)
    endless: list = []
    endless.append(endless)
    with pytest.raises(NotSerializable, match="holds itself"):
        dumps(endless)
    assert loads(dumps(deep[0])) == deep[0]


def test_size_is_measured_in_bytes_and_its_limit_can_be_reached():
    assert len(dumps("é" * 131_071)) == 262_144
    with pytest.raises(PayloadTooLarge, match="262,146"):
        dumps("é" * 131_072)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"{",
        b'"x" "y"',
        b"NaN",
        b"[Infinity]",
        b'{"a":1,"a":2}',
        b'{"$what":1}',
        b'{"$date":"2026-13-01"}',
        b'{"$date":5}',
        b'{"$decimal":"x"}',
        b'{"$bytes":"*"}',
        b'{"$date":"2026-01-01","more":1}',
        b"[" * 100_000,
        b"1" * 5000,
        '{"a":1}'.encode("utf-16"),
        b"\x1f\x8b\x08\x00",
        b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
        b" " * 300_000,
    ],
    ids=lambda body: ascii(body)[:30],
)
def test_bytes_that_are_no_message_are_corrupt(body):
    with pytest.raises(CorruptMessage):
        loads(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_corrupt(body):
    with contextlib.suppress(CorruptMessage):
        loads(body)


def test_output_is_plain_json():
    assert json.loads(dumps({"a": [1, 2.5, None, True, "ü"]})) == {"a": [1, 2.5, None, True, "ü"]}
