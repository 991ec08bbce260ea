"""All schedules as a page or a command shows them, and what people do with them: pause, resume, run."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisFailure, RedisKitError
from redis_kit.core.flow import single
from redis_kit.core.steps import Batch
from redis_kit.core.text import did_you_mean
from redis_kit.queues.engine import enqueue, feature, ids
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules import target
from redis_kit.queues.features.schedules.definition import loaded
from redis_kit.queues.features.schedules.plan import LATE, upcoming
from redis_kit.queues.features.schedules.state import StoredSchedule
from redis_kit.queues.features.schedules.store import SCHEDULES, Page
from redis_kit.queues.models import Schedule
from redis_kit.queues.queue import Queue
from redis_kit.queues.settings import QueueSettings

DAY = 86_400_000  # ms
PAGE = 100
MOST = 10_000


def listed(
    order: Literal["due", "names"] = "names", *, offset: int = 0, limit: int = PAGE, beginning: str = ""
) -> Page:
    """Return schedules, by name or the next ones; by name also those whose names begin with a text. One round trip."""
    page: Page = SCHEDULES.run_flow(store.page(order, offset, limit, beginning=beginning))
    return page


def all_schedules() -> Page:
    """Return all schedules by name, 10,000 at most. One round trip for 100."""
    page = listed()
    for offset in range(PAGE, min(page.total, MOST), PAGE):
        page.schedules.extend(listed(offset=offset).schedules)
    return page


def next_ticks(page: Page, count: int, *, each: int | None = None) -> list[tuple[int, StoredSchedule]]:
    """Return the next ticks within a day: at most ``count``, given as many of the next schedules; ``each`` of one."""
    ticks = [_ticks(schedule, page.now, each or count) for schedule in page.schedules]
    return list(islice(heapq.merge(*ticks, key=lambda pair: pair[0]), count))


def outcomes(schedules: Iterable[StoredSchedule]) -> dict[str, str]:
    """Return the status of the latest job of each schedule, as far as it is known. One round trip."""
    jobs = {each.name: each.state for each in schedules if each.state.job and each.state.queue}
    if not feature.has("result_step") or not jobs:
        return {}
    step = feature.provided("result_step")
    queues = [Queue(ids.part_of(each.queue, each.job) or each.queue) for each in jobs.values()]
    steps = [step(queue.key(""), each.job) for queue, each in zip(queues, jobs.values(), strict=True)]
    replies = SCHEDULES.run_flow(single(Batch(steps, lenient=True)))
    each = zip(jobs, replies, strict=True)
    return {name: reply[0].decode() for name, reply in each if not isinstance(reply, RedisFailure)}


def turn(name: str, *, on: bool) -> None:
    """Turn a schedule on or off, in the database, which outlives what is in Redis. Raises InvalidValue."""
    schedule = _find(name)
    try:
        with transaction.atomic():
            row, created = Schedule.objects.get_or_create(name=name, defaults={"enabled": on})
            if on and not row.given() and schedule.code and loaded(name, schedule.code).enabled:
                row.delete()  # it said no more than that the schedule is off
            elif not created:
                row.enabled = on
                row.save()
    except DatabaseError as error:
        text = _("The schedules of the database can't be changed: %(error)s. Is the app migrated?")
        raise InvalidValue(text % {"error": error}) from error


def run(name: str) -> tuple[str, str]:
    """Add a job of a schedule now, or start the waiting retry of its latest job; return the queue and id of the job.

    Raises InvalidValue if it can't.
    """
    from redis_kit.queues.tasks import discovery

    discovery.discover()
    schedule = _find(name)
    try:
        definition = schedule.load()
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


def _find(name: str) -> StoredSchedule:
    schedule: StoredSchedule | None = SCHEDULES.run_flow(store.find(name))
    if schedule is None:
        names = [each.name for each in listed().schedules if each.name != name]  # a deleted one may be listed yet
        hint = did_you_mean(name, names, _("Workers declare those of the code when they start."))
        raise InvalidValue(_("There is no schedule %(name)s.") % {"name": name} + f" {hint}")
    return schedule


def _ticks(schedule: StoredSchedule, now: int, count: int) -> Iterator[tuple[int, StoredSchedule]]:
    if schedule.definition and schedule.due is not None and schedule.state.next is not None:
        try:
            for tick in upcoming(schedule.definition, max(schedule.state.next - 1, now - LATE), now + DAY, count):
                yield tick, schedule
        except ConfigurationError:  # workers have the package of cron, and this process has not
            yield schedule.due, schedule
