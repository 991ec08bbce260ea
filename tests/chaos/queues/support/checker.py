"""The checker: what must hold after any number of kills. It sees nothing but what was sent, run, killed and kept."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tests.chaos.queues.support.executions import SECOND, Run, runs
from tests.chaos.queues.support.fault_injector import Kill
from tests.chaos.queues.support.final_state import State
from tests.chaos.queues.support.history import Entry
from tests.chaos.queues.support.load import Sent

CRASHES = 3  # workers that may die with a job
TOLD = 0.5  # seconds within which a worker tells the server what is done
RECONNECT = 3.0  # seconds until a worker has found a server that is back


@dataclass(frozen=True)
class Case:
    """All that is known. Times are in seconds: within which a job is to begin again after each kind of kill."""

    sent: Sequence[Sent]
    history: Sequence[Entry]
    kills: Sequence[Kill]
    state: State
    within: dict[str, float]
    lease: float

    @cached_property
    def runs(self) -> dict[int, list[Run]]:
        """Return the executions by the number of the job."""
        return runs(self.history, self.kills)

    @cached_property
    def repeats(self) -> list[tuple[Run, Run]]:
        """Return each execution that was not the first one of its job, behind the one before."""
        return [pair for its in self.runs.values() for pair in pairwise(its)]

    def succeeded(self, sent: Sent) -> bool:
        """Say whether it is recorded that a job is done; one without a result is gone then, having come to its end."""
        if sent.stores:
            return self.state.status.get(sent.id or "") == "SUCCESSFUL"
        came_to_its_end = any(run.ended and not run.failed for run in self.runs.get(sent.number, ()))
        return came_to_its_end and sent.id not in self.state.jobs

    def failed(self, sent: Sent) -> bool:
        """Say whether it is recorded that a job has failed for good."""
        return sent.id in self.state.dead or self.state.status.get(sent.id or "") == "FAILED"


def lost(case: Case) -> Iterator[str]:
    """Each acknowledged job has an outcome, and one that its executions account for."""
    for sent in case.sent:
        its = case.runs.get(sent.number, [])
        if sent.id is None:
            continue
        if case.failed(sent):
            yield from _undeserved(case, sent, its)
        elif not case.succeeded(sent):
            yield f"job {sent.number} ({sent.kind}) has no outcome; {_told(its)}"
        elif not any(run.ended and not run.failed for run in its):
            yield f"job {sent.number} ({sent.kind}) is recorded as done, and was not; {_told(its)}"


def _undeserved(case: Case, sent: Sent, its: list[Run]) -> Iterator[str]:
    reason = case.state.dead.get(sent.id or "", "")
    if reason.startswith("poison"):
        killed = [run for run in its if run.kill]
        # Of a machine that died nobody knows what it had begun, so all that it had claimed counts.
        unseen = [kill for kill in case.kills if kill.pids and all(run.kill is not kill for run in its)]
        if not killed or len(killed) + len(unseen) < CRASHES:
            yield f"job {sent.number} ({sent.kind}) counts as poison after {len(killed)} kills; {_told(its)}"
    elif sent.kind != "doomed" or not any(run.failed for run in its):
        yield f"job {sent.number} ({sent.kind}) has failed and should not have: {reason!r}; {_told(its)}"
    elif sent.stores and case.state.status.get(sent.id or "") != "FAILED":
        yield f"job {sent.number} ({sent.kind}) is dead, and its result does not say so; {_told(its)}"


def double(case: Case) -> Iterator[str]:
    """No job has two outcomes, and as many were counted as done as are done."""
    both = [sent for sent in case.sent if sent.id and case.succeeded(sent) and case.failed(sent)]
    yield from (f"job {sent.number} ({sent.kind}) is both done and dead" for sent in both)
    # One whose answer got lost was added, or was not; if it ran, it was.
    done = sum(case.succeeded(sent) for sent in case.sent if sent.id)
    unsure = sum(any(run.ended and not run.failed for run in case.runs.get(sent.number, ())) for sent in _unsure(case))
    if case.state.done != done + unsure:
        yield f"{done} jobs are done, and {unsure} of those whose answer got lost; {case.state.done} were counted"


def _unsure(case: Case) -> list[Sent]:
    return [sent for sent in case.sent if sent.id is None]


def unexplained(case: Case) -> Iterator[str]:
    """A job runs again because it failed as it was to, or because its process died, which had so many slots.

    With a whole machine goes the memory of what was done in its last moments and not yet told: no longer ago than that.
    """
    again: dict[Kill, list[Run]] = defaultdict(list)
    for before, after in case.repeats:
        if before.failed:
            continue
        if before.kill is None or before.kill.at > after.begun:
            yield f"job {after.number} ran again, for no reason: {_told([before, after])}"
            continue
        again[before.kill].append(before)
        if before.ended and not _is_fresh(case, before.ended, before.kill):
            yield f"job {after.number} ran again, though it was done long before: {_told([before, after])}"
    for kill, its in again.items():
        remembered = is_remembered(case, kill)
        count = sum(run.ended is None or remembered for run in its)
        if count > kill.slots:
            yield f"{count} jobs ran again after a {kill.kind} with {kill.slots} slots was killed"


def is_remembered(case: Case, kill: Kill) -> bool:
    """Say whether anybody was left who knew what the process had done, and could tell the server."""
    if kill.kind == "supervisor":  # its orphans tell, unless the server is away
        outages = [one for one in case.kills if one.kind == "server"]
        return not any(one.at - RECONNECT * SECOND < kill.at < one.until + RECONNECT * SECOND for one in outages)
    if kill.kind == "child":  # its supervisor tells, unless it dies at once
        supervisors = [one for one in case.kills if one.kind in ("supervisor", "machine")]
        its = [one.at - kill.at for one in supervisors if one.supervisor == kill.supervisor]
        return not any(0 <= after < SECOND for after in its)
    return False


def _is_fresh(case: Case, ended: int, kill: Kill) -> bool:
    """Say whether a job that ended then need not have been told of when its process died."""
    away = [one.until for one in case.kills if one.kind == "server" and one.at < kill.at and one.until > ended]
    return kill.at - max([ended, *away]) < (RECONNECT if away else TOLD) * SECOND


def late(case: Case) -> Iterator[str]:
    """Whatever was running when its process died begins again in time."""
    for run, again in interrupted(case):
        if run.kill is None:
            yield f"job {run.number} stopped in the middle, and nobody had killed its process {run.pid}"
        elif again is None:
            if not any(sent.number == run.number and case.failed(sent) for sent in case.sent):
                yield f"job {run.number} never began again after its {run.kill.kind} was killed"
        elif again.begun > (deadline := _deadline(case, run.kill)):
            took, limit = (again.begun - run.kill.at) / SECOND, (deadline - run.kill.at) / SECOND
            yield f"job {run.number} began again {took:.2f} s after its {run.kill.kind} was killed, not {limit:.2f} s"


def interrupted(case: Case) -> Iterator[tuple[Run, Run | None]]:
    """Yield each execution that never ended, with the job's next one."""
    for its in case.runs.values():
        for run, again in zip(its, [*its[1:], None], strict=True):
            if run.ended is None:
                yield run, again


