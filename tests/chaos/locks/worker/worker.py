"""A worker competes for locks, and writes each of its steps into the history, before and after it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from redis_kit.core.errors import RedisFailure
from redis_kit.locks import Lease, NotHeld
from tests.chaos.locks.support.history import HistoryFile
from tests.chaos.locks.support.kinds import make_lock
from tests.chaos.locks.worker.guarded_rows import Rows
from tests.chaos.locks.worker.steps import Step, Steps, World

LOST = (NotHeld, asyncio.CancelledError)


class Worker:
    """Takes locks again and again, each time with a new object, and writes the rows that they guard."""

    def __init__(self, worker: str, *, names: Sequence[str], ttl: float, history_file: HistoryFile) -> None:
        self.worker, self.names, self.ttl = worker, names, ttl
        self.history_file, self.rows, self.world = history_file, Rows(), World()
        self.chance = Random(worker)
        self.turn, self.lease, self.facts = 0, None, dict[str, Any]()

    def take(self, *, name: str = "", options: dict[str, Any] | None = None, **patience: Any) -> Steps[Lease | None]:
        """Ask for a lease of one of its names, with the options of a lock and the arguments of acquire()."""
        name = name or self.chance.choice(self.names)
        options = {"timeout": self.ttl, **(options or {})}
        wanted = make_lock(name, self.chance, **options)
        self.turn, self.lease = self.turn + 1, None
        self.facts = {"name": name, "turn": self.turn, "ttl": round(options["timeout"] * 1e9)}
        self.facts |= {"weight": wanted.weight, "limit": wanted.limit, "fair": wanted.fair}
        self.facts["once"] = patience.get("blocking") is False
        self.note("asked")
        try:
            self.lease = yield wanted.lock.acquire, patience
        except RedisFailure:
            self.note("failed")
        else:
            self.note("taken" if self.lease else "refused", until=self.until())
        return self.lease

    def extend(self) -> Steps[bool]:
        """Let the lease start anew with its full length."""
        return (yield from self._asking("extending", "extended", self.lease.extend))

    def let_go(self) -> Steps[bool]:
        """Give the lease back."""
        return (yield from self._asking("letting", "let_go", self.lease.release))

    def write(self, *, careful: bool = True) -> Steps[bool]:
        """Write the row that the lock guards; a careful one looks before whether the lease is still held."""
        if careful and not self.lease.held:
            return False
        kept = yield self.rows.write, {"name": self.facts["name"], "lease": self.lease, "writer": self.worker}
        self.note("wrote" if kept else "stale")
        return bool(kept)

    def _asking(self, before: str, after: str, method: Callable[[], Any]) -> Steps[bool]:
        server = 0
        with suppress(RedisFailure):
            server = yield self.world.clock, {}
        self.note(before, server=server, until=self.until())
        try:
            yield method, {}
        except LOST:
            self.note("lost")
            return False
        except RedisFailure:
            self.note("failed")
            return False
        self.note(after, server=server, until=self.until())
        return True

    def rest(self, seconds: float) -> Step:
        """Return the step that does nothing for some seconds."""
        return self.world.rest, {"seconds": seconds}

    def until(self) -> int:
        """Return until when it counts on the lease; 0 where that is not known any more."""
        if self.lease is None or self.lease.over:
            return 0
        return int(self.lease.deadline * 1e9)

    def note(self, what: str, **facts: Any) -> None:
        """Write down what happens now."""
        fence = self.lease.fence if self.lease else 0
        offset = time.time_ns() - time.monotonic_ns()
        self.history_file.note(what, self.worker, fence=fence, offset=offset, **{**self.facts, **facts})


def section(one: Worker) -> Steps[None]:
    """Take the lock once, work for a while, and write what it guards; most holders behave, some do not."""
    chance = one.chance
    renew = chance.random() < 0.01
    patience = chance.choice([{"blocking": False}, {"blocking_timeout": 0.3}, {"blocking_timeout": 2 * one.ttl}])
    if not (yield from one.take(options={"renew": renew}, **patience)):
        yield one.rest(chance.uniform(0.001, 0.1))
        return
    try:
        yield from _work(one, renew)
    except asyncio.CancelledError:  # how a task is told that its lease was lost
        asyncio.current_task().uncancel()
        one.note("lost")
    else:
        yield from one.let_go()


def _work(one: Worker, renew: bool) -> Steps[None]:
    chance = one.chance
    plan = chance.choices(("brief", "long", "too long"), (97, 2, 1))[0]
    yield from one.write()
    if renew:
        yield one.rest(chance.uniform(0, 1.8) * one.ttl)
    elif plan == "brief":
        yield one.rest(chance.uniform(0, 0.01))
    elif plan == "long":
        for _ in range(2):
            yield one.rest(chance.uniform(0, 0.7) * one.ttl)
            if not (yield from one.extend()):
                break
    else:
        yield one.rest(chance.uniform(1.0, 1.3) * one.ttl)
    yield from one.write(careful=chance.random() < 0.7)
