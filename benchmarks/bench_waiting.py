"""Waiting for a lock: processes and tasks that pass it on, beside a bare hand-off by a list and redis-py's lock."""

import asyncio
import statistics

from benchmarks.support.locks.kinds import BARE, FAIR, OURS, THEIRS
from benchmarks.support.locks.processes import Outcome, lock_processes
from benchmarks.support.locks.waiting import (
    BLOCKED,
    INSIDE,
    TASKS,
    Figures,
    Passed,
    address,
    blocked_commands,
    many_tasks,
    side_by_side,
)
from benchmarks.support.measurement import site

PROCESSES = 8
REST = 0.003  # seconds


def run() -> None:
    """Print the figures of all locks, and the goals of the kit's locks."""
    with site(one_core=False) as client, lock_processes(PROCESSES, address()) as processes:
        busy = side_by_side(processes, client, rest=0.0)
        show(f"{PROCESSES} processes, {INSIDE * 1000:.0f} ms inside, no rest", busy)
        rested = side_by_side(processes, client, rest=REST)
        show(f"{PROCESSES} processes, {REST * 1000:.0f} ms of rest after each", rested)
        blocked = blocked_commands(processes, client)
        show_blocked(blocked)
        passed = {kind: asyncio.run(many_tasks(kind, client)) for kind in (BARE, THEIRS, OURS)}
        show_tasks(passed)
        show_goals(busy, rested, blocked, passed[OURS])


def show(title: str, figures: dict[str, Figures]) -> None:
    """Print the medians of one case, except for the longest wait of all."""
    print(f"{title:40}{'p50 ms':>8}{'p99 ms':>8}{'x bare':>12}{'sections/s':>12}{'x bare':>8}", end="")
    print(f"{'sent':>7}{'run':>7}{'max/min':>9}{'wait':>6}{'changes':>9}")
    for kind, (slices, sent, run) in figures.items():
        slower = f"{gap_ratio(figures, kind, 0.5):.1f} / {gap_ratio(figures, kind, 0.99):.1f}"
        print(f"{kind:40}{gap(slices, 0.5) * 1000:8.2f}{gap(slices, 0.99) * 1000:8.2f}{slower:>12}", end="")
        print(f"{statistics.median(figure.rate for figure in slices):12,.0f}{rate_ratio(figures, kind):8.2f}", end="")
        print(f"{sent:7.1f}{run:7.1f}{evenness(slices):9.2f}{longest(slices):6}", end="")
        print(f"{statistics.median(figure.changes for figure in slices):9.0%}")
        if overlaps := sum(figure.overlaps for figure in slices):
            print(f"{'':4}TWO HELD IT AT ONCE: {overlaps} times")
    print()


def show_blocked(blocked: dict[str, float]) -> None:
    """Print the commands that blocked waiters send."""
    print(f"{f'one waiter, blocked for {BLOCKED:g} s':40}{'commands/s':>12}")
    for kind, sent in blocked.items():
        print(f"{kind:40}{sent:12.1f}")
    print()


def show_tasks(passed: dict[str, Passed]) -> None:
    """Print the connections and the time that many tasks need."""
    print(f"{f'{TASKS:,} tasks of one process on one lock':40}{'connections':>12}{'had it':>9}{'seconds':>9}")
    for kind, (connections, tasks, seconds) in passed.items():
        print(f"{kind:40}{connections:12}{tasks:9}{seconds:9.2f}")
    print()


def show_goals(
    busy: dict[str, Figures],
    rested: dict[str, Figures],
    blocked: dict[str, float],
    passed: Passed,
) -> None:
    """Print each goal with its measured value, and whether it was met."""
    goals = [
        ("hand-off p50, times bare", gap_ratio(busy, OURS, 0.5), "<=", 2),
        ("hand-off p99, times bare", gap_ratio(busy, OURS, 0.99), "<=", 5),
        ("commands sent per acquisition", busy[OURS].sent, "<=", 6),
        ("longest wait without rest, sections", longest(busy[OURS].slices), "<=", 20),
        ("sections a second with rest, times bare", rate_ratio(rested, OURS), ">=", 0.9),
        ("longest wait with rest, sections", longest(rested[OURS].slices), "<=", 20),
        ("commands a second of a blocked waiter", blocked[OURS], "<=", 1),
        (f"connections of {TASKS:,} tasks", passed.connections, "<=", 4),
        ("tasks that had it", passed.tasks, ">=", TASKS),
    ]
    if FAIR in busy:
        goals.append(("FairLock, max/min acquisitions", evenness(busy[FAIR].slices), "<=", 1.1))
        goals.append(("commands a second of a blocked FairLock", blocked[FAIR], "<=", 1))
    print(f"{'goals of the kit':40}{'measured':>9}{'goal':>9}")
    for name, measured, sense, goal in goals:
        met = measured <= goal if sense == "<=" else measured >= goal
        print(f"{name:40}{measured:9.2f}{f'{sense} {goal}':>9}  {'met' if met else 'MISSED'}")
    print()


def percentile(outcome: Outcome, share: float) -> float:
    """Return a percentile of the time between two holders, in seconds."""
    ordered = sorted(outcome.gaps)
    return ordered[int(len(ordered) * share)]


def gap(slices: list[Outcome], share: float) -> float:
    """Return the median of a percentile."""
    return statistics.median(percentile(outcome, share) for outcome in slices)


def gap_ratio(figures: dict[str, Figures], kind: str, share: float) -> float:
    """Return the time as a multiple of the bare hand-off's."""
    pairs = zip(figures[kind].slices, figures[BARE].slices, strict=True)
    return statistics.median(percentile(outcome, share) / percentile(bare, share) for outcome, bare in pairs)


def rate_ratio(figures: dict[str, Figures], kind: str) -> float:
    """Return the sections a second as a multiple of the bare hand-off's."""
    pairs = zip(figures[kind].slices, figures[BARE].slices, strict=True)
    return statistics.median(outcome.rate / bare.rate for outcome, bare in pairs)


def evenness(slices: list[Outcome]) -> float:
    """Return the ratio of the most acquisitions of a process to the fewest."""
    return statistics.median(outcome.evenness for outcome in slices)


def longest(slices: list[Outcome]) -> int:
    """Return the longest wait of all rounds, in sections of others."""
    return max(outcome.longest for outcome in slices)
