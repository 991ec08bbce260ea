"""The parameters of a filter, and how large its layers are."""

from datetime import timedelta
from functools import lru_cache
from math import ceil, expm1, log, sqrt
from typing import NamedTuple

from redis_kit.core.errors import InvalidValue
from redis_kit.core.indexes.generations import AT_ONCE, Generation, Shape
from redis_kit.core.text import number, shortened
from redis_kit.core.values.numbers import is_number, seconds, whole_number

PART = AT_ONCE  # bits of a bitmap at most
LEAST_BITS = 8192  # of a layer: in smaller ones the bits of two values fall together too often
CAPACITY = (1, 10**9)
ERROR = (1e-6, 0.5)
WINDOW = (1.0, 366 * 86_400.0)
SLICES = 4  # of a window, each a generation; the fifth holds values that are about to fade
OF_MODEL = "model"  # stored in place of the parameters of a model's filter
FIRST, TIGHTER = 0.75, 0.25  # 3/4 + 3/16 + 3/64 + ... = 1: the layers together stay within the error


class Layer(NamedTuple):
    """A plain Bloom filter: its bits, the hashes of a value, and the items that it takes."""

    bits: int
    hashes: int
    capacity: int

    @property
    def parts(self) -> list[int]:
        """Return the bits of each of its bitmaps."""
        return [min(PART, self.bits - start) for start in range(0, self.bits, PART)]

    def error(self, items: int) -> float:
        """Return the share of false positives with this many items."""
        return float((-expm1(-self.hashes * items / self.bits)) ** self.hashes)


class BloomParameters(NamedTuple):
    """The parameters of a filter, which are stored with it. ``window`` is in seconds, 0 for none.

    Those of a model's filter are in the id of each generation, after its ``source``: a digest that names the database.
    So processes of two releases with other parameters use the same generations.
    """

    capacity: int
    error: float
    window: float
    source: str = ""

    @classmethod
    def checked(cls, capacity: int, error: float, window: timedelta | None) -> "BloomParameters":
        """Return the parameters. Raises InvalidValue if one is out of its range."""
        if not is_number(error) or not ERROR[0] <= error <= ERROR[1]:
            raise InvalidValue(f"error must be a number from 0.000001 to 0.5, not {shortened(error)}.")
        if not isinstance(window, timedelta | None):
            raise InvalidValue(f"window must be a timedelta, not {shortened(window)}.")
        whole_number("capacity", capacity, CAPACITY)
        return cls(capacity, float(error), 0.0 if window is None else seconds("window", window.total_seconds(), WINDOW))

    @classmethod
    def parse(cls, text: str) -> "BloomParameters":
        """Return the parameters that a server has stored."""
        if text == OF_MODEL:
            return cls(1, ERROR[1], 0.0, OF_MODEL)
        capacity, error, window = text.split()
        return cls(int(capacity), float(error), float(window))

    def __str__(self) -> str:
        return OF_MODEL if self.source else f"{self.capacity} {self.error!r} {self.window!r}"

    @property
    def prefix(self) -> str:
        """Return how the ids of new generations begin."""
        return f"{self.source}x{self.capacity}x{round(self.error / ERROR[0])}x" if self.source else ""

    def of(self, generation: Generation) -> "BloomParameters":
        """Return the parameters of a generation."""
        if not self.source:
            return self
        source, capacity, millionths, _random = generation.id.split("x")
        return BloomParameters(int(capacity), int(millionths) / 1_000_000, 0.0, source)

    def layers(self, shape: Shape) -> list[Layer]:
        """Return the layers of all generations of a shape, in its order."""
        return [self.of(each).layer(number) for each in shape.generations for number in range(each.layers)]

    @property
    def described(self) -> str:
        """Return them in words, for a message."""
        if self.source:
            return "the parameters of a model's filter"
        window = f", window {number(self.window)} s" if self.window else ""
        return f"capacity {self.capacity:,}, error {number(self.error)}{window}"

    @property
    def slice_ms(self) -> int:
        """Return how long a generation of a window gets adds, in ms; 0 without a window."""
        return ceil(self.window * 1000 / SLICES)

    @property
    def ttl_ms(self) -> int:
        """Return how long a generation of a window is stored, in ms; 0 without a window."""
        return self.slice_ms + ceil(self.window * 1000) if self.window else 0

    def layer(self, number: int) -> Layer:
        """Return a layer of a generation, counted from 0: each is twice as large as the one before."""
        if self.source:  # the former generation answers, too
            return _layer(self.capacity, self.error / 2, number)
        if not self.window:
            return _layer(self.capacity, self.error, number)
        return _layer(ceil(self.capacity / SLICES), self.error / (SLICES + 1), number)


@lru_cache(maxsize=1024)
def _layer(capacity: int, error: float, number: int) -> Layer:
    rate = error * FIRST * TIGHTER**number
    items = capacity * 2**number
    bits = max(LEAST_BITS, ceil(items * -log(rate) / log(2) ** 2), ceil(sqrt(10 * items / rate)))
    return Layer(bits, max(1, round(-log(rate, 2))), items)
