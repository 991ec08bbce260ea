"""The settings of sign-ins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from redis_kit.core.conf import Problem, Section
from redis_kit.core.text import shortened

DAY = 86_400
REMEDY = (
    "Name an attribute of the instance that holds its zone, such as 'profile.timezone', or give a function that "
    "returns it. If all have the same zone, leave it out and set Django's TIME_ZONE."
)


@dataclass(frozen=True)
class SignInSettings(Section):
    """The options of ``REDIS_KIT["SIGNINS"]``."""

    name = "SIGNINS"
    ranges = {
        "DAY_START_HOUR": (0, 23),
        "RETENTION": (DAY, 3660 * DAY),
        "MAKE_UPS": (0, 31),
        "FREEZES": (0, 31),
        "WINDOW": (0, 366),
    }
    examples = {"MILESTONES": "Write a list of whole numbers, such as [7, 30].", "TIMEZONE": REMEDY}

    #: Lengths of a streak in days. A sign-in reports each the first time that it is reached.
    MILESTONES: tuple[int, ...] | list[int] = (7, 30, 100, 365)
    #: The attribute that holds the zone of an instance, such as ``"profile.timezone"``, or a function that takes the
    #: instance and returns the zone. Not a zone itself: None means Django's current time zone, usually ``TIME_ZONE``.
    TIMEZONE: str | Callable[[Any], Any] | None = None
    #: The hour at which a day begins. With 4, a sign-in at 03:59 counts for the day before.
    DAY_START_HOUR: int = 0
    #: Missed days that a user may make up in each month. They count as sign-ins.
    MAKE_UPS: int = 3
    #: Days that a user may freeze in each month. A streak goes on over a frozen day, which does not count.
    FREEZES: int = 3
    #: Days before today that may be made up or frozen. As many days after today may be frozen.
    WINDOW: int = 7
    #: Sign in each user who logs in. Without it, only the project's calls of ``sign_in()`` count.
    AT_LOG_IN: bool = False
    #: Also write each new day to a table of the database, from which ``rk_signins rebuild`` restores it.
    RECORD: bool = False
    #: Seconds for which a day's active users are stored. The calendars of users do not expire.
    RETENTION: float = 400 * DAY
    #: The connection that stores sign-ins.
    USING: str = "default"

    def problems(self) -> Iterator[Problem]:
        """Yield problems of the milestones and of the time zone."""
        milestones = self.MILESTONES
        if any(days < 1 for days in milestones) or len(set(milestones)) < len(milestones):
            wrong = "REDIS_KIT['SIGNINS']['MILESTONES'] must hold different whole numbers of days, 1 or more."
            yield Problem("E006", wrong)
        if isinstance(self.TIMEZONE, str) and (wrong := not_an_attribute(self.TIMEZONE)):
            yield Problem("E006", f"REDIS_KIT['SIGNINS']['TIMEZONE'] is {shortened(self.TIMEZONE)}: {wrong}.", REMEDY)


def not_an_attribute(text: str) -> str:
    """Return why a text does not name an attribute; "" if it may."""
    if _is_zone(text):
        return "that is a zone"
    return "" if all(part.isidentifier() for part in text.split(".")) else "that is not a dotted attribute"


def _is_zone(text: str) -> bool:
    if not text[:1].isupper():  # a field may be called "localtime", which is also a file beside the zones
        return False
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True
