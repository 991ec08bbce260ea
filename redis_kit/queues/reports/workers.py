"""Workers as they report about themselves, the jobs they hold, those that were lost, and commands to them."""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from redis_kit.core.errors import KeyConflict, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch
from redis_kit.core.values.sequences import batched
from redis_kit.queues import validation
from redis_kit.queues.engine.calls import QueueScript, lease
from redis_kit.queues.engine.message import task_of
from redis_kit.queues.reports.stats import Errors, bases, of_all, over, read_chosen

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
Command = Literal["quiet", "resume", "stop"]
LIST_WORKERS, LIST_LOST_WORKERS, SEND_COMMAND = (
    QueueScript(name, __package__) for name in ("list_workers", "list_lost_workers", "send_command")
)
COMMAND_TTL = 60_000  # ms
FIELDS = 5  # of a worker in the reply of LIST_WORKERS
MOST_WORKERS = 100
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
DEAD = "dead"  # the state of a worker whose lease is over
UNRESPONSIVE = "unresponsive"  # the state of a worker process that gives no sign of life, though its supervisor does
REPORTED: dict[str, type] = dict.fromkeys(("host", "supervisor", "state"), str)
REPORTED |= dict.fromkeys(("pid", "supervisor_pid", "threads", "memory", "clock_back", "unresponsive"), int)
HOUR = 3600.0  # seconds for which a lost worker needs attention
_RECORD = re.compile(rb"\d+ (\d{1,15}) (\d{1,15}) (\d{1,15}) (.*)", re.DOTALL)


class RunningJob(NamedTuple):
    """A running job. ``task`` is "" if it names none; ``age`` is for how many seconds it has been running.

    The age is None if the job stores no result.
    """

    queue: str
    id: str
    task: str = ""
    age: float | None = None


class WorkerInfo(NamedTuple):
    """A worker: its queues, the ids of its running jobs, and the seconds since its last heartbeat.

    ``running`` is the number of its running jobs; ``jobs`` and ``held`` have at most 100 of each queue.

    The rest is reported with heartbeats by workers of ``rk_worker``: ``supervisor`` and ``supervisor_pid``, the process
    above it; ``state``, "working", "quiet" or "stopping"; ``memory``, resident memory in MiB; ``clock_back``, by how
    many seconds the supervisor has seen the server's clock go back, until the clock has caught up, and for an hour at
    least. ``held`` are its running jobs in detail.

    A worker process that has given its supervisor no sign of life for 30 seconds has the state "unresponsive": it was
    stopped, or a job holds the interpreter in C code. ``unresponsive`` is for how many seconds, else 0.

    A worker without a heartbeat for ``WORKER_TIMEOUT`` has the state "dead", until the heartbeat or claim of another
    worker of the queue removes it and makes its jobs ready. A worker whose record is damaged has the state "damaged",
    the host "?" and the pid 0.
    """

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    jobs: tuple[str, ...]
    silent: float
    supervisor: str = ""
    supervisor_pid: int = 0
    threads: int = 0
    state: str = ""
    memory: int | None = None
    held: tuple[RunningJob, ...] = ()
    clock_back: int = 0
    unresponsive: int = 0
    running: int = 0


class LostWorker(NamedTuple):
    """A worker that ended without signing off, such as on a machine that failed.

    ``jobs`` is how many jobs other workers took from it, ``age`` how many seconds ago that was. ``supervisor_pid`` is 0
    for other programs than ``rk_worker``.
    """

    id: str
    host: str
    pid: int
    supervisor_pid: int
    queues: tuple[str, ...]
    jobs: int
    age: float


def list_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """Return the workers of these queues, by default of all: at most 100 of each. One round trip, two for all.

    A queue with a key of a wrong type is left out. With a dict for ``errors``, the error is stored there by the queue's
    name; without it the error is logged, at most once a minute.
    """
    return over(using).run_flow(read_workers(queues, using, errors))


async def alist_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> list[WorkerInfo]:
    """See list_workers()."""
    return await over(using).arun_flow(read_workers(queues, using, errors))


def control_worker(worker: str, command: Command, *, using: str = "default") -> bool:
    """Send a command to a worker: "quiet" to claim no more jobs, "resume", or "stop".

    Return False if the worker does not exist or is dead. ``rk_worker`` reads the command with its next heartbeat; after
    a minute it is void. Other programs that claim jobs read no commands. The id may be that of a supervisor or of
    any of its workers. Three round trips.
    """
    return over(using).run_flow(_control(worker, command, using))


async def acontrol_worker(worker: str, command: Command, *, using: str = "default") -> bool:
    """See control_worker()."""
    return await over(using).arun_flow(_control(worker, command, using))


def lost_workers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[LostWorker]:
    """Return the workers that ended without signing off in the last 24 hours, the latest first: at most 50 of a queue.

    A worker is recorded by the one that takes its jobs, after ``WORKER_TIMEOUT``, and a program without a supervisor
    only if it held jobs. Queues with a damaged key are left out. By default all queues. One round trip, two for all.
    """
    return over(using).run_flow(_read_all_lost(queues, using))


async def alost_workers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[LostWorker]:
    """See lost_workers()."""
    return await over(using).arun_flow(_read_all_lost(queues, using))


def workers_and_lost(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors
) -> tuple[list[WorkerInfo], list[LostWorker]]:
    """Return what list_workers() and lost_workers() return, in as many round trips as one of them."""
    return over(using).run_flow(read_workers_and_lost(queues, using, errors))


