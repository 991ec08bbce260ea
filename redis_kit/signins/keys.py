"""The keys of sign-ins.

A user's keys share their slot with a part of the day's bitmap, so that one script writes both.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

from redis_kit.core import conf
from redis_kit.core.keys import BUCKETS, encode, hashed
from redis_kit.core.settings import KitSettings

MAX_ID = 64  # characters of an id that is not hashed
ERASED = "erased"


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
    """Return the state of a user, as text: last day, streaks, total and others; see users.py."""
    return _key(tag, f"user:{member}")


def year(tag: str, member: str, year: int) -> str:
    """Return the bitmap of a user's year: by day of the year the sign-ins, then the covered days; see users.py."""
    return _key(tag, f"year:{member}:{year}")


def members(tag: str) -> str:
    """Return the list of a bucket's users by their place."""
    return _key(tag, "members")


def erased(tag: str) -> str:
    """Return the bitmap of a bucket's places whose users were erased."""
    return _key(tag, ERASED)


def streaks(tag: str) -> str:
    """Return the sorted set of a bucket's streaks: places by the last day and the length of the streak."""
    return _key(tag, "streaks")


def active(tag: str, day: date) -> str:
    """Return the bitmap of a bucket's active users on a day, by their place."""
    return _key(tag, active_part(day))


def first(tag: str, day: date) -> str:
    """Return the bitmap of a bucket's users whose first sign-in was on a day, by their place."""
    return _key(tag, first_part(day))


def active_part(day: date) -> str:
    """Return the part of active() that is the same in all buckets."""
    return f"day:{day}"


def first_part(day: date) -> str:
    """Return the part of first() that is the same in all buckets."""
    return f"first:{day}"


def in_bucket(tag: str, parts: Sequence[str]) -> list[str]:
    """Return the keys of some parts in a bucket."""
    start = _key(tag, "")
    return [start + part for part in parts]


def tags(model: str) -> list[str]:
    """Return the hash tags of all buckets of a model."""
    return [tag(model, bucket) for bucket in BUCKETS]


def _key(tag: str, part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{{tag}}}:{part}"
