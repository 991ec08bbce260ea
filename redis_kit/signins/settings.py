"""The settings of sign-ins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from redis_kit.core.conf import Problem, Section

DAY = 86_400


@dataclass(frozen=True)
class SignInSettings(Section):
    """The options of ``REDIS_KIT["SIGNINS"]``."""

    name = "SIGNINS"
    ranges = {"DAY_START_HOUR": (0, 23), "RETENTION": (DAY, 3660 * DAY)}

    #: Lengths of a streak in days. A sign-in reports each the first time that it is reached.
    MILESTONES: tuple[int, ...] | list[int] = (7, 30, 100, 365)
    #: The time zone of an instance: a dotted attribute, or a callable that takes the instance. None means Django's
    #: current time zone.
    TIMEZONE: str | Callable[[Any], Any] | None = None
    #: The hour at which a day begins. With 4, a sign-in at 03:59 counts for the day before.
    DAY_START_HOUR: int = 0
    #: Seconds for which a day's active users are stored. The calendars of users do not expire.
    RETENTION: float = 400 * DAY
    #: The connection that stores sign-ins.
    USING: str = "default"
    #: ``raise`` is the only policy: a lost sign-in must not look like a stored one.
    ON_FAILURE: Literal["raise"] = "raise"

    def problems(self) -> Iterator[Problem]:
        """Yield problems of the milestones."""
        if any(days < 1 for days in self.MILESTONES):
            yield Problem("E006", "REDIS_KIT['SIGNINS']['MILESTONES'] must hold whole numbers of days, 1 or more.")
