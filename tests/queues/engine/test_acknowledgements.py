"""The codec of acknowledgements."""

import random

import pytest

from redis_kit.queues.engine.done import Ack

RANDOM = random.Random(7)


def some():
    texts = [RANDOM.randbytes(RANDOM.choice([0, 1, 60, 3000])) for _ in range(4)]
    return Ack(RANDOM.randrange(1 << 16), *texts[:3], RANDOM.randrange(1 << 50), texts[3])


def test_what_was_packed_is_unpacked():
    for ack in [some() for _ in range(200)]:
        assert Ack.unpack(ack.pack()) == ack


def test_what_is_torn_or_too_long_is_refused():
    whole = Ack(3, b"worker/claim.1/5", b"id", b'{"a":1}', 86_400_000, b"[]").pack()
    for at in range(len(whole)):
        with pytest.raises(ValueError, match=r"short|lengths"):
            Ack.unpack(whole[:at])
    with pytest.raises(ValueError, match="lengths"):
        Ack.unpack(whole + b"x")
