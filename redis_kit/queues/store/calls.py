"""The scripts of queues, each an atomic step on the server's clock, and the arguments that they take."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.jobs import ids as identity
from redis_kit.queues.jobs.ack import Ack
from redis_kit.queues.jobs.job import Job
from redis_kit.queues.jobs.lane import Lane
from redis_kit.queues.jobs.unique import UniqueKey
from redis_kit.queues.keys import OF_JOB, OF_ONE, OF_WORKER, of_one
from redis_kit.queues.settings import QueueSettings

REASON = 1000  # characters
_KEY = re.compile(r"^-- KEYS\[\d+\]\s+(\w+)", re.MULTILINE)
NewJob = tuple[str, bytes]  # id and body
InLane = Lane | None


class QueueScript:
    """A script over the keys of one queue. Its header names them, in their order."""

    def __init__(self, name: str) -> None:
        self._script = scripts.load("redis_kit.queues.store", name)
        self._parts = _KEY.findall(self._script.source)
        self._keys = lru_cache(maxsize=256)(self._made)

    def __call__(
        self,
        base: str,
        *args: Any,
        worker: str = "",
        job: str = "",
        more: Sequence[str] = (),
    ) -> ScriptCall:
        """Return the step for the queue whose keys begin with ``base``, or for one job of it, with ``more`` keys."""
        keys = self._made(base, worker, job) if job else self._keys(base, worker)
        return self._script([*keys, *more] if more else keys, args)

    def _made(self, base: str, worker: str, job: str = "") -> list[str]:
        names = dict.fromkeys(OF_ONE, job) | dict.fromkeys(OF_WORKER, worker)
        return [of_one(base, part, names[part]) if part in names else base + part for part in self._parts]


PUT, PUT_UNIQUE, NACK, DEFER, RECALL = map(QueueScript, ("put", "put_unique", "nack", "defer", "recall"))
SNOOZE, PUT_BATCH = map(QueueScript, ("snooze", "put_batch"))
ACK, ACK_AND_CLAIM, RETURN_CLAIMED = map(QueueScript, ("ack", "ack_and_claim", "return_claimed"))
HEARTBEAT, SIGN_OFF, REAP, SWEEP = map(QueueScript, ("heartbeat", "sign_off", "reap", "sweep"))
LIST_LOST_WORKERS = QueueScript("list_lost_workers")
COUNT, QUEUE_STATS, LIST_WORKERS, SEND_COMMAND = map(
    QueueScript, ("count", "queue_stats", "list_workers", "send_command")
)
REQUEUE, RUN_NOW, DELETE, PURGE, CANCEL = map(QueueScript, ("requeue", "run_now", "delete", "purge", "cancel"))
GET_JOB, GET_JOB_DETAILS, PEEK = map(QueueScript, ("get_job", "get_job_details", "peek"))
LIST_JOBS = QueueScript("list_jobs")
GET_RESULT, STORE_PROGRESS, STORE_CURSOR = map(QueueScript, ("get_result", "store_progress", "store_cursor"))
POSTPONE, CLAIM_BY_ID = map(QueueScript, ("postpone", "claim_by_id"))
COUNT_HANDOVERS, GET_HANDOVERS = map(QueueScript, ("count_handovers", "get_handovers"))
PAUSE, RESUME, GET_PAUSE = map(QueueScript, ("pause", "resume", "get_pause"))
CLAIM_TICKS, CONFIRM_TICKS, PUT_TICK = map(QueueScript, ("claim_ticks", "confirm_ticks", "put_tick"))
DECLARE_SCHEDULES, STORE_SCHEDULES, LIST_SCHEDULES, FORGET_SCHEDULES = map(
    QueueScript, ("declare_schedules", "store_schedules", "list_schedules", "forget_schedules")
)
SET_LIMIT, LIST_LIMITS = map(QueueScript, ("set_limit", "list_limits"))
OF_LATER = ("scheduled",)
OF_LANE = (*OF_LATER, "lanes", "limits", "parked")
OF_USED_ID = (*OF_LANE, "dead", "reasons", "unique", "owners", "cancels")  # of an earlier job
RARE_OF_ACK = ("unique", "signal", "paused", "parked")  # only for queues with unique keys or lanes
RARE_OF_CLAIM = ("unique", "limits", "parked")
TAKEN = 200  # jobs in one call
COMMAND_TTL = 60_000  # ms
ASKS = -1  # the reply of a script that did nothing, as it needs the rare keys
STORED_COMMANDS = {"resume": "work"}  # as workers of earlier releases read it
SAMPLE = 200  # jobs that a sweep looks at
MOST_RUNNING = 5000  # running jobs with which a sweep is done
LONGEST_LEASE = 3_601_000  # ms: a moment more than the longest WORKER_TIMEOUT


def lease() -> int:
    """Return the lease of a worker in ms: the time without a heartbeat after which it counts as dead."""
    return int(conf.section(QueueSettings).WORKER_TIMEOUT * 1000)


def put(
    base: str, jobs: Sequence[NewJob], *, delay: int, due: int, priority: int, own: bool = False, lane: InLane = None
) -> ScriptCall:
    """Return the step that adds jobs, given as id and body; ``own`` if callers chose the ids. Times are in ms."""
    parts = OF_USED_ID if own else OF_LANE if lane else OF_LATER if delay or due else ()
    more, last = [base + part for part in parts], (lane.text,) if lane else ()
    return PUT(base, _when(delay, due), priority, *(part for job in jobs for part in job), *last, more=more)


def ack_and_claim(
    base: str,
    worker: str,
    claim: str,
    limit: int,
    about: str = "",
    *,
    again: bool = False,
    acks: Sequence[Ack] = (),
    rare: bool = True,
    done_limit: int = 0,
) -> ScriptCall:
    """Return the step that acknowledges jobs and claims others. Without the ``rare`` keys it may answer ASKS.

    The stream of done jobs keeps ``done_limit`` jobs; with 0 it gets none.
    """
    args = (worker, claim, limit, lease(), about or identity.information(), int(again))
    more = _more(base, RARE_OF_CLAIM if rare else (), acks, done_limit)
    return ACK_AND_CLAIM(base, *args, *_flat(acks, done_limit), worker=worker, more=more)


def put_batch(
    base: str, batch: str, jobs: Sequence[NewJob], *, ttl_ms: int, delay: int, due: int, priority: int
) -> ScriptCall:
    """Return the step that adds new jobs, which may be repeated within ``ttl_ms``: it knows the batch by its name."""
    return PUT_BATCH(base, _when(delay, due), priority, ttl_ms, *(part for job in jobs for part in job), job=batch)


def put_unique(
    base: str,
    job: NewJob,
    key: UniqueKey,
    *,
    delay: int,
    due: int,
    priority: int,
    own: bool = False,
    lane: InLane = None,
) -> ScriptCall:
    """Return the step that adds a job unless its unique key is in use; see put()."""
    name, until, replace = key
    more, last = (f"{base}reasons", f"{base}cancels") if own else (), (lane.text,) if lane else ()
    return PUT_UNIQUE(base, _when(delay, due), priority, *job, name, until, int(replace), *last, job=name, more=more)


def put_tick(
    base: str,
    job: tuple[str, bytes],
    unique: UniqueKey | None,
    *,
    schedule: str,
    tick: int,
    overlap: str,
    priority: int,
    lane: InLane = None,
) -> ScriptCall:
    """Return the step that adds the job of a schedule's tick; ``tick`` is 0 for a run that somebody asked for."""
    key, until = (unique.key, unique.until) if unique else ("", "")
    return PUT_TICK(
        base, schedule, tick, overlap, priority, *job, key, until, lane.text if lane else "", job=key or "-"
    )


