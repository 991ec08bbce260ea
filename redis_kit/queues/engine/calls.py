"""The scripts of queues, each an atomic step on the server's clock, and the arguments that they take."""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.scripts import ScriptCall
from redis_kit.queues.engine import ids as identity
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.engine.feature import all_parts, has, pause_parts, script_hooks, script_parts, whole
from redis_kit.queues.engine.job import Job
from redis_kit.queues.keys import OF_JOB, OF_ONE, OF_WORKER, of_one
from redis_kit.queues.settings import QueueSettings

REASON = 1000  # characters
_KEY = re.compile(r"^-- KEYS\[\d+\]\s+(\w+)", re.MULTILINE)
NewJob = tuple[str, bytes]  # id and body
Parts = frozenset[str] | None  # of a script; None for those of all features


# Parts of scripts by their bit in the key `features` of a queue; see scripts/_features.lua. Features bring others.
PARTS = {8: "later", 32: "repeats"}
CHANGED = b"FEATURES "  # how the reply begins of a script that did nothing, as the queue uses other features


@lru_cache(maxsize=1000)
def parts_of(features: bytes) -> frozenset[str]:
    """Return the parts of scripts for the features in use, given as what their key holds."""
    number = int(features) if features.isdigit() and len(features) < 4 else 0
    return frozenset(name for bit, name in {**PARTS, **script_parts()}.items() if number & bit)


class QueueScript:
    """A script over the keys of one queue. It names them, also those of the parts of it that a call needs.

    A call that names no parts is for a queue that may use all features.
    """

    def __init__(self, name: str, package: str = "redis_kit.queues.engine") -> None:
        self._script = lru_cache(maxsize=256)(partial(self._loaded, package, name))
        self._names = lru_cache(maxsize=256)(self._named)
        self._keys = lru_cache(maxsize=256)(self._made)

    def __call__(
        self,
        base: str,
        *args: Any,
        worker: str = "",
        job: str = "",
        more: Sequence[str] = (),
        parts: Parts = None,
    ) -> ScriptCall:
        """Return the step for the queue whose keys begin with ``base``, or for one job of it, with ``more`` keys."""
        keys = self._made(base, worker, job, parts) if job else self._keys(base, worker, "", parts)
        return self._script(parts)([*keys, *more], args)

    @staticmethod
    def _loaded(package: str, name: str, parts: Parts) -> scripts.Script:
        parts = all_parts() if parts is None else parts
        return scripts.load(package, name, parts, script_hooks(parts))

    def _named(self, parts: Parts) -> list[str]:
        return _KEY.findall(self._script(parts).source)

    def _made(self, base: str, worker: str, job: str, parts: Parts) -> list[str]:
        names = dict.fromkeys(OF_ONE, job) | dict.fromkeys(OF_WORKER, worker)
        return [of_one(base, part, names[part]) if part in names else base + part for part in self._names(parts)]


PUT = QueueScript("put")
SETTLE, ACK_AND_CLAIM = map(QueueScript, ("settle", "ack_and_claim"))
HEARTBEAT, REAP, SWEEP = map(QueueScript, ("heartbeat", "reap", "sweep"))
CLAIM_BY_ID = QueueScript("claim_by_id")
STORED = frozenset(("results",))  # the part of scripts that stores results
TAKEN = 200  # jobs in one call
SAMPLE = 200  # jobs that a sweep looks at
MOST_RUNNING = 5000  # running jobs with which a sweep is done
LONGEST_LEASE = 3_601_000  # ms: a moment more than the longest WORKER_TIMEOUT


def lease() -> int:
    """Return the lease of a worker in ms: the time without a heartbeat after which it counts as dead."""
    return int(conf.section(QueueSettings).WORKER_TIMEOUT * 1000)


class Turn(NamedTuple):
    """When a job starts: at the time ``due`` or after a ``delay``, both in ms, by its priority, and in its lane."""

    due: int = 0
    delay: int = 0
    priority: int = 0
    lane: str = ""

    @property
    def start(self) -> str | int:
        """Return when the job is due, as scripts take it."""
        return self.due or (f"+{self.delay}" if self.delay else 0)


AT_ONCE = Turn()


def put(
    base: str, jobs: Sequence[NewJob], turn: Turn, *, own: bool = False, once: str = "", ttl_ms: int = 0
) -> ScriptCall:
    """Return the step that adds jobs, given as id and body; ``own`` if callers chose the ids.

    With a name for ``once`` it may be repeated within ``ttl_ms``.
    """
    start, lane = turn.start, turn.lane
    needs = (("delayed", start), ("lane", lane), ("used", own), ("once", once))
    parts = pause_parts().union(name for name, needed in needs if needed)
    if own:
        parts |= all_parts()
    elif lane:
        parts = whole(parts | {"lanes"})
    return PUT(base, start, turn.priority, lane, ttl_ms or "", *chain.from_iterable(jobs), job=once, parts=parts)


