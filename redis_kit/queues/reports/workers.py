"""Workers as they report about themselves, the jobs they hold, those that were lost, and commands to them."""

import json
import logging
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args

from redis_kit.core.errors import KeyConflict, RedisFailure
from redis_kit.core.flow import Flow, operation, twin
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.steps import Batch
from redis_kit.core.values.sequences import batched, several
from redis_kit.queues import validation
from redis_kit.queues.engine.calls import QueueScript, lease
from redis_kit.queues.engine.message import task_of
from redis_kit.queues.queue import over
from redis_kit.queues.reports.stats import Errors, bases, of_all, read_names

logger = logging.getLogger("redis_kit")
_log_limit = LogRateLimit()
Command = Literal["quiet", "resume", "stop"]
LIST_WORKERS, SEND_COMMAND = (QueueScript(name, __package__) for name in ("list_workers", "send_command"))
COMMAND_TTL = 60_000  # ms
FIELDS = 5  # of a worker in the reply of LIST_WORKERS
MOST_WORKERS = 100
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
DEAD = "dead"  # the state of a worker whose lease is over
UNRESPONSIVE = "unresponsive"  # the state of a worker process that gives no sign of life, though its supervisor does
REPORTED: dict[str, type] = dict.fromkeys(("host", "supervisor", "state"), str)
REPORTED |= dict.fromkeys(("pid", "supervisor_pid", "threads", "memory", "unresponsive"), int)
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
    above it; ``state``, "working", "quiet" or "stopping"; ``memory``, resident memory in MiB. ``held`` are its running
    jobs in detail.

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


@operation(over=over)
def list_workers(
    queues: Iterable[str] | None = None, *, using: str = "default", errors: Errors | None = None
) -> Flow[list[WorkerInfo]]:
    """Return the workers of these queues, by default of all: at most 100 of each. One round trip, two for all.

    A queue with a key of a wrong type is left out. With a dict for ``errors``, the error is stored there by the queue's
    name; without it the error is logged, at most once a minute.
    """
    return (yield from read_workers(queues, using, errors))[0]


@operation(over=over)
def control_worker(worker: str, command: Command, *, using: str = "default") -> Flow[bool]:
    """Send a command to a worker: "quiet" to claim no more jobs, "resume", or "stop".

    Return False if the worker does not exist or is dead. ``rk_worker`` reads the command with its next heartbeat; after
    a minute it is void. Other programs that claim jobs read no commands. The id may be that of a supervisor or of
    any of its workers. Three round trips.
    """
    validation.identifier("worker", worker)
    validation.one_of("command", command, get_args(Command))
    listed, _ = yield from read_workers(None, using)
    workers = [info for info in listed if worker in (info.id, info.supervisor)]
    places = [(base, info.id) for info in workers for base in bases(info.queues, using)]
    steps = [SEND_COMMAND(base, id, command, COMMAND_TTL) for base, id in places]
    return any((yield Batch(steps))) if steps else False


@operation(over=over)
def lost_workers(queues: Iterable[str] | None = None, *, using: str = "default") -> Flow[list[LostWorker]]:
    """Return the workers that ended without signing off in the last 24 hours, the latest first: at most 50 of a queue.

    A worker is recorded by the one that takes its jobs, after ``WORKER_TIMEOUT``, and a program without a supervisor
    only if it held jobs. Queues with a damaged key are left out. By default all queues. One round trip, two for all.
    """
    return (yield from read_workers(queues, using, {}, most_bytes=0))[1]


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
) -> Flow[tuple[list[WorkerInfo], list[LostWorker]]]:
    """Read what list_workers() and lost_workers() return. With no bytes, the tasks and ages of jobs are not read."""
    names = (yield from read_names()) if queues is None else several(queues, "queues")
    alive: dict[str, WorkerInfo] = {}
    lost: dict[str, LostWorker] = {}
    for name, reply in (yield from of_all(names, using, lambda base: LIST_WORKERS(base, MOST_WORKERS, most_bytes))):
        if isinstance(reply, RedisFailure):
            _left_out(name, reply, errors)
            continue
        for parts in batched(reply[0], FIELDS):
            worker = _worker_of(name, *parts)
            alive[worker.id] = _merged(alive[worker.id], worker) if worker.id in alive else worker
        for parts in batched(reply[1], 3):
            if gone := _lost_worker(name, *parts):
                lost[gone.id] = _merged_lost(lost[gone.id], gone) if gone.id in lost else gone
    return sorted(alive.values()), sorted(lost.values(), key=lambda worker: worker.age)


def _left_out(queue: str, error: RedisFailure, errors: Errors | None) -> None:
    if errors is not None:
        errors[queue] = error
    elif not isinstance(error, KeyConflict):
        raise error
    elif _log_limit.allows(queue):
        logger.error("Workers of queue %a are not listed: %s", queue, error)


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
        running=worker.running + other.running,
    )


alist_workers = twin(list_workers)
acontrol_worker = twin(control_worker)
alost_workers = twin(lost_workers)
