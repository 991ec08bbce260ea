"""A worker, as it reports about itself and as Redis stores its jobs."""

import json
from typing import Any, NamedTuple

from redis_kit.core.values.sequences import batched
from redis_kit.queues.jobs.message import task_of
from redis_kit.queues.store import calls

DEAD = "dead"  # the state of a worker whose lease is over
UNRESPONSIVE = "unresponsive"  # the state of a worker process that gives no sign of life, though its supervisor does
NUMBERS = ("pid", "supervisor_pid", "threads", "memory", "clock_back", "unresponsive")


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


def worker(queue: str, id: bytes, left: int, information: bytes, jobs: list[Any]) -> WorkerInfo:
    """Return a worker in the reply of LIST_WORKERS."""
    report = _about(information)
    held = tuple(_held(queue, *parts) for parts in batched(jobs, 3))
    unresponsive = report.get("unresponsive", 0)
    return WorkerInfo(
        id.decode("utf-8", "replace"),
        str(report["host"]),
        report["pid"],
        (queue,),
        tuple(job.id for job in held),
        max(0.0, (calls.lease() - left) / 1000),
        str(report.get("supervisor", "")),
        report.get("supervisor_pid", 0),
        report.get("threads", 0),
        DEAD if left < 0 else UNRESPONSIVE if unresponsive else str(report.get("state", "")),
        report.get("memory"),
        held,
        report.get("clock_back", 0),
        unresponsive,
    )


def _about(information: bytes) -> dict[str, Any]:
    """Return the information of a worker, checked: it has a host and a pid, and its numbers are whole."""
    try:
        report = json.loads(information.partition(b" ")[2])
        numbers = {name: int(report[name]) for name in NUMBERS if name in report}
        return {"host": report["host"], "pid": numbers["pid"], **report, **numbers}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {"host": "?", "pid": 0, "state": "damaged"}


def _held(queue: str, member: bytes, age: int, body: bytes) -> RunningJob:
    id = member.split(b"/", 3)[-1].decode("utf-8", "replace")
    return RunningJob(queue, id, task_of(body), None if age < 0 else age / 1000)


def merged(worker: WorkerInfo, other: WorkerInfo) -> WorkerInfo:
    """Return a worker that is in two queues, or in two shards of one, as one."""
    return worker._replace(
        queues=tuple(dict.fromkeys(worker.queues + other.queues)),
        jobs=worker.jobs + other.jobs,
        silent=min(worker.silent, other.silent),
        held=worker.held + other.held,
        clock_back=max(worker.clock_back, other.clock_back),
    )