def ack(base: str, worker: str, acks: Sequence[Ack], *, rare: bool = True, done_limit: int = 0) -> ScriptCall:
    """Return the step that acknowledges jobs; see ack_and_claim()."""
    more = _more(base, RARE_OF_ACK if rare else (), acks, done_limit)
    return ACK(base, worker, lease(), *_flat(acks, done_limit), worker=worker, more=more)


def return_claimed(base: str, jobs: Sequence[Job]) -> ScriptCall:
    """Return the step that returns claimed jobs that were not begun."""
    return RETURN_CLAIMED(base, *(b"/".join(_claimed(job)) for job in jobs))


def nack(
    base: str, job: Job, *, delay: int, attempts: int, reason: str, error: bytes = b"", ttl_ms: int = 0
) -> ScriptCall:
    """Return the step that records a failed attempt; its error, if any, is stored with the result. Times are in ms."""
    text = reason[:REASON].encode("utf-8", "backslashreplace")
    limit = conf.section(QueueSettings).DEAD_LIMIT
    own = job.id if error else "-"
    args = (*_claimed(job), lease(), delay, attempts, text, limit, error, ttl_ms)
    return NACK(base, *args, worker=_worker(job), job=own)


def defer(base: str, job: Job, digest: str, shape: str, expires: int, longest: int, most: int) -> ScriptCall:
    """Return the step that returns a job whose call its worker can't run. Times are in ms."""
    args = (*_claimed(job), lease(), digest, shape, expires, longest, most)
    return DEFER(base, *args, worker=_worker(job), job=digest)


def postpone(base: str, job: Job, *, delay: int, holds: bool) -> ScriptCall:
    """Return the step that returns a claimed job for later, after a delay in ms.

    With ``holds`` another system has it, and it still counts for its limits.
    """
    return POSTPONE(base, *_claimed(job), lease(), delay, int(holds), worker=_worker(job))


def claim_by_id(base: str, worker: str, claim: str, id: str, *, version: str, token: str, about: str) -> ScriptCall:
    """Return the step that claims one job, which was handed over with the claim ``token``."""
    return CLAIM_BY_ID(base, worker, claim, id, version, token, lease(), about, worker=worker)


