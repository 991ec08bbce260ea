"""Many queues at a look, and the workers behind them: all of it in one round trip, on a Cluster one per node."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName
from redis_kit.core.flow import Flow
from redis_kit.core.keys import encode
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Batch, Call
from redis_kit.queues import arguments, deaths, moves, names
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.job import Counts, Pause, pause
from redis_kit.queues.queue import Queue

MINUTES = (1, 4320)
MOST_WORKERS = 100
MOST_BYTES = 4 * 1024 * 1024  # of jobs' records, read for one queue
NUMBERS = ("pid", "supervisor_pid", "threads", "memory")
Order = Literal["quiet", "work", "stop"]


class Report(NamedTuple):
    """How a queue is doing.

    ``wait`` is for how many seconds the next job has been ready or, where that is longer, a scheduled one has been due
    that no worker came for; None where there is neither. ``done`` and ``failed`` are numbers of jobs and of attempts in
    each minute up to ``minute``, the present one, counted since 1970; ``begun`` is how many attempts began in it,
    ``lateness`` by how many seconds these were late on average, and ``latest`` at most: the time of the claim less
    that for which the attempt was due. ``paused`` is None where the queue gives out jobs, ``workers`` how many
    living ones work on it, the quiet among them.
    """

    counts: Counts
    wait: float | None
    minute: int
    done: list[int]
    failed: list[int]
    begun: list[int]
    lateness: list[float]
    latest: list[float]
    paused: Pause | None = None
    workers: int = 0

    @property
    def deserted(self) -> bool:
        """Tell whether jobs are due and no worker lives that works on the queue."""
        return self.wait is not None and not self.workers


class Held(NamedTuple):
    """A job in a worker's hands. ``task`` is "" where it names none; ``age`` is for how many seconds it runs, if known.

    The age is known of jobs whose result is stored.
    """

    queue: str
    id: str
    task: str = ""
    age: float | None = None


class Worker(NamedTuple):
    """Who works on which queues, the ids of the jobs in its hands, and for how many seconds it has been silent.

    ``supervisor`` and ``supervisor_pid`` tell of the process above it, where it is one of ``rk_worker``; such a one
    says besides whether it is "working", "quiet" or "stopping", and its resident memory in MiB, with its beats.
    ``held`` tells more of the jobs.
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
    held: tuple[Held, ...] = ()


class _Overview(Primitive):
    component, settings = "queues", QueueSettings

    def tag(self) -> str:
        return "queues"


def known_queues(*, using: str = "default") -> list[str]:
    """Return the names of all queues: those in ``NAMES``, then those that were used. One round trip."""
    return _over(using)._run(_names())


async def aknown_queues(*, using: str = "default") -> list[str]:
    """See known_queues()."""
    return await _over(using)._arun(_names())


def counts_of(queues: Iterable[str], *, using: str = "default") -> dict[str, Counts]:
    """Return how many jobs are in each state, for each queue at one moment. One round trip."""
    return _over(using)._run(_counts(list(queues), using))


async def acounts_of(queues: Iterable[str], *, using: str = "default") -> dict[str, Counts]:
    """See counts_of()."""
    return await _over(using)._arun(_counts(list(queues), using))


def reports_of(queues: Iterable[str], *, minutes: int = 30, using: str = "default") -> dict[str, Report]:
    """Return how queues are doing, with their numbers of the last minutes, at most 4320. One round trip."""
    return _over(using)._run(_reports(list(queues), minutes, using))


async def areports_of(queues: Iterable[str], *, minutes: int = 30, using: str = "default") -> dict[str, Report]:
    """See reports_of()."""
    return await _over(using)._arun(_reports(list(queues), minutes, using))


def workers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[Worker]:
    """Return who works on these queues, by default on all: at most 100 of each. One round trip, two for all."""
    return _over(using)._run(_workers(queues, using))


async def aworkers(queues: Iterable[str] | None = None, *, using: str = "default") -> list[Worker]:
    """See workers()."""
    return await _over(using)._arun(_workers(queues, using))


def order(worker: str, word: Order, *, using: str = "default") -> bool:
    """Order a worker to be quiet, to claim no more, to work again, or to stop; say whether it is there.

    Its ``rk_worker`` obeys with its next beat; an order that nobody took within a minute is void. The id of a
    supervisor does as well as that of any of its workers. Three round trips.
    """
    return _over(using)._run(_order(worker, word, using))


