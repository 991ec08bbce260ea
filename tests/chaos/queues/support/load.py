"""The load: jobs of all kinds, sent one after another through their tasks."""

import time
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from threading import Thread
from typing import Any, NamedTuple

from redis_kit.core.errors import RedisUnavailable
from redis_kit.queues import Queue
from tests.chaos.queues import tasks

MIX = {  # how many of a hundred
    "nothing": 38,
    "kept": 20,
    "short": 12,
    "short_async": 6,
    "long": 3,
    "steady": 5,
    "flaky": 6,
    "delayed": 8,
    "doomed": 2,
}
PLAIN = ("nothing", "short", "long", "lasting")  # those that store no result
LATEST = 2.0  # seconds
TIMES = {"short": (0.001, 0.005), "short_async": (0.001, 0.005), "long": (0.02, 0.1), "steady": (0.02, 0.1)}  # seconds
TASKS = {"long": "short", "lasting": "short"}  # where it is not the kind's name
BACKLOG = 3000  # jobs


class Sent(NamedTuple):
    """A job that was sent; ``id`` is None where the answer got lost, so that it may be there or not."""

    number: int
    kind: str
    id: str | None

    @property
    def stores(self) -> bool:
        """Say whether it stores a result."""
        return self.kind not in PLAIN


class Load(Thread):
    """Sends until ``count`` jobs were acknowledged, so many a second, or as fast as the workers follow."""

    def __init__(
        self, count: int, *, seed: int, rate: float | None, mix: Mapping[str, int], lasting: float = 60.0
    ) -> None:
        super().__init__(daemon=True)
        self.count, self.rate, self.mix = count, rate, mix
        self.times = {**TIMES, "lasting": (lasting, lasting)}
        self.chance = Random(seed)
        self.sent: list[Sent] = []
        self.acknowledged = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Send them all."""
        try:
            self._send_all()
        except BaseException as error:
            self.error = error
            raise

    def _send_all(self) -> None:
        began, number = time.monotonic(), 0
        kinds, weights = list(self.mix), list(self.mix.values())
        while self.acknowledged < self.count:
            number += 1
            self._send(number, self.chance.choices(kinds, weights)[0])
            if self.rate:
                time.sleep(max(0.0, began + number / self.rate - time.monotonic()))
            elif number % 500 == 0:
                self._wait_for_workers()

    def _send(self, number: int, kind: str) -> None:
        while True:
            try:
                id = self._call(kind, number).id
            except RedisUnavailable as error:
                time.sleep(0.02)
                if error.indeterminate:
                    self.sent.append(Sent(number, kind, None))
                    return
            else:
                self.sent.append(Sent(number, kind, id))
                self.acknowledged += 1
                return

    def _call(self, kind: str, number: int) -> Any:
        if kind == "delayed":
            delay = timedelta(seconds=self.chance.uniform(0.05, LATEST))
            return tasks.kept.using(run_after=delay).enqueue(number)
        if kind in self.times:
            return getattr(tasks, TASKS.get(kind, kind)).enqueue(number, self.chance.uniform(*self.times[kind]))
        return getattr(tasks, kind).enqueue(number)

    def _wait_for_workers(self) -> None:
        while self._ready() > BACKLOG:
            time.sleep(0.05)

    def _ready(self) -> int:
        try:
            return Queue("default").counts().ready
        except RedisUnavailable:
            return BACKLOG + 1
