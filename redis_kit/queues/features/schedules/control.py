"""All schedules as a page or a command shows them, and what people do with them: pause, resume, run, prune."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisFailure, RedisKitError
from redis_kit.core.flow import Flow, single
from redis_kit.core.steps import Batch, Call, CombinedBatch
from redis_kit.core.text import did_you_mean
from redis_kit.queues.engine import enqueue, feature, ids
from redis_kit.queues.errors import InvalidSchedule
from redis_kit.queues.features.schedules import state, target
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.definition import Definition, loaded
from redis_kit.queues.features.schedules.plan import LATE, upcoming
from redis_kit.queues.features.schedules.state import State
from redis_kit.queues.features.schedules.store import Page, Schedules, StoredSchedule, Versions
from redis_kit.queues.models import Schedule
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings

DAY = 86_400_000  # ms
PAGE = 100
MOST = 10_000
OVERDUE = 10_000  # ms: a claim whose supervisor has died is over before that
UNDECLARED = "undeclared"


class ScheduleInfo(NamedTuple):
    """A schedule. ``due`` is its next tick in ms, None without one; ``definition`` is None if it can't be read.

    ``source`` is "code", "database" or "both"; ``problem`` says why it does not run, "" if it does. With ``new`` no
    worker has planned it yet.
    """

    name: str
    definition: Definition | None
    source: Literal["code", "database", "both"]
    due: int | None
    state: State
    problem: str
    new: bool = False

    @property
    def paused(self) -> bool:
        """Return whether it is off."""
        return self.definition is not None and not self.definition.enabled

    def overdue(self, now: int) -> int:
        """Return for how many ms its next tick has been due if that is too long, else 0."""
        late = 0 if self.due is None else now - self.due
        return late if late >= OVERDUE else 0


Listing = Page[ScheduleInfo]


def listed(order: Literal["due", "names"] = "names", *, offset: int = 0, limit: int = PAGE) -> Listing:
    """Return schedules, by name or the next ones. One round trip."""
    return Schedules("all").run_flow(read(order, offset, limit))


def read(order: Literal["due", "names"], offset: int, limit: int) -> Flow[Listing]:
    """See listed()."""
    page: Page[StoredSchedule] = yield from store.page(Schedules("all"), order, offset, limit)
    infos = [_info(schedule, page.versions, page.now) for schedule in page.schedules]
    return Page(page.now, page.total, page.active, page.versions, page.watched, infos)


def beginning_with(text: str, *, offset: int = 0, limit: int = PAGE) -> Listing:
    """Return schedules whose names begin with a text, and how many there are. Two round trips."""
    return Schedules("all").run_flow(_read_beginning(text.encode(), offset, limit))


def _read_beginning(text: bytes, offset: int, limit: int) -> Flow[Listing]:
    key = Schedules("all").key("names")
    first, last = Call("ZLEXCOUNT", key, "-", b"(" + text), Call("ZLEXCOUNT", key, b"[" + text, b"(" + text + b"\xff")
    before, total = yield Batch([first, last])
    count = min(limit, max(0, total - offset))
    listing = yield from read("names", before + offset, max(1, count))
    return listing._replace(total=total, schedules=listing.schedules[:count])


def next_ticks(listing: Listing, count: int, *, each: int | None = None) -> list[tuple[int, ScheduleInfo]]:
    """Return the next ticks within a day: at most ``count``, given as many of the next schedules; ``each`` of one."""
    until = listing.now + DAY
    ticks = [_ticks(info, listing.now, until, each or count) for info in listing.schedules]
    return list(islice(heapq.merge(*ticks, key=lambda pair: pair[0]), count))


def outcomes(infos: Iterable[ScheduleInfo]) -> dict[str, str]:
    """Return the status of the latest job of each schedule, as far as it is known. One round trip."""
    jobs = {info.name: info.state for info in infos if info.state.job and info.state.queue}
    if not feature.has("result_step") or not jobs:
        return {}
    step = feature.provided("result_step")
    queues = [Queue(ids.part_of(each.queue, each.job) or each.queue) for each in jobs.values()]
    steps = [step(queue.key(""), each.job) for queue, each in zip(queues, jobs.values(), strict=True)]
    replies = Schedules("all").run_flow(single(CombinedBatch(steps, lenient=True)))
    each = zip(jobs, replies, strict=True)
    return {name: reply[0].decode() for name, reply in each if not isinstance(reply, RedisFailure)}


def pause(name: str) -> None:
    """Turn a schedule off, in the database, so that it stays off whatever becomes of Redis. Raises InvalidValue."""
    _turn(_find(name), on=False)


def resume(name: str) -> None:
    """Turn a schedule on again. Raises InvalidValue."""
    _turn(_find(name), on=True)


def run(name: str) -> tuple[str, str]:
    """Add a job of a schedule now, or start the waiting retry of its latest job; return the queue and id of the job.

    Raises InvalidValue if it can't.
    """
    from redis_kit.queues.tasks import discovery

    discovery.discover()
    schedule = _find(name)
    try:
        definition = loaded(name, schedule.code, schedule.row)
        call = target.call_of(definition, conf.section(QueueSettings).NAMES[0])
        step = call.step(definition, 0)
    except (RedisKitError, LookupError) as error:
        raise InvalidValue(str(error)) from error
    queue = Queue(call.shard(name))
    (answer,) = queue.run_flow(store.put([step]))
    if isinstance(answer, RedisFailure):
        raise answer
    queue.run_flow(enqueue.registered(queue))
    outcome, job = answer
    if outcome not in (store.ADDED, store.RETRIED):
        raise InvalidValue(_("Nothing was added: the job %(job)s of the schedule has not ended.") % {"job": job})
    return call.queue, job


def prune(*, dry_run: bool = False) -> list[str]:
    """Forget the schedules of code that no worker has declared for half a minute; return their names.

    Raises InvalidValue if no worker is running: then nobody says which schedules the code has.
    """
    schedules = Schedules("all")
    gone: list[str] = []
    for offset in range(0, MOST, PAGE):
        page: Page[StoredSchedule] = schedules.run_flow(store.page(schedules, "names", offset, PAGE))
        for schedule in page.schedules:
            seen = max((page.versions.seen.get(each, 0) for each in schedule.versions), default=0)
            if schedule.code and page.now - seen > store.REPLACED:
                gone.append(schedule.name)
        if offset + PAGE >= page.total:
            break
    if gone and not page.watched:
        raise InvalidValue("No worker is running, and only workers say which schedules the code has.")
    return gone if dry_run else schedules.run_flow(store.forget(schedules, gone))


def _find(name: str) -> StoredSchedule:
    schedules = Schedules("all")
    schedule: StoredSchedule | None = schedules.run_flow(store.find(schedules, name))
    if schedule is None:
        names = [info.name for info in listed().schedules if info.name != name]  # a deleted one may be listed yet
        hint = did_you_mean(name, names, _("Workers declare those of the code when they start."))
        raise InvalidValue(_("There is no schedule %(name)s.") % {"name": name} + f" {hint}")
    return schedule


def _turn(schedule: StoredSchedule, *, on: bool) -> None:
    try:
        with transaction.atomic():
            row, created = Schedule.objects.get_or_create(name=schedule.name, defaults={"enabled": on})
            if on and not row.given() and schedule.code and loaded(schedule.name, schedule.code).enabled:
                row.delete()  # it said no more than that the schedule is off
            elif not created:
                row.enabled = on
                row.save()
    except DatabaseError as error:
        text = _("The schedules of the database can't be changed: %(error)s. Is the app migrated?")
        raise InvalidValue(text % {"error": error}) from error


def _info(schedule: StoredSchedule, versions: Versions, now: int) -> ScheduleInfo:
    became = state.read(schedule.state)
    source: Literal["code", "database", "both"] = (
        "both" if schedule.code and schedule.row else "database" if schedule.row else "code"
    )
    definition, problem = None, became.problem
    try:
        definition = loaded(schedule.name, schedule.code, schedule.row)
    except (InvalidSchedule, ConfigurationError, ValueError, TypeError) as error:
        problem = str(error)
    if not versions.declares(schedule, now):
        problem = UNDECLARED
    due = became.next if definition and definition.enabled and problem != UNDECLARED else None
    if definition and due is not None:
        due += definition.delay(due)
    new = not (schedule.state or schedule.due or problem)
    return ScheduleInfo(schedule.name, definition, source, due, became, problem, new)


def _ticks(info: ScheduleInfo, now: int, until: int, count: int) -> Iterator[tuple[int, ScheduleInfo]]:
    if info.definition and info.due is not None and info.state.next is not None:
        try:
            for tick in upcoming(info.definition, max(info.state.next - 1, now - LATE), until, count):
                yield tick, info
        except ConfigurationError:  # workers have the package of cron, and this process has not
            yield info.due, info