def snooze(base: str, job: Job, *, delay: int, expires: int, why: str, ttl_ms: int) -> ScriptCall:
    """Return the step that returns a job whose task asked to run later. Times are in ms."""
    text = why[:REASON].encode("utf-8", "backslashreplace")
    args = (*_claimed(job), lease(), delay, expires, text, ttl_ms)
    return SNOOZE(base, *args, worker=_worker(job), job=job.id if ttl_ms else "-")


def store_progress(base: str, job: Job, *, progress: bytes, ttl_ms: int) -> ScriptCall:
    """Return the step that stores the progress of a running job for ``ttl_ms``."""
    return STORE_PROGRESS(base, *_claimed(job), progress, ttl_ms, job=job.id)


def store_cursor(
    base: str, job: Job, number: int, position: tuple[bytes, int], progress: tuple[bytes, int], *, crashed: bool
) -> ScriptCall:
    """Return the step that stores how far a loop of a running job is, and its progress, each for a number of ms.

    If workers died with the job before (``crashed``), these crashes no longer count.
    """
    return STORE_CURSOR(base, *_claimed(job), number, *position, *progress, int(crashed), job=job.id)


def cancel(base: str, id: str, *, error: bytes, ttl_ms: int) -> ScriptCall:
    """Return the step that cancels a job; the result of a waiting job is stored for ``ttl_ms``."""
    return CANCEL(base, id, error, ttl_ms, job=id)


def get_result(base: str, id: str, *, waits: bool = False) -> ScriptCall:
    """Return the step that reads the result of a call."""
    return GET_RESULT(base, id, int(waits), job=id)


def get_job_details(base: str, id: str, errors: int, longest: int) -> ScriptCall:
    """Return the step that reads all about a job with its latest errors; texts are at most ``longest`` bytes long."""
    return GET_JOB_DETAILS(base, id, errors, longest, job=id)


def heartbeat(base: str, worker: str, about: str = "", *, after: bytes = b"", page: int = 0) -> ScriptCall:
    """Return the step that keeps a worker alive and returns the jobs of dead workers.

    It lists ``page`` of the worker's running jobs, those that follow ``after``.
    """
    options = conf.section(QueueSettings)
    args = (lease(), about or identity.information(), options.MAX_CRASHES, options.DEAD_LIMIT)
    return HEARTBEAT(base, worker, *args, after, page, worker=worker)


def reap(base: str, worker: str, started: Sequence[str], beside: Sequence[tuple[str, str]] = ()) -> ScriptCall:
    """Return the step that returns the jobs of a dead worker; of this queue it ran ``started``, in all ``beside``."""
    options = conf.section(QueueSettings)
    names = "".join(f"\n{queue}/{id}" for queue, id in beside)
    texts = [text.encode("utf-8", "surrogateescape") for text in (names, *started)]
    return REAP(base, worker, TAKEN, options.MAX_CRASHES, options.DEAD_LIMIT, *texts)


def sign_off(base: str, worker: str, limit: int) -> ScriptCall:
    """Return the step that returns the jobs of a worker, ``limit`` at most, and then forgets it."""
    return SIGN_OFF(base, worker, limit, worker=worker)


def sweep(base: str) -> ScriptCall:
    """Return the step that makes jobs ready that are in no state."""
    return SWEEP(base, SAMPLE, MOST_RUNNING, LONGEST_LEASE)


def send_command(base: str, worker: str, command: str) -> ScriptCall:
    """Return the step that stores a command for a worker."""
    return SEND_COMMAND(base, worker, STORED_COMMANDS.get(command, command), COMMAND_TTL)


def _when(delay: int, due: int) -> str | int:
    return due or (f"+{delay}" if delay else 0)


def _flat(acks: Sequence[Ack], done_limit: int) -> list[Any]:
    """Return how many there are, the members of `running`, the ids, and of each with a result its number and that.

    Then, if the stream of done jobs keeps some, 0, a line about each, and how many it keeps.
    """
    if not acks:
        return [0]
    flat: list[Any] = [len(acks)]
    flat += [ack.token + b"/" + ack.id for ack in acks]
    flat += [ack.id for ack in acks]
    for number, ack in enumerate(acks, 1):
        if ack.value:
            flat += (number, ack.value, ack.ttl_ms)
    if done_limit:
        flat += (0, b"".join(ack.about + b"\n" for ack in acks), done_limit)
    return flat


def _more(base: str, rare: Sequence[str], acks: Sequence[Ack], done_limit: int) -> list[str]:
    """Return the keys that only some calls have: the rare ones, those of results, and twice the stream of done jobs."""
    more = [base + part for part in rare] if rare else []
    if acks:
        more += [of_one(base, part, ack.id.decode()) for ack in acks if ack.value for part in OF_JOB]
        more += [f"{base}done"] * 2 if done_limit else []
    return more


def _worker(job: Job) -> str:
    return job.token.partition("/")[0]


def _claimed(job: Job) -> tuple[bytes, bytes]:
    return job.token.encode("utf-8", "surrogateescape"), job.id.encode("utf-8", "surrogateescape")
