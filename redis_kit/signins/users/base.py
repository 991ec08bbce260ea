"""The base of what reads and changes a user: its keys."""

from datetime import date
from typing import Any

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import bucket_of
from redis_kit.core.primitive import Primitive
from redis_kit.signins import keys
from redis_kit.signins.settings import SignInSettings


class SignInUser(Primitive):
    """One instance of a model, as it is stored: a bitmap per year with the day of the year as offset, and its state.

    The bitmaps are those of "Redis Deep Adventure" by Qian Wenpin, one for each year in place of one for all.
    """

    component, settings = "signins", SignInSettings

    def __init__(self, model: Any, pk: Any) -> None:
        super().__init__(keys.label(model), using=conf.section(SignInSettings).USING)
        self.id = str(pk)
        self.member = keys.member_of(self.id)
        self.bucket = bucket_of(self.member)

    def tag(self) -> str:
        """Return the hash tag of the user's bucket."""
        return keys.tag(self.encoded, self.bucket)

    def state_key(self) -> str:
        """Return the key of the state."""
        return keys.user(self.tag(), self.member)

    def year_key(self, year: int) -> str:
        """Return the key of a year's bitmap."""
        return keys.year(self.tag(), self.member, year)


def pk_of(instance: Any, *, saved: bool = True) -> Any:
    """Return the primary key of an instance. Raises InvalidValue without one, and unless it is saved if it must be."""
    if instance.pk is None or (saved and instance._state.adding):
        raise InvalidValue(f"{instance!r} is not saved. Save it before it signs in.")
    return instance.pk


def offset(day: date) -> int:
    """Return the offset of a day in its year, from 0."""
    return day.timetuple().tm_yday - 1
