"""The fields of an index: what is searched, filtered and counted, and sorted."""

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from types import NoneType
from typing import Any

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.core.values.numbers import is_number

LONGEST_VALUE = 100  # characters of a facet's value; the rest is stored as a digest
MOST_VALUES = 50  # of one facet of a document
EPOCH = datetime(2035, 1, 1, tzinfo=UTC)  # of half-lives: 2 ** 1000 is the limit on both sides
LEAST_HALF_LIFE = timedelta(days=14)


class Field:
    """The base of fields. ``source`` is an attribute of the row; by default that with the name of the field."""

    def __init__(self, source: str = "", detail: str = "") -> None:
        self.source, self.name, self.detail = source, "", detail

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.source = name, self.source or name

    def __str__(self) -> str:
        return f"{self.name}:{type(self).__name__}{self.detail}"


class Text(Field):
    """Text to search in. A word in a field of ``weight`` 3 counts as three. The weight is 0.1 to 100."""

    def __init__(self, source: str = "", *, weight: float = 1.0) -> None:
        if not is_number(weight) or not 0.1 <= weight <= 100:
            raise ConfigurationError(f"The weight of a Text must be a number from 0.1 to 100, not {shortened(weight)}.")
        super().__init__(source, f":{weight:g}")
        self.weight = float(weight)

    @staticmethod
    def clean(value: Any) -> str:
        """Return the text of a value: that of its items for a list, and "" for None."""
        if value is None:
            return ""
        return "\n".join(map(str, value)) if isinstance(value, (list, tuple, set)) else str(value)


class Facet(Field):
    """Values to filter by and to count, such as tags: one, a list, or the rows of a relation."""

    @staticmethod
    def clean(value: Any) -> list[str]:
        """Return the values as texts, each once. None and "" are none."""
        if hasattr(value, "all"):
            value = value.all()
        if value is None or isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            value = [value]
        texts = (str(each).encode(errors="replace").decode() for each in value if each is not None and each != "")
        return list(dict.fromkeys(map(_cut, texts)))[:MOST_VALUES]


class Sort(Field):
    """A number, a date or a time to sort by, or to lift documents by. None is stored as 0.

    With a ``half_life`` of 14 days or more, the boost of a date halves with each of them before the latest date.
    """

    def __init__(self, source: str = "", *, half_life: timedelta | None = None) -> None:
        if half_life is not None and not (isinstance(half_life, timedelta) and half_life >= LEAST_HALF_LIFE):
            raise ConfigurationError(f"half_life must be a timedelta of 14 days or more, not {shortened(half_life)}.")
        super().__init__(source, f":{half_life.days}" if half_life else "")
        self.half_life = half_life

    def clean(self, value: Any) -> float:
        """Return the number of a value. Raises InvalidValue for what has no order."""
        number = _number(value)
        if number is None:
            raise InvalidValue(f"{self.name} must be a number, a date or a time to sort by, not {shortened(value)}.")
        if self.half_life is None or value is None:
            return number
        return float(2.0 ** max(-1000.0, min(1000.0, (number - EPOCH.timestamp()) / self.half_life.total_seconds())))


def _cut(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}…{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _number(value: Any) -> float | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(), UTC)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, timedelta):
        return value.total_seconds()
    number = float(value or 0) if isinstance(value, (int, float, Decimal, NoneType)) else math.inf
    return number if abs(number) < 1e300 else None  # NaN is not less, either
