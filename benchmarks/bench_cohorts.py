"""Retention and funnels of 100,000 users and 90 days, compared with sets and, if it is installed, with bitmapist."""

import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.support.workers.goals import Goal
from benchmarks.support.workers.server import Server, on_tcp

USERS, DAYS, ROUNDS = 100_000, 90, 15
FIRST = date(2026, 6, 1)
PEER = Path(__file__).parent / "support" / "peers" / "with_bitmapist.py"


def run() -> None:
    """Print the times and whether the answers are those of sets, then the goals."""
    with on_tcp(one_core=False) as server:
        from benchmarks.support.cohorts import Data  # needs Django's settings

        data = Data(USERS, DAYS, FIRST, random.Random(7))
        data.store(server.client)
        for goal in [*_active(data), *_grid(server, data), *_funnels(server, data)]:
            print(goal)
    print()


def _active(data: Any) -> list[Goal]:
    last, goals = FIRST + timedelta(DAYS - 1), []
    for name, window in (("daily_active", 1), ("weekly_active", 7), ("monthly_active", 30)):
        ask = partial(getattr(data.activity, name), FIRST, last)
        found = [users for _, users in ask()]
        assert found == data.active(window), f"{name} is not that of sets"
        goals.append(Goal(f"{name} of {DAYS} days in ms", _ms(ask), "<=", 200))
    return goals


def _grid(server: Server, data: Any) -> list[Goal]:
    last, goals = FIRST + timedelta(DAYS - 1), []
    for rolling in (False, True):
        ask = partial(data.activity.retention_grid, FIRST, last, until=last, rolling=rolling)
        grid, expected = ask(), data.grid(rolling=rolling)
        assert [(cohort.size, cohort.retained) for cohort in grid] == expected, "the grid is not that of sets"
        name = "rolling" if rolling else "day-N"
        print(f"{name} retention, {USERS:,} users, {DAYS} days: {_ms(ask):.0f} ms, equal to sets in {DAYS} cohorts")
        goals.append(Goal(f"{name} retention in ms", _ms(ask), "<=", 200))
    return goals


def _funnels(server: Server, data: Any) -> list[Goal]:
    peer = os.environ.get("BITMAPIST")
    questions = data.questions()
    ours = {name: (_ms(segment.count), segment.count()) for name, (segment, _) in questions.items()}
    for name, (_, expected) in questions.items():
        assert ours[name][1] == len(expected), f"{name} is not that of sets"
    if not peer:
        print("bitmapist is left out; see benchmarks/peers.txt")
        return []
    data.store_for_bitmapist(server.client)
    command = [peer, str(PEER), server.url, str(FIRST), str(ROUNDS)]
    goals, theirs = [], json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    print(f"{'funnel':44}{'kit ms':>9}{'bitmapist':>11}{'sets':>9}{'kit':>9}{'bitmapist':>11}")
    grid = "retention of 90 cohorts"
    last = FIRST + timedelta(DAYS - 1)
    cells = DAYS * (DAYS + 1) // 2
    ours[grid] = _ms(partial(data.activity.retention_grid, FIRST, last, until=last)), cells
    expected = {name: len(users) for name, (_, users) in questions.items()} | {grid: cells}
    for name, (ms, count) in ours.items():
        their_ms, their_count = theirs[name]
        print(f"{name:44}{ms:9.2f}{their_ms:11.2f}{expected[name]:9,}{count:9,}{their_count:11,}")
        goals.append(Goal(f"{name}, to bitmapist", ms / their_ms, "<=", 1.0))
    return goals


def _ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return median(times) * 1000
