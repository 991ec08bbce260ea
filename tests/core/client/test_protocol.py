"""Commands on the wire: the same bytes as redis-py's, whatever the arguments."""

from django.db.models import IntegerChoices, TextChoices
from hypothesis import given
from hypothesis import strategies as st
from redis.connection import PythonRespSerializer

from redis_kit.core import connections
from redis_kit.core.client import wire
from redis_kit.core.client.wire import packed

texts = st.text(st.characters(exclude_categories=["Cs"]))
arguments = st.lists(texts | st.binary() | st.integers() | st.floats(allow_nan=False), max_size=8)


@given(arguments)
def test_bytes_are_those_of_redis_py(more):
    peer = PythonRespSerializer(6000, lambda value: value if isinstance(value, bytes) else _encoded(value))
    expected = b"".join(peer.pack("SET", *more))
    assert wire._packed(("SET", *more)) == expected
    assert packed(("SET", *more)) == expected


class Size(IntegerChoices):
    """An int and a float whose repr() is not a number."""

    LARGE = -(2**60)


class Share(float):
    """See Size."""

    def __repr__(self):
        return f"Share({float(self)})"


class Name(TextChoices):
    """Text with another name."""

    FIRST = "first"


def test_number_or_text_of_a_subclass_is_sent_as_its_value():
    command, expected = ("SET", Size.LARGE, Name.FIRST), ("SET", -(2**60), "first")
    assert packed(command) == wire._packed(command) == packed(expected)
    assert wire._packed(("SET", Share(0.1))) == packed(("SET", 0.1))


def _encoded(value):
    return value.encode() if isinstance(value, str) else repr(value).encode()


def test_no_argument_can_be_a_command(kit):
    client = connections.client()
    key, evil = f"{kit.prefix}:a\r\nFLUSHALL\r\n", b"*1\r\n$8\r\nFLUSHALL\r\n"
    client.call("SET", key, evil)
    assert client.call("GET", key) == evil
    assert client.batch([("SET", key, 1.5e300), ("GET", key), ("INCRBY", f"{key}n", 2**53 + 1)])[1:] == [
        b"1.5e+300",
        2**53 + 1,
    ]
