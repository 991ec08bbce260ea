"""What a competing process does: sections at random in threads or tasks, or single steps as it is told."""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.locks.support.bugs import Seeds
from tests.chaos.locks.support.history import HistoryFile
from tests.chaos.locks.support.kinds import names
from tests.chaos.locks.worker import steps
from tests.chaos.locks.worker.worker import Worker, section

STEPS = {
    "take": Worker.take,
    "extend": Worker.extend,
    "let_go": Worker.let_go,
    "write": Worker.write,
}


def begin(given: argparse.Namespace) -> None:
    """Compete until the time is over, or until standard input ends."""
    history_file = HistoryFile(given.folder / f"{given.worker}.history")
    seeds = Seeds()
    if given.bug:
        seeds.sow(given.bug)
    if not given.seconds:
        return _obey(Worker(given.worker, names=(), ttl=given.lease, history_file=history_file), seeds)
    competing = itertools.product(range(given.tasks), given.kinds)
    found = [
        Worker(f"{given.worker}.{number}", names=names(kind, given.names), ttl=given.lease, history_file=history_file)
        for number, (_, kind) in enumerate(competing)
    ]
    end = time.monotonic() + given.seconds
    return asyncio.run(_tasks(found, end)) if given.run_async else _threads(found, end)


def _obey(one: Worker, seeds: Seeds) -> None:
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            step, arguments, run_async = json.loads(line)
            if step == "sow":
                answer = seeds.sow(**arguments)
            elif run_async:
                answer = runner.run(steps.arun(STEPS[step](one, **arguments)))
            else:
                answer = steps.run(STEPS[step](one, **arguments))
            print(json.dumps(bool(answer)), flush=True)


def _threads(found: Sequence[Worker], end: float) -> None:
    def work(one: Worker) -> None:
        while time.monotonic() < end:
            steps.run(section(one))

    with ThreadPoolExecutor(len(found)) as pool:
        list(pool.map(work, found))  # raises what went wrong in one of them


async def _tasks(found: Sequence[Worker], end: float) -> None:
    async def work(one: Worker) -> None:
        while time.monotonic() < end:
            await steps.arun(section(one))

    async with asyncio.TaskGroup() as group:
        for one in found:
            group.create_task(work(one), name=one.worker)
