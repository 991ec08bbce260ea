"""The scripts that move a job from state to state: each an atomic step on the server's clock."""

import re
from collections.abc import Sequence
from typing import Any

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues import identity
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.job import Job
from redis_kit.queues.unique import Wish

REASON = 1000  # characters
OF_JOB = ("result", "finished", "period")  # the last one is a unique key's
_KEY = re.compile(r"^-- KEYS\[\d+\]\s+(\w+)", re.MULTILINE)


class Move:
    """A script over the keys of one queue. Which ones, and in which order, its header says."""

    def __init__(self, name: str) -> None:
        self._script = scripts.load(__package__, name)
        self._parts = _KEY.findall(self._script.source)

    def __call__(self, base: str, *args: Any, job: str = "") -> ScriptCall:
        """Return the step for the queue whose keys begin with ``base``, and for a job's own keys."""
        return self._script([base + part + (f":{job}" if part in OF_JOB else "") for part in self._parts], args)


PUT, CLAIM, ACK, NACK, BEAT, LEAVE = map(Move, ("put", "claim", "ack", "nack", "beat", "leave"))
PUT_UNIQUE, PROGRESS = map(Move, ("put_unique", "progress"))
COUNT, REPORT, LIST_DEAD, LIST_WORKERS = map(Move, ("count", "report", "list_dead", "list_workers"))
REQUEUE, RUN_NOW, REMOVE, PURGE = map(Move, ("requeue", "run_now", "remove", "purge"))
FIND, PEEK, PAUSE, RESUME, PAUSED = map(Move, ("find", "peek", "pause", "resume", "paused"))
SUCCEED, CANCEL, FIND_RESULT = map(Move, ("succeed", "cancel", "find_result"))


def lease() -> int:
    """Return for how long a worker may be silent, in ms."""
    return int(conf.section(QueueSettings).DEAD_AFTER * 1000)


def put(base: str, jobs: Sequence[tuple[str, bytes]], *, delay: int, due: int, priority: int) -> ScriptCall:
    """Return the step that adds jobs, given as id and body. Times are in ms."""
    return PUT(base, delay, due, priority, *(part for job in jobs for part in job))


def put_unique(base: str, job: tuple[str, bytes], wish: Wish, *, delay: int, due: int, priority: int) -> ScriptCall:
    """Return the step that adds a job unless there is one of its unique key. Times are in ms."""
    key, until, replace = wish
    return PUT_UNIQUE(base, delay, due, priority, *job, key, until, int(replace), job=key)


def claim(base: str, worker: str, token: str, limit: int, about: str = "") -> ScriptCall:
    """Return the step that takes jobs."""
    return CLAIM(base, worker, token, limit, lease(), about or identity.information())


def ack(base: str, job: Job) -> ScriptCall:
    """Return the step that ends a job that is done."""
    return ACK(base, *_claimed(job), lease())


def succeed(base: str, job: Job, *, value: bytes, keep: int) -> ScriptCall:
    """Return the step that ends a job that is done and keeps its result for so many ms."""
    return SUCCEED(base, *_claimed(job), lease(), value, keep, job=job.id)


def nack(
    base: str, job: Job, *, delay: int, attempts: int, reason: str, error: bytes = b"", keep: int = 0
) -> ScriptCall:
    """Return the step that ends a failed attempt; its error, if any, is kept with the result. Times are in ms."""
    text = reason[:REASON].encode("utf-8", "backslashreplace")
    limit = conf.section(QueueSettings).DEAD_LIMIT
    own = job.id if error else "-"
    return NACK(base, *_claimed(job), lease(), delay, attempts, text, limit, error, keep, job=own)


def progress(base: str, job: Job, *, told: bytes, keep: int) -> ScriptCall:
    """Return the step that keeps how far a running job is, for so many ms."""
    return PROGRESS(base, *_claimed(job), told, keep, job=job.id)


def cancel(base: str, id: str, *, error: bytes, keep: int) -> ScriptCall:
    """Return the step that cancels a job: one that waits now, with a result that is kept for so many ms."""
    return CANCEL(base, id, error, keep, job=id)


def find_result(base: str, id: str, *, waits: bool = False) -> ScriptCall:
    """Return the step that finds out what became of a call."""
    return FIND_RESULT(base, id, int(waits), job=id)


def beat(base: str, worker: str, about: str = "") -> ScriptCall:
    """Return the step that keeps a worker alive and gives back the jobs of dead ones."""
    options = conf.section(QueueSettings)
    return BEAT(base, worker, lease(), about or identity.information(), options.MAX_CRASHES, options.DEAD_LIMIT)


def _claimed(job: Job) -> tuple[bytes, bytes]:
    return job.token.encode("utf-8", "surrogateescape"), job.id.encode("utf-8", "surrogateescape")
