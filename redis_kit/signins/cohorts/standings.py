"""The streaks of many users: of those given, the longest ones, and those that end today without a sign-in."""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch, Call
from redis_kit.core.values.numbers import whole_number
from redis_kit.signins import keys
from redis_kit.signins.days import today
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users.base import SignInUser, summarized

LIST = scripts.load("redis_kit.signins", "list_streaks")
MOST, MOST_USERS = 1000, 10_000
LONGEST = 99_999  # days: the last day of a streak is that many times its score; see scripts/sign_in.lua


class Standing(NamedTuple):
    """A user by primary key, and the length of the streak."""

    id: Any
    streak: int


def with_today(users: Sequence[Any]) -> list[tuple[SignInUser, date]]:
    """Return the user of each instance, and the present day in its zone."""
    if len(users) > MOST_USERS:
        raise InvalidValue(f"users are {len(users):,}; at most {MOST_USERS:,} are read at once.")
    return [(SignInUser.of(instance), today(instance)) for instance in users]


def streaks_of(users: list[tuple[SignInUser, date]]) -> Flow[dict[Any, int]]:
    """Return the present streaks by primary key, given what with_today() returns."""
    states = (yield Batch([Call("GET", user.state_key()) for user, _ in users])) if users else []
    return {user.pk: summarized(state, day).streak for (user, day), state in zip(users, states, strict=True)}


def leaders(model: Any, day: date, limit: int) -> Flow[list[Standing]]:
    """Return the longest streaks that go on."""
    number = day.toordinal()
    # Users in zones ahead are a day further, and frozen days may lie before others.
    ahead = conf.section(SignInSettings).WINDOW + 1
    return (yield from _listed(model, (number - 1, number + ahead), 1, limit))


def at_risk(model: Any, day: date, streak: int, limit: int) -> Flow[list[Standing]]:
    """Return the streaks whose last day is the day before."""
    yesterday = day.toordinal() - 1
    return (yield from _listed(model, (yesterday, yesterday), whole_number("streak", streak, (1, LONGEST)), limit))


def count_at_risk(model: str, day: date, streak: int) -> Flow[int]:
    """Return the number of streaks whose last day is the day before."""
    begin = (day.toordinal() - 1) * (LONGEST + 1)
    least, most = begin + whole_number("streak", streak, (1, LONGEST)), begin + LONGEST
    return sum((yield Batch([Call("ZCOUNT", keys.streaks(tag), least, most) for tag in keys.tags(model)])))


def _listed(model: Any, last_days: tuple[int, int], least: int, limit: int) -> Flow[list[Standing]]:
    args = [*last_days, least, whole_number("limit", limit, (1, MOST))]
    tags = keys.tags(keys.label(model))
    listed = yield Batch([LIST([keys.streaks(tag), keys.members(tag)], args) for tag in tags])
    pairs = [pair for ids in listed for pair in list(pairwise(ids))[::2]]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    to_python = model._meta.pk.to_python
    return [Standing(to_python(id.decode()), length) for id, length in pairs[:limit]]
