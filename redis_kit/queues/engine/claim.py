"""Claims of jobs and their ends, as flows. The next claim repeats one whose answer was lost, so no job is stranded."""

import os
from collections.abc import Callable, Iterable, Sequence
from secrets import token_urlsafe
from typing import Any, NamedTuple

from redis_kit.core import conf
from redis_kit.core.errors import InvalidValue, RedisFailure
from redis_kit.core.flow import Flow
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues import validation
from redis_kit.queues.engine import calls, payload
from redis_kit.queues.engine import done as done_jobs
from redis_kit.queues.engine.calls import End
from redis_kit.queues.engine.done import Ack, ack_of
from redis_kit.queues.engine.job import Job, State, claimed, member, read, seconds
from redis_kit.queues.engine.liveness import heartbeat, worker_id
from redis_kit.queues.errors import CANCELLED_WHILE_RUNNING, Cancelled, LeaseLost
from redis_kit.queues.settings import QueueSettings, options_of
from redis_kit.queues.validation import Delay

ENDS = "another worker has the job or did it, or the server lost it with its data"
CANCELLED = (6, 7)  # the replies for a job that is to be cancelled, and for one that was
MOST_ACKS = 250  # jobs in one call; the server remembers as many
_STATES: dict[int, State] = {1: "ready", 2: "scheduled", 3: "dead"}
# By connection, keys of the queue, and worker: queues of one name on two servers are two queues.
_unanswered: dict[tuple[str, str, str], list[str]] = {}
os.register_at_fork(after_in_child=_unanswered.clear)
_one_by_one: set[tuple[str, str, str]] = set()  # those whose last claim gave a job that ran in a process that died
_features: dict[tuple[str, str], bytes] = {}  # that the queues use, by connection and keys


class Claimed(NamedTuple):
    """The jobs of a claim, and the seconds until there may be another job; None if no further job is scheduled.

    ``lost`` are the places, from 0, of the acknowledged jobs whose claim was lost.
    """

    jobs: list[Job]
    next: float | None
    lost: list[int]


def claim(queue: Primitive, limit: int, worker: str | None, about: str = "", done: Iterable[Job] = ()) -> Flow[Claimed]:
    """Acknowledge jobs and claim others, with arguments that were not checked yet."""
    whole_number("limit", limit, validation.LIMIT)
    acks = _acks(queue, done) if done else ()
    if len(acks) > MOST_ACKS:
        raise InvalidValue(f"{len(acks)} jobs can't be acknowledged in one call; at most {MOST_ACKS} are allowed.")
    place = queue.using, queue.key(""), worker_id(worker)
    reply = yield from claim_and_reap(queue, place[2], 1 if place in _one_by_one else limit, about, acks)
    if not any(job.crashes for job in reply.jobs):
        _one_by_one.discard(place)
        return reply
    _one_by_one.add(place)
    return (yield from _isolated(queue, reply))


def _isolated(queue: Primitive, reply: Claimed) -> Flow[Claimed]:
    """Return jobs to the queue so that one that ran in a process that died is claimed alone."""
    first, *others = reply.jobs
    apart = [job for job in others if first.crashes or job.crashes]
    try:
        if apart:
            yield from settle(queue, [End(member(job), "return") for job in apart])
    except RedisFailure:
        return reply
    return reply._replace(jobs=[job for job in reply.jobs if job not in apart])


def claim_and_reap(
    queue: Primitive, worker: str, limit: int, about: str = "", acks: Sequence[Ack] = ()
) -> Flow[Claimed]:
    """Acknowledge jobs and claim others. If another worker's lease is over, return its jobs to the queue."""
    reply, next_lease = yield from ack_and_claim(queue, worker, limit, about, acks)
    if next_lease == 0:
        try:
            returned = (yield from heartbeat(queue, worker, about)).returned
        except BaseException as error:
            if isinstance(error, RedisFailure) and (reply.jobs or reply.lost):
                return reply
            if reply.jobs:  # a caller that was stopped gets them with its next claim
                claim = reply.jobs[0].token.split("/")[1]
                _unanswered.setdefault((queue.using, queue.key(""), worker), []).append(claim)
            raise
        if returned and not reply.jobs:
            again, _ = yield from ack_and_claim(queue, worker, limit, about)
            reply = again._replace(lost=reply.lost)
    return reply


