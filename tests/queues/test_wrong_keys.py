"""A key of a wrong type: whichever it is and whatever is called, the error names it, and nothing was changed."""

import contextlib

import pytest

from redis_kit.core.errors import KeyConflict
from redis_kit.queues import LeaseLost, Queue
from redis_kit.queues.engine import calls as moves
from redis_kit.queues.engine import claim
from redis_kit.queues.engine.claim import version
from redis_kit.queues.engine.ids import this_process
from redis_kit.queues.features.cancel.store import cancel
from redis_kit.queues.features.handover.routes import COUNT_HANDOVERS
from redis_kit.queues.features.limits.lanes import SET_LIMIT
from redis_kit.queues.features.results import store as results
from redis_kit.queues.features.results.progress import STORE_PROGRESS
from redis_kit.queues.features.resumable.loop import STORE_CURSOR
from redis_kit.queues.features.schedules import store as schedules
from redis_kit.queues.features.unique.keys import chosen
from redis_kit.queues.inspection import queue_history
from redis_kit.queues.reports.workers import SEND_COMMAND
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue, send_heartbeats
from tests.queues.support.backup import Backup
from tests.queues.support.claiming import claim_again
from tests.queues.support.every_call import calls
from tests.queues.support.tasks import remember

pytestmark = pytest.mark.once

PARTS = ("jobs", "ready", "scheduled", "running", "dead", "reasons", "sequence", "signal", "paused", "unique", "owners")
PARTS = (*PARTS, "cancels", "workers", "info", "minutes", "repeats", "orders", "unknown", "handovers", "ticks")
PARTS = (*PARTS, "lanes", "turns", "limits", "parked", "lost", "crashed")
OF_JOBS = ("result", "finished", "period", "cursor")
OF_WORKERS = ("answers",)
STRINGS = ("sequence", "paused", "period")
HEARTBEAT = 10  # the number of the call that renews a lease before it looks at jobs


