"""Processes that contend for one lock, and the figures from their notes."""

import contextlib
import multiprocessing
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.support.locks.kinds import LOCKS

UNUSED = 60.0  # seconds without work after which a process ends
TOO_LONG = 30.0

Visit = tuple[float, float, float]  # requested, acquired, about to release: seconds on a clock of all processes


class Work(NamedTuple):
    """The work of every process: acquire, stay inside, release, rest, until the end."""

    kind: str
    name: str
    begin: float
    end: float
    inside: float
    rest: float


class LockProcesses:
    """Processes that are forked once. They end with the block, and by themselves if this process is killed."""

    def __init__(self, size: int, url: str) -> None:
        context = multiprocessing.get_context("fork")
        self.lines, self.members = [], []
        for _ in range(size):
            near_end, far_end = context.Pipe()
            member = context.Process(target=_serve, args=(far_end, url), daemon=True)
            member.start()
            far_end.close()
            self.lines.append(near_end)
            self.members.append(member)

    def start(self, work: Work, size: int | None = None) -> Any:
        """Start the work in all of them, or in the first few."""
        for line in self.lines[:size]:
            line.send(work)

    def results(self, size: int | None = None) -> list[list[Visit]]:
        """Wait for the notes of each process. Raises RuntimeError if a process failed."""
        notes = []
        for line in self.lines[:size]:
            if not line.poll(TOO_LONG):
                raise TimeoutError("A process did not come back.")
            answer = line.recv()
            if isinstance(answer, str):
                raise RuntimeError(answer)  # noqa: TRY004 - the text of an error that happened there
            notes.append(answer)
        return notes

    def close(self) -> None:
        """Kill them."""
        for member in self.members:
            member.kill()
            member.join()


@contextlib.contextmanager
def lock_processes(size: int, url: str) -> Iterator[LockProcesses]:
    """Run processes for the length of a block."""
    with contextlib.closing(LockProcesses(size, url)) as processes:
        yield processes


def _serve(line: Any, url: str) -> None:
    while line.poll(UNUSED):
        work = line.recv()
        try:
            line.send(_visits(work, LOCKS[work.kind](work.name, url)))
        except Exception as error:  # the parent raises it
            line.send(f"{work.kind}: {error!r}")


def _visits(work: Work, thing: Any) -> list[Visit]:
    visits: list[Visit] = []
    time.sleep(max(0.0, work.begin - time.monotonic()))
    while (asked := time.monotonic()) < work.end:
        thing.take()
        taken = time.monotonic()
        time.sleep(work.inside)
        visits.append((asked, taken, time.monotonic()))
        thing.give()
        time.sleep(work.rest)
    return visits


class Outcome(NamedTuple):
    """The figures of one slice of one lock."""

    gaps: list[float]  # seconds from just before one release to the return of the next acquire
    rate: float  # sections a second
    evenness: float  # most visits of a process, divided by the fewest
    longest: int  # sections of others during one wait
    changes: float  # share of hand-offs between two processes
    overlaps: int


def outcome(by_process: list[list[Visit]], work: Work) -> Outcome:
    """Return the figures from the notes of all processes. Hand-offs count until the end, waits to their own end."""
    all_visits = sorted(
        (taken, give, process) for process, visits in enumerate(by_process) for _, taken, give in visits
    )
    pairs = [(before, after) for before, after in pairwise(all_visits) if after[0] < work.end]
    gaps = [after[0] - before[1] for before, after in pairs]
    inside = [len([1 for _, taken, _ in visits if taken < work.end]) for visits in by_process]
    return Outcome(
        gaps=gaps,
        rate=sum(inside) / (work.end - work.begin),
        evenness=max(inside) / max(1, min(inside)),
        longest=_longest([taken for taken, _, _ in all_visits], by_process),
        changes=sum(before[2] != after[2] for before, after in pairs) / max(1, len(pairs)),
        overlaps=sum(gap < 0 for gap in gaps),
    )


def _longest(taken: list[float], by_process: list[list[Visit]]) -> int:
    # Acquisitions between a process's request and its own acquisition are those of others.
    return max(
        bisect_left(taken, got) - bisect_right(taken, asked) for visits in by_process for asked, got, _ in visits
    )
