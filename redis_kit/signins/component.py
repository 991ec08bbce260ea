"""What the kit has to know about sign-ins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from redis_kit.core.component import Component
from redis_kit.core.conf import Problem, Section

DAY = 86_400


@dataclass(frozen=True)
class SignInSettings(Section):
    """The options of ``REDIS_KIT["SIGNINS"]``."""

    name = "SIGNINS"
    ranges = {"DAY_START_HOUR": (0, 23), "RETENTION": (DAY, 3660 * DAY)}

    #: Lengths of a streak that are reported once, when it is reached for the first time.
    MILESTONES: tuple[int, ...] | list[int] = (7, 30, 100, 365)
    #: Where an instance's time zone is: a dotted attribute, or a callable given the instance; without one it is that
    #: which Django uses now.
    TIMEZONE: str | Callable[[Any], Any] | None = None
    #: The hour at which a day begins: with 4, signing in at 03:59 still counts for the day before.
    DAY_START_HOUR: int = 0
    #: Seconds for which it is known who was active on a day. The users' own calendars are kept.
    RETENTION: float = 400 * DAY
    #: The connection that keeps them.
    USING: str = "default"
    #: ``raise`` is the only policy: a sign-in that was not stored must not look stored.
    ON_FAILURE: Literal["raise"] = "raise"

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the milestones."""
        if any(days < 1 for days in self.MILESTONES):
            yield Problem("E006", "REDIS_KIT['SIGNINS']['MILESTONES'] must hold whole numbers of days, 1 or more.")


class SignIns(Component):
    """Daily sign-ins: streaks, calendars, milestones."""

    settings = SignInSettings
    panels = ("redis_kit.signins.panel.SignInsPanel",)
