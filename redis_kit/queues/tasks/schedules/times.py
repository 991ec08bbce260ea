"""The times of schedules: a fixed interval, or one moment. Times are in ms since 1970; ``cron`` has the third kind."""

import hashlib
from dataclasses import dataclass
from typing import Protocol


class Times(Protocol):
    """The times at which a schedule ticks."""

    def after(self, moment: int) -> int | None:
        """Return the first time later than a moment; None if there is none."""

    def until(self, moment: int, count: int) -> list[int]:
        """Return the last times that are not later than a moment, the latest first, ``count`` at most."""


@dataclass(frozen=True)
class Every:
    """Times that are ``interval`` ms apart, whatever a clock on the wall shows. One of them is at ``anchor``."""

    interval: int
    anchor: int = 0

    def after(self, moment: int) -> int:
        """See Times."""
        return moment - (moment - self.anchor) % self.interval + self.interval

    def until(self, moment: int, count: int) -> list[int]:
        """See Times."""
        latest = moment - (moment - self.anchor) % self.interval
        return [latest - place * self.interval for place in range(count)]


@dataclass(frozen=True)
class Once:
    """One time only."""

    moment: int

    def after(self, moment: int) -> int | None:
        """See Times."""
        return self.moment if self.moment > moment else None

    def until(self, moment: int, count: int) -> list[int]:
        """See Times."""
        return [self.moment][:count] if self.moment <= moment else []


def share(name: str, most: int) -> int:
    """Return a number from 0 to below ``most`` that is always the same for a name, and even over many names."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % most if most > 0 else 0
