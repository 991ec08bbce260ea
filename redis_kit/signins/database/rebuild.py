"""Sign-ins of Redis from days of the database, and the other way round."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise

from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow
from redis_kit.core.keys import BUCKETS
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.signins import keys
from redis_kit.signins.days import FIRST
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users.base import BYTES, SignInModel, SignInUser, State, days_with_kinds, offset

RESTORE = scripts.load("redis_kit.signins", "restore")
BATCH = 100  # users in one round trip
Days = Sequence[tuple[date, str]]


class Rebuild(SignInModel):
    """All users of a model, to add days to them or to list their days."""

    profile = "worker"

    def add(self, users: Sequence[tuple[str, Days]]) -> None:
        """Add days to those of users, given by id. Two round trips for at most 100 users; again it changes nothing.

        Sign-ins at the same time are kept. Days older than ``RETENTION`` do not count as active again.
        """
        self.run_flow(self._add(users))

    def users(self) -> Iterator[list[tuple[str, list[tuple[date, str]]]]]:
        """Yield all users by id with their days, 100 at a time. Two round trips for each 100."""
        for bucket in BUCKETS:
            start = 0
            while ids := self.run_flow(_members(keys.tag(self.encoded, bucket), start)):
                start += len(ids)
                yield self.run_flow(self._days_of([id.decode() for id in ids if id]))

    def days_of(self, ids: Sequence[str]) -> Iterator[tuple[str, list[tuple[date, str]]]]:
        """Yield users, given by id, with their days. One round trip for each 100."""
        for start in range(0, len(ids), BATCH):
            yield from self.run_flow(self._days_of(ids[start : start + BATCH]))

    def _add(self, users: Sequence[tuple[str, Days]]) -> Flow[None]:
        waiting = [(SignInUser(self.model, id), days) for id, days in users]
        states = yield Batch([Call("GET", user.state_key()) for user, _ in waiting])
        was = [state.first if (state := State.of(stored)) else 0 for stored in states]
        while waiting:
            replies = yield Batch(
                [_restore(user, days, first) for (user, days), first in zip(waiting, was, strict=True)]
            )
            # Another process filled in an earlier day since the state was read.
            again = [(user, int(reply.split()[1])) for user, reply in zip(waiting, replies, strict=True) if reply != 1]
            waiting, was = [user for user, _ in again], [first for _, first in again]

    def _days_of(self, ids: Sequence[str]) -> Flow[list[tuple[str, list[tuple[date, str]]]]]:
        years = range(FIRST.year, date.today().year + 2)
        users = [SignInUser(self.model, id) for id in ids]
        stored = (yield Batch([Call("MGET", *map(user.year_key, years)) for user in users])) if users else []
        return [(id, list(days_with_kinds(years, bitmaps))) for id, bitmaps in zip(ids, stored, strict=True)]


def _members(tag: str, start: int) -> Flow[list[bytes]]:
    members: list[bytes] = yield Call("LRANGE", keys.members(tag), start, start + BATCH - 1)
    return members


def _restore(user: SignInUser, days: Days, first_was: int) -> ScriptCall:
    options, tag = conf.section(SignInSettings), user.tag()
    signed = [day for day, kind in days if kind != "freeze"]
    earliest = min(signed, default=None)
    was = date.fromordinal(first_was) if first_was else earliest or FIRST
    years = range(min([day for day, _ in days] + [was]).year, date.today().year + 2)
    starts = [date(year, 1, 1).toordinal() for year in (*years, years.stop)]
    oldest = date.today() - timedelta(seconds=options.RETENTION)
    named = [
        user.state_key(),
        keys.streaks(tag),
        keys.members(tag),
        keys.first(tag, earliest or FIRST),
        keys.first(tag, was),
        *map(user.year_key, years),
        *(keys.active(tag, day) for day in signed if day >= oldest),
    ]
    args: list[Argument] = [user.id, int(options.RETENTION * 1000), earliest.toordinal() if earliest else 0]
    args += [was.toordinal(), starts[0], len(years)]
    for year, (start, end) in zip(years, pairwise(starts), strict=True):
        args += [end - start, _bitmap(days, year)]
    return RESTORE(named, args)


def _bitmap(days: Days, year: int) -> bytes:
    bits = bytearray(2 * BYTES)
    for day, kind in days:
        if day.year == year:
            at, mask = offset(day) // 8, 0x80 >> offset(day) % 8
            bits[at] |= mask if kind != "freeze" else 0
            bits[BYTES + at] |= mask if kind != "sign_in" else 0
    return bytes(bits)
