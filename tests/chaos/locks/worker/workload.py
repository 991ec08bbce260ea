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
from tests.chaos.locks.support.history import Journal
from tests.chaos.locks.support.kinds import names
from tests.chaos.locks.worker import steps
from tests.chaos.locks.worker.worker import Competitor, section

STEPS = {
    "take": Competitor.take,
    "extend": Competitor.extend,
    "let_go": Competitor.let_go,
    "write": Competitor.write,
}


def begin(given: argparse.Namespace) -> None:
    """Compete until the time is over, or until standard input ends."""
    journal = Journal(given.folder / f"{given.who}.journal")
    seeds = Seeds()
    if given.bug:
        seeds.sow(given.bug)
    if not given.seconds:
        return _obey(Competitor(given.who, names=(), ttl=given.lease, journal=journal), seeds)
    competing = itertools.product(range(given.tasks), given.kinds)
    found = [
        Competitor(f"{given.who}.{number}", names=names(kind, given.names), ttl=given.lease, journal=journal)
        for number, (_, kind) in enumerate(competing)
    ]
    end = time.monotonic() + given.seconds
    return asyncio.run(_tasks(found, end)) if given.run_async else _threads(found, end)


def _obey(one: Competitor, seeds: Seeds) -> None:
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


def _threads(found: Sequence[Competitor], end: float) -> None:
    def work(one: Competitor) -> None:
        while time.monotonic() < end:
            steps.run(section(one))

    with ThreadPoolExecutor(len(found)) as pool:
        list(pool.map(work, found))  # raises what went wrong in one of them


async def _tasks(found: Sequence[Competitor], end: float) -> None:
    async def work(one: Competitor) -> None:
        while time.monotonic() < end:
            await steps.arun(section(one))

    async with asyncio.TaskGroup() as group:
        for one in found:
            group.create_task(work(one), name=one.who)