class Scene:
    """A queue with jobs in each state, two workers, of which one is dead, and all that may be called."""

    def __init__(self, raw):
        self.queue, self.source = Queue("default"), WorkerQueue("default", worker="w", about="{}")
        for _ in range(3):
            remember.enqueue("x")
        self.queue.put(1, unique="u")
        self.queue.put(1, delay=60)
        self.queue.put(1, id="x", delay=50)
        self.queue.put(1, unique="z", unique_until="queued")
        self.jobs = self.queue.claim(3, worker="w")
        self.queue.nack(self.jobs[2], max_attempts=1)
        self.ids = [*(job.id for job in (*self.jobs, *self.queue.claim(1, worker="gone"))), "x"]
        self.queue.put_many([1, 2, 3], group="a")
        self.queue.put(1, group="b", unique="w")
        raw.zadd(self.queue.key("workers"), {"gone": 1.5})
        raw.hset(self.queue.key("cancels"), self.jobs[1].id, 1)
        raw.hset(self.queue.key("orders"), "w", "quiet")

    def calls(self):
        """Return the calls, by number the same in each scene."""
        queue, source, base = self.queue, self.source, self.queue.key("")

        def tick(id, key, number):
            unique, until, _ = key or ("", "", False)
            return schedules.PUT_TICK(base, "s", number, "allow", 0, id, b"1", unique, until, "", job=unique or "-")

        job, other, dead = self.jobs
        snooze = {"expires": 0, "why": "", "ttl_ms": 1000}
        return [
            *calls(queue, source, job),
            lambda: queue_history(queue.name),
            lambda: queue.put(1, unique="u", replace=True),
            lambda: queue.put(1, unique="v"),
            lambda: queue.put(1, unique="p", unique_until=5),
            lambda: queue.put(1, id="new"),
            lambda: queue.put(1, id=dead.id),
            lambda: queue.put(1, id=dead.id, delay=60, unique="new"),
            lambda: queue.put_many(range(3)),
            lambda: self.run(tick("t1", None, 5)),
            lambda: self.run(tick("t2", chosen("k", 5, False), 6)),
            lambda: queue.put_many(range(3), delay=60),
            lambda: queue.put_many(range(3), group="a"),
            lambda: queue.put(1, group="a", delay=60, id=dead.id),
            lambda: queue.put(1, group="a", unique="w", replace=True),
            lambda: self.run(SET_LIMIT(base, "group=a", "1 - ")),
            lambda: source.release([job]),
            lambda: queue.run_flow(claim.postpone(queue, [(job, 1.0)], holds=True)),
            lambda: self.run(
                moves.claim_by_id(base, "e", "c", other.id, version=version(other), token=other.token, about="{}")
            ),
            lambda: self.run(
                moves.claim_by_id(
                    base, "e", "c", "x", version=f"0 {round(queue.get('x').due * 1000)}", token="", about="{}"
                )
            ),
            lambda: self.run(COUNT_HANDOVERS(base, 1, 1, "e", "celery", 1000)),
            lambda: self.run(moves.reap(base, "w", [job.id])),
            lambda: self.run(cancel(base, other.id)),
            lambda: self.run(cancel(base, "x")),
            lambda: self.run(STORE_PROGRESS(base, *moves.claim_of(job), b"1", 1000, job=job.id)),
            lambda: self.run(STORE_CURSOR(base, *moves.claim_of(job), 0, b"1", 1000, b"1", 1000, 1, job=job.id)),
            lambda: source.run_flow(claim.snooze(source, job, 5, **snooze)),
            lambda: source.run_flow(claim.snooze(source, other, 5, **snooze)),
            lambda: source.run_flow(claim.fail(source, job, 0, "e", 1, (b"[]", 1000))),
            lambda: source.run_flow(claim.fail(source, job, 5, "e", 9, (b"[]", 1000))),
            *(lambda state=state: queue.purge(state) for state in ("ready", "scheduled", "dead")),
            lambda: queue.requeue([dead.id]),
            lambda: self.run(results.get_result(base, job.id, waits=True)),
            lambda: self.run(SEND_COMMAND(base, "w", "quiet", 1000)),
            lambda: queue.pause(5),
            lambda: send_heartbeats([source]),
            lambda: claim_again(queue, "token", 1),
        ]

    def run(self, step):
        def flow():
            return (yield step)

        return self.queue.run_flow(flow())

    def spoil(self, raw, part):
        """Put something else in the place of a key, or of one for each job; return their names."""
        ids = {OF_JOBS: [*self.ids, chosen("p", 5, False).key], OF_WORKERS: ["w", this_process()]}
        names = [f"{part}:{id}" for parts, of in ids.items() if part in parts for id in of] or [part]
        keys = [self.queue.key(name) for name in names]
        for key in keys:
            raw.delete(key)
            raw.rpush(key, "x") if part in STRINGS else raw.set(key, "x")
        return keys


@pytest.mark.parametrize("part", [*PARTS, *OF_JOBS, *OF_WORKERS])
def test_key_of_a_wrong_type_is_named_and_nothing_is_changed(kit, part):
    scene = Scene(kit.raw)
    keys = scene.spoil(kit.raw, part)
    backup, errors = Backup(kit), {}
    before = backup.contents()
    for number, call in enumerate(scene.calls()):
        try:
            with contextlib.suppress(LeaseLost):
                call()
        except KeyConflict as error:
            errors[number] = str(error)
            after = backup.contents()
            changed = {key for key in before | after if before.get(key) != after.get(key)}
            renewed = {scene.queue.key(part).encode() for part in ("workers", "orders") if number == HEARTBEAT}
            assert changed <= renewed, f"call {number} has changed something"
            if changed:
                backup.restore()
        else:
            backup.restore()
    assert errors
    assert [error for error in errors.values() if not any(key in error for key in keys)] == []
