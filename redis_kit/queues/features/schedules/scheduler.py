"""Ticks of schedules: each is claimed by the supervisor that is first, its job is added, and the next one is planned.

There is no leader. Two supervisors wake up for each tick, the others look every 2 seconds, so that any of them may die.
A claim ends after 5 seconds. A tick has its time as its name: one that was claimed again adds no second job.
"""

import logging
from time import monotonic
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisFailure
from redis_kit.core.logs.error_text import text_of
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.signals import send_safely
from redis_kit.queues import signals
from redis_kit.queues.engine import enqueue
from redis_kit.queues.engine.feature import Supervision
from redis_kit.queues.errors import UnknownTask
from redis_kit.queues.features.schedules import control, periodic, store, target
from redis_kit.queues.features.schedules.definition import Plan
from redis_kit.queues.features.schedules.store import ClaimedTicks, Confirmation, State, StoredSchedule
from redis_kit.queues.queue import Queue
from redis_kit.queues.worker.shared.failures import UNAVAILABLE

logger = logging.getLogger("redis_kit.worker")
EVERY = 2.0  # seconds between two looks
IDLE = 10.0  # seconds between two looks if there are no schedules
EARLY = 0.0005  # seconds: a look before its time finds nothing
WAIT = 1000  # ms to the next look at a tick that waits for a running job
UNABLE = 60.0  # seconds for which a schedule that this process can't run is left to others
MOST_UNABLE = 500
RAN = (store.ADDED, store.RETRIED, store.REPEATED)
RELOAD, RELOAD_IDLE = 60_000, 600_000  # ms between two looks at the rows of the database
LONGEST_ERROR = 300  # characters


class DueTick(NamedTuple):
    """The ticks of a claimed schedule that are to run, its state before them, and the steps that add their jobs."""

    before: State
    plan: Plan
    call: target.ScheduledCall
    steps: list[ScriptCall]


