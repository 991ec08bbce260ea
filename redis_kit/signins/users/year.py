"""The days of a user's year as they are stored: 46 bytes of days with a sign-in, and behind them the covered days.

The covered days are a bitmap or packed; see scripts/_year.lua.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

BYTES = 46
MARK = 1  # the last bit of these bytes, which stands for no day: the covered days are packed


def signed_days(year: int, stored: bytes) -> list[date]:
    """Return the days of a year with a sign-in."""
    return list(_days(year, stored[:BYTES]))


def covered_days(year: int, behind: bytes) -> set[date]:
    """Return the covered days of a year, given the last byte of its sign-ins and all behind it."""
    is_packed = bool(behind[:1]) and behind[0] & MARK
    return set(_days(year, _unpacked(behind[1:]) if is_packed else behind[1:]))


def days_with_kinds(years: Iterable[int], stored: Iterable[bytes | None]) -> Iterator[tuple[date, str]]:
    """Yield the days of some years in their order, each with what it was: sign_in, make_up or freeze."""
    for year, bitmap in zip(years, stored, strict=True):
        signed, covered = set(signed_days(year, bitmap or b"")), covered_days(year, (bitmap or b"")[BYTES - 1 :])
        for day in sorted(signed | covered):
            yield day, "freeze" if day not in signed else "make_up" if day in covered else "sign_in"


def _days(year: int, bitmap: bytes) -> Iterator[date]:
    first, last = date(year, 1, 1), date(year, 12, 31)
    days = (first + timedelta(at) for at, bit in enumerate(_bits(bitmap)) if bit == "1")
    return (day for day in days if day <= last)


def _unpacked(packed: bytes) -> bytes:
    bits, at, bitmap = _bits(packed) + "000", 0, bytearray(BYTES)  # the end of the last place may be left out
    for index in range(BYTES):
        while bits[at : at + 1] == "1":
            bitmap[index] |= 0x80 >> int(bits[at + 1 : at + 4], 2)
            at += 4
        at += 1
    return bytes(bitmap)


def _bits(stored: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in stored)