def ack_and_claim(
    queue: Primitive, worker: str, limit: int, about: str = "", acks: Sequence[Ack] = ()
) -> Flow[tuple[Claimed, float]]:
    """Acknowledge jobs and claim others; return also in how many ms another worker's lease ends."""
    place = queue.using, (base := queue.key(""))
    unanswered = _unanswered.pop((*place, worker), None)
    again = bool(unanswered)
    token = unanswered.pop() if unanswered else token_urlsafe(6)
    if unanswered:
        _unanswered.setdefault((*place, worker), []).extend(unanswered)
    done_limit = options_of(queue.name).DONE_LIMIT if acks else 0

    def step(features: bytes) -> ScriptCall:
        return calls.ack_and_claim(
            base, worker, token, limit, about, again=again, acks=acks, features=features, done_limit=done_limit
        )

    try:
        reply: bytes = yield from featured(queue, step)
    except BaseException as error:
        if again or not isinstance(error, RedisFailure) or getattr(error, "indeterminate", False):
            _unanswered.setdefault((*place, worker), []).append(token)
        raise
    start = reply.index(b"\n")
    wait, next_lease, second, microsecond, lost = reply[:start].split(b" ")
    jobs = claimed(reply, start + 1, f"{worker}/{token}", int(second) + int(microsecond) / 1e6)
    numbers = [int(number) - 1 for number in lost.split(b",")] if lost else []
    return Claimed(jobs, seconds(float(wait)), numbers), float(next_lease)


def featured(queue: Primitive, step: Callable[[bytes], ScriptCall], reply: Any = None) -> Flow[Any]:
    """Run a script that is made for the features that the queue uses; ``reply`` is one that it gave before.

    One round trip, and another one after the first use of a feature, for each process.
    """
    place = queue.using, queue.key("")
    while True:
        if reply is None:
            reply = yield step(_features.get(place, b"0"))
        if not isinstance(reply, bytes) or not reply.startswith(calls.CHANGED):
            return reply
        _features[place], reply = reply[len(calls.CHANGED) :], None


def features(queue: Primitive) -> bytes:
    """Return the features that the queue used at the last call of this process."""
    return _features.get((queue.using, queue.key("")), b"0")


def settle(queue: Primitive, ends: Sequence[End], *, part: str = "", name: str = "") -> Flow[list[int]]:
    """End attempts of one worker that are not done; return how each ended, as settle.lua says. See calls.settle()."""
    if not ends:
        return []
    worker = ends[0].member.partition(b"/")[0].decode("utf-8", "surrogateescape")
    base = queue.key("")
    answers: list[int] = yield from featured(
        queue, lambda features: calls.settle(base, worker, ends=ends, features=features, part=part, name=name)
    )
    return answers


def settle_one(queue: Primitive, job: Job, end: End, *, part: str = "", name: str = "") -> Flow[int]:
    """End the attempt of a job that is not done; return how it ended. Raises LeaseLost."""
    (answer,) = yield from settle(queue, [end], part=part, name=name)
    if not answer:
        raise lost(queue, [job])
    return answer


def unanswered(queue: Primitive, worker: str) -> set[str]:
    """Return the claims of a worker whose answers were lost, and which its next call repeats."""
    return set(_unanswered.get((queue.using, queue.key(""), worker), ()))


def ack(queue: Primitive, jobs: Iterable[Job]) -> Flow[list[Job]]:
    """Acknowledge jobs; return those whose claim was lost."""
    by_worker: dict[str, list[Job]] = {}
    try:
        for job in jobs:
            by_worker.setdefault(job.token.partition("/")[0], []).append(job)
    except AttributeError as error:
        raise _unclaimed(error) from error
    lost = []
    for worker, claims in by_worker.items():
        places = yield from acknowledge(queue, worker, _acks(queue, claims))
        lost += [claims[place] for place in places]
    return lost


def acknowledge(queue: Primitive, worker: str, acks: Sequence[Ack]) -> Flow[list[int]]:
    """Acknowledge jobs of one worker; return the places, from 0, of those whose claim was lost."""
    lost, base, done_limit = [], queue.key(""), options_of(queue.name).DONE_LIMIT
    for start in range(0, len(acks), MOST_ACKS):
        batch = acks[start : start + MOST_ACKS]

        def step(features: bytes, batch: Sequence[Ack] = batch) -> ScriptCall:
            return calls.settle(base, worker, acks=batch, features=features, done_limit=done_limit)

        numbers = yield from featured(queue, step)
        lost += [start - number - 1 for number in numbers or ()]
    return lost


def nack(queue: Primitive, job: Job, delay: Delay, error: str, max_attempts: int | None) -> Flow[State]:
    """Record a failed attempt. A job that was cancelled while it ran is deleted in place of another attempt."""
    state = yield from fail(queue, job, delay, error, max_attempts)
    if state is None:
        stopped = Cancelled(CANCELLED_WHILE_RUNNING)
        keep = int(conf.section(QueueSettings).FAILED_RESULT_TTL * 1000) if job.history else 0
        stored = payload.encoded_error(stopped) if keep else b""
        yield from settle(queue, [End(member(job), "cancel", error=stored, ttl_ms=keep)])
    return state or "dead"