class Scheduler:
    """The duty of schedules: it adds the jobs of their ticks.

    The first queue of the worker takes the ticks that are passed on, as those of Celery.
    """

    def __init__(self, supervisor: Supervision) -> None:
        self.due = 0.0
        self._supervisor, self._run_flow = supervisor, supervisor.queues[0].run_flow
        self._declared = periodic.all_declared()
        self._version = periodic.version(self._declared)
        self._living = set[str]()  # releases of the code at the last look
        self._looked = 0  # when that was; server's time in ms
        self._stored = self._read = 0  # when rows were stored by anybody, and read for this one; server's time in ms
        self._unable: dict[str, float] = {}
        self._log_limit = LogRateLimit()

    def run(self) -> None:
        """Claim ticks that are due, add their jobs, and plan the next ticks."""
        try:
            wait = self._claim_and_run()
        except UNAVAILABLE:
            raise
        except RedisFailure as error:
            self._log_limit.log(logger.error, "", "Schedules can't be read or changed: %s", error)
            wait = EVERY
        self.due = monotonic() + wait

    def _claim_and_run(self) -> float:
        """Run what is due, and return in how many seconds to look again."""
        now = monotonic()
        self._unable = {name: until for name, until in self._unable.items() if until > now}
        skipped = list(self._unable)[:MOST_UNABLE]
        claimed: ClaimedTicks = self._run_flow(store.claim(self._supervisor.id, self._version, skipped))
        for schedule in claimed.schedules:
            self._unable.pop(schedule.name, None)  # it was changed
        dues = self._add_jobs(claimed)
        self._read_rows(claimed)
        if self._declare_missing(claimed):
            return 0.0
        if len(self._unable) >= MOST_UNABLE:
            return IDLE
        if claimed.next == 0 or len(claimed.schedules) == store.CLAIMED:
            return 0.0
        wait = EVERY if claimed.total or self._declared else IDLE
        if claimed.watches:
            coming = [claimed.next] * (claimed.next >= 0) + [due - claimed.now for due in dues]
            wait = min([wait, *(max(0, ms) / 1000 + EARLY for ms in coming)])
        return wait

    def _declare_missing(self, claimed: ClaimedTicks) -> bool:
        """Store what the server lacks, as at the start and after it lost its data; say whether that was anything."""
        seen = claimed.versions
        living = {each for each, last in seen.items() if claimed.now - last <= store.REPLACED} - {store.STORED}
        stalled = claimed.now - self._looked > store.REPLACED  # another release may have come and gone
        declares = bool(self._version) and (self._version not in seen or living != self._living or stalled)
        if declares:
            self._run_flow(store.declare(self._version, self._declared))
            living |= {self._version}
        self._living, self._looked = living, claimed.now
        return declares

    def _read_rows(self, claimed: ClaimedTicks) -> None:
        """Have the database read at the start, after a loss of data, and each minute by a watcher."""
        stored = claimed.versions.get(store.STORED, 0)
        lost = not stored and self._stored > 0
        age = claimed.now - max(stored, self._read)
        if not self._read or lost or (claimed.watches and age > (RELOAD if claimed.total else RELOAD_IDLE)):
            self._supervisor.start_helper(control.load_rows)
            self._read = claimed.now  # also if it fails, as before the migration
        self._stored = stored

    def _add_jobs(self, claimed: ClaimedTicks) -> list[int]:
        """Add the jobs of claimed ticks, and plan the next ones; return when these are due."""
        if not claimed.schedules:
            return []
        ticks: list[DueTick] = []
        rows: list[Confirmation] = []
        for stored in claimed.schedules:
            try:
                tick = self._plan(stored, claimed.now)
            except UNAVAILABLE:
                raise
            except BaseException as error:  # of arguments, of a unique_by of the project, or a newer release's
                rows.append(self._leave_to_others(stored, error))
                continue
            if isinstance(tick, Confirmation):
                rows.append(tick)
            else:
                self._run_flow(enqueue.registered(Queue(tick.call.shard)))
                ticks.append(tick)
        answers = iter(self._run_flow(store.put([step for tick in ticks for step in tick.steps])))
        for tick in ticks:
            if row := self._confirmation(tick, [next(answers) for _ in tick.steps], claimed.now):
                rows.append(row)
        self._run_flow(store.confirm(claimed.claim, rows))
        return [row.due for row in rows if row.name not in self._unable]

    def _plan(self, stored: StoredSchedule, now: int) -> DueTick | Confirmation:
        before = stored.state
        definition = stored.load()
        last = before.last if before.timing == definition.timing else None  # other times start again
        plan = definition.plan(last, now, waiting=before.outcome == store.WAITS)
        if not plan.run:
            after = before._replace(timing=definition.timing, last=plan.last, next=plan.tick, problem="")
            if plan.missed:
                after = after._replace(missed=after.missed + plan.missed, tick=plan.last or 0, outcome=store.MISSED)
            return Confirmation(stored.name, plan.due or now + store.SOME_DAY, after)
        call = target.call_of(definition, self._supervisor.options.queues[0])
        return DueTick(before, plan, call, [call.step(tick) for tick in plan.run])

    def _confirmation(self, due: DueTick, answers: list[Any], now: int) -> Confirmation | None:
        """Return what became of ticks; None if a queue refused them, so that they are claimed again after the lease."""
        before, plan, definition = due.before, due.plan, due.call.definition
        for answer in answers:
            if isinstance(answer, RedisFailure):
                text = "Schedule %a: its job can't be added: %s"
                self._log_limit.log(logger.error, definition.name, text, definition.name, answer)
                return None
        for outcome, id in answers:
            if outcome == store.ADDED:
                send_safely(signals.job_enqueued, Queue, queue=due.call.queue, id=id)
        tick, (outcome, job) = plan.run[-1], answers[-1]
        outcomes = [each[0] for each in answers]
        waited = before.outcome == store.WAITS  # for the running job: newer ticks took the place of the older ones
        waits = outcome == store.WAITS
        look = plan.due or now + store.SOME_DAY
        after = before._replace(
            timing=definition.timing,
            last=tick - 1 if waits else plan.last,
            next=plan.tick,
            tick=tick,
            outcome=store.ADDED if outcome == store.REPEATED else outcome,
            late=max(0, now - tick - definition.delay(tick)),
            job=job,
            queue=due.call.queue,
            runs=before.runs + sum(each in RAN for each in outcomes),
            skips=before.skips + outcomes.count(store.SKIPPED) + plan.missed * waited,
            missed=before.missed + plan.missed * (not waited),
            problem="",
        )
        return Confirmation(definition.name, min(now + WAIT, look) if waits else look, after)

    def _leave_to_others(self, stored: StoredSchedule, error: BaseException) -> Confirmation:
        self._unable[stored.name] = monotonic() + UNABLE
        reason = text_of(error) if isinstance(error, UnknownTask) else f"{type(error).__name__}: {text_of(error)}"
        text = "Schedule %a can't run here and is left to other workers: %a"
        self._log_limit.log(logger.error, stored.name, text, stored.name, reason)
        return Confirmation(stored.name, stored.look or 0, stored.state._replace(problem=reason[:LONGEST_ERROR]))
