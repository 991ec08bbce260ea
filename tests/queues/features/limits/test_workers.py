"""Limits with real workers: no two jobs of a group run at once, also when a worker is killed, and each of them runs."""

import os
import signal
from itertools import pairwise

import pytest

from redis_kit.queues import Queue, limits
from tests.fixtures.process import wait_for
from tests.queues.support.journal import QUICK
from tests.queues.support.tasks import note_slowly

pytestmark = pytest.mark.once

GROUPS, JOBS = ("a", "b"), 12


def test_killed_worker_leaves_no_place_taken_and_no_two_jobs_run_at_once(kit, start_worker, journal):
    kit.options(QUEUES=QUICK)
    queue = Queue("default")
    limits.set_limit("default", "group=*", concurrency=1)
    for number in range(JOBS):
        for group in GROUPS:
            note_slowly.using(group=group).enqueue(f"{group}/{number}", 0.02)
    killed = start_worker("--threads", "4")
    start_worker("--threads", "4")
    wait_for(lambda: len(journal.names()) >= 6)
    os.killpg(killed.pid, signal.SIGKILL)
    wanted = {f"{group}/{number}" for group in GROUPS for number in range(JOBS)}
    wait_for(lambda: set(journal.names()) == wanted and not sum(queue.counts()), timeout=60)
    for group in GROUPS:
        begun: dict[tuple[str, int], float] = {}
        runs = []
        for line in journal.lines():
            if line.name.startswith(f"{group}/") and line.step == "begin":
                begun[line.name, line.pid] = line.at
            elif line.name.startswith(f"{group}/"):
                runs.append((begun[line.name, line.pid], line.at))
        runs.sort()
        assert [pair for pair in pairwise(runs) if pair[1][0] < pair[0][1]] == []
