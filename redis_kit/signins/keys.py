"""The keys of sign-ins.

A user's keys share their slot with a part of the day's bitmap, so that one script writes both.
"""

from datetime import date
from typing import Any

from redis_kit.core import conf
from redis_kit.core.keys import BUCKETS, encode, hashed
from redis_kit.core.settings import KitSettings

MAX_ID = 64  # characters of an id that is not hashed


def label(model: Any) -> str:
    """Return the name of a model in keys, such as ``shop.user``; for a proxy the name of its parent."""
    name: str = model._meta.concrete_model._meta.label_lower
    return name


def member_of(id: str) -> str:
    """Return the name of a user in keys."""
    # encode() leaves no "^", so a hash can't be mistaken for an id.
    return encode(id) if len(id) <= MAX_ID else f"^{hashed(id)}"


def tag(model: str, bucket: str) -> str:
    """Return the hash tag of a bucket of a model's users."""
    return f"signins:{model}:{bucket}"


def user(tag: str, member: str) -> str:
    """Return the hash with the last day, the streaks, the total and the place of a user."""
    return _key(tag, f"user:{member}")


def year(tag: str, member: str, year: int) -> str:
    """Return the bitmap of a user's sign-ins in a year, by the day of the year."""
    return _key(tag, f"year:{member}:{year}")


def members(tag: str) -> str:
    """Return the list of a bucket's users by their place."""
    return _key(tag, "members")


def active(tag: str, day: date) -> str:
    """Return the bitmap of a bucket's active users on a day, by their place."""
    return _key(tag, f"day:{day}")


def active_days(model: str, days: list[date]) -> list[str]:
    """Return the bitmaps of active users of all buckets of a model, day by day."""
    starts = [_key(tag(model, bucket), "day:") for bucket in BUCKETS]
    return [f"{start}{day}" for day in days for start in starts]


def _key(tag: str, part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{{tag}}}:{part}"