def _deadline(case: Case, kill: Kill) -> float:
    """Return until when.

    An outage before that gives time too, and a lease of notice, as does the death of the supervisor that was to help.
    Who else dies before that may have had the job in hand already.
    """
    first = deadline = kill.at + case.within[kill.kind] * SECOND
    for other in case.kills:
        helps = other.kind == "server" or (kill.kind == "child" and other.supervisor == kill.supervisor)
        if other is not kill and kill.at < other.until and other.at < (deadline if helps else first):
            more = RECONNECT + 2 * case.lease if other.kind == "server" else case.within[other.kind]
            deadline = max(deadline, other.until + more * SECOND)
    return deadline


def left(case: Case) -> Iterator[str]:
    """Nothing is left but dead jobs."""
    counts = case.state.counts
    if (counts.scheduled, counts.ready, counts.running) != (0, 0, 0):
        yield f"the queue is not empty: {counts}"
    if strange := case.state.jobs ^ set(case.state.dead):
        yield f"{len(strange)} jobs are neither dead nor gone, such as {sorted(strange)[:3]}"
    if case.state.workers:
        yield f"{case.state.workers} workers are still in the registry"
    if case.state.left:
        yield f"keys are left: {', '.join(case.state.left)}"


def _told(its: list[Run]) -> str:
    def end(run: Run) -> str:
        how = (
            "never ended" if run.ended is None else f"{'failed' if run.failed else 'ended'} at {run.ended / SECOND:.3f}"
        )
        return f"{how}, {run.kill.kind} killed at {run.kill.at / SECOND:.3f}" if run.kill else how

    said = [f"in {run.pid} at {run.begun / SECOND:.3f} ({end(run)})" for run in its]
    return "it ran " + ", ".join(said) if said else "it never ran"


CHECKS = (lost, double, unexplained, late, left)