def fail(
    queue: Primitive, job: Job, delay: Delay, error: str, max_attempts: int | None, result: tuple[bytes, int] = (b"", 0)
) -> Flow[State | None]:
    """Record a failed attempt; None if the job is to be cancelled instead, and nothing was recorded.

    ``result`` is the error to store for the caller, and for how many ms.
    """
    most = conf.section(QueueSettings).MAX_ATTEMPTS if max_attempts is None else max_attempts
    whole_number("max_attempts", most, validation.LIMIT)
    wait = validation.milliseconds(delay)
    stored, ttl_ms = result
    try:
        end = End(member(job), "retry", wait, most, 0, calls.cut(error), stored, ttl_ms if stored else 0)
    except AttributeError as mistake:
        raise _unclaimed(mistake) from mistake
    answer = yield from settle_one(queue, job, end)
    return None if answer in CANCELLED else _STATES[answer]


def snooze(queue: Primitive, job: Job, delay: Delay, *, expires: int, why: str, ttl_ms: int) -> Flow[bool]:
    """Return a job to run it later; False if it is to be cancelled instead, and was not returned."""
    wait = validation.milliseconds(delay)
    end = End(member(job), "snooze", wait, 0, expires, calls.cut(why), b"", ttl_ms)
    return (yield from settle_one(queue, job, end)) not in CANCELLED


def postpone(
    queue: Primitive, jobs: Sequence[tuple[Job, float]], *, holds: bool, more: Sequence[ScriptCall] = ()
) -> Flow[list[bool]]:
    """Return claimed jobs, each for some seconds, without counting the attempt. False for those whose claim is over.

    With ``holds`` another system has them: until it ends, or is due here again, a job counts for its limits. ``more``
    is done in the same round trip.
    """
    if not jobs:
        yield Batch([*more])
        return []
    worker, kind = jobs[0][0].token.partition("/")[0], "away" if holds else "later"
    ends = [End(member(job), kind, int(wait * 1000)) for job, wait in jobs]
    base = queue.key("")

    def step(used: bytes) -> ScriptCall:
        return calls.settle(base, worker, ends=ends, features=used)

    first, *_ = yield Batch([step(features(queue)), *more])
    answers = yield from featured(queue, step, first)
    return [bool(answer) for answer in answers]


def version(job: Job) -> str:
    """Return what tells a claimed job from the same one at a later time: attempts begun before, and when it was due."""
    return f"{job.attempt - 1} {round(job.due * 1000)}"


def claim_by_id(
    queue: Primitive, worker: str, claim: str, id: str, *, version: str, token: str, about: str
) -> Flow[Job | None]:
    """Claim one job that was handed over; None if there is nothing to run. A repeat with the same claim is safe."""
    reply = yield calls.claim_by_id(queue.key(""), worker, claim, id, version=version, token=token, about=about)
    if not reply:
        return None
    place, record, second, microsecond = reply
    parts, held = read(record), f"{worker}/{claim}/{place.decode()}"
    moment = int(second) + int(microsecond) / 1e6
    return Job(id, parts.body, held, parts.attempts, parts.crashes, parts.priority, parts.due, parts.history, moment)


def lost(queue: Primitive, jobs: list[Job]) -> LeaseLost:
    """Return the error for claims that were lost."""
    ids = ", ".join(ascii(job.id) for job in jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")
    text = f"The claim on job {ids} of queue {queue.name!a} is over: {ENDS}."
    if len(jobs) > 1:
        text = f"The claims on jobs {ids} of queue {queue.name!a} are over: {ENDS}."
    return LeaseLost(text)


def _unclaimed(error: AttributeError) -> InvalidValue:
    """Return the error for a job that the caller did not claim."""
    text = "Only a Job that claim() returned can be acknowledged. A job of peek() or get() has no claim"
    return InvalidValue(f"{text}: {error}.")


def _acks(queue: Primitive, jobs: Iterable[Job]) -> list[Ack]:
    is_noted = options_of(queue.name).DONE_LIMIT > 0
    try:
        return [ack_of(job, about=done_jobs.line(job) if is_noted else b"") for job in jobs]
    except AttributeError as error:
        raise _unclaimed(error) from error


conf.on_change(_features.clear)  # an alias may lead to another server now
conf.on_change(_one_by_one.clear)