def ack_and_claim(
    base: str,
    worker: str,
    claim: str,
    limit: int,
    about: str = "",
    *,
    again: bool = False,
    acks: Sequence[Ack] = (),
    features: bytes = b"0",
    done_limit: int = 0,
) -> ScriptCall:
    """Return the step that acknowledges jobs and claims others, of a queue that uses these features.

    The stream of done jobs keeps ``done_limit`` jobs; with 0 it gets none.
    """
    args = (features, worker, claim, limit, lease(), about or identity.information(), *_flat(acks, done_limit))
    parts = parts_of(features) | {"again"} if again else parts_of(features)
    if more := _keys_of(base, acks, done_limit):
        parts |= STORED
    return ACK_AND_CLAIM(base, *args, worker=worker, more=more, parts=parts)


class End(NamedTuple):
    """How an attempt ends that is not done; see settle.lua for the kinds. Times are in ms.

    ``error`` and ``ttl_ms`` are of the result of the job, if it has one.
    """

    member: bytes
    kind: str
    delay: int = 0
    most: int = 0
    expires: int = 0
    reason: bytes | str = b""
    error: bytes | str = b""
    ttl_ms: int = 0


def settle(
    base: str,
    worker: str,
    *,
    ends: Sequence[End] = (),
    acks: Sequence[Ack] = (),
    features: bytes = b"0",
    done_limit: int = 0,
    part: str = "",
    name: str = "",
) -> ScriptCall:
    """Return the step that ends attempts of a worker, of a queue that uses these features; see ack_and_claim().

    Ends of a kind that a feature brings need its ``part`` of the script, and the ``name`` in its keys. With ``ends``
    there are no ``acks``.
    """
    parts, more = parts_of(features) - {"later"}, _keys_of(base, acks, done_limit)
    if ends:
        parts = whole(parts) | {"any", "bury", "delay", "endings", *([part] if part else [])}
    if has("results") and any(end.ttl_ms for end in ends):
        ids = [end.member.split(b"/", 3)[-1].decode("utf-8", "surrogateescape") for end in ends]
        more = [of_one(base, part, id) for id in ids for part in OF_JOB]
    if more:
        parts |= STORED
    args = (features, worker, lease(), conf.section(QueueSettings).DEAD_LIMIT, len(ends))
    flat = [part for end in ends for part in end]
    return SETTLE(base, *args, *flat, *_flat(acks, done_limit), worker=worker, job=name, more=more, parts=parts)


def claim_by_id(base: str, worker: str, claim: str, id: str, *, version: str, token: str, about: str) -> ScriptCall:
    """Return the step that claims one job, which was handed over with the claim ``token``."""
    name = id.encode("utf-8", "surrogateescape")
    return CLAIM_BY_ID(base, worker, claim, name, version, token, lease(), about, worker=worker)


def heartbeat(base: str, worker: str, about: str = "", *, after: bytes = b"", page: int = 0) -> ScriptCall:
    """Return the step that keeps a worker alive.

    It lists ``page`` of the worker's running jobs, those that follow ``after``.
    """
    return HEARTBEAT(base, worker, lease(), about or identity.information(), after, page, worker=worker)


def reap(base: str, worker: str, started: Sequence[str], beside: Sequence[tuple[str, str]] = ()) -> ScriptCall:
    """Return the step that returns the jobs of a dead worker; of this queue it ran ``started``, in all ``beside``."""
    names = "".join(f"\n{queue}/{id}" for queue, id in beside)
    return _reap(base, worker, "died", TAKEN, *(text.encode("utf-8", "surrogateescape") for text in (names, *started)))


def reap_silent(base: str, worker: bytes, limit: int) -> ScriptCall:
    """Return the step that returns the jobs of a worker whose lease is over, ``limit`` at most."""
    return _reap(base, worker, "silent", limit)


def sign_off(base: str, worker: str, limit: int) -> ScriptCall:
    """Return the step that returns the jobs of a worker, ``limit`` at most, and then forgets it."""
    return _reap(base, worker, "over", limit, of=worker, parts=all_parts() | {"over"})


def _reap(
    base: str, worker: str | bytes, how: str, limit: int, *texts: bytes, of: str = "", parts: Parts = None
) -> ScriptCall:
    options = conf.section(QueueSettings)
    args = (how, limit, options.MAX_CRASHES, options.DEAD_LIMIT, *(texts or (b"",)))
    return REAP(base, worker, *args, worker=of, parts=parts)


def sweep(base: str) -> ScriptCall:
    """Return the step that makes jobs ready that are in no state."""
    return SWEEP(base, SAMPLE, MOST_RUNNING, LONGEST_LEASE)


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


def _keys_of(base: str, acks: Sequence[Ack], done_limit: int) -> list[str]:
    """Return the keys of results of done jobs, and twice the stream of these; none if no feature stores them."""
    more: list[str] = []
    if not has("results"):
        return more
    for ack in acks:
        if ack.value:
            more += [of_one(base, part, ack.id.decode("utf-8", "surrogateescape")) for part in OF_JOB]
    return more + [f"{base}done"] * 2 if acks and done_limit else more


def cut(reason: str) -> bytes:
    """Return a reason as it is stored: its first 1000 characters."""
    return reason[:REASON].encode("utf-8", "backslashreplace")


def claim_of(job: Job) -> tuple[bytes, bytes]:
    """Return the claim and the id of a job, as scripts take them."""
    return job.token.encode("utf-8", "surrogateescape"), job.id.encode("utf-8", "surrogateescape")
