"""The days of a user's year as they are stored: 46 bytes of days with a sign-in, and behind them the covered days."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

BYTES = 46


def signed_days(year: int, stored: bytes) -> list[date]:
    """Return the days of a year with a sign-in."""
    return list(_days(year, stored[:BYTES]))


def covered_days(year: int, behind: bytes) -> set[date]:
    """Return the covered days of a year, given what is behind its sign-ins."""
    return set(_days(year, behind))


def days_with_kinds(years: Iterable[int], stored: Iterable[bytes | None]) -> Iterator[tuple[date, str]]:
    """Yield the days of some years in their order, each with what it was: sign_in, make_up or freeze."""
    for year, bitmap in zip(years, stored, strict=True):
        signed, covered = set(signed_days(year, bitmap or b"")), covered_days(year, (bitmap or b"")[BYTES:])
        for day in sorted(signed | covered):
            yield day, "freeze" if day not in signed else "make_up" if day in covered else "sign_in"


def _days(year: int, bitmap: bytes) -> Iterator[date]:
    first, last = date(year, 1, 1), date(year, 12, 31)
    days = (first + timedelta(at) for at, bit in enumerate(_bits(bitmap)) if bit == "1")
    return (day for day in days if day <= last)


def _bits(stored: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in stored)