async def aorder(worker: str, word: Order, *, using: str = "default") -> bool:
    """See order()."""
    return await _over(using)._arun(_order(worker, word, using))


def _over(using: str) -> _Overview:
    return _Overview("all", using=using)


def _bases(queues: Sequence[str], using: str) -> list[str]:
    return [Queue(name, using=using).key("") for name in queues]


def _names() -> Flow[list[str]]:
    found = yield Call("SMEMBERS", names.key())
    used = sorted(name.decode("utf-8", "replace") for name in found)
    return [*dict.fromkeys([*conf.section(QueueSettings).NAMES, *filter(_is_name, used)])]


def _is_name(name: str) -> bool:
    try:
        encode(name)
    except InvalidName:
        return False
    return True


def _counts(queues: list[str], using: str) -> Flow[dict[str, Counts]]:
    replies = yield Batch([moves.COUNT(base) for base in _bases(queues, using)])
    return {name: Counts(*reply) for name, reply in zip(queues, replies, strict=True)}


def _reports(queues: list[str], minutes: int, using: str) -> Flow[dict[str, Report]]:
    arguments.whole("minutes", minutes, MINUTES)
    replies = yield Batch([moves.REPORT(base, minutes) for base in _bases(queues, using)])
    return {name: _report(reply) for name, reply in zip(queues, replies, strict=True)}


def _report(reply: list[int]) -> Report:
    wait = None if reply[4] < 0 else reply[4] / 1000
    done, failed, begun, late, latest = (reply[at::5] for at in range(9, 14))
    return Report(
        Counts(*reply[:4]),
        wait,
        reply[5],
        done,
        failed,
        begun,
        [total / 1000 / max(1, count) for total, count in zip(late, begun, strict=True)],
        [most / 1000 for most in latest],
        pause(reply[6], reply[7]),
        reply[8],
    )


def _workers(queues: Iterable[str] | None, using: str) -> Flow[list[Worker]]:
    looked_at = (yield from _names()) if queues is None else list(queues)
    replies = yield Batch([moves.LIST_WORKERS(base, MOST_WORKERS, MOST_BYTES) for base in _bases(looked_at, using)])
    found: dict[str, Worker] = {}
    for name, reply in zip(looked_at, replies, strict=True):
        for at in range(0, len(reply), 4):
            one = _worker(name, *reply[at : at + 4])
            found[one.id] = _merged(found[one.id], one) if one.id in found else one
    return sorted(found.values())


def _order(worker: str, word: str, using: str) -> Flow[bool]:
    arguments.identifier("worker", worker)
    arguments.one_of("word", word, get_args(Order))
    found = [one for one in (yield from _workers(None, using)) if worker in (one.id, one.supervisor)]
    places = [(base, one.id) for one in found for base in _bases(one.queues, using)]
    replies = (yield Batch([moves.order(base, id, word) for base, id in places])) if places else []
    return any(replies)


def _worker(queue: str, id: bytes, left: int, information: bytes, jobs: list[Any]) -> Worker:
    about = _about(information)
    held = tuple(_held(queue, *jobs[at : at + 3]) for at in range(0, len(jobs), 3))
    memory = about.get("memory")
    return Worker(
        id.decode("utf-8", "replace"),
        str(about["host"]),
        about["pid"],
        (queue,),
        tuple(one.id for one in held),
        max(0.0, (moves.lease() - left) / 1000),
        str(about.get("supervisor", "")),
        about.get("supervisor_pid", 0),
        about.get("threads", 0),
        str(about.get("state", "")),
        memory,
        held,
    )


def _about(information: bytes) -> dict[str, Any]:
    """Return what a worker says of itself, with host and pid, and whole numbers where there are to be such."""
    try:
        about = json.loads(information.partition(b" ")[2])
        numbers = {name: int(about[name]) for name in NUMBERS if name in about}
        return {"host": about["host"], "pid": numbers["pid"], **about, **numbers}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {"host": "?", "pid": 0}


def _held(queue: str, member: bytes, age: int, body: bytes) -> Held:
    id = member.split(b"/", 3)[-1].decode("utf-8", "replace")
    return Held(queue, id, deaths.task_of(body), None if age < 0 else age / 1000)


def _merged(one: Worker, other: Worker) -> Worker:
    return one._replace(
        queues=one.queues + other.queues,
        jobs=one.jobs + other.jobs,
        silent=min(one.silent, other.silent),
        held=one.held + other.held,
    )
