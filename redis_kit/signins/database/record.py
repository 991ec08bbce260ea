"""The database's own record of days: written if ``RECORD`` is on, and stored again after Redis lost the sign-ins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections, router
from django.db.models import QuerySet

from redis_kit.core import conf, scripts
from redis_kit.core.flow import Flow, single
from redis_kit.core.keys import BUCKETS
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Argument, Batch, Call
from redis_kit.core.values.sequences import batched
from redis_kit.signins import keys
from redis_kit.signins.activity import LONGEST
from redis_kit.signins.database.models import SignInDay
from redis_kit.signins.days import FIRST
from redis_kit.signins.segments import SignInModel
from redis_kit.signins.settings import SignInSettings
from redis_kit.signins.users import BYTES, STATE, SignInUser, State, days_with_kinds, offset

RESTORE = scripts.load("redis_kit.signins", "restore")
BATCH = 100  # users in one round trip
ROWS = 1000  # in one query
KINDS = ("sign_in", "make_up", "freeze")
PLACE = 20  # of a user's place in the packed state
Days = Sequence[tuple[date, str]]


def record(instance: Any, day: date, kind: str) -> None:
    """Write a day, if the setting is on. One query; again for the same day it changes only its kind."""
    if conf.section(SignInSettings).RECORD:
        write([_row(instance, day, kind)])


async def arecord(instance: Any, day: date, kind: str) -> None:
    """See record()."""
    if conf.section(SignInSettings).RECORD:
        await SignInDay.objects.abulk_create([_row(instance, day, kind)], **_on_conflict())


def write(rows: Iterable[SignInDay]) -> int:
    """Write rows in batches, and return their number."""
    count = 0
    for batch in batched(rows, ROWS):
        SignInDay.objects.bulk_create(batch, **_on_conflict())
        count += len(batch)
    return count


def rows_of(instance: Any) -> QuerySet[SignInDay]:
    """Return the rows of an instance."""
    return SignInDay.objects.filter(label=keys.label(type(instance)), object_id=str(instance.pk))


def existing(model: Any, ids: Sequence[str]) -> set[str]:
    """Return those of the ids whose instances are in the database. One query."""
    pks = []
    for id in ids:
        with suppress(ValidationError):  # the model had another primary key
            pks.append(model._meta.pk.to_python(id))
    return {str(pk) for pk in model._base_manager.filter(pk__in=pks).values_list("pk", flat=True)}


def days_of(label: str) -> Iterator[tuple[str, list[tuple[date, str]]]]:
    """Yield the id of each instance of a model with its days, in their order. The rows are read in chunks."""
    rows = SignInDay.objects.filter(label=label).order_by("object_id", "day").values_list("object_id", "day", "kind")
    for object_id, group in groupby(rows.iterator(chunk_size=10_000), key=itemgetter(0)):
        yield object_id, [(day, kind) for _id, day, kind in group]


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
            members = keys.members(keys.tag(self.encoded, bucket))
            while ids := self.run_flow(single(Call("LRANGE", members, start, start + BATCH - 1))):
                start += len(ids)
                yield self.run_flow(self._days_of([id.decode() for id in ids if id]))

    def days_of(self, ids: Sequence[str]) -> Iterator[tuple[str, list[tuple[date, str]]]]:
        """Yield users, given by id, with their days. One round trip for each 100."""
        for start in range(0, len(ids), BATCH):
            yield from self.run_flow(self._days_of(ids[start : start + BATCH]))

    def _add(self, users: Sequence[tuple[str, Days]]) -> Flow[None]:
        years = range(FIRST.year, date.today().year + 2)
        waiting = [(SignInUser(self.model, id), days) for id, days in users]
        while waiting:
            # One command for each user, so that no change comes between state and days.
            stored = yield Batch([Call("MGET", user.state_key(), *map(user.year_key, years)) for user, _ in waiting])
            calls = [
                _restore(user, days, state or b"", dict(zip(years, bitmaps, strict=True)))
                for (user, days), (state, *bitmaps) in zip(waiting, stored, strict=True)
            ]
            replies = yield Batch(calls)
            # Another process changed the others since they were read.
            waiting = [user for user, is_stored in zip(waiting, replies, strict=True) if not is_stored]

    def _days_of(self, ids: Sequence[str]) -> Flow[list[tuple[str, list[tuple[date, str]]]]]:
        years = range(FIRST.year, date.today().year + 2)
        users = [SignInUser(self.model, id) for id in ids]
        stored = (yield Batch([Call("MGET", *map(user.year_key, years)) for user in users])) if users else []
        return [(id, list(days_with_kinds(years, bitmaps))) for id, bitmaps in zip(ids, stored, strict=True)]


def _row(instance: Any, day: date, kind: str) -> SignInDay:
    return SignInDay(label=keys.label(type(instance)), object_id=str(instance.pk), day=day, kind=kind)


def _on_conflict() -> dict[str, Any]:
    options: dict[str, Any] = {"update_conflicts": True, "update_fields": ["kind"]}
    if connections[router.db_for_write(SignInDay)].features.supports_update_conflicts_with_target:
        options["unique_fields"] = ["label", "object_id", "day"]
    return options


def _restore(user: SignInUser, days: Days, old: bytes, stored: Mapping[int, bytes | None]) -> ScriptCall:
    """Return the call that adds days to those that are stored by years: a day is the first that it is in KINDS."""
    merged = dict(days_with_kinds(stored, list(stored.values())))
    for day, kind in days:
        merged[day] = min(kind, merged.get(day, kind), key=KINDS.index)
    state = State.of(old) or State(0, 0, 0, 0, 0, -1, 0, 0, b"restored")
    after = _worked_out(state, merged)
    options, tag = conf.section(SignInSettings), user.tag
    oldest = date.today() - timedelta(seconds=options.RETENTION)
    years = sorted({day.year for day in merged})
    named = [
        user.state_key(),
        keys.streaks(tag),
        keys.members(tag),
        keys.first(tag, date.fromordinal(after.first) if after.first else FIRST),
        keys.first(tag, date.fromordinal(state.first or after.first) if after.first else FIRST),
        *map(user.year_key, years),
        *(keys.active(tag, day) for day, kind in days if kind != "freeze" and day >= oldest),
    ]
    packed, rank = STATE.pack(*after), after.last * (LONGEST + 1) + after.streak
    args: list[Argument] = [old, int(options.RETENTION * 1000), user.id, rank, int(after.first != state.first)]
    args += [packed[:PLACE], after.place, packed[PLACE + 4 :] + old[STATE.size :]]
    return RESTORE(
        named, [*args, *(_bitmap(merged, year) for year in years), *(stored.get(year) or b"" for year in years)]
    )


def _worked_out(state: State, days: Mapping[date, str]) -> State:
    """Return the state of a user with these days, at the place and with the token of one before."""
    last = streak = longest = total = first = run = 0
    frozen, before = state.frozen, date.min
    for day, kind in sorted(days.items()):
        number = day.toordinal()
        run = run if day - before == timedelta(1) else 0
        before = day
        if kind == "freeze":
            frozen = max(frozen, number)
        else:
            run, total, first = run + 1, total + 1, first or number
            longest = max(longest, run)
        if run:
            last, streak = number, run
    return State(last, streak, longest, total, first, state.place, frozen, longest, state.token)


def _bitmap(days: Mapping[date, str], year: int) -> bytes:
    bits = bytearray(2 * BYTES)
    for day, kind in days.items():
        if day.year == year:
            at, mask = offset(day) // 8, 0x80 >> offset(day) % 8
            bits[at] |= mask if kind != "freeze" else 0
            bits[BYTES + at] |= mask if kind != "sign_in" else 0
    return bytes(bits).rstrip(b"\0")