def read_workers_and_lost(
    queues: Iterable[str] | None, using: str, errors: Errors, *, most_bytes: int = MOST_BYTES
) -> Flow[tuple[list[WorkerInfo], list[LostWorker]]]:
    """See workers_and_lost() and read_workers()."""
    names = yield from read_chosen(queues)
    both: list[Flow[Any]] = [read_workers(names, using, errors, most_bytes=most_bytes), read_lost(names, using)]
    workers, lost = yield from gather(both)
    return workers, lost


def read_lost(queues: Sequence[str], using: str) -> Flow[list[LostWorker]]:
    """Read the lost workers of queues, the latest first. Queues with a damaged key are left out. One round trip."""
    by_id: dict[str, LostWorker] = {}
    for queue, reply in (yield from of_all(queues, using, LIST_LOST_WORKERS)):
        for parts in () if isinstance(reply, RedisFailure) else batched(reply, 3):
            if worker := _lost_worker(queue, *parts):
                by_id[worker.id] = _merged_lost(by_id[worker.id], worker) if worker.id in by_id else worker
    return sorted(by_id.values(), key=lambda worker: worker.age)


def _read_all_lost(queues: Iterable[str] | None, using: str) -> Flow[list[LostWorker]]:
    return (yield from read_lost((yield from read_chosen(queues)), using))


def _lost_worker(queue: str, id: bytes, age: int, record: bytes) -> LostWorker | None:
    match = _RECORD.fullmatch(record)
    if not match:
        return None
    jobs, pid, supervisor_pid = map(int, match.groups()[:3])
    host = match[4].decode("utf-8", "replace")
    return LostWorker(id.decode("utf-8", "replace"), host, pid, supervisor_pid, (queue,), jobs, age / 1000)


def _merged_lost(worker: LostWorker, other: LostWorker) -> LostWorker:
    """Return a worker that was lost in two queues, or in two shards of one, as one."""
    queues = tuple(dict.fromkeys(worker.queues + other.queues))
    return worker._replace(queues=queues, jobs=worker.jobs + other.jobs, age=min(worker.age, other.age))


def read_workers(
    queues: Iterable[str] | None, using: str, errors: Errors | None = None, *, most_bytes: int = MOST_BYTES
) -> Flow[list[WorkerInfo]]:
    """See list_workers(). With no bytes, the tasks and ages of jobs are not read."""
    names = yield from read_chosen(queues)
    by_id: dict[str, WorkerInfo] = {}
    for name, reply in (yield from of_all(names, using, lambda base: LIST_WORKERS(base, MOST_WORKERS, most_bytes))):
        if isinstance(reply, RedisFailure):
            _left_out(name, reply, errors)
            continue
        for parts in batched(reply, FIELDS):
            worker = _worker_of(name, *parts)
            by_id[worker.id] = _merged(by_id[worker.id], worker) if worker.id in by_id else worker
    return sorted(by_id.values())


def _left_out(queue: str, error: RedisFailure, errors: Errors | None) -> None:
    if errors is not None:
        errors[queue] = error
    elif not isinstance(error, KeyConflict):
        raise error
    elif _log_limit.allows(queue):
        logger.error("Workers of queue %a are not listed: %s", queue, error)


def _control(worker: str, command: str, using: str) -> Flow[bool]:
    validation.identifier("worker", worker)
    validation.one_of("command", command, get_args(Command))
    workers = [info for info in (yield from read_workers(None, using)) if worker in (info.id, info.supervisor)]
    places = [(base, info.id) for info in workers for base in bases(info.queues, using)]
    steps = [SEND_COMMAND(base, id, command, COMMAND_TTL) for base, id in places]
    return any((yield Batch(steps))) if steps else False


def _worker_of(queue: str, id: bytes, left: int, information: bytes, running: int, jobs: list[Any]) -> WorkerInfo:
    """Return a worker in the reply of LIST_WORKERS."""
    report = _about(information)
    if left < 0:
        report["state"] = DEAD
    elif report.get("unresponsive"):
        report["state"] = UNRESPONSIVE
    held = tuple(_held(queue, *parts) for parts in batched(jobs, 3))
    return WorkerInfo(
        id=id.decode("utf-8", "replace"),
        queues=(queue,),
        jobs=tuple(job.id for job in held),
        silent=max(0.0, (lease() - left) / 1000),
        held=held,
        running=running,
        **report,
    )


def _about(information: bytes) -> dict[str, Any]:
    """Return the information of a worker, checked: it has a host and a pid, and its numbers are whole."""
    try:
        report = json.loads(information.partition(b" ")[2])
        known = {name: kind(report[name]) for name, kind in REPORTED.items() if name in report}
        return {"host": known["host"], "pid": known["pid"], **known}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {"host": "?", "pid": 0, "state": "damaged"}


def _held(queue: str, member: bytes, age: int, body: bytes) -> RunningJob:
    id = member.split(b"/", 3)[-1].decode("utf-8", "replace")
    return RunningJob(queue, id, task_of(body), None if age < 0 else age / 1000)


def _merged(worker: WorkerInfo, other: WorkerInfo) -> WorkerInfo:
    """Return a worker that is in two queues, or in two shards of one, as one."""
    return worker._replace(
        queues=tuple(dict.fromkeys(worker.queues + other.queues)),
        jobs=worker.jobs + other.jobs,
        silent=min(worker.silent, other.silent),
        held=worker.held + other.held,
        clock_back=max(worker.clock_back, other.clock_back),
        running=worker.running + other.running,
    )
