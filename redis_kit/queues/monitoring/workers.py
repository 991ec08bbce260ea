"""What is known of a worker, as its supervisor told it and as the server holds it."""

import json
from typing import Any, NamedTuple

from redis_kit.queues.jobs.message import task_of
from redis_kit.queues.store import calls

NUMBERS = ("pid", "supervisor_pid", "threads", "memory", "clock_back")


class RunningJob(NamedTuple):
    """A job in a worker's hands. ``task`` is "" where it names none; ``age`` is for how many seconds it runs, if known.

    The age is known of jobs whose result is stored.
    """

    queue: str
    id: str
    task: str = ""
    age: float | None = None


class WorkerInfo(NamedTuple):
    """Who works on which queues, the ids of the jobs in its hands, and for how many seconds it has been silent.

    ``supervisor`` and ``supervisor_pid`` tell of the process above it, where it is one of ``rk_worker``; such a one
    says besides whether it is "working", "quiet" or "stopping", and its resident memory in MiB, with its beats. One
    whose record something else wrote to is "damaged", with the host "?" and the pid 0. ``held`` tells more of the jobs.

    ``clock_back`` is by how many seconds its supervisor has seen the server's clock go back, until it has caught up,
    and for an hour at least.
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


def worker(queue: str, id: bytes, left: int, information: bytes, jobs: list[Any]) -> WorkerInfo:
    """Return the worker that the reply of LIST_WORKERS tells of."""
    about = _about(information)
    held = tuple(_held(queue, *jobs[at : at + 3]) for at in range(0, len(jobs), 3))
    memory = about.get("memory")
    return WorkerInfo(
        id.decode("utf-8", "replace"),
        str(about["host"]),
        about["pid"],
        (queue,),
        tuple(one.id for one in held),
        max(0.0, (calls.lease() - left) / 1000),
        str(about.get("supervisor", "")),
        about.get("supervisor_pid", 0),
        about.get("threads", 0),
        str(about.get("state", "")),
        memory,
        held,
        about.get("clock_back", 0),
    )


def _about(information: bytes) -> dict[str, Any]:
    """Return what a worker says of itself, with host and pid, and whole numbers where there are to be such."""
    try:
        about = json.loads(information.partition(b" ")[2])
        numbers = {name: int(about[name]) for name in NUMBERS if name in about}
        return {"host": about["host"], "pid": numbers["pid"], **about, **numbers}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {"host": "?", "pid": 0, "state": "damaged"}


def _held(queue: str, member: bytes, age: int, body: bytes) -> RunningJob:
    id = member.split(b"/", 3)[-1].decode("utf-8", "replace")
    return RunningJob(queue, id, task_of(body), None if age < 0 else age / 1000)


def merged(one: WorkerInfo, other: WorkerInfo) -> WorkerInfo:
    """Return what two queues tell of a worker, as one."""
    return one._replace(
        queues=one.queues + other.queues,
        jobs=one.jobs + other.jobs,
        silent=min(one.silent, other.silent),
        held=one.held + other.held,
        clock_back=max(one.clock_back, other.clock_back),
    )
